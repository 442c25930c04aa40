# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The table of checks: for each a condition, a sentence, the doubt that it raises, and its effects.

The first check that fails stops an engaged arm, and each one that fails is a reason against
enabling it. The doubt of a check decides how the arm is held then; see ``command.py``.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from mbs_dynamics.compiler import abs, equal, isnan, less, less_equal, select
from mbs_dynamics.control.faults import Doubt
from mbs_dynamics.control.period import measurement
from mbs_dynamics.control.period.collisions import STOP, Hit
from mbs_dynamics.control.period.evidence import disagreement, idle, shown
from mbs_dynamics.control.period.following import period_of
from mbs_dynamics.control.period.logic import (
    all_of,
    any_of,
    clipped,
    first_of,
    holds,
    is_one_of,
    largest,
    least,
    max,
    min,
)
from mbs_dynamics.control.period.measurement import Measured
from mbs_dynamics.control.period.records import (
    LAG,
    NEVER,
    SWITCHING,
    Request,
    Sample,
    Settings,
    State,
    Verdict,
)
from mbs_dynamics.control.period.transitions import RELEASED

NOTHING, VELOCITY, STATE, ENCODER, GRAVITY, MOTOR = (doubt.value for doubt in Doubt)
"""Numbers of the doubts."""

WINDOW = 0.04
"""Time constant in s over which speeds are averaged, so that one encoder sample stops nothing."""

COMPARED_SPEED = 0.25
"""Share of the velocity limit above which a reported velocity is compared with positions. Damping
by a wrong velocity throws the arm long before the limit of a fast joint is exceeded."""

MOVING = 0.1
"""Speed in rad/s or m/s above which a position must change."""

NOISE, STANDING = 1e-7, 1e-3
"""Smallest change of values in SI units that counts as noise, and largest distance from the mean
position in rad or m at rest."""

LEARNED = 100.0
"""Number of successive states at rest after which values count as noisy."""

APART = 0.1
"""Largest distance in rad or m between two motors of one joint."""

STOOD = 5.0
"""Number of successive periods with a time that stands still or is invalid, which is a fault."""

DEVIATIONS, SMALL_DEVIATIONS = 5.0, 15.0
"""Number of successive deviations of an effort after which its motor is doubted: beyond the
tolerance, and beyond both SMALL of it and half of the command."""

SMALL = 0.4


class Context(NamedTuple):
    """The input of the checks: records, and values computed from them."""

    s: State
    x: Sample
    r: Request
    p: Settings
    m: Measured
    after: State
    """The state with the averages, counts and evidence of this period."""
    opposes: Any
    """The condition that the evidence contradicts the torques."""
    hit: Hit
    engaged: Any
    pause: Any
    """Time since the period before."""
    stood: Any
    """Number of successive periods in which the time did not advance."""
    g: Any
    """(n,) scaled gravity torques at the measured positions."""
    law_fails: Any
    finite: Any
    """The condition that all computed torques are finite."""
    sound: Any
    """The condition that the requested motion is described by numbers."""


class Check(NamedTuple):
    """One row of the table."""

    kind: str
    sentence: str
    """With the fields joint, value and limit."""
    doubt: float = NOTHING
    stops: bool = True
    """Whether it stops an engaged arm."""
    forbids: bool = True
    """Whether it forbids to enable torques."""


def watched(s: State, x: Sample, p: Settings, m: Measured, engaged: Any, elsewhere: Any) -> State:
    """Return the state with the averages and counts after a report.

    ``elsewhere``: another controller holds the arm.
    """
    share = m.elapsed / (WINDOW + m.elapsed)
    fresh = m.new & ~m.restarts
    slow = select(m.restarts, m.q, select(fresh, s.slow_q + share * (m.q - s.slow_q), s.slow_q))
    mean = s.mean_qd + share * (0.5 * (s.qd + m.qd) - s.mean_qd)  # as positions have changed
    mean = select(m.restarts, m.qd, select(fresh, mean, s.mean_qd))

    # values that stop changing although noise always changed them at rest are frozen
    change, change_qd = m.q - s.q, m.qd - s.qd
    most = max(abs(change), abs(change_qd))
    slow_joint = less(abs(m.qd), MOVING)
    rests = slow_joint & less(abs(m.q - slow), STANDING)
    lively = rests & less(NOISE, most)
    reverses = less(change * s.change, 0.0) | less(change_qd * s.change_qd, 0.0)
    count = select(lively, s.lively + 1.0, 0.0)
    reversals = select(lively, s.reversals + 1.0 * reverses, 0.0)
    learned = less_equal(LEARNED, count) & less_equal(0.25 * count, reversals)
    comes_to_rest = slow_joint & less(0.0, most) & ~less(NOISE, most)
    noisy = (holds(s.noisy) | learned) & ~comes_to_rest
    moves = ~equal(change, 0.0) | (slow_joint & (~noisy | less(0.0, most)))
    alive = fresh & moves

    # measured efforts against those of the latest commands
    # which are clipped by the motors, except perhaps the efforts of position loops
    low = min(clipped(least(s.asked), -p.effort, p.effort), s.asked[0])
    high = max(clipped(largest(s.asked), -p.effort, p.effort), s.asked[0])
    beyond = max(low - m.effort, m.effort - high)
    bound = p.tolerance * p.effort
    far = less(bound, beyond)
    small = less(max(SMALL * bound, 0.5 * max(-low, high)), beyond)
    step = select(far, SMALL_DEVIATIONS, DEVIATIONS)
    counted = select(far | small, s.deviations + step, 0.0)
    compares = engaged & less_equal(float(LAG), s.asked_count) & less(0.0, p.tolerance)
    compares = compares & less_equal(SWITCHING, x.now - s.switched_at) & ~elsewhere
    compared = m.new & holds(p.commanded) & compares

    unknown = any_of(isnan(m.effort) & holds(p.commanded))
    return s._replace(
        slow_q=slow,
        mean_qd=mean,
        changed_at=select(alive | m.restarts, m.stamp, s.changed_at),
        lively=select(fresh, count, s.lively),
        reversals=select(fresh, reversals, s.reversals),
        noisy=select(fresh, 1.0 * noisy, s.noisy),
        change=select(fresh, change, s.change),
        change_qd=select(fresh, change_qd, s.change_qd),
        deviations=select(compared, counted, s.deviations),
        unknown_since=select(unknown & engaged, min(s.unknown_since, x.now), np.inf),
    )


def findings(c: Context) -> dict[str, tuple[Any, Any, Any]]:
    """Return for each check the conditions that fail it, values and limits.

    They are (n,) each, or those of the arm as a whole.
    """
    s, x, p, m, after, g = c.s, c.x, c.p, c.m, c.after, c.g
    commanded, reported = holds(p.commanded), holds(x.reported)

    # reports
    age, gap = x.now - m.received, m.received - s.received
    paused = select(less(p.longest_pause, np.inf), p.longest_pause, 0.0)  # judged by itself
    late = less_equal(max(p.timeout, paused), gap) & m.new & c.engaged
    old = less_equal(p.timeout, age) | late
    jumped = old & equal(m.refused, measurement.JUMP) & ~isnan(m.suspect)

    # positions and velocities
    low, high = less(m.q, p.low), less(p.high, m.q)
    mean, speed = after.mean_qd, (m.q - after.slow_q) / WINDOW
    too_fast = less(p.fastest, abs(mean)) & less(p.fastest, abs(m.qd)) & commanded
    believed = less_equal(0.5 * mean * mean, speed * mean)
    compared = COMPARED_SPEED * p.fastest
    lasts = least([abs(s.mean_qd), abs(mean), abs(m.qd)])  # one bad sample is no evidence
    contradicts = (too_fast | (less(compared, lasts) & m.new & commanded)) & ~believed
    runs = less(p.fastest, abs(speed)) & commanded
    stands = m.stamp - after.changed_at
    frozen = less_equal(p.frozen_timeout, stands) & commanded & m.new & less(0.0, p.frozen_timeout)

    # efforts
    unknown = isnan(m.effort) & commanded
    always = equal(p.effort_check, 2.0)
    ended = less_equal(p.timeout, x.now - after.unknown_since)
    wrong = less_equal(DEVIATIONS * SMALL_DEVIATIONS, after.deviations)
    at_limit = x.now - s.saturated_since
    stops = equal(p.on_collision, STOP)
    sound_limit = less(0.0, p.effort) & less(p.effort, NEVER)
    demanded = holds(p.starts_from_effort) | always | holds(p.collides)
    apart, bound = disagreement(m.effort, g, p)
    surely = equal(s.hold, 1.0) | holds(p.watches_efforts) | holds(p.starts_from_effort) | always
    counts = ~any_of(unknown) & less(0.0, p.effort_check) & (surely | ~idle(m.effort, p))
    counts = counts & (is_one_of(s.mode, RELEASED) | equal(s.hold, 1.0))
    counts = counts & (shown(m.effort, p) | ~(holds(s.proven) | holds(s.weighing)))

    return {
        "pause": (less_equal(p.longest_pause, c.pause), c.pause, p.longest_pause),
        "time": (less_equal(STOOD, c.stood), c.stood, STOOD),
        "drive_error": (reported & ~equal(x.error, 0.0), x.error, 0.0),
        "temperature": (reported & less(p.hottest, x.temperature), x.temperature, p.hottest),
        "motors_apart": (reported & less(APART, x.apart), x.apart, APART),
        "encoder_jump": (jumped, m.refused_by, p.timeout),
        "stale": (old, select(late, gap, age), p.timeout),
        "refused": (less(0.0, m.refused), m.refused, m.refused_by),
        "position_limit": ((low | high) & commanded, m.q, select(low, p.low, p.high)),
        "velocity_reading": (contradicts, mean, compared),
        "velocity_limit": (too_fast | runs, select(too_fast, mean, speed), p.fastest),
        "frozen": (frozen, stands, m.qd),
        "tracking": (wrong, m.effort, s.asked[0]),
        "no_effort": (unknown & ended & always, m.effort, p.timeout),
        "support": (c.opposes, after.opposed_value, after.most_share),
        "opposed": (less(0.0, s.opposed), s.opposed_value, s.most_share),
        "saturated": (less(p.saturation, at_limit), at_limit, p.effort),
        "collision": (c.hit.joints & stops, c.hit.torque, c.hit.threshold),
        "contact": (c.hit.joints & ~stops, c.hit.torque, c.hit.threshold),
        "law": (c.law_fails, 0.0, 0.0),
        "torque_not_finite": (~c.finite, 0.0, 0.0),
        "reference": (less(0.0, c.r.follows) & ~c.sound, 0.0, 0.0),
        "stiffness": (
            ~c.engaged & less(s.stiffness_share, 1.0),
            period_of(s, p),
            s.stiffness_share,
        ),
        "effort_limit": (commanded & ~sound_limit, p.effort, 0.0),
        "overload": (less(p.effort, abs(g)) & commanded, g, p.effort),
        "no_efforts": (unknown & demanded, m.effort, p.effort),
        "mismatch": (less(bound, apart) & counts & commanded, m.effort, g),
    }


HIT = "the external torque of {joint} is {value:.3g}, beyond its threshold of {limit:.3g}"
"""Sentence of collisions."""

CHECKS = (
    Check("pause", "{value:.3f} s between two steps; the limit is {limit:g} s", forbids=False),
    Check("time", "the time did not advance in {value:g} steps; must be a steady clock, in s"),
    Check("drive_error", "the drive of {joint} reports error {value:g}", MOTOR),
    Check("temperature", "{joint} is at {value:.4g} degrees Celsius; must be at most {limit:g}"),
    Check(
        "motors_apart", "the motors of {joint} are {value:.4g} apart; must be at most {limit:g}",
        ENCODER,
    ),
    Check("encoder_jump", "{joint} jumped by {value:.4g}, and stays there", ENCODER),
    Check(
        "stale", "no valid state of {joint} for {value:.3f} s; must be less than {limit:g}", STATE
    ),
    Check("refused", "{joint}: the latest report was not used", stops=False),
    Check(
        "position_limit",
        "{joint} is at {value:.4g}; its limit is {limit:.4g}, position_margin included",
    ),
    Check(
        "velocity_reading",
        "{joint} moves at {value:.4g} by its reported velocity, and by less than half of it by its "
        "positions; they must agree beyond {limit:.4g}",
        VELOCITY,
    ),
    Check("velocity_limit", "{joint} moves at {value:.4g}; its velocity limit is {limit:.4g}"),
    Check(
        "frozen",
        "the values of {joint} have not changed for {value:.3f} s, while its velocity is "
        "{limit:.4g}, or noise changed them before",
        STATE,
    ),
    Check(
        "tracking", "{joint} is commanded {limit:.4g} but measures {value:.4g}", MOTOR,
        forbids=False,
    ),
    Check("no_effort", "there are no efforts of {joint}, which effort_check needs", forbids=False),
    Check("support", "", GRAVITY),
    Check("opposed", "", stops=False),
    Check(
        "saturated", "{joint} has been at its effort limit of {limit:.4g} for {value:.3f} s",
        forbids=False,
    ),
    Check("collision", HIT, forbids=False),
    Check("contact", HIT, stops=False, forbids=False),
    Check("law", "the law returned a torque that is not finite"),
    Check("torque_not_finite", "a computed torque is NaN or infinite"),
    Check(
        "reference",
        "the requested motion has numbers that are not finite, or a matrix that is not a rotation; "
        "the arm comes to rest",
        stops=False,
        forbids=False,
    ),
    Check(
        "stiffness",
        "the law is too stiff for a period of {value:.3g} s at this posture; it allows at most "
        "{limit:.3g} of its stiffness",
        stops=False,
    ),
    Check(
        "effort_limit",
        "{joint} has no effort limit: set effort_limits.{joint}, or <limit effort> in the URDF",
        stops=False,
    ),
    Check(
        "overload",
        "{joint} needs {value:.4g} against gravity, and its effort limit is {limit:.4g}",
        stops=False,
    ),
    Check(
        "no_efforts",
        "there are no efforts of {joint}, which start_from, effort_check or collision_file need",
        stops=False,
    ),
    Check(
        "mismatch",
        "the measured efforts do not agree with gravity: {joint} measures {value:.4g}, and "
        "{limit:.4g} would hold it against gravity. Does the driver "
        "compensate gravity itself, is the arm mounted otherwise, is a mass wrong?",
        stops=False,
    ),
)  # fmt: skip
"""In order of precedence."""


def judged(c: Context, n: int) -> tuple[list[Any], list[tuple[Any, Any, Any]]]:
    """Return for each check the condition that it fails, and the joint, value and limit."""
    fails, rows, found = [], [], findings(c)
    for check in CHECKS:
        conditions, values, limits = found[check.kind]
        if np.ndim(conditions):
            values, limits = values + np.zeros(n), limits + np.zeros(n)
            rows.append(first_of(conditions, values, limits))
            fails.append(any_of(conditions))
        else:
            rows.append((select(conditions, -1.0, np.nan), values, limits))
            fails.append(conditions)
    return fails, rows


def first_failing(fails: list[Any], rows: list[tuple[Any, Any, Any]]) -> tuple[Any, ...]:
    """Return number, joint, value, limit and doubt of the first check that stops an engaged arm.

    The number is 0, and the rest NaN, where none does.
    """
    found: tuple[Any, ...] = (0.0, np.nan, np.nan, np.nan, NOTHING)
    for k in reversed(range(len(CHECKS))):
        if CHECKS[k].stops:
            row = (k + 1.0, *rows[k], CHECKS[k].doubt)
            found = tuple(select(fails[k], x, y) for x, y in zip(row, found, strict=True))
    return found


def allowed(fails: list[Any]) -> Any:
    """Return the condition that no check forbids to enable torques."""
    return all_of([~fails[k] for k, check in enumerate(CHECKS) if check.forbids])


def verdict(rows: list[tuple[Any, Any, Any]]) -> Verdict:
    """Return the verdict of the checks."""
    joints, values, limits = (np.array(column, dtype=object) for column in zip(*rows, strict=True))
    return Verdict(joints, values, limits)
