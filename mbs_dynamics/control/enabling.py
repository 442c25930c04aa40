# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Checks before torques are enabled, and before gravity or loads change."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from mbs_dynamics.checks import FloatArray
from mbs_dynamics.errors import ArgumentError, ModelError

if TYPE_CHECKING:
    from mbs_dynamics.control.guard import Guard

LARGEST_TURN = math.radians(60.0)
"""Largest turn of gravity at once while torques are commanded; an inverted sign exceeds it."""

EFFORT_FLOOR = 0.02
"""Largest accepted error of a measured effort, as a share of its limit: noise and friction."""


def problems(guard: Guard, now: float, *, held: bool = False) -> list[str]:
    """Return all reasons in an arm's state why torques must not be enabled; empty if none.

    ``held``: the motors are known to hold the arm, so that efforts must agree with gravity.
    """
    joints = guard.settings.joints
    reasons = [
        f"{name} has no effort limit: set effort_limits.{name}, or <limit effort> in the URDF"
        for name, most in zip(joints, guard.efforts, strict=True)
        if not 0.0 < most < math.inf
    ]
    limited = not reasons and bool(joints)
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
    elif limited and guard.q and guard.policy.at_rest:
        try:
            guard.following.check(guard.model_in_force(now), guard.resting(now))
        except ArgumentError as error:
            reasons.append(str(error))
        reasons += filter(None, (overload(guard), _mismatch(guard, held)))
    return reasons


def overload(
    guard: Guard, gravity: FloatArray | None = None, loads: FloatArray | None = None
) -> str:
    """Return the joints that could not hold the arm in its latest posture; empty if all can.

    ``gravity`` (3,) and ``loads`` (nb, 10) are those that are aimed at where none are given.
    """
    torques = guard.law.goal_torques(np.array(guard.q), gravity, loads)
    return "; ".join(
        f"{name} needs {x:.4g} against gravity, and its effort limit is {most:.4g}"
        for name, x, most in zip(guard.settings.joints, torques, guard.efforts, strict=True)
        if not abs(x) <= most
    )


def check_hold(
    guard: Guard, gravity: FloatArray | None = None, loads: FloatArray | None = None
) -> None:
    """Raise ModelError if the arm could not be held in its latest posture; see overload."""
    over = overload(guard, gravity, loads) if guard.q else ""
    if over:
        raise ModelError(f"the arm could not be held: {over}")


def check_turn(guard: Guard, goal: FloatArray) -> None:
    """Raise ArgumentError for a gravity (3,) that is turned too far while torques are commanded."""
    before = guard.law.gravity.goal
    lengths = float(np.linalg.norm(before) * np.linalg.norm(goal))
    if guard.policy.at_rest or lengths == 0.0:
        return
    angle = math.acos(max(-1.0, min(1.0, float(before @ goal) / lengths)))
    if angle > LARGEST_TURN:
        raise ArgumentError(
            f"gravity {goal.tolist()} is turned by {math.degrees(angle):.0f} degrees from "
            f"{before.tolist()}; valid is at most {math.degrees(LARGEST_TURN):.0f} at once "
            "while torques are commanded. Is its sign that of an imu?"
        )


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
