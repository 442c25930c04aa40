# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Collisions of an arm with its surroundings, from the efforts of its joints.

The momentum observer of ``contact.py`` and a low-pass filter give the external torques. Two
high-pass filters remove errors of masses and friction, which change steadily as the arm moves. Two
torques of each joint have thresholds: the sustained torque, and its sudden change, the impact.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from mbs_dynamics.compiler import abs, equal, isnan, less, less_equal, max, select
from mbs_dynamics.control.contact import residual_after
from mbs_dynamics.control.period.logic import all_of, any_of, clipped, first_of, largest
from mbs_dynamics.control.period.records import NEVER, Settings, State
from mbs_dynamics.control.settings import YIELDING
from mbs_dynamics.integrate import JointForces
from mbs_dynamics.integrate.forces import FRICTION_SPEED
from mbs_dynamics.model.model import Model

STOP, FLOAT, YIELD = 0.0, 1.0, 2.0
"""Reactions: a fault; gravity compensation alone until torques are enabled again; the same, and
for YIELDING s torques along with the contact."""

YIELDING_SHARE = 0.25
"""Share of the velocity limits up to which an arm goes along with a contact."""

GAIN = 90.0
"""Gain of the observer and of the low-pass filter behind it, in 1/s: half a step after 19 ms."""

DRIFT = 0.08
"""Time constant in s of the two high-pass filters. An impact is faster."""

SETTLING = 0.5
"""Time in s from the first residual on in which nothing is detected."""

LONGEST = 0.1
"""Longest time in s between two states; after a longer one the observer restarts."""


class Hit(NamedTuple):
    """Conditions that a torque exceeds its threshold most, torques and thresholds, (n,) each."""

    joints: Any
    torque: Any
    threshold: Any


def resistance(model: Model, qd: Any) -> Any:
    """Return the torques (n,) of :meth:`~mbs_dynamics.integrate.JointForces.resistance`.

    The hyperbolic tangent is Lambert's fraction, within 1.4e-3.
    """
    of_joints = JointForces.of(model)
    x = clipped(qd / FRICTION_SPEED, -3.6, 3.6)
    y = x * x
    tanh = x * (945.0 + y * (105.0 + y)) / (945.0 + y * (420.0 + y * 15.0))
    return -(of_joints.damping * qd + of_joints.friction * tanh)


def with_contact(s: State, watched: Any, elapsed: Any, momentum: Any, rate: Any) -> State:
    """Return the state with the external torques ``elapsed`` s after those before.

    ``momentum`` and its ``rate`` without external torques (n,) are of now. If the torque of a joint
    that is ``watched`` (n,) is unknown, all are. Filters are solved by implicit Euler steps, which
    are stable for any time.
    """
    decay, slow = 1.0 / (1.0 + GAIN * elapsed), 1.0 / (1.0 + elapsed / DRIFT)
    change, mean_rate = (momentum - s.momentum) / elapsed, 0.5 * (rate + s.momentum_rate)
    r, first = residual_after(s.residual, change, mean_rate, decay), isnan(s.residual)
    sustained = select(first, r, r + decay * (s.sustained - r))
    drift = select(first, r, sustained + slow * (s.drift - sustained))
    rest = sustained - drift
    trend = select(first, 0.0, rest + slow * (s.trend - rest))
    known = less(0.0, elapsed) & less_equal(elapsed, LONGEST)
    known = known & all_of(less(abs(r), NEVER) | ~watched)
    goes_on = known & ~any_of(first & watched)
    after = {
        "momentum": momentum,
        "momentum_rate": rate,
        "residual": select(known, r, np.nan),
        "sustained": select(known, sustained, np.nan),
        "drift": select(known, drift, np.nan),
        "trend": select(known, trend, np.nan),
        "contact_time": select(goes_on, s.contact_time + elapsed, 0.0),
    }
    new = ~equal(elapsed, 0.0)
    return s._replace(**{name: select(new, x, getattr(s, name)) for name, x in after.items()})


def impact_of(s: State) -> Any:
    """Return the sudden external torques (n,)."""
    return s.sustained - s.drift - s.trend


def hit(s: State, p: Settings, engaged: Any) -> Hit:
    """Return the collision that begins with a state of an engaged arm."""
    impact, watched = impact_of(s), less(p.impact_threshold, NEVER)
    sudden = less(abs(s.sustained) / p.sustained_threshold, abs(impact) / p.impact_threshold)
    torque = select(watched, select(sudden, impact, s.sustained), 0.0)
    threshold = select(sudden, p.impact_threshold, p.sustained_threshold)
    ratio = abs(torque) / threshold
    detects = engaged & less_equal(SETTLING, s.contact_time) & less(s.collided, 0.0)
    joints = less(1.0, ratio) & less_equal(largest(ratio), ratio) & detects
    return Hit(joints, torque, threshold)


def with_collision(s: State, p: Settings, found: Hit, now: Any) -> State:
    """Return the state with a collision, if one begins."""
    begins, yields = any_of(found.joints), equal(p.on_collision, YIELD)
    joint, _, _ = first_of(*found)
    return s._replace(
        collided=select(begins, joint, s.collided),
        yields_until=select(begins & yields, now + YIELDING, s.yields_until),
    )


def without_collision(s: State, forgets: Any, settles: Any) -> State:
    """Return the state without the collision, if it ``forgets``.

    External torques settle again, then and if it ``settles``.
    """
    return s._replace(
        residual=select(forgets | settles, np.nan, s.residual),
        contact_time=select(forgets | settles, 0.0, s.contact_time),
        collided=select(forgets, -1.0, s.collided),
        yields_until=select(forgets, -np.inf, s.yields_until),
    )


def floats(s: State, p: Settings) -> Any:
    """Return the condition that an arm floats since a collision."""
    return less_equal(0.0, s.collided) & ~equal(p.on_collision, STOP)


def yielding(s: State, p: Settings, qd: Any, now: Any) -> Any:
    """Return the torques (n,) of an arm that yields: impacts beyond thresholds, while slow."""
    impact = impact_of(s)
    beyond = max(abs(impact) - p.impact_threshold, 0.0)
    along = max(1.0 - abs(qd) / (YIELDING_SHARE * p.fastest), 0.0)
    pushes = less(0.0, beyond) & less(now, s.yields_until)
    return select(pushes, along * select(less(impact, 0.0), -beyond, beyond), 0.0)
