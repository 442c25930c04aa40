# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Changes of gravity and loads of an arm under guard, and checks before them."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from mbs_dynamics.checks import FloatArray
from mbs_dynamics.control.environment import LinkLoad, payload_parameters, with_load
from mbs_dynamics.control.old_guard import Guard
from mbs_dynamics.errors import ArgumentError, ModelError
from mbs_dynamics.model.model import without_payloads

ROUNDING = 1e-9
"""Relative tolerance on sums of masses."""

LARGEST_TURN = math.radians(60.0)
"""Largest turn of gravity at once while torques are commanded; an inverted sign exceeds it."""


def aim_gravity(guard: Guard, goal: FloatArray, now: float) -> None:
    """Move to another gravity (3,) in the axes of the root link, along a ramp while engaged.

    Raises what :func:`check_gravity` raises.
    """
    check_gravity(guard, goal)
    guard.law.gravity.aim(goal, now, guard.ramp)


def check_gravity(guard: Guard, goal: FloatArray) -> None:
    """Raise ArgumentError or ModelError for a gravity (3,) that must not be aimed at now."""
    _check_turn(guard, goal)
    _check_hold(guard, gravity=goal)


def aim_loads(
    guard: Guard,
    loads: Sequence[LinkLoad],
    now: float,
    *,
    check: bool,
    time: float | None,
) -> None:
    """Move to other loads, one a link, in ``time`` s while engaged; None: ``ramp_time``.

    Raises what :func:`loads_goal` raises, and with ``check`` ModelError if the arm could not be
    held.
    """
    goal = loads_goal(guard, loads)
    if check:
        _check_hold(guard, loads=goal)
    ramp = guard.ramp if time is None or guard.policy.at_rest else time
    guard.law.loads.aim(goal, now, ramp)


def loads_goal(guard: Guard, loads: Sequence[LinkLoad]) -> FloatArray:
    """Return the inertial parameters (nb, 10) of loads, one a link, added up for each body.

    Raises what :func:`with_load` raises, and ModelError if they are too heavy together. Less than
    is carried now is never too heavy: ``max_payload`` may have been lowered since.
    """
    model, mass = guard.model, sum(load.mass for load in loads)
    heaviest = guard.settings.max_payload or without_payloads(model).total_mass
    carried = float(guard.law.loads.goal[:, 0].sum())
    if mass > max(heaviest, carried * (1.0 + ROUNDING)):
        links = " and ".join(repr(load.link) for load in loads)
        raise ModelError(
            f"the payload at {links} has a mass of {mass:g} kg; valid is at most {heaviest:.4g}, "
            "see max_payload. Are these grams?"
        )
    carrying = without_payloads(model)
    for load in loads:
        carrying = with_load(carrying, load)
    return payload_parameters(carrying)


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


def _check_hold(
    guard: Guard, gravity: FloatArray | None = None, loads: FloatArray | None = None
) -> None:
    """Raise ModelError if the arm could not be held in its latest posture; see overload."""
    over = overload(guard, gravity, loads) if guard.q else ""
    if over:
        raise ModelError(f"the arm could not be held: {over}")


def _check_turn(guard: Guard, goal: FloatArray) -> None:
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
