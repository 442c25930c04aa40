# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Checks before torques are enabled."""

from __future__ import annotations

import math

import numpy as np

from mbs_dynamics.control.evidence import disagreement
from mbs_dynamics.control.gravity_and_loads import overload
from mbs_dynamics.control.old_guard import Guard
from mbs_dynamics.control.policy import GuardState
from mbs_dynamics.errors import ArgumentError
from mbs_dynamics.model.diagnostics import stopping_effort, stopping_speed


def problems(guard: Guard, now: float, *, held: bool = False) -> list[str]:
    """Return all reasons in an arm's state why torques must not be enabled; empty if none.

    ``held``: the motors are known to hold the arm, so that efforts must agree with gravity.
    """
    joints = guard.settings.joints
    policy = guard.policy
    reasons = []
    if policy.state is GuardState.FAULT:
        reasons.append(f"a fault is latched: {policy.fault}; clear it first")
    reasons += [
        f"{name} has no effort limit: set effort_limits.{name}, or <limit effort> in the URDF"
        for name, most in zip(joints, guard.efforts, strict=True)
        if not 0.0 < most < math.inf
    ]
    for joint in guard.model.joints:
        if joint.nv == 1 and joint.coordinate in guard.joints:
            speed, effort = stopping_speed(joint), stopping_effort(joint)
            if speed:
                reasons.append(f"{joint.name} {speed}: state a positive one in the URDF")
            if effort:
                reasons.append(f"{joint.name} {effort}: state a positive one, or none")
    limited = bool(joints) and all(0.0 < most < math.inf for most in guard.efforts)
    if limited:
        try:
            guard.limits.check()
        except ArgumentError as error:
            reasons.append(str(error))
    if guard.model.total_mass == 0.0:
        reasons.append("the description of the robot states no mass: all gravity torques are zero")
    if policy.state is GuardState.DISABLED and guard.evidence.trouble is not None:
        reasons.append(f"{guard.evidence.trouble}; clear it first")
    trouble = guard.input_problem(now)
    if trouble:
        reasons.append(trouble)
    elif limited and guard.q and policy.at_rest:
        try:
            guard.following.check(guard.model_in_force(now), guard.resting(now))
        except ArgumentError as error:
            reasons.append(str(error))
        reasons += filter(None, (overload(guard), _mismatch(guard, held)))
    return reasons


def supported(guard: Guard) -> bool:
    """Return whether measured efforts show that motors hold the arm."""
    return not guard.idle(guard.known_efforts())


def _mismatch(guard: Guard, held: bool) -> str:
    """Return how measured efforts contradict the gravity torques; empty if they do not."""
    settings, efforts = guard.settings, guard.known_efforts()
    gathered = guard.evidence.passed or guard.evidence.active
    if gathered and not any(efforts):  # drives that measure none report zeros
        efforts = []
    asked = {
        "start_from is 'effort'": settings.start_from == "effort",
        "effort_check is 'always'": settings.effort_check == "always",
        "collision_file is set": bool(settings.collision_file),
    }
    if not efforts:
        wanted = next((why for why, is_so in asked.items() if is_so), "")
        return f"{wanted}, but {guard.source} hold no efforts of all joints" if wanted else ""
    surely = held or any(list(asked.values())[:2])
    if settings.effort_check == "off" or (not surely and guard.idle(efforts)):
        return ""
    needed = guard.law.goal_torques(np.array(guard.q))
    return disagreement(settings, efforts, needed, guard.efforts)
