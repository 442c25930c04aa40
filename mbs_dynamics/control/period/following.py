# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The law in force, its gains and its reference, and the change from one law to another.

A law begins with the present state as its reference. Torques change linearly from those of the
previous law over ``switch_time``, and so do changed gains, so that neither jumps. A law that is
requested meanwhile begins when this change has ended.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

import mbs_dynamics as mbs
from mbs_dynamics.compiler import abs, equal, less, select
from mbs_dynamics.control.period import laws, references
from mbs_dynamics.control.period.logic import any_of, clipped, holds, is_one_of, largest, max, min
from mbs_dynamics.control.period.measurement import Measured, springs_act, whole_turns
from mbs_dynamics.control.period.ramps import ramped
from mbs_dynamics.control.period.records import NEVER, Request, Sample, Settings, State
from mbs_dynamics.control.turns import sliding
from mbs_dynamics.lie.arrays import Array
from mbs_dynamics.representation.tree import Tree

GAP_MEMORY = 0.3
"""Time in s after which a long gap between two states is forgotten."""

GAINS = (
    "joint_stiffness", "joint_ratio", "link_stiffness", "link_ratio", "link_axes",
    "posture_frequency",
)  # fmt: skip
"""Gains that are ramped."""

SKEW = 1e-3
"""Largest error of the entries of R^T R of a pose."""


class Traced(NamedTuple):
    """The laws that a period computes in addition to gravity compensation."""

    joints: bool = False
    """Impedance of joints."""
    link: str = ""
    """The link whose impedance it computes; empty: of none."""
    collisions: bool = False
    """Whether it detects collisions."""

    @property
    def available(self) -> tuple[float, ...]:
        """The numbers of laws that can be in force."""
        of_joints = laws.OF_JOINTS if self.joints else ()
        return (laws.FLOAT, *of_joints, *(laws.OF_LINKS if self.link else ()))


GRAVITY_ALONE = Traced()
"""No law but gravity compensation."""


def is_sound(law: Any, r: Request, traced: Traced) -> Any:
    """Return the condition that a requested motion consists of finite numbers and a valid pose.

    It matters only to laws that follow it.
    """
    if not (traced.joints or traced.link):
        return np.True_
    numbers = [*r.target, *r.target_qd, r.motion, r.pace]
    trajectory = [*r.segment.ravel(), r.segment_at, r.duration, r.delay]
    plays = equal(r.follows, references.TRAJECTORY)
    sound = less(_size(numbers), NEVER) & (~plays | less(_size(trajectory), NEVER))
    if traced.link:
        R = r.target_pose[:, :3]
        off = _size((R.T @ R - np.eye(3)).ravel())
        right = less(0.0, R[:, 0] @ np.cross(R[:, 1], R[:, 2])) & less(off, SKEW)
        poses = is_one_of(law, laws.OF_LINKS) & less(0.0, r.follows)
        sound = sound & (~poses | (right & less(_size(r.target_pose[:, 3]), NEVER)))
    return sound | equal(law, laws.FLOAT)


def _size(numbers: Sequence[Any]) -> Any:
    return sum(abs(x) for x in numbers)


def with_law(
    s: State,
    r: Request,
    p: Settings,
    m: Measured,
    traced: Traced,
    turns: Any,
    was_engaged: Any,
    engaged: Any,
    floating: Any,
    now: Any,
    dt: Any,
) -> tuple[State, Any, Any]:
    """Return the state with the law that is in force now, and its gains; and two conditions.

    ``turns`` (n,) tells which joints turn without limits.
    ``was_engaged`` and ``engaged`` tell whether torques acted before this period, and do so now,
    and ``floating`` whether the arm floats since a collision, independent of the request.
    The conditions are that the reference begins at the present state, and that a motion begins.
    """
    acts = was_engaged & engaged
    blends = less(now - s.law_at, p.switch_time) & acts
    wanted = select(is_one_of(r.law, traced.available), r.law, s.law)
    wanted = select(floating, laws.FLOAT, wanted)
    at_once = ~acts | floating
    changes = (~equal(wanted, s.law) | (floating & blends)) & (at_once | ~blends)
    fades = changes & ~at_once
    new = any_of([any_of(~equal(np.ravel(getattr(p, x)), np.ravel(getattr(s, f"{x}_goal"))))
                  for x in GAINS])  # fmt: skip
    ramp = select(acts, p.switch_time, 0.0)
    end = select(new, now + ramp, select(acts, s.springs_end, now))
    gains = {name: ramped(getattr(s, name), getattr(p, name), end, now, dt) for name in GAINS}
    goals = {f"{name}_goal": getattr(p, name) for name in GAINS}

    elapsed = m.advance
    regular = less(0.0, elapsed) & less(elapsed, p.ahead)
    longest = max(elapsed, s.gap * max(1.0 - elapsed / GAP_MEMORY, 0.0))
    begins = ~acts | floating | (changes & ~equal(_kind(wanted), _kind(s.law)))
    moves = ~equal(r.motion, s.motion)
    leads = (less(0.0, r.follows) | holds(r.prefers)) & ~floating
    after = s._replace(
        law=select(changes, wanted, s.law),
        # forget a law that has faded out: a longer switch_time must not bring it back
        law_before=select(
            changes, select(fades, s.law, wanted), select(blends, s.law_before, s.law)
        ),
        law_at=select(changes, select(fades, now, -math.inf), s.law_at),
        gap=select(acts, select(regular, longest, s.gap), 0.0),
        **gains,
        **goals,
        springs_end=end,
        fading=select(fades, s.reference, s.fading),
        fading_qd=select(fades, s.reference_qd, s.fading_qd),
        motion=select(less(abs(r.motion), NEVER), r.motion, s.motion),
        motion_at=select(moves, now, s.motion_at),
        shift=select(moves, whole_turns(m.q - r.target, turns), s.shift),
        obeys=select(acts, select(moves & leads, 1.0, select(begins, 0.0, s.obeys)), 0.0),
        played=select(moves | begins, math.nan, s.played),
        pace=select(moves | begins, 1.0, s.pace),
        ended=select(moves | begins, 0.0, s.ended),
        waits_since=select(moves | begins, math.inf, s.waits_since),
        link_waits_since=select(moves | begins, math.inf, s.link_waits_since),
    )
    return after, begins, moves


def chosen(condition: Any, one: State, other: State) -> State:
    """Return one of two states."""
    pairs = zip(one, other, strict=True)
    return State(*[x if x is y else select(condition, x, y) for x, y in pairs])


def floats(s: State, x: Sample, p: Settings) -> Any:
    """Return the condition that no law moves the arm, so that its motion is evidence.

    Springs with a resting reference only hold the arm.
    """
    blends = less(x.now - s.law_at, p.switch_time)
    return holds(x.floats) & ~blends & (equal(s.law, laws.FLOAT) | ~holds(s.obeys))


def _kind(law: Any) -> Any:
    """Return 1 for laws that follow joints, 2 for those that follow a pose, else 0."""
    link = select(is_one_of(law, laws.OF_LINKS), 2.0, 0.0)
    return select(is_one_of(law, laws.OF_JOINTS), 1.0, link)


class Arm(NamedTuple):
    """The state of the arm in a period, as laws use it."""

    tree: Tree
    """The arm with its loads under the gravity in force."""
    inertia: laws.Inertia
    q: Any
    """(n,) trusted positions, and velocities."""
    qd: Any
    representation: str


def law_torques(
    s: State,
    x: Sample,
    r: Request,
    p: Settings,
    arm: Arm,
    traced: Traced,
    begins: Any,
    moves: Any,
    dt: Any,
) -> tuple[State, Any]:
    """Return the state with its references, and the torques (n,) in addition to gravity torques.

    ``begins``: the reference begins at the present state; ``moves``: a motion begins.
    """
    share = clipped((x.now - s.law_at) / max(p.switch_time, 1e-9), 0.0, 1.0)
    gap = max(s.gap, period_of(s, p))
    torques = _weight(s, (laws.FLOAT, laws.OWN_JOINT), share) * x.law
    lead, controlled = p.own_lead, 1.0
    if not (traced.joints or traced.link):
        s = _at_present(_without_link(s, p), p, arm)
        return s._replace(stiffness_share=controlled, lead=lead), torques
    obeys = holds(s.obeys) & is_sound(s.law, r, traced)
    of_link = is_one_of(s.law, laws.OF_LINKS)
    follows = select(obeys, select(of_link, select(holds(r.prefers), 1.0, 0.0), r.follows), 0.0)
    motion = r._replace(follows=follows, pace=clipped(r.pace, 0.0, 1.0))
    following = _with_joints(s, motion, p, arm, begins, x.now, dt)
    s = chosen(springs_act(s), following, _at_present(s, p, arm))
    if traced.joints:
        in_force = equal(s.law, laws.JOINT)
        acts_here = in_force | equal(s.law_before, laws.JOINT)
        result = laws.joint_impedance(
            arm.tree,
            arm.inertia,
            laws.Springs(s.joint_stiffness, s.joint_ratio, _most(p.joint_fastest, gap)),
            np.array(sliding(arm.tree.model), dtype=float),
            (arm.q, arm.qd),
            (
                select(in_force, s.reference, s.fading),
                select(in_force, s.reference_qd, s.fading_qd),
                select(in_force, s.reference_qdd, 0.0),
            ),
            arm.representation,
        )
        weight = _weight(s, (laws.JOINT,), share)
        torques = torques + select(acts_here, _weighted(weight, result.torques), 0.0)
        lead = select(acts_here, select(in_force, result.lead, lead), lead)
        soft = select(less(0.0, weight), result.share, 1.0)
        controlled = select(acts_here, soft, controlled)
    without_link = _without_link(s, p)
    if not traced.link:
        return without_link._replace(stiffness_share=controlled, lead=lead), torques
    acts_here = of_link | is_one_of(s.law_before, laws.OF_LINKS)
    following, added, soft = _with_link(
        s, x, r, p, arm, traced.link, obeys, begins, moves, share, gap, dt
    )
    s = chosen(acts_here, following, without_link)
    controlled = select(acts_here, min(controlled, soft), controlled)
    torques = torques + select(acts_here, added, 0.0)
    return s._replace(stiffness_share=controlled, lead=lead), torques


def _at_present(s: State, p: Settings, arm: Arm) -> State:
    """Return the state whose reference of the joints is their present state."""
    return s._replace(
        reference=arm.q,
        reference_qd=clipped(arm.qd, -p.reference_velocity, p.reference_velocity),
        reference_qdd=0.0,
        played=math.nan,
        pace=1.0,
        ended=0.0,
        waits=0.0,
        waits_since=math.inf,
    )


def _without_link(s: State, p: Settings) -> State:
    """Return the state without traces of a law that moved a link.

    The pose remains; it restarts at the measured pose when such a law takes over.
    """
    return s._replace(
        twist=0.0,
        rotation=0.0,
        link_lead=p.own_link_lead,
        link_waits_since=math.inf,
        halting=-math.inf,
    )


def period_of(s: State, p: Settings) -> Any:
    """Return the time between two states for which a stiffness must be stable; 0: not known yet."""
    usual = largest(p.commanded * s.stamp_interval)
    return select(less(0.0, p.state_period), p.state_period, usual)


def _weight(s: State, of: tuple[float, ...], share: Any) -> Any:
    """Return the weight of these laws in the torques; the law in force has the weight ``share``."""
    now = select(is_one_of(s.law, of), share, 0.0)
    return now + select(is_one_of(s.law_before, of), 1.0 - share, 0.0)


def _weighted(weight: Any, torques: Any) -> Any:
    """Return weighted torques (n,), zero without a weight, even if they are not finite."""
    return select(less(0.0, weight), weight * torques, 0.0)


def _most(fastest: Any, gap: Any) -> Any:
    """Return the largest squared frequency of a mode that a loop with these gaps can control."""
    root = fastest / max(gap, 1e-9)
    return root * root


def _with_joints(
    s: State, r: Request, p: Settings, arm: Arm, begins: Any, now: Any, dt: Any
) -> State:
    """Return the state with the reference of the joints."""
    after = references.joints_after(s, r, p, arm.q, s.lead, now, dt)
    begin = begins | equal(s.law, laws.FLOAT)
    present = _at_present(s, p, arm)
    # references of joints that are not commanded, and of a floating arm, are measured positions
    tracks = begin | ~holds(p.commanded)
    waits = select(tracks, present.waits, 1.0 * after.waits)
    fading_qd = references.braked(s.fading_qd, p.reference_acceleration, dt)
    return s._replace(
        reference=select(tracks, present.reference, after.q),
        reference_qd=select(begin, present.reference_qd, select(holds(p.commanded), after.qd, 0.0)),
        reference_qdd=select(tracks, present.reference_qdd, after.qdd),
        played=select(begin, present.played, after.played),
        pace=select(begin, present.pace, after.pace),
        ended=select(begin, present.ended, 1.0 * after.ended),
        waits=waits,
        waits_since=select(less(0.5, sum(waits)), min(s.waits_since, now), present.waits_since),
        fading=s.fading + fading_qd * dt,
        fading_qd=fading_qd,
    )


def _with_link(
    s: State,
    x: Sample,
    r: Request,
    p: Settings,
    arm: Arm,
    link: str,
    obeys: Any,
    begins: Any,
    moves: Any,
    share: Any,
    gap: Any,
    dt: Any,
) -> tuple[State, Any, Any]:
    """Return the state with the reference of the link, torques (n,), and a share of stiffness."""
    q, qd, now = arm.q, arm.qd, x.now
    in_force, fades = is_one_of(s.law, laws.OF_LINKS), is_one_of(s.law_before, laws.OF_LINKS)
    C: Array = mbs.forward_kinematics(arm.tree, q, bodies=[link])[0][:3]
    J: Array = mbs.jacobian(arm.tree, q, link, representation="hybrid")

    # the posture comes to rest with the arm, unless another posture is preferred
    stops = begins | (moves & equal(r.follows, references.STOP))
    halting = select(stops, now + references.HALT_TIME, s.halting)
    slow = less(largest(abs(qd)), references.AT_REST)
    halts = in_force & less(now, halting) & ~(obeys & holds(r.prefers))
    halting = select(slow & ~stops, -math.inf, halting)
    s = s._replace(
        reference=select(halts, q, s.reference),
        reference_qd=select(halts, 0.0, s.reference_qd),
        reference_qdd=select(halts, 0.0, s.reference_qdd),
        halting=select(halts | stops, halting, -math.inf),
    )
    rate = select(halts, -qd, s.reference_qd)

    goes = in_force & obeys & less(0.0, r.follows)
    pose, twist, waits = references.pose_after(s, r, p, C, goes, s.link_lead, dt)
    tracks = (in_force & begins) | ~(in_force | (fades & less(share, 1.0)))
    v = (J @ qd).reshape(2, 3)
    size = references.length_of(v)
    v = v * min(1.0, p.pose_velocity[:, None] / max(size, 1e-12))
    s = s._replace(
        pose=select(tracks, C, pose),
        twist=select(tracks, select(in_force, v.ravel(), 0.0), twist),
        link_waits_since=select(waits & ~tracks, min(s.link_waits_since, now), math.inf),
    )

    impedance = equal(s.law, laws.LINK)
    result, angle = laws.link_impedance(
        arm.inertia,
        J,
        laws.Springs(s.link_stiffness, s.link_ratio, _most(p.link_fastest, gap)),
        s.link_axes,
        s.posture_frequency,
        (C, q, qd),
        (
            s.pose,
            s.twist,
            select(in_force, s.reference, s.fading),
            select(in_force, rate, s.fading_qd),
        ),
        s.rotation,
    )
    weights = [_weight(s, (law,), share) for law in laws.OF_LINKS]
    mixed = _weighted(weights[0], result.torques) + weights[1] * x.law
    limited = laws.within_stops(
        arm.inertia, mixed, sum(weights), q, qd, p.spring_low, p.spring_high, p.fastest, gap
    )
    return (
        s._replace(
            rotation=angle,
            link_lead=select(impedance, result.lead, p.own_link_lead),
        ),
        limited,
        select(less(0.0, weights[0]), result.share, 1.0),
    )
