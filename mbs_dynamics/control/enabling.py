# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Checks before torques are enabled."""

from __future__ import annotations

import math

import numpy as np

from mbs_dynamics.control.gravity_and_loads import overload
from mbs_dynamics.control.guard import Guard
from mbs_dynamics.control.policy import GuardState
from mbs_dynamics.errors import ArgumentError

EFFORT_FLOOR = 0.02
"""Largest accepted error of a measured effort, as a share of its limit: noise and friction."""


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
    limited = bool(joints) and all(0.0 < most < math.inf for most in guard.efforts)
    if limited:
        try:
            guard.limits.check()
        except ArgumentError as error:
            reasons.append(str(error))
    if guard.model.total_mass == 0.0:
        reasons.append("the description of the robot states no mass: all gravity torques are zero")
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
    return not _idle(guard, _known_efforts(guard))


def _known_efforts(guard: Guard) -> list[float]:
    """Return the measured efforts of the commanded joints; empty unless all are known."""
    efforts = [guard.measured[k] for k in guard.joints] if guard.measured else []
    return efforts if all(map(math.isfinite, efforts)) else []


def _idle(guard: Guard, efforts: list[float]) -> bool:
    """Return whether efforts are next to nothing, or not known."""
    pairs = zip(efforts, guard.efforts, strict=False)
    return all(abs(x) <= EFFORT_FLOOR * most for x, most in pairs)


def _mismatch(guard: Guard, held: bool) -> str:
    """Return how measured efforts contradict the gravity torques; empty if they do not.

    Both are compared as shares of the effort limits, within ``effort_tolerance`` times the largest
    share of a gravity torque, and EFFORT_FLOOR.
    """
    settings, efforts = guard.settings, _known_efforts(guard)
    asked = {
        "start_from is 'effort'": settings.start_from == "effort",
        "effort_check is 'always'": settings.effort_check == "always",
        "collision_file is set": bool(settings.collision_file),
    }
    if not efforts:
        wanted = next((why for why, is_so in asked.items() if is_so), "")
        return f"{wanted}, but {guard.source} hold no efforts of all joints" if wanted else ""
    surely = held or any(list(asked.values())[:2])
    if settings.effort_check == "off" or (not surely and _idle(guard, efforts)):
        return ""
    needed = guard.law.goal_torques(np.array(guard.q))
    largest = max(abs(x) / most for x, most in zip(needed, guard.efforts, strict=True))
    bound = EFFORT_FLOOR + settings.effort_tolerance * largest
    rows = zip(settings.joints, efforts, needed, guard.efforts, strict=True)
    share, name, effort, x, most = max((abs(e - g) / f, name, e, g, f) for name, e, g, f in rows)
    if share <= bound:
        return ""
    return (
        f"the measured efforts do not agree with gravity: {name} measures {effort:.4g}, and "
        f"{x:.4g} would hold it against gravity; valid is within {bound * most:.4g}, see "
        "effort_tolerance. Does the driver compensate gravity itself, is the arm mounted "
        "otherwise, is a mass wrong?"
    )
