# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Linear ramps of gravity, loads and gains to their set values.

Values depend on state and time alone, so that settings take effect in every mode.
"""

from __future__ import annotations

from typing import Any

from mbs_dynamics.compiler import equal, isnan, less, max, min, select
from mbs_dynamics.control.period.logic import any_of
from mbs_dynamics.control.period.records import Settings, State


def ramped(value: Any, goal: Any, end: Any, now: Any, dt: Any) -> Any:
    """Return a value dt after the previous one, on a line that reaches the goal at time ``end``.

    From then on it is the goal.
    """
    left = end - (now - dt)
    share = select(less(now, end), min(1.0, dt / max(left, 1e-9)), 1.0)
    return select(equal(share, 1.0), goal, value + share * (goal - value))


def loads_change(s: State, p: Settings) -> Any:
    """Return the condition that other loads are set."""
    return any_of(~equal(p.loads.ravel(), s.loads_goal.ravel())) if p.loads.size else False


def with_parameters(s: State, p: Settings, now: Any, dt: Any, at_rest: Any, q: Any) -> State:
    """Return the state with gravity, loads and gains in force now.

    They change at once while the arm is at rest. ``q`` (n,) are its positions; a limit spring does
    not move past them.
    """
    new_gravity = any_of(~equal(p.gravity, s.gravity_goal))
    new_loads = loads_change(s, p)
    new_gains = ~equal(p.zone, s.zone_goal) | any_of(
        ~equal(p.scale, s.scale_goal)
        | ~equal(p.damping, s.damping_goal)
        | ~equal(p.friction, s.friction_goal)
    )
    gains_time = select(at_rest, 0.0, p.ramp_out)

    def end(changes: Any, time: Any, before: Any) -> Any:
        """Return when a ramp ends: after a time in s from a change on, or now at rest."""
        return select(changes, now + time, select(at_rest, now, before))

    gravity_end = end(new_gravity, select(at_rest, 0.0, p.gravity_time), s.gravity_end)
    loads_end = end(new_loads, select(at_rest, 0.0, p.loads_time), s.loads_end)
    gains_end = end(new_gains, gains_time, s.gains_end)
    zone = ramped(s.zone, p.zone, gains_end, now, dt)
    width = min(zone, 0.25 * (p.spring_high - p.spring_low))
    low, high = p.spring_low + width, p.spring_high - width
    low_q = select(isnan(q), s.spring_low, q)
    high_q = select(isnan(q), s.spring_high, q)
    ends = {"gravity": gravity_end, "loads": loads_end}
    ends |= dict.fromkeys(("scale", "damping", "friction", "zone"), gains_end)
    return s._replace(
        **{x: ramped(getattr(s, x), getattr(p, x), at, now, dt) for x, at in ends.items()},
        **{f"{x}_goal": getattr(p, x) for x in ends},
        gravity_end=gravity_end,
        loads_end=loads_end,
        gains_end=gains_end,
        spring_low=min(low, max(s.spring_low, low_q)),
        spring_high=max(high, min(s.spring_high, high_q)),
    )


def with_springs_at(s: State, q: Any, begins: Any) -> State:
    """Return the state whose limit springs begin no further inside than the positions q (n,)."""
    return s._replace(
        spring_low=select(begins, min(s.spring_low, q), s.spring_low),
        spring_high=select(begins, max(s.spring_high, q), s.spring_high),
    )
