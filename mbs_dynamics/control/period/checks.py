# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The table of checks: for each a condition, a sentence, the doubt that it raises, and its effects.

The first check that fails stops an engaged arm, and each one that fails is a reason against
enabling it. The doubt of a check decides how the arm is held then; see ``command.py``.
"""

from __future__ import annotations

from collections.abc import Callable
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
from mbs_dynamics.control.period.transitions import FAULT, RELEASED, STOPPING

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

LEARNED, QUIET = 50.0, 0.3
"""Number of states at rest, and time in s, after which values count as noisy."""

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
    speed: Any
    """(n,) velocities by positions over WINDOW."""
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
    fails: Callable[[Context], tuple[Any, Any, Any]]
    """Conditions, values and limits, (n,) each, or of the arm as a whole."""
    doubt: float = NOTHING
    stops: bool = True
    """Whether it stops an engaged arm."""
    forbids: bool = True
    """Whether it forbids to enable torques."""


def watched(
    s: State, x: Sample, p: Settings, m: Measured, engaged: Any, elsewhere: Any
) -> tuple[State, Any]:
    """Return the state with the averages and counts after a report, and speeds (n,) over WINDOW.

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
    since = select(lively & less(0.0, s.lively), s.lively_since, m.stamp)
    reversals = select(lively, s.reversals + 1.0 * reverses, 0.0)
    learned = less_equal(LEARNED, count) & less_equal(QUIET, m.stamp - since)
    learned = learned & less_equal(0.25 * count, reversals)
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
    after = s._replace(
        slow_q=slow,
        mean_qd=mean,
        changed_at=select(alive | m.restarts, m.stamp, s.changed_at),
        lively=select(fresh, count, s.lively),
        lively_since=select(fresh, since, s.lively_since),
        reversals=select(fresh, reversals, s.reversals),
        noisy=select(fresh, 1.0 * noisy, s.noisy),
        change=select(fresh, change, s.change),
        change_qd=select(fresh, change_qd, s.change_qd),
        deviations=select(compared, counted, s.deviations),
        unknown_since=select(unknown & engaged, min(s.unknown_since, x.now), np.inf),
    )
    return after, (m.q - slow) / WINDOW


# -- conditions ------------------------------------------------------------------------------------


def _pause(c: Context) -> tuple[Any, Any, Any]:
    return less_equal(c.p.longest_pause, c.pause), c.pause, c.p.longest_pause


def _stands(c: Context) -> tuple[Any, Any, Any]:
    return less_equal(STOOD, c.stood), c.stood, STOOD


def _drive_error(c: Context) -> tuple[Any, Any, Any]:
    return holds(c.x.reported) & ~equal(c.x.error, 0.0), c.x.error, 0.0


def _temperature(c: Context) -> tuple[Any, Any, Any]:
    hot = holds(c.x.reported) & less(c.p.hottest, c.x.temperature)
    return hot, c.x.temperature, c.p.hottest


def _apart(c: Context) -> tuple[Any, Any, Any]:
    most = 0.1
    return holds(c.x.reported) & less(most, c.x.apart), c.x.apart, most


def _old(c: Context) -> tuple[Any, Any]:
    age = c.x.now - c.m.received
    gap = c.m.received - c.s.received
    paused = select(less(c.p.longest_pause, np.inf), c.p.longest_pause, 0.0)  # judged by itself
    late = less_equal(max(c.p.timeout, paused), gap) & c.m.new & c.engaged
    return less_equal(c.p.timeout, age) | late, select(late, gap, age)


def _encoder_jump(c: Context) -> tuple[Any, Any, Any]:
    old, _ = _old(c)
    jumped = old & equal(c.m.refused, measurement.JUMP) & ~isnan(c.m.suspect)
    return jumped, c.m.refused_by, c.p.timeout


def _stale(c: Context) -> tuple[Any, Any, Any]:
    old, age = _old(c)
    return old, age, c.p.timeout


def _refused(c: Context) -> tuple[Any, Any, Any]:
    return less(0.0, c.m.refused), c.m.refused, c.m.refused_by


def _position(c: Context) -> tuple[Any, Any, Any]:
    low, high = less(c.m.q, c.p.low), less(c.p.high, c.m.q)
    return (low | high) & holds(c.p.commanded), c.m.q, select(low, c.p.low, c.p.high)


def _too_fast(c: Context) -> Any:
    fast = less(c.p.fastest, abs(c.after.mean_qd)) & less(c.p.fastest, abs(c.m.qd))
    return fast & holds(c.p.commanded)


def _velocity_reading(c: Context) -> tuple[Any, Any, Any]:
    mean = c.after.mean_qd
    believed = less_equal(0.5 * mean * mean, c.speed * mean)
    bound = COMPARED_SPEED * c.p.fastest
    lasts = least([abs(c.s.mean_qd), abs(mean), abs(c.m.qd)])  # one bad sample is no evidence
    fast = less(bound, lasts) & c.m.new & holds(c.p.commanded)
    return (_too_fast(c) | fast) & ~believed, mean, bound


def _velocity(c: Context) -> tuple[Any, Any, Any]:
    return _too_fast(c), c.after.mean_qd, c.p.fastest


def _speed(c: Context) -> tuple[Any, Any, Any]:
    runs = less(c.p.fastest, abs(c.speed)) & holds(c.p.commanded)
    return runs, c.speed, c.p.fastest


def _frozen(c: Context) -> tuple[Any, Any, Any]:
    since = c.m.stamp - c.after.changed_at
    stands = less_equal(c.p.frozen_timeout, since) & holds(c.p.commanded) & c.m.new
    return stands & less(0.0, c.p.frozen_timeout), since, c.m.qd


def _tracking(c: Context) -> tuple[Any, Any, Any]:
    wrong = less_equal(DEVIATIONS * SMALL_DEVIATIONS, c.after.deviations)
    return wrong, c.m.effort, c.s.asked[0]


def _no_effort(c: Context) -> tuple[Any, Any, Any]:
    unknown = isnan(c.m.effort) & holds(c.p.commanded)
    lasts = less_equal(c.p.timeout, c.x.now - c.after.unknown_since)
    return unknown & lasts & equal(c.p.effort_check, 2.0), c.m.effort, c.p.timeout


def _support(c: Context) -> tuple[Any, Any, Any]:
    return c.opposes, c.after.opposed_value, c.after.most_share


def _opposed(c: Context) -> tuple[Any, Any, Any]:
    return less(0.0, c.s.opposed), c.s.opposed_value, c.s.most_share


def _saturated(c: Context) -> tuple[Any, Any, Any]:
    time = c.x.now - c.s.saturated_since
    return less(c.p.saturation, time), time, c.p.effort


def _collision(c: Context) -> tuple[Any, Any, Any]:
    return c.hit.joints & equal(c.p.on_collision, STOP), c.hit.torque, c.hit.threshold


def _contact(c: Context) -> tuple[Any, Any, Any]:
    return c.hit.joints & ~equal(c.p.on_collision, STOP), c.hit.torque, c.hit.threshold


def _law(c: Context) -> tuple[Any, Any, Any]:
    return c.law_fails, 0.0, 0.0


def _torque(c: Context) -> tuple[Any, Any, Any]:
    return ~c.finite, 0.0, 0.0


def _reference(c: Context) -> tuple[Any, Any, Any]:
    return less(0.0, c.r.follows) & ~c.sound, 0.0, 0.0


def _latched(c: Context) -> tuple[Any, Any, Any]:
    return is_one_of(c.s.mode, (STOPPING, FAULT)), c.s.fault, 0.0


def _stiffness(c: Context) -> tuple[Any, Any, Any]:
    share = c.s.stiffness_share
    return ~c.engaged & less(share, 1.0), period_of(c.s, c.p), share


def _no_limit(c: Context) -> tuple[Any, Any, Any]:
    fine = less(0.0, c.p.effort) & less(c.p.effort, NEVER)
    return holds(c.p.commanded) & ~fine, c.p.effort, 0.0


def _overload(c: Context) -> tuple[Any, Any, Any]:
    return less(c.p.effort, abs(c.g)) & holds(c.p.commanded), c.g, c.p.effort


def _demanded(c: Context) -> Any:
    return holds(c.p.starts_from_effort) | equal(c.p.effort_check, 2.0) | holds(c.p.collides)


def _no_efforts(c: Context) -> tuple[Any, Any, Any]:
    return (
        isnan(c.m.effort) & holds(c.p.commanded) & _demanded(c),
        c.m.effort,
        c.p.effort,
    )


def _mismatch(c: Context) -> tuple[Any, Any, Any]:
    p, effort = c.p, c.m.effort
    apart, bound = disagreement(effort, c.g, p)
    known = ~any_of(isnan(effort) & holds(p.commanded))
    surely = equal(c.s.hold, 1.0) | holds(p.watches_efforts) | holds(p.starts_from_effort)
    surely = surely | equal(p.effort_check, 2.0)
    gathered = holds(c.s.proven) | holds(c.s.weighing)
    counts = known & less(0.0, p.effort_check) & (surely | ~idle(effort, p))
    counts = counts & (is_one_of(c.s.mode, RELEASED) | equal(c.s.hold, 1.0))
    counts = counts & (shown(effort, p) | ~gathered)
    return less(bound, apart) & counts & holds(p.commanded), effort, c.g


HIT = "the external torque of {joint} is {value:.3g}, beyond its threshold of {limit:.3g}"
"""Sentence of collisions."""

CHECKS = (
    Check(
        "pause", "{value:.3f} s between two steps; the limit is {limit:g} s", _pause, forbids=False
    ),
    Check(
        "time",
        "the time did not advance in {value:g} steps; must be a steady clock, in s",
        _stands,
    ),
    Check("drive_error", "the drive of {joint} reports error {value:g}", _drive_error, MOTOR),
    Check(
        "temperature",
        "{joint} is at {value:.4g} degrees Celsius; must be at most {limit:g}",
        _temperature,
    ),
    Check(
        "motors_apart",
        "the motors of {joint} are {value:.4g} apart; must be at most {limit:g}",
        _apart,
        ENCODER,
    ),
    Check(
        "encoder_jump",
        "{joint} jumped by {value:.4g}, and stays there",
        _encoder_jump,
        ENCODER,
    ),
    Check(
        "stale",
        "no valid state of {joint} for {value:.3f} s; must be less than {limit:g}",
        _stale,
        STATE,
    ),
    Check("refused", "{joint}: the latest report was not used", _refused, stops=False),
    Check(
        "position_limit",
        "{joint} is at {value:.4g}; its limit is {limit:.4g}, position_margin included",
        _position,
    ),
    Check(
        "velocity_reading",
        "{joint} moves at {value:.4g} by its reported velocity, and by less than half of it by its "
        "positions; they must agree beyond {limit:.4g}",
        _velocity_reading,
        VELOCITY,
    ),
    Check(
        "velocity_limit",
        "{joint} moves at {value:.4g} by its reported velocity; its velocity limit is {limit:.4g}",
        _velocity,
    ),
    Check(
        "velocity_limit",
        "{joint} moves at {value:.4g} by its positions; its velocity limit is {limit:.4g}",
        _speed,
    ),
    Check(
        "frozen",
        "the values of {joint} have not changed for {value:.3f} s, while its velocity is "
        "{limit:.4g}, or noise changed them before",
        _frozen,
        STATE,
    ),
    Check(
        "tracking",
        "{joint} is commanded {limit:.4g} but measures {value:.4g}",
        _tracking,
        MOTOR,
        forbids=False,
    ),
    Check(
        "no_effort",
        "there are no efforts of {joint}, which effort_check needs",
        _no_effort,
        forbids=False,
    ),
    Check("support", "", _support, GRAVITY),
    Check("opposed", "", _opposed, stops=False),
    Check(
        "saturated",
        "{joint} has been at its effort limit of {limit:.4g} for {value:.3f} s",
        _saturated,
        forbids=False,
    ),
    Check("collision", HIT, _collision, forbids=False),
    Check("contact", HIT, _contact, stops=False, forbids=False),
    Check("law", "the law returned a torque that is not finite", _law),
    Check("torque_not_finite", "a computed torque is NaN or infinite", _torque),
    Check(
        "reference",
        "the requested motion has numbers that are not finite, or a matrix that is not a rotation; "
        "the arm comes to rest",
        _reference,
        stops=False,
        forbids=False,
    ),
    Check("latched", "a fault is latched; clear it first", _latched, stops=False),
    Check(
        "stiffness",
        "the law is too stiff for a period of {value:.3g} s at this posture; it allows at most "
        "{limit:.3g} of its stiffness",
        _stiffness,
        stops=False,
    ),
    Check(
        "effort_limit",
        "{joint} has no effort limit: set effort_limits.{joint}, or <limit effort> in the URDF",
        _no_limit,
        stops=False,
    ),
    Check(
        "overload",
        "{joint} needs {value:.4g} against gravity, and its effort limit is {limit:.4g}",
        _overload,
        stops=False,
    ),
    Check(
        "no_efforts",
        "there are no efforts of {joint}, which start_from, effort_check or collision_file need",
        _no_efforts,
        stops=False,
    ),
    Check(
        "mismatch",
        "the measured efforts do not agree with gravity: {joint} measures {value:.4g}, and "
        "{limit:.4g} would hold it against gravity. Does the driver "
        "compensate gravity itself, is the arm mounted otherwise, is a mass wrong?",
        _mismatch,
        stops=False,
    ),
)
"""In order of precedence."""


def judged(c: Context, n: int) -> tuple[list[Any], list[tuple[Any, Any, Any]]]:
    """Return for each check the condition that it fails, and the joint, value and limit."""
    fails, rows = [], []
    for check in CHECKS:
        conditions, values, limits = check.fails(c)
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


def verdict(rows: list[tuple[Any, Any, Any]], fresh_for: Any) -> Verdict:
    """Return the verdict of the checks."""
    joints, values, limits = (np.array(column, dtype=object) for column in zip(*rows, strict=True))
    return Verdict(joints, values, limits, fresh_for)
