# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The input of a period: accepted reports of joints, and the resulting state of the arm.

A refused report counts as missing. A joint without accepted reports for its timeout is a fault.
Thus a single bad report stops nothing, and persistent bad reports are not taken for motion.

Springs between new states of some joints and old states of others would drive the arm. While
springs act, all reports are refused from the second successive period on in which that of a joint
is refused.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from mbs_dynamics.compiler import abs, equal, isnan, less, less_equal, round, select
from mbs_dynamics.control.period.laws import FLOAT
from mbs_dynamics.control.period.logic import any_of, clipped, holds, largest, max, min
from mbs_dynamics.control.period.records import Sample, Settings, State
from mbs_dynamics.control.period.transitions import ON

NOT_FINITE, LATE, BACKWARDS, JUMP = 1.0, 2.0, 3.0, 4.0
"""Reasons to refuse a report: NaN or absurd numbers, a stamp later than now, a stamp not after that
of the previous report, or a position that cannot follow the previous one."""

LARGEST = 1e9
"""States of this size in SI units are not measurements."""

SLACK = 0.05
"""Jump in rad or m that is accepted beyond what the velocity explains, for jitter of stamps."""

FALL, RISE = 0.9, 1.02
"""Limits of the factor by which the estimated period changes with each report. It settles where one
step in six is shorter: lost reports, which make long steps, do not change it."""

TURN = 2.0 * math.pi


class Measured(NamedTuple):
    """The states of the joints after the reports of a period; fields as those of State."""

    new: Any
    """(n,) conditions that a report was used."""
    heard: Any
    """The condition that one of a commanded joint was."""
    elapsed: Any
    """(n,) time since the report before, by stamps."""
    advance: Any
    """Time between the newest states of commanded joints, before and now; NaN before the first."""
    stamp: Any
    received: Any
    interval: Any
    stamp_interval: Any
    q: Any
    turned: Any
    qd: Any
    effort: Any
    refused: Any
    refused_by: Any
    suspect: Any
    suspect_stamp: Any
    restarts: Any
    """(n,) conditions that a position is the first one, or has jumped while nothing moved by it."""


def jumps(moved: Any, elapsed: Any, fastest: Any) -> Any:
    """Return the conditions that joints moved by more than twice their velocity limit allows."""
    return less(SLACK + 2.0 * fastest * max(elapsed, 0.0), abs(moved))


def whole_turns(angle: Any, turning: Any) -> Any:
    """Return the whole turns in rad that are nearest to angles of joints that turn, else 0."""
    return select(turning & ~isnan(angle), TURN * round(angle / TURN), 0.0)


def springs_act(s: State) -> Any:
    """Return the condition that a law other than gravity compensation is in force or fades out."""
    return ~(equal(s.law, FLOAT) & equal(s.law_before, FLOAT))


def measured(s: State, x: Sample, p: Settings, turns: Any, engaged: Any) -> Measured:
    """Return the states of the joints after the reports of a sample.

    ``turns`` (n,) tells which joints turn without limits; ``engaged``: torques act.
    """
    first = isnan(s.stamp)
    turned = whole_turns(s.q - x.q, turns)
    q = x.q + turned
    elapsed = x.stamp - s.stamp
    moved = q - s.q
    difference = select(first, 0.0, moved / elapsed)
    qd = select(isnan(x.qd) & holds(p.differentiates), select(first, 0.0, difference), x.qd)

    silent = less_equal(p.timeout, x.now - s.received)
    apart = q - s.suspect
    apart = apart - whole_turns(apart, turns)
    stays = less(abs(apart), abs(moved))  # it could have moved as far by now, but has jumped
    jumped = ~first & (jumps(moved, elapsed, p.fastest) | stays)
    harmless = ~engaged & (less_equal(p.timeout, elapsed) | silent)  # nothing moves by it
    refused = select(jumped & ~harmless, JUMP, 0.0)
    restarted = silent & ~engaged
    refused = select(first | restarted | less(s.stamp, x.stamp), refused, BACKWARDS)
    refused = select(less_equal(x.stamp, x.now + p.ahead), refused, LATE)
    refused = select(less(abs(q) + abs(qd), LARGEST), refused, NOT_FINITE)
    by = select(equal(refused, JUMP), moved, select(equal(refused, LATE), x.stamp - x.now, elapsed))

    reported = holds(x.reported) & ~equal(x.stamp, s.stamp)
    refused = select(reported, refused, s.refused)
    again = less(0.0, refused) & less(0.0, s.refused) & holds(p.commanded)
    new = reported & equal(refused, 0.0) & ~(engaged & springs_act(s) & any_of(again))
    suspicious = reported & equal(refused, JUMP)
    agrees = isnan(s.suspect) | ~jumps(apart, x.stamp - s.suspect_stamp, p.fastest)
    suspect = select(suspicious & agrees, q, select(suspicious | new, math.nan, s.suspect))

    gap = x.received - s.received
    regular = new & less(0.0, gap) & less(gap, p.timeout)
    before = select(less(0.0, s.interval), s.interval, gap)
    interval = before + 0.1 * (min(gap, 3.0 * before) - before)  # limits the influence of a pause
    usual = s.stamp_interval
    usual = select(equal(usual, 0.0), elapsed, clipped(elapsed, FALL * usual, RISE * usual))
    steps = new & less(0.0, elapsed) & less(elapsed, p.timeout)
    steps = steps & (~equal(s.mode, ON) | equal(s.stamp_interval, 0.0))
    stamp = select(new, x.stamp, s.stamp)
    newest = [largest(select(holds(p.commanded), one, -math.inf)) for one in (s.stamp, stamp)]
    return Measured(
        new=new,
        heard=any_of(new & holds(p.commanded)),
        elapsed=elapsed,
        advance=newest[1] - newest[0],
        stamp=stamp,
        received=select(new, x.received, s.received),
        stamp_interval=select(steps, usual, s.stamp_interval),
        interval=select(regular, interval, s.interval),
        q=select(new, q, s.q),
        turned=select(new, turned, s.turned),
        qd=select(new, qd, s.qd),
        effort=select(new, x.effort, s.effort),
        refused=refused,
        refused_by=select(reported, by, s.refused_by),
        suspect=suspect,
        suspect_stamp=select(suspicious, x.stamp, s.suspect_stamp),
        restarts=new & (first | jumped),
    )
