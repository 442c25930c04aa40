# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The settings of a period, from the settings of users and the model."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from mbs_dynamics.checks import FloatArray
from mbs_dynamics.control.laws.impedance import (
    CartesianImpedance,
    JointImpedance,
    fastest_mode,
)
from mbs_dynamics.control.period import collisions
from mbs_dynamics.control.period.command import HOLD_TORQUE, RAMP_DOWN, ZERO
from mbs_dynamics.control.period.laws import LEADS
from mbs_dynamics.control.period.records import NEVER, Settings
from mbs_dynamics.control.settings import LARGEST_SHARE, RATE_SHARE, ArmSettings, MotionSettings
from mbs_dynamics.model.coordinates import bounded
from mbs_dynamics.model.model import Model

LEAD = 0.2
"""Largest distance by which a reference leads a joint under a law that is called first, in rad or
m."""

SATURATION = 1.0
"""Time in s at its effort limit after which a joint is a fault: pushes of a hand are shorter."""

SETTLE_TIME = 1.0
"""Time in s after enabling in which the momentum of the arm is damped."""

EFFORT_CHECKS = {"off": 0.0, "auto": 1.0, "always": 2.0, "tracking": 2.0}
"""Numbers of the values of ``effort_check``."""

ON_COLLISION = {"stop": collisions.STOP, "float": collisions.FLOAT, "yield": collisions.YIELD}

REACTIONS = {"ramp_down": RAMP_DOWN, "hold": HOLD_TORQUE, "zero": ZERO}


def period_settings(
    model: Model,
    joints: Sequence[int],
    given: ArmSettings,
    gravity: FloatArray,
    loads: FloatArray,
    *,
    thresholds: FloatArray | None = None,
    **others: Any,
) -> Settings:
    """Return the settings of the period of an arm.

    ``joints`` are the coordinates of ``given.joints``. ``gravity`` (3,) in m/s^2 and ``loads``
    (nb, 10), inertial parameters of each body, are the goals of their ramps. ``thresholds`` (2, n)
    are those of collisions, impact first; without them none is detected. ``others`` are further
    fields by name, such as those of drives; by default there are none. No law but gravity
    compensation exerts torques.
    """
    n, own = model.n, list(joints)
    motion = given if isinstance(given, MotionSettings) else MotionSettings(joints=given.joints)

    of_joints = partial(of_commanded, n, own)
    limited = bounded(model.lower, model.upper)
    low, high = np.where(limited, model.lower, -NEVER), np.where(limited, model.upper, NEVER)
    margin = given.position_margin
    stated = np.where(np.isfinite(model.effort_limits), model.effort_limits, 0.0)[own]
    limits = np.asarray(given.effort_limits)
    efforts = given.effort_scale * np.where(limits > 0.0, limits, stated)
    timeout = np.full(n, given.other_joints_timeout)
    timeout[own] = given.stale_timeout
    for name in given.fixed:
        timeout[model.joint_names.index(name)] = math.inf
    impact, sustained = np.full((2, n), NEVER) if thresholds is None else thresholds
    coulomb = [
        model.joints[k].friction if x < 0.0 else x for x, k in zip(given.friction, own, strict=True)
    ]
    without_drives = {
        "hottest": math.inf, "longest_pause": math.inf, "can_hold": 0.0, "stiffness": np.zeros(n),
        "drive_damping": np.zeros(n), "slip": np.full(n, NEVER), "hand_over": 0.0,
    }  # fmt: skip
    usual = {
        "saturation": SATURATION, "settle_time": SETTLE_TIME, "ramp_in": given.ramp_in_time,
        "watches_efforts": 0.0, "release": 0.0,
    }  # fmt: skip
    return Settings(
        commanded=of_joints(1.0),
        low=np.where(limited, low - margin, low),
        high=np.where(limited, high + margin, high),
        spring_low=low,
        spring_high=high,
        fastest=np.minimum(model.velocity_limits, NEVER),
        effort=of_joints(efforts),
        rate=of_joints(RATE_SHARE * efforts),
        timeout=timeout,
        ahead=given.stale_timeout,
        differentiates=float(given.velocity_from_position),
        frozen_timeout=given.frozen_timeout,
        tolerance=given.largest_deviation,
        effort_check=EFFORT_CHECKS[given.effort_check],
        starts_from_effort=float(given.start_from == "effort"),
        collides=float(thresholds is not None),
        on_collision=ON_COLLISION[given.on_collision],
        impact_threshold=impact,
        sustained_threshold=sustained,
        on_fault=REACTIONS[given.on_fault],
        ramp_out=given.ramp_time,
        filter=given.velocity_filter,
        gravity=gravity,
        gravity_time=given.ramp_time,
        loads=loads,
        loads_time=given.ramp_time,
        scale=of_joints(given.gravity_scale),
        damping=of_joints(given.damping),
        friction=of_joints(np.multiply(min(given.friction_scale, LARGEST_SHARE), coulomb)),
        zone=given.limit_zone,
        state_period=motion.period,
        switch_time=motion.switch_time,
        **law_settings(model, joints),
        own_lead=of_joints(LEAD, NEVER),
        own_link_lead=np.repeat(LEADS, 3),
        reference_velocity=np.minimum(
            of_joints(motion.reference_velocity, 1.0), np.minimum(model.velocity_limits, NEVER)
        ),
        reference_acceleration=of_joints(motion.reference_acceleration, 1.0),
        reference_timeout=motion.reference_timeout,
        pose_velocity=np.array(
            [motion.reference_angular_velocity, motion.reference_linear_velocity]
        ),
        pose_acceleration=np.array(
            [motion.reference_angular_acceleration, motion.reference_linear_acceleration]
        ),
        **(without_drives | usual | others),
    )


def law_settings(model: Model, joints: Sequence[int]) -> dict[str, Any]:
    """Return the settings that laws state, by name, for laws that exert nothing."""
    return {
        **joint_settings(model, joints, JointImpedance(0.0)),
        **link_settings(CartesianImpedance("", 0.0, 0.0)),
    }


def joint_settings(model: Model, joints: Sequence[int], law: JointImpedance) -> dict[str, Any]:
    """Return the settings of an impedance of joints, by name.

    Raises UnknownJointError or ArgumentError for a law of other joints.
    """
    stiffness = law.stiffness_of([model.joint_names[k] for k in joints])
    return {
        "joint_stiffness": of_commanded(model.n, joints, stiffness),
        "joint_ratio": law.damping_ratio,
        "joint_fastest": fastest_mode(law.damping_ratio),
    }


def link_settings(law: CartesianImpedance) -> dict[str, Any]:
    """Return the settings of an impedance of a link, by name."""
    return {
        "link_stiffness": law.gains,
        "link_ratio": law.damping_ratio,
        "link_fastest": fastest_mode(law.damping_ratio),
        "link_axes": float(law.axes == "target"),
        "posture_frequency": law.posture_frequency,
    }


def of_commanded(
    n: int, joints: Sequence[int], values: object, otherwise: float = 0.0
) -> FloatArray:
    """Return (n,) the values of commanded joints, at most NEVER, and ``otherwise`` for others."""
    row = np.full(n, otherwise)
    row[list(joints)] = np.minimum(np.asarray(values, dtype=float), NEVER)
    return row
