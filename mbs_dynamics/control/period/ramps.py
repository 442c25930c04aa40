# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Linear ramps of gravity torques and gains to their set values.

Values depend on state and time alone, so that settings take effect in every mode.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mbs_dynamics.compiler import abs, equal, isnan, less, select
from mbs_dynamics.control.period.logic import all_of, max, min
from mbs_dynamics.control.period.records import NEVER, Settings, State


def ramped(value: Any, goal: Any, end: Any, now: Any, dt: Any) -> Any:
    """Return a value dt after the previous one, on a line that reaches the goal at time ``end``.

    From then on it is the goal.
    """
    left = end - (now - dt)
    share = select(less(now, end), min(1.0, dt / max(left, 1e-9)), 1.0)
    return select(equal(share, 1.0), goal, value + share * (goal - value))


def changes(given: Any, before: Any) -> Any:
    """Return the condition that other numbers are set than before."""
    return ~all_of(equal(given.ravel(), before.ravel())) if given.size else np.False_


def with_environment(s: State, p: Settings, g: Any, now: Any, dt: Any, at_rest: Any) -> State:
    """Return the state with gravity and loads as they are set.

    ``g`` (n,) are their torques. They act at once while the arm is at rest.
    """
    new_loads, new_gravity = changes(p.loads, s.loads), changes(p.gravity, s.gravity)
    time = max(select(new_loads, p.loads_time, 0.0), select(new_gravity, p.gravity_time, 0.0))
    lag = ramped(s.lag, 0.0, s.lag_end, now, dt)
    lag = select(less(0.0, time), s.g - g, lag)
    acts = less(abs(lag), NEVER) & ~at_rest
    return s._replace(
        gravity=p.gravity,
        loads=p.loads,
        lag=select(acts, lag, 0.0),
        lag_end=select(at_rest, now, select(less(0.0, time), now + time, s.lag_end)),
    )


def with_parameters(s: State, p: Settings, now: Any, dt: Any, at_rest: Any, q: Any) -> State:
    """Return the state with the gains in force now.

    They change at once while the arm is at rest. ``q`` (n,) are its positions; a limit spring does
    not move past them.
    """
    new_gains = ~(
        equal(p.zone, s.zone_goal)
        & all_of(equal(p.scale, s.scale_goal))
        & all_of(equal(p.damping, s.damping_goal))
        & all_of(equal(p.friction, s.friction_goal))
    )
    end = select(at_rest, now, select(new_gains, now + p.ramp_out, s.gains_end))
    zone = ramped(s.zone, p.zone, end, now, dt)
    width = min(zone, 0.25 * (p.spring_high - p.spring_low))
    low, high = p.spring_low + width, p.spring_high - width
    low_q = select(isnan(q), s.spring_low, q)
    high_q = select(isnan(q), s.spring_high, q)
    gains = ("scale", "damping", "friction", "zone")
    return s._replace(
        **{x: ramped(getattr(s, x), getattr(p, x), end, now, dt) for x in gains},
        **{f"{x}_goal": getattr(p, x) for x in gains},
        gains_end=end,
        spring_low=min(low, max(s.spring_low, low_q)),
        spring_high=max(high, min(s.spring_high, high_q)),
    )


def with_springs_at(s: State, q: Any, begins: Any) -> State:
    """Return the state whose limit springs begin no further inside than the positions q (n,)."""
    return s._replace(
        spring_low=select(begins, min(s.spring_low, q), s.spring_low),
        spring_high=select(begins, max(s.spring_high, q), s.spring_high),
    )
