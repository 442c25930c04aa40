# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Collisions of an arm with its surroundings, from the efforts of its joints.

The generalised momentum p = M qd obeys pd = tau + C^T qd - g + tau_ext, since Md = C + C^T. The
residual of the momentum observer follows tau_ext as a low-pass filter does, without accelerations:
De Luca, Albu-Schaeffer, Haddadin and Hirzinger (2006). A second low-pass filter suppresses the
noise of velocities. Errors of masses and friction change steadily as the arm moves; two high-pass
filters remove them. Two torques of each joint are compared with thresholds, which grow with speed:
the sustained torque, and the impact, which is its sudden change.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

import mbs_dynamics as mbs
from mbs_dynamics.compiler import abs, equal, isnan, less, less_equal, max, select
from mbs_dynamics.control.period.logic import all_of, any_of, clipped, first_of, largest
from mbs_dynamics.control.period.measurement import Measured
from mbs_dynamics.control.period.records import NEVER, Settings, State
from mbs_dynamics.control.settings import YIELDING
from mbs_dynamics.integrate import JointForces
from mbs_dynamics.integrate.forces import FRICTION_SPEED
from mbs_dynamics.model.model import Model
from mbs_dynamics.representation.tree import Tree

STOP, FLOAT, YIELD = 0.0, 1.0, 2.0
"""Reactions: a fault; gravity compensation alone until torques are enabled again; the same, and
for YIELDING s torques along with the contact."""

YIELDING_SHARE = 0.25
"""Share of the velocity limits up to which an arm goes along with a contact."""

GAIN = 100.0
"""Gain of the observer and of the low-pass filter behind it, in 1/s. A step of torque is seen to a
half after 17 ms."""

DRIFT = 0.1
"""Time constant in s of the two high-pass filters. An impact is faster."""

SETTLING = 5.0 * DRIFT
"""Time in s from the first residual on in which nothing is detected."""

LONGEST = 0.1
"""Longest time in s between two states; after a longer one the observer restarts."""


class Hit(NamedTuple):
    """A collision that begins, each (n,)."""

    joints: Any
    """Conditions that its torque exceeds its threshold most, of all joints."""
    torque: Any
    threshold: Any


def fading(x: Any) -> Any:
    """Return the decay of a first-order filter after x time constants, for x >= 0.

    It is exp(-x) within 1 % of 1, and within 1e-4 for x up to 0.4.
    """
    return 1.0 / (1.0 + x * (1.0 + x * (0.5 + x * (1.0 / 6.0 + x / 24.0))))


def residual_after(before: Any, change: Any, rate: Any, decay: Any) -> Any:
    """Return the residual (n,) of the momentum observer after a time; NaN where it is unknown.

    ``change`` is that of the momentum over this time, divided by it, and ``rate`` the mean rate
    without external torques, (n,) each. The filter keeps the share ``decay`` of the residual
    ``before`` (n,), which counts as 0 where it is NaN.
    """
    known = select(isnan(before), 0.0, before)
    return decay * known + (1.0 - decay) * (change - rate)


def momentum_of(tree: Tree, q: Any, qd: Any, effort: Any, representation: str) -> tuple[Any, Any]:
    """Return the momentum and its rate without external torques, (n,) each, at q, qd (n,).

    Friction and damping of the description are subtracted from the ``effort`` (n,).
    """
    momentum, rate = mbs.generalized_momentum(tree, q, qd, representation=representation)
    return momentum, effort + rate + resistance(tree.model, qd)


def resistance(model: Model, qd: Any) -> Any:
    """Return the torques (n,) of friction and damping that the description of a robot states.

    They are those of :meth:`~mbs_dynamics.integrate.JointForces.resistance`, with the hyperbolic
    tangent by Lambert's fraction, within 1.4e-3.
    """
    of_joints = JointForces.of(model)
    x = clipped(qd / FRICTION_SPEED, -3.6, 3.6)
    y = x * x
    tanh = x * (945.0 + y * (105.0 + y)) / (945.0 + y * (420.0 + y * 15.0))
    return -(of_joints.damping * qd + of_joints.friction * tanh)


def with_contact(s: State, p: Settings, m: Measured, momentum: Any, rate: Any) -> State:
    """Return the state with external torques; ``momentum`` and its ``rate`` (n,) are of now.

    If the torque of a joint that is watched is unknown, all are. The drift does not change after a
    collision.
    """
    watched, frozen = less(p.impact_threshold, NEVER), less_equal(0.0, s.collided)
    elapsed = m.advance
    usable = less(0.0, elapsed) & less_equal(elapsed, LONGEST)
    mean_rate = 0.5 * (rate + s.momentum_rate)
    decay = fading(GAIN * elapsed)
    r = residual_after(s.residual, (momentum - s.momentum) / elapsed, mean_rate, decay)
    first = isnan(s.residual)
    sustained = select(first, r, r + decay * (s.sustained - r))
    slow = select(frozen, 1.0, fading(elapsed / DRIFT))
    drift = select(first, r, sustained + slow * (s.drift - sustained))
    rest = sustained - drift
    trend = select(first, 0.0, rest + slow * (s.trend - rest))
    known = usable & all_of(less(abs(r), NEVER) | ~watched)
    starts = any_of(first & watched)
    after = {
        "momentum": momentum,
        "momentum_rate": rate,
        "residual": select(known, r, np.nan),
        "sustained": select(known, sustained, np.nan),
        "drift": select(known, drift, np.nan),
        "trend": select(known, trend, np.nan),
        "contact_time": select(known & ~starts, s.contact_time + elapsed, 0.0),
    }
    new = m.heard & ~equal(elapsed, 0.0)
    return s._replace(**{name: select(new, x, getattr(s, name)) for name, x in after.items()})


def impact_of(s: State) -> Any:
    """Return the sudden external torques (n,)."""
    return s.sustained - s.drift - s.trend


def compared(s: State, p: Settings, qd: Any) -> tuple[Any, Any]:
    """Return impact and sustained torques (2, n), and their thresholds (2, n) at rates qd (n,).

    Beyond the speeds of the recording thresholds grow in proportion.
    """
    watched = less(p.impact_threshold, NEVER)
    share = largest(select(watched, abs(qd) / p.recorded_speed, 0.0))
    bounds = [
        max(1.0, share) * (at_rest + share * slope)
        for at_rest, slope in (
            (p.impact_threshold, p.impact_slope),
            (p.sustained_threshold, p.sustained_slope),
        )
    ]
    torques = [select(watched, row, 0.0) for row in (impact_of(s), s.sustained)]
    return np.array(torques), np.array(bounds)


def hit(s: State, p: Settings, qd: Any, engaged: Any) -> Hit:
    """Return the collision that begins with a state of an engaged arm, at rates qd (n,)."""
    torques, bounds = compared(s, p, qd)
    ratios = abs(torques) / bounds
    sudden = less(ratios[1], ratios[0])
    ratio = select(sudden, ratios[0], ratios[1])
    detects = engaged & less_equal(SETTLING, s.contact_time) & less(s.collided, 0.0)
    joints = less(1.0, ratio) & less_equal(largest(ratio), ratio) & detects
    return Hit(joints, select(sudden, *torques), select(sudden, *bounds))


def with_collision(s: State, p: Settings, found: Hit, now: Any) -> State:
    """Return the state with a collision, if one begins."""
    begins = any_of(found.joints)
    joint, _, _ = first_of(found.joints, found.torque, found.threshold)
    until = select(equal(p.on_collision, YIELD), now + YIELDING, -np.inf)
    return s._replace(
        collided=select(begins, joint, s.collided),
        yields_until=select(begins, until, s.yields_until),
    )


def settling(s: State, settles: Any) -> State:
    """Return the state in which external torques settle again, if it ``settles``."""
    return s._replace(
        residual=select(settles, np.nan, s.residual),
        contact_time=select(settles, 0.0, s.contact_time),
    )


def without_collision(s: State, forgets: Any) -> State:
    """Return the state without the collision, if it ``forgets``."""
    return settling(s, forgets)._replace(
        collided=select(forgets, -1.0, s.collided),
        yields_until=select(forgets, -np.inf, s.yields_until),
    )


def floats(s: State, p: Settings) -> Any:
    """Return the condition that an arm floats since a collision."""
    return less_equal(0.0, s.collided) & ~equal(p.on_collision, STOP)


def yielding(s: State, p: Settings, qd: Any, now: Any) -> Any:
    """Return the torques (n,) of an arm that yields to a contact: impacts beyond thresholds.

    They fade as it moves.
    """
    impact = impact_of(s)
    beyond = max(abs(impact) - p.impact_threshold, 0.0)
    along = max(1.0 - abs(qd) / (YIELDING_SHARE * p.fastest), 0.0)
    pushes = less(0.0, beyond) & less(now, s.yields_until)
    return select(pushes, along * select(less(impact, 0.0), -beyond, beyond), 0.0)
