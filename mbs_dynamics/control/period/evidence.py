# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Evidence for the sign of gravity torques while they ramp in, where no effort has shown it.

The share s of the gravity torques g grows from zero. The resulting motion shows what holds the arm.
If it stays still, something supports it, and s grows slowly. If it sinks, nothing does, and s grows
as fast as torques may ramp in. If it rises, something else already carries its weight, such as
drives that compensate gravity themselves, and torques stop. If it sinks faster and faster under the
full g, torques act in the wrong direction, and stop as well. The efforts of drives that hold the
arm are compared with g before these drives release it.
"""

from __future__ import annotations

import math
from typing import Any

from mbs_dynamics.compiler import abs, equal, isnan, less, less_equal, select
from mbs_dynamics.control.period.logic import (
    all_of,
    any_of,
    count_if,
    first_of,
    holds,
    largest,
    max,
    min,
)
from mbs_dynamics.control.period.measurement import Measured
from mbs_dynamics.control.period.records import SWITCHING, Sample, Settings, State
from mbs_dynamics.control.period.transitions import ON

RISES, SINKS, DISAGREES = 1.0, 2.0, 3.0
"""Evidence against the torques: the arm rises, it sinks faster and faster under the full torques,
or drives that hold it exert other efforts."""

GROWTH = 1.0
"""Time in s in which unverified torques grow while the arm stays still."""

CATCH_UP = 0.03
"""Shortest time in s in which torques grow while the arm sinks."""

SINKING, SUNK = 0.03, 1e-4
"""Mean speed in rad/s and mean displacement in rad beyond which an arm sinks."""

RISE, PAUSE = 0.01, 0.002
"""Displacements in rad or m against gravity at which torques stop, and at which they stop
growing."""

OVERSHOOT = 2.0
"""Rise of an arm on its drives that its sinking explains, relative to that: without damping it
oscillates, and rises on the other side as far as it has sunk."""

MODEL_ERROR = 0.2
"""Share of g by which the model may be wrong: an arm may rise slowly under the rest."""

CONFIRMS = 0.25
"""Largest difference of a measured effort that shows gravity torques to be right, as a share of the
gravity torque of its joint."""

FAST = 0.2
"""Mean speed in rad/s that a rising arm does not reach by an error of the model."""

FASTER = 0.3
"""Growth of a speed in rad/s or m/s under the full g that no error of the model explains.

Simulated arms of right signs, with masses wrong by a fifth, stay below 0.08; those with a joint of
the wrong sign grow by 1 to 20, except where they rise elsewhere, which stops them first."""

DELAY = 0.06
"""Time in s after which the full g must have stopped a sinking arm from accelerating."""

WATCHED = 0.3
"""Time in s for which the arm is watched once torques alone hold it."""

LOADED = 0.02
"""Share of the effort limit above which gravity loads a joint."""

EFFORT_TOLERANCE = 0.5
"""Largest accepted difference of measured efforts from gravity torques, as a share of the largest
gravity torque: it accepts errors of masses, but no wrong sign and no missing effort."""

EFFORT_FLOOR = 0.02
"""Largest accepted error of a measured effort, as a share of its limit: noise and friction."""

STILL = 0.1
"""Speed in rad/s or m/s up to which efforts of drives are compared with those at rest."""

CONFIRMED, LONGEST_DOUBT = 5.0, 0.15
"""Number of successive states in which efforts must agree, and the time in s that they have."""


def shown(effort: Any, p: Settings) -> Any:
    """Return the condition that efforts are measured: other drives report NaN or 0."""
    known = all_of(~isnan(effort) | ~holds(p.commanded))
    return known & any_of(holds(p.commanded) & less(0.0, abs(effort)))


def idle(effort: Any, p: Settings) -> Any:
    """Return the condition that efforts are nearly zero, or unknown."""
    some = holds(p.commanded) & less(EFFORT_FLOOR * p.effort, abs(effort))
    return ~any_of(some) | any_of(isnan(effort) & holds(p.commanded))


def per_limit(p: Settings) -> Any:
    """Return the reciprocal effort limits (n,), 0 for joints that are not commanded."""
    return select(holds(p.commanded), 1.0 / max(p.effort, 1e-9), 0.0)


def confirm(effort: Any, needed: Any, p: Settings) -> Any:
    """Return the condition that efforts (n,) are gravity torques (n,) within CONFIRMS.

    Each joint that gravity loads is compared. Between this and :func:`disagreement` friction at
    rest, or drives that carry a part of the weight, make a difference; the motion tells which.
    """
    loaded = holds(p.commanded) & less(LOADED * p.effort, abs(needed))
    return ~any_of(loaded & less(CONFIRMS * abs(needed), abs(effort - needed)))


def disagreement(effort: Any, needed: Any, p: Settings) -> tuple[Any, Any]:
    """Return how far efforts (n,) are from gravity torques (n,), and the bound, as shares.

    The bound is EFFORT_TOLERANCE times the largest share of a gravity torque, and EFFORT_FLOOR.
    """
    per = per_limit(p)
    apart = abs(effort - needed) * per
    return apart, EFFORT_FLOOR + EFFORT_TOLERANCE * largest(abs(needed) * per)


def restarted(s: State, q: Any, begins: Any, verified: Any) -> State:
    """Return the state in which evidence is collected from positions q (n,) on, if it ``begins``.

    If the torques are ``verified``, no evidence is collected.
    """
    watched = begins & ~verified
    return s._replace(
        weighing=select(begins, 1.0 * ~verified, s.weighing),
        proven=select(watched, 0.0, s.proven),
        most_share=select(begins, 1.0 * verified, s.most_share),
        first_q=select(watched, q, s.first_q),
        lowest_q=select(watched, q, s.lowest_q),
        lowest=select(watched, 0.0, s.lowest),
        sinking=select(watched, 0.0, s.sinking),
        sprung=select(watched, 0.0, s.sprung),
        whole_at=select(watched, math.inf, s.whole_at),
        agreeing=select(watched, 0.0, s.agreeing),
        disagree_since=select(watched, math.inf, s.disagree_since),
        alone_since=select(watched, math.inf, s.alone_since),
    )


def with_evidence(
    s: State,
    x: Sample,
    p: Settings,
    m: Measured,
    g: Any,
    exerted: Any,
    engaged: Any,
    elsewhere: Any,
    dt: Any,
) -> tuple[State, Any]:
    """Return the state with the evidence, and the condition that it contradicts the torques.

    ``g`` (n,) are the whole gravity torques, ``exerted`` (n,) the efforts of drives that hold the
    arm; ``elsewhere``: another controller holds it.
    """
    watching = holds(s.weighing)
    now, dt = x.now, min(dt, 0.1)
    of_arm = holds(p.commanded)
    weight = sum(abs(g))
    weight = select(less(0.0, weight), weight, math.inf)
    speed, mean = sum(g * m.qd) / weight, sum(g * (m.q - s.first_q)) / weight
    lower = less(mean, s.lowest)
    lowest, lowest_q = select(lower, mean, s.lowest), select(lower, m.q, s.lowest_q)
    drives_hold, drives_alone = less(0.0, s.hold) | elsewhere, equal(s.hold, 1.0)
    sprung = holds(s.sprung) | drives_hold
    alone = ~drives_hold & less_equal(SWITCHING, now - s.switched_at)
    floats = holds(x.floats)

    # it rises, or sinks faster and faster
    loaded = of_arm & less(LOADED * p.effort, abs(g))
    dip = largest(select(sprung & ~equal(g, 0.0), abs(s.first_q - lowest_q), 0.0))
    rise = select(loaded & less(0.0, g * (m.q - lowest_q)), abs(m.q - lowest_q), 0.0)
    most = RISE + OVERSHOOT * dip
    tolerant = less_equal(1.0 - MODEL_ERROR, s.most_share) & ~less(FAST, speed)
    most = select(tolerant, 3.0 * most, most)
    rises = less(most, rise) & less(lowest, mean)
    acted = alone & less_equal(DELAY, now - s.whole_at)
    runs = less(abs(s.whole_qd) + FASTER, abs(m.qd)) & less(g * m.qd, 0.0) & loaded & acted

    # efforts of drives that hold it
    apart, bound = disagreement(exerted, g, p)
    agree = ~any_of(less(bound, apart) & of_arm)
    still = ~any_of(less_equal(STILL, abs(m.qd)) & of_arm)
    compared = drives_alone & less_equal(0.999, s.most_share)
    doubts = compared & ~agree & still
    agreeing = select(doubts, 0.0, s.agreeing + 1.0 * (compared & agree))
    since = select(doubts, min(s.disagree_since, now), math.inf)
    disagrees = doubts & less_equal(LONGEST_DOUBT, now - since)

    k_rise, by_rise, _ = first_of(rises & floats, rise, most + 0.0 * rise)
    k_run, by_run, _ = first_of(runs & floats, abs(m.qd), rise)
    found = select(
        ~isnan(k_rise),
        RISES,
        select(~isnan(k_run), SINKS, select(disagrees, DISAGREES, 0.0)),
    )
    released = ~engaged & less(s.hold, 1.0)  # others may move it
    found = select(watching & m.heard & ~released, found, 0.0)
    fails = less(0.0, found)
    joint = select(equal(found, RISES), k_rise, select(equal(found, SINKS), k_run, -1.0))
    value = select(equal(found, RISES), by_rise, select(equal(found, SINKS), by_run, 0.0))

    # the share that may act
    sinks = less(speed, -SINKING) & less(mean, -SUNK)
    sinking = count_if(sinks, s.sinking)
    ramp, slowest = max(CATCH_UP, p.ramp_in), max(GROWTH, p.ramp_in)
    steady = less(mean - lowest, PAUSE) | drives_hold | ~floats
    growth = select(less_equal(2.0, sinking), dt / ramp, select(steady, dt / slowest, 0.0))
    share = s.most_share + growth
    limit = select(drives_alone & less(agreeing, CONFIRMED), 0.999, 1.0)
    share = select(less(limit - 1e-9, share), limit, share)
    waits = ~(equal(share, 1.0) & alone & less(s.whole_at, math.inf))
    holds_all = equal(share, 1.0) & waits
    # drives that work against the torques keep the arm up by themselves
    loops = p.stiffness * (s.held - m.q) - p.drive_damping * m.qd
    against = less(
        0.5 * share * largest(abs(g) * per_limit(p)),
        largest(select(drives_hold, abs(loops * per_limit(p)), 0.0)),
    )
    share = select(fails & against, 0.0, select(fails, s.most_share, share))

    # full torques without contradiction for some time are right
    held = ~engaged & less(s.whole_at, math.inf) & confirm(exerted, g, p)
    rests = (engaged & equal(s.mode, ON) & ~drives_hold) | held
    alone_since = select(rests & ~fails, min(s.alone_since, now), math.inf)
    proven = less_equal(WATCHED, now - alone_since)

    acts = watching & m.heard
    ends = acts & (fails | proven | released)
    after = s._replace(
        weighing=select(ends, 0.0, s.weighing),
        proven=select(acts & proven & ~fails, 1.0, s.proven),
        opposed=select(fails, found, s.opposed),
        opposed_joint=select(fails, joint, s.opposed_joint),
        opposed_value=select(fails, value, s.opposed_value),
        most_share=select(acts, select((proven | released) & ~fails, 1.0, share), s.most_share),
        lowest_q=select(acts, lowest_q, s.lowest_q),
        lowest=select(acts, lowest, s.lowest),
        sinking=select(acts, sinking, s.sinking),
        sprung=select(acts, 1.0 * sprung, s.sprung),
        whole_at=select(acts & holds_all, now, s.whole_at),
        whole_qd=select(acts & holds_all, m.qd, s.whole_qd),
        agreeing=select(acts, agreeing, s.agreeing),
        disagree_since=select(acts, since, s.disagree_since),
        alone_since=select(acts, alone_since, s.alone_since),
    )
    return after, fails
