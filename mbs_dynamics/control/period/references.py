# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""References of laws: the motion within limits that approaches a target or plays a trajectory.

A target that jumps is approached as far as velocity and acceleration allow. The limiter is that of
a second-order filter that brakes along v^2 = 2 a e, and with a time constant at the end (Biagiotti
and Melchiorri, Trajectory Planning for Automatic Machines and Robots, 2008, chapter 4.6). A target
that can be reached in one period is met exactly.

A reference never leads the measured arm by more than a distance, the lead: it slows down before
this distance and waits at it, so that an arm that is held back is not thrown when it comes free.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from mbs_dynamics.compiler import abs, equal, isnan, less, less_equal, max, min, select, sqrt
from mbs_dynamics.control.period.logic import all_of, any_of, clipped, holds, least
from mbs_dynamics.control.period.records import Request, Settings, State
from mbs_dynamics.lie import so3
from mbs_dynamics.lie.arrays import Array

STOP, TARGET, TRAJECTORY = 0.0, 1.0, 2.0
"""Kinds of motion of a reference: come to rest, go to a target, play a trajectory."""

GAIN = 20.0
"""Gain in 1/s with which the last part of an error is approached."""

SHARE = 0.8
"""Share of the acceleration limit that braking is planned with."""

PACE_TIME = 0.3
"""Time in s in which a trajectory stops or continues."""

ARRIVED = 0.03
"""Distance from the last point of a trajectory within which a joint has arrived, in rad or m."""

HALT_TIME, AT_REST = 1.0, 0.01
"""Time in s in which a posture comes to rest, and velocity in rad/s or m/s of an arm at rest."""

UNLIMITED = 1e6
"""Leads beyond this are those of errors without stiffness."""

STANDS = 1e-5
"""Velocity in rad/s or m/s below which a reference that brakes stands still."""

LEAST_TIME = 1e-9
"""Smallest period in s; in a shorter one a reference does not move."""


class Joints(NamedTuple):
    """The reference of joints after a period."""

    q: Any
    qd: Any
    qdd: Any
    waits: Any
    """(n,) conditions that the arm lags so far behind that the reference waits."""
    played: Any
    pace: Any
    ended: Any
    """Condition that the measured arm has arrived at the end of the trajectory."""


def length_of(x: Any) -> Any:
    """Return the lengths (k, 1) of vectors (k, d), or the sizes (n,) of numbers (n,)."""
    if x.ndim == 1:
        return abs(x)
    return sqrt((x * x).sum(axis=1, keepdims=True))


def approached(
    e: Any, v: Any, target_v: Any, fastest: Any, acceleration: Any, dt: Any
) -> tuple[Any, Any]:
    """Return the velocities (k, d) of the next period, and which of the k vectors are met by it.

    ``e`` (k, d) are the errors of k vectors at its end if they stood still, ``target_v`` (k, d)
    the velocities of targets; ``fastest`` (k, 1) and ``acceleration`` (k, 1) limit lengths. All may
    be (n,) for n numbers.
    """
    gain = min(GAIN, 0.3 / dt)
    change = acceleration * dt
    size = length_of(e)
    brake = SHARE * acceleration
    linear = brake / (gain * gain)
    root = sqrt(2.0 * brake * max(size - 0.5 * linear, 0.0))
    speed = min(fastest, select(less(size, linear), gain * size, root))
    goal = target_v + e * (speed / select(less(0.0, size), size, 1.0))
    goal = goal * min(1.0, fastest / max(length_of(goal), 1e-12))
    step = goal - v
    limited = v + step * min(1.0, change / max(length_of(step), 1e-12))
    direct = e / dt
    met = less_equal(length_of(direct), fastest)
    met = met & less_equal(length_of(direct - v), change)
    met = met & less_equal(length_of(target_v - direct), change)
    return select(met, direct, limited), met


def slowed_by(ahead: Any, lead: Any) -> Any:
    """Return the share of the speed (...,) of a reference that is ``ahead`` of the arm.

    It is 1 up to three quarters of the ``lead``, and 0 from the lead on.
    """
    return clipped(4.0 * (1.0 - ahead / lead), 0.0, 1.0)


def braked(v: Any, acceleration: Any, dt: Any) -> Any:
    """Return velocities (k, d), or (n,), after a period of braking, which ends smoothly."""
    size = length_of(v)
    change = min(acceleration * dt, min(GAIN * dt, 0.3) * size)
    left = select(less(size, STANDS), 0.0, 1.0 - change / max(size, STANDS))
    return v * left


def _sign(x: Any) -> Any:
    return select(less(0.0, x), 1.0, select(less(x, 0.0), -1.0, 0.0))


def joints_after(s: State, r: Request, p: Settings, q: Any, lead: Any, now: Any, dt: Any) -> Joints:
    """Return the reference of the joints after ``dt``, for measured positions q (n,).

    ``lead`` (n,) are the distances by which it may lead them.
    """
    moves = less(LEAST_TIME, dt)
    h = max(dt, LEAST_TIME)
    a = p.reference_acceleration
    playing = equal(r.follows, TRAJECTORY)
    x, v, off = s.reference, s.reference_qd, s.reference - q

    # toward a target, or the first point of a trajectory
    age = now - s.motion_at
    rate = select(less_equal(age, p.reference_timeout), r.target_qd, 0.0)
    gone = min(age, p.reference_timeout)
    target = r.target + s.shift + r.target_qd * gone
    target = clipped(target, p.spring_low, p.spring_high)
    goes = less(0.0, r.follows) & (~playing | less(0.0, r.pace))
    e = target - x
    u, met = approached(e, v, rate, p.reference_velocity, a, h)
    u, met = select(goes, u, braked(v, a, h)), met & goes
    most = p.reference_velocity * slowed_by(off * _sign(u), lead)
    slower = less(most, abs(u))
    u, met = clipped(u, -most, most), met & ~slower
    after = select(met, rate, u)
    approach = Joints(
        q=select(met, target, clipped(x + u * h, min(p.spring_low, x), max(p.spring_high, x))),
        qd=after,
        qdd=select(slower, 0.0, (after - v) / h),
        waits=goes & less(most, 0.1 * p.reference_velocity) & less(ARRIVED, abs(e)),
        played=s.played,
        pace=s.pace,
        ended=False,
    )
    there = all_of(equal(e, 0.0) & equal(v, 0.0)) & less_equal(r.delay, age) & less(0.0, r.pace)
    begins = playing & isnan(s.played) & there
    play = _played(s, r, p, q, lead, h)
    plays = playing & ~isnan(s.played)
    return Joints(
        q=select(~moves, x, select(plays, play.q, approach.q)),
        qd=select(~moves, v, select(plays, play.qd, approach.qd)),
        qdd=select(~moves, s.reference_qdd, select(plays, play.qdd, approach.qdd)),
        waits=select(plays, 1.0 * play.waits, 1.0 * approach.waits),
        played=select(
            moves & plays, play.played, select(begins, 0.0, select(playing, s.played, math.nan))
        ),
        pace=select(moves & plays, play.pace, select(playing, s.pace, 1.0)),
        ended=playing & (holds(s.ended) | (plays & play.ended)),
    )


def polynomial(c: Any, x: Any) -> tuple[Any, Any, Any]:
    """Return value and two derivatives (n,) of c_0 + c_1 x + ... + c_5 x^5, with c (6, n)."""
    value = c[0] + x * (c[1] + x * (c[2] + x * (c[3] + x * (c[4] + x * c[5]))))
    first = c[1] + x * (2.0 * c[2] + x * (3.0 * c[3] + x * (4.0 * c[4] + x * (5.0 * c[5]))))
    second = 2.0 * c[2] + x * (6.0 * c[3] + x * (12.0 * c[4] + x * (20.0 * c[5])))
    return value, first, second


def _played(s: State, r: Request, p: Settings, q: Any, lead: Any, h: Any) -> Joints:
    """Return the reference of a trajectory, as far as joints follow it.

    A segment that does not continue the previous one causes no jump: the reference moves no faster
    than the joints may, and no further from the arm than the lead.
    """
    done = less_equal(r.duration, s.played)
    off = s.reference - q
    _, along, _ = polynomial(r.segment, s.played - r.segment_at)
    ahead = off * _sign(along)
    change = clipped(r.pace - s.pace, -h / PACE_TIME, h / PACE_TIME)
    most = least(slowed_by(ahead, lead))
    waits = less(most, s.pace + change)
    pace = select(waits, most, s.pace + change)
    change = select(waits, 0.0, change)
    played = min(s.played + pace * h, r.duration)
    x, xd, xdd = polynomial(r.segment, played - r.segment_at)
    x, xd = x + s.shift, clipped(xd, -p.fastest, p.fastest)
    step = clipped(x - s.reference, -p.fastest * h, p.fastest * h)
    farthest = max(abs(off), lead)
    x = s.reference + clipped(step, min(-farthest - off, 0.0), max(farthest - off, 0.0))
    ends = less_equal(r.duration, played)
    away = less(ARRIVED, abs(off)) & less(lead, UNLIMITED)
    return Joints(
        q=select(done, s.reference, x),
        qd=select(ends, 0.0, pace * xd),
        qdd=select(ends, 0.0, pace * pace * xdd + change / h * xd),
        waits=select(done, 1.0 * away, 1.0 * less(0.9 * lead, ahead)),
        played=played,
        pace=pace,
        ended=done & ~any_of(away),
    )


def pose_error(C: Array, target: Array) -> Array:
    """Return the error (2, 3) of a pose and a target, each (3, 4).

    Its rows are the rotation vector from the pose to the target and the difference of their
    positions, in the axes of the root.
    """
    return np.stack([so3.log(target[:, :3] @ C[:, :3].T), target[:, 3] - C[:, 3]])


def pose_moved(C: Array, e: Array) -> Array:
    """Return a pose (3, 4), moved by an error (2, 3)."""
    return np.hstack([so3.exp(e[0]) @ C[:, :3], (C[:, 3] + e[1])[:, None]])


def pose_after(
    s: State, r: Request, p: Settings, C: Array, goes: Any, lead: Any, dt: Any
) -> tuple[Any, Any, Any]:
    """Return the reference of a link, its twist (6,), and the condition that it waits.

    ``C`` (3, 4) is the measured pose, ``lead`` (6,) the distances by which the reference may lead
    it, along the axes of the stiffness; ``goes``: to the target, else it comes to rest.
    """
    moves = less(LEAST_TIME, dt)
    h = max(dt, LEAST_TIME)
    fastest, a = p.pose_velocity[:, None], p.pose_acceleration[:, None]
    v = s.twist.reshape(2, 3)
    e = pose_error(s.pose, r.target_pose)
    u, met = approached(e, v, 0.0, fastest, a, h)
    u = select(goes, u, braked(v, a, h))
    met = met & goes

    off = pose_error(C, s.pose)
    axes = np.eye(3) + s.link_axes * (s.pose[:, :3] - np.eye(3))
    apart = abs(off @ axes) / lead.reshape(2, 3)
    ratio = np.array([[max(max(row[0], row[1]), row[2])] for row in apart])
    leaves = less(0.0, (off * u).sum(axis=1, keepdims=True))
    share = select(leaves, slowed_by(ratio, 1.0), 1.0)
    most = fastest * share
    size = length_of(u)
    slower = less(most, size)
    u = u * select(slower, most / max(size, 1e-12), 1.0)
    met = met & ~slower
    each = met
    pose = pose_moved(s.pose, select(each, e, u * h))
    pose = select(all_of(met[:, 0]), r.target_pose, pose)
    twist = select(each, 0.0, u).ravel()
    rests = all_of(equal(s.twist, 0.0)) & (~goes | all_of(equal(s.pose, r.target_pose).ravel()))
    still = ~moves | rests
    blocked = less(share, 0.1) & less(1e-6, length_of(e))
    return (
        select(still, s.pose, pose),
        select(still, s.twist, twist),
        goes & ~still & any_of(blocked[:, 0]),
    )
