# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The records of a control period: the meaning of every number in its vectors.

A period takes and returns flat vectors of doubles, which are the same in Python, in batches and in
C. :class:`Layout` tells where in a vector each field of a record stands. Fields are single numbers,
or arrays with one entry for each of the n joints of the model. A joint that is not commanded has
``commanded`` 0, and effort limits of 0. Conditions are 1.0 or 0.0. Times are those of one steady
clock, in s. A number that is not known is NaN.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Annotated, Any, Generic, NamedTuple, TypeVar, get_type_hints

import numpy as np

Number = Annotated[Any, ()]
Vector = Annotated[Any, (3,)]
PerJoint = Annotated[Any, ("n",)]
PerLoad = Annotated[Any, ("b", 10)]
Two = Annotated[Any, (2,)]
"""One value for rotations, one for translations."""
Six = Annotated[Any, (6,)]
"""Three values for rotations about the axes, three for translations along them."""
Pose = Annotated[Any, (3, 4)]
"""Rotation matrix and position in m, in the frame of the root."""
Segment = Annotated[Any, (6, "n")]
NEVER = 1e12
"""A limit that nothing exceeds. An infinite one would make NaN of zero."""

SWITCHING = 0.03
"""Time in s in which drives that start or stop to control positions may exert no torque."""

LAG = 4
"""Number of latest commands that are remembered: a measured effort may follow any of them."""
LatestPerJoint = Annotated[Any, (LAG, "n")]
PerCheck = Annotated[Any, ("checks",)]


class State(NamedTuple):
    """The numbers that one period passes to the next.

    The values here are those of an arm of which nothing is known; ``initial`` in ``function.py``
    adds what is set.
    """

    now: Number = math.nan
    """Time of the latest period that was sent; NaN before the first."""
    stood: Number = 0.0
    """Number of successive periods, up to now, in which the time did not advance."""
    mode: Number = 0.0
    """One of the modes in ``transitions.py``."""
    since: Number = 0.0
    """When the mode was entered."""

    fault: Number = 0.0
    """Number of the check that failed, from 1; 0: none, -1: an external reason."""
    fault_joint: Number = math.nan
    fault_value: Number = math.nan
    fault_limit: Number = math.nan
    doubt: Number = 0.0
    """Number of the quantity that the fault makes unreliable: a doubt in ``checks.py``."""

    stamp: PerJoint = math.nan
    """When the latest accepted state was measured, by the clock of the measurements."""
    received: PerJoint = -math.inf
    """When it was received; -inf before the first."""
    interval: PerJoint = 0.0
    """Mean time between two states; 0 before two have come."""
    stamp_interval: PerJoint = 0.0
    """Usual time between two states by their stamps; 0 before two have come."""
    q: PerJoint = math.nan
    """The latest accepted positions in rad or m, unwrapped."""
    turned: PerJoint = 0.0
    """Whole turns in rad that were added to the reported angles to obtain ``q``."""
    qd: PerJoint = math.nan
    """The latest accepted velocities in rad/s or m/s."""
    effort: PerJoint = math.nan
    """The latest measured efforts in N m or N."""
    refused: PerJoint = 0.0
    """Reason why the latest report was refused, from ``measurement.py``; 0: none."""
    refused_by: PerJoint = 0.0
    """Amount that led to the refusal: a jump in rad or m, or a time in s."""
    suspect: PerJoint = math.nan
    """Position in rad or m that was refused as a jump, until a report contradicts it; NaN: none."""
    suspect_stamp: PerJoint = math.nan
    """Stamp of that report in s."""
    doubted: Number = 0.0
    """1 from a fault of measured states until drives hold the arm or it has no torque. Meanwhile
    torques are those of ``trusted``."""
    rates_doubted: Number = 0.0
    """1 from a fault of measured velocities until then. Meanwhile nothing is damped."""
    trusted: PerJoint = math.nan
    """Positions in rad or m from which torques are computed: the latest that were not doubted."""
    g: PerJoint = math.nan
    """Gravity torques in N m or N at ``trusted``, or at ``held`` while drives hold the arm: times
    ``scale``, plus ``lag``."""
    smooth: PerJoint = 0.0
    """Low-pass filtered velocities for damping, in rad/s or m/s."""

    slow_q: PerJoint = 0.0
    """Low-pass filtered positions in rad or m. The distance of a position from them, divided by the
    time constant, is the mean speed that is compared with ``mean_qd``."""
    mean_qd: PerJoint = 0.0
    """Reported velocities in rad/s or m/s behind the same low-pass filter."""
    changed_at: PerJoint = 0.0
    """Stamp of the latest state in which the values of a joint changed."""
    lively: PerJoint = 0.0
    """Number of successive states at rest in which noise changed the values."""
    reversals: PerJoint = 0.0
    """Number of these states in which the change had the opposite sign of the change before."""
    noisy: PerJoint = 0.0
    """1 if noise changes the values of a joint in every state at rest, so that constant values mean
    a frozen encoder."""
    change: PerJoint = math.nan
    """Latest change of the position in rad or m."""
    change_qd: PerJoint = math.nan
    """Latest change of the velocity in rad/s or m/s."""
    asked: LatestPerJoint = 0.0
    """Efforts in N m or N expected from each of the latest commands, the newest first."""
    asked_count: Number = 0.0
    """Number of commands since torques were enabled."""
    deviations: PerJoint = 0.0
    """Weighted number of successive states whose efforts deviate from the expected ones."""
    unknown_since: Number = math.inf
    """Time in s at which efforts became unknown; +inf while they are known."""
    saturated_since: PerJoint = math.inf
    """Time in s at which the command reached its effort limit; +inf while it is below."""

    momentum: PerJoint = math.nan
    """Generalised momentum of the latest state, in N m s or N s."""
    momentum_rate: PerJoint = math.nan
    """Rate of the momentum that the model predicts without external torques, in N m or N."""
    residual: PerJoint = math.nan
    """External torques estimated by the momentum observer, in N m or N; NaN: unknown."""
    sustained: PerJoint = math.nan
    """``residual`` behind a low-pass filter."""
    drift: PerJoint = math.nan
    """Slow part of ``sustained``, which the first high-pass filter removes, in N m or N."""
    trend: PerJoint = math.nan
    """Slow part of the rest, which the second high-pass filter removes, in N m or N."""
    contact_time: Number = 0.0
    """Time in s since which external torques have been known without a gap."""
    collided: Number = -1.0
    """Joint of the latest collision since torques were enabled; -1: none."""
    yields_until: Number = -math.inf
    """Time in s until which the arm yields to the contact."""

    gravity: Vector = 0.0
    """Gravity as it was set, in m/s^2, in the axes of the root."""
    loads: PerLoad = 0.0
    """Inertial parameters of the loads of each body, as they were set."""
    lag: PerJoint = 0.0
    """Part of ``g`` in N m or N by which it does not yet follow changes of gravity and loads."""
    lag_end: Number = -math.inf
    """Time in s at which it has decayed."""
    scale: PerJoint = 0.0
    """Share of the gravity torques in force."""
    damping: PerJoint = 0.0
    """In N m s/rad or N s/m, in force."""
    friction: PerJoint = 0.0
    """Coulomb friction that is compensated, in N m or N, in force."""
    zone: Number = 0.0
    """Length of the limit springs in force, in rad or m."""
    scale_goal: PerJoint = 0.0
    damping_goal: PerJoint = 0.0
    friction_goal: PerJoint = 0.0
    zone_goal: Number = 0.0
    gains_end: Number = -math.inf
    settling: Number = -math.inf
    """Time in s at which the extra damping of an arm that comes to rest ends."""
    spring_low: PerJoint = 0.0
    """Position in rad or m at which the lower limit spring begins. For a joint that was enabled
    further out, it begins there, and moves inward with the joint."""
    spring_high: PerJoint = 0.0

    command: PerJoint = 0.0
    """The latest torques in N m or N."""
    carried: PerJoint = 0.0
    """Ramped gravity torques in N m or N of the latest period with enabled torques, without
    laws, damping, friction compensation and springs. ``on_fault: hold_torque`` keeps them."""
    commanded_at: Number = math.nan
    """Time in s at which the latest command was sent."""
    start: PerJoint = 0.0
    """Torques in N m or N at which the ramp to gravity torques began."""
    share: Number = 0.0
    """Share of the gravity torques that has ramped in, 0 to 1."""
    hold: Number = 0.0
    """Share of the gains of the drives' position loops, 0 to 1."""
    held: PerJoint = math.nan
    """Positions in rad or m that the drives hold."""
    slipped: Number = -1.0
    """Index of a joint whose drive does not hold it; -1: none."""
    switched_at: Number = -math.inf
    """Time in s at which drives or another controller last began or ended to control positions."""
    held_elsewhere: Number = 0.0
    """Whether another controller holds the arm."""
    lets_go: Number = 0.0
    """1 if torques that a fault has kept are to ramp out."""
    behind: Number = 0.0
    """1 while the rate limit keeps the command from the wanted torques."""
    arrived: Number = 0.0
    """1 once the command of a stop or a release has reached its final torques."""

    weighing: Number = 0.0
    """1 while the motion of the arm is judged as evidence for the sign of the torques."""
    proven: Number = 0.0
    """1 once this evidence has shown that the torques are right."""
    verified: Number = 0.0
    """1 if measured efforts or an earlier proof verified the torques when they were enabled."""
    opposed: Number = 0.0
    """Kind of evidence against the torques, from ``evidence.py``; 0: none."""
    opposed_joint: Number = 0.0
    """Index of the joint that showed it; -1: the whole arm."""
    opposed_value: Number = 0.0
    """Displacement in rad or m, or speed in rad/s or m/s, that showed it."""
    most_share: Number = 1.0
    """Largest share of the gravity torques that may be commanded, 0 to 1. It grows with the
    evidence."""
    first_q: PerJoint = 0.0
    """Positions in rad or m at which the collection of evidence began."""
    lowest_q: PerJoint = 0.0
    """Positions in rad or m at which the arm was lowest since then."""
    lowest: Number = 0.0
    """Mean displacement there in rad or m, weighted by gravity torques; negative: lower."""
    sinking: Number = 0.0
    """Number of successive states, up to now, in which the arm sinks."""
    sprung: Number = 0.0
    """1 if drives have held the arm meanwhile: they lift it back, which is no evidence."""
    whole_at: Number = math.inf
    """Time in s of the latest state before the full torques held the arm without the drives; +inf:
    not yet."""
    whole_qd: PerJoint = 0.0
    """Velocities in rad/s or m/s at this time."""
    agreeing: Number = 0.0
    """Number of successive states in which efforts of holding drives agree with gravity torques."""
    disagree_since: Number = math.inf
    """Time in s at which they began to disagree; +inf while they agree."""
    alone_since: Number = math.inf
    """Time in s since which full torques have held the arm without contradiction; +inf: they do
    not."""

    law: Number = 0.0
    """Law in force, one of the laws in ``laws.py``."""
    law_before: Number = 0.0
    """Law that is fading out; the law in force if there is none."""
    law_at: Number = -math.inf
    """Time in s at which the law in force began to take over."""
    gap: Number = 0.0
    """Longest recent time in s between two states, which decays over GAP_MEMORY; 0: not known."""
    joint_stiffness: PerJoint = 0.0
    """Gains of the impedance laws in force, see Settings."""
    joint_ratio: Number = 0.0
    link_stiffness: Six = 0.0
    link_ratio: Number = 0.0
    link_axes: Number = 0.0
    posture_frequency: Number = 0.0
    joint_stiffness_goal: PerJoint = 0.0
    joint_ratio_goal: Number = 0.0
    link_stiffness_goal: Six = 0.0
    link_ratio_goal: Number = 0.0
    link_axes_goal: Number = 0.0
    posture_frequency_goal: Number = 0.0
    springs_end: Number = -math.inf
    """Time in s at which these gains reach their goals."""
    broken: Number = 0.0
    """1 if torques of the laws were not finite and were left out."""
    stiffness_share: Number = 1.0
    """Share of the set stiffness that is stable with the recent times between states, 0 to 1."""

    motion: Number = 0.0
    """Number of the latest motion, see Request."""
    motion_at: Number = 0.0
    """Time in s at which it began."""
    obeys: Number = 0.0
    """1 if a motion was requested since torques were enabled or a law took over."""
    shift: PerJoint = 0.0
    """Whole turns in rad that are added to targets of joints without limits, to take the shortest
    way."""
    lead: PerJoint = 0.0
    """Distances in rad or m by which the reference may lead the measured joints; NEVER without
    stiffness."""
    reference: PerJoint = 0.0
    """Reference of the joints, or the posture of an arm whose link follows a pose."""
    reference_qd: PerJoint = 0.0
    reference_qdd: PerJoint = 0.0
    fading: PerJoint = 0.0
    """Reference of the joints for the law that is fading out. It brakes to rest."""
    fading_qd: PerJoint = 0.0
    played: Number = math.nan
    """Time in s since the first point of the trajectory that is played; NaN: none."""
    pace: Number = 1.0
    """Playing speed relative to the recorded one, 0 to 1."""
    ended: Number = 0.0
    """1 once the measured arm has arrived at its last point."""
    waits: PerJoint = 0.0
    """1 for joints whose reference pauses until they have caught up."""
    waits_since: Number = math.inf
    """Time in s at which a reference paused; +inf: none pauses."""
    halting: Number = -math.inf
    """Time in s until which the posture follows an arm that comes to rest."""
    pose: Pose = 0.0
    """Reference of the link."""
    twist: Six = 0.0
    """Its angular and linear velocity, in the axes of the root."""
    link_lead: Six = 0.0
    """Distances in rad and m by which it may lead the link, along the axes of the stiffness."""
    link_waits_since: Number = math.inf
    """Time in s at which it paused until the link has caught up; +inf: it does not pause."""
    rotation: Vector = 0.0
    """Rotation vector in rad of the latest orientation error. Near half a turn, the next error is
    on the same side."""


class Sample(NamedTuple):
    """The measurements of one period, as they were received. Unmeasured quantities are NaN.

    By default nothing is reported.
    """

    now: Number = math.nan
    """Time of the period in s."""
    stamp: PerJoint = math.nan
    """Time of each measurement in s, by the clock of the measurements; NaN: no new report."""
    received: PerJoint = math.nan
    """Time in s at which each measurement was received."""
    reported: PerJoint = 0.0
    """1 for joints with a report."""
    q: PerJoint = math.nan
    """Positions in rad or m, as reported: angles of joints without limits may be wrapped."""
    qd: PerJoint = math.nan
    """Velocities in rad/s or m/s."""
    effort: PerJoint = math.nan
    """Efforts in N m or N."""
    error: PerJoint = 0.0
    """Error codes of drives; 0: none."""
    temperature: PerJoint = math.nan
    """Temperatures of drives in degrees Celsius."""
    apart: PerJoint = 0.0
    """Difference in rad or m of the positions of two motors of one joint."""
    law: PerJoint = 0.0
    """Torques in N m or N, in addition to gravity torques, of a law that is called before the
    period."""
    floats: Number = 1.0
    """1 if that law does not move the arm: its motion is evidence for the gravity torques."""
    nudge: PerJoint = 0.0
    """Torques in N m or N that are added while the drives hold the arm, to test their signs."""


REPORTS = (
    "reported", "apart", "stamp", "received", "q", "qd", "effort", "error", "temperature",
)  # fmt: skip
"""Fields of Sample that a report of joints fills."""


def reports_of(stamp: float, received: float, q: Any, qd: Any, effort: Any) -> Any:
    """Return the reports (9, k) of k joints that were measured at once, by the fields of REPORTS.

    Their drives report neither errors nor temperatures.
    """
    measured = Sample(reported=1.0, stamp=stamp, received=received, q=q, qd=qd, effort=effort)
    return np.array([np.broadcast_to(getattr(measured, name), len(q)) for name in REPORTS])


class Request(NamedTuple):
    """The requests to one period: enable or disable, the law, and the motion that it follows."""

    action: Number
    """Number of an action in ``transitions.py``."""
    sends: Number
    """1 if the command of the period is sent; 0: the period only judges, and the command stays."""
    doubt: Number
    """Number of a doubt in ``checks.py``. It applies if ``action`` is TRIP."""
    holder: Number
    """1 if another controller is to hold the arm once torques are released."""
    holds: Number
    """1 if another controller holds the arm now."""

    law: Number
    """Law that is to be in force, one of the laws in ``laws.py``."""
    motion: Number
    """Number of the motion that is described below. Another number begins another motion; what is
    described under a number from before torques were enabled is not followed."""
    follows: Number
    """Whether the reference comes to rest, goes to a target or plays a trajectory; see
    ``references.py``."""
    prefers: Number
    """Whether the posture of an arm whose link follows a pose goes to ``target``."""
    target: PerJoint
    """Positions of joints, or the first point of a trajectory. Those of joints without limits may
    be whole turns away; a trajectory is shifted as a whole."""
    target_qd: PerJoint
    """Velocities in rad/s or m/s with which the targets move on."""
    target_pose: Pose
    segment: Segment
    """Coefficients c of the segment of a trajectory, c_0 + c_1 x + ... + c_5 x^5. References go no
    faster than the joints may, whatever it holds."""
    segment_at: Number
    """Time in s from the first point to the beginning of the segment, where x is 0."""
    duration: Number
    """Time in s from the first point of the trajectory to the last."""
    delay: Number
    """Time in s from the request of the motion to the first point of the trajectory, at least."""
    pace: Number
    """Requested playing speed relative to the recorded one, 0 to 1."""


class Settings(NamedTuple):
    """Limits, gains, times and goals. Changing them compiles nothing."""

    commanded: PerJoint
    """1 for joints that are commanded."""
    low: PerJoint
    """Positions in rad or m at which a joint is a fault; NEVER, with a sign, without a limit."""
    high: PerJoint
    spring_low: PerJoint
    """Position limits in rad or m from which the zones of limit springs extend inward; likewise."""
    spring_high: PerJoint
    fastest: PerJoint
    """Velocity limits; NEVER without one."""
    effort: PerJoint
    """Effort limits in N m or N."""
    rate: PerJoint
    """Largest changes of torques per second."""
    timeout: PerJoint
    """Time after which a joint that is not measured is stale."""
    ahead: Number
    """Largest time by which a stamp may be later than now."""
    longest_pause: Number
    """Time between two periods that is a fault. If it is finite, a shorter pause makes no joint
    stale that has a state after it."""
    differentiates: Number
    """Whether velocities that are not reported are differences of positions."""
    frozen_timeout: Number
    """Time in s after which values that do not change are a fault; 0: not checked."""
    tolerance: Number
    """Largest deviation of measured from commanded efforts, as a share of the effort limit; 0: not
    compared."""
    hottest: Number
    """Largest temperature of a drive in degrees Celsius."""
    saturation: Number
    """Time at the effort limit after which a joint is a fault."""
    effort_check: Number
    """0: off, 1: auto, 2: always."""
    starts_from_effort: Number
    collides: Number
    """Whether collisions are watched for, which needs efforts."""
    on_collision: Number
    """0: stop, 1: float, 2: yield."""
    impact_threshold: PerJoint
    """Threshold of sudden external torques in N m or N; NEVER: the joint is not watched."""
    sustained_threshold: PerJoint
    """Threshold of all external torques, errors of the model included; likewise."""
    watches_efforts: Number
    """Whether efforts are known to be those of motors that hold the arm."""
    can_hold: Number
    """Whether the drives can hold the arm."""
    stiffness: PerJoint
    """Stiffness of the drives' position loops in N m/rad or N/m."""
    drive_damping: PerJoint
    slip: PerJoint
    """Largest distance between held and measured positions."""
    on_fault: Number
    """0: ramp down, 1: hold the torque, 2: zero."""
    ramp_in: Number
    ramp_out: Number
    hand_over: Number
    """Time in which drives let go of an arm that torques hold."""
    release: Number
    """Longest time in s for which full torques wait for another holder after a release."""
    settle_time: Number
    filter: Number
    """Time constant in s of the filter of velocities for damping."""
    gravity: Vector
    gravity_time: Number
    """Time in which torques follow a change of gravity, and of loads; 0: at once."""
    loads: PerLoad
    loads_time: Number
    scale: PerJoint
    damping: PerJoint
    friction: PerJoint
    zone: Number

    state_period: Number
    """Time between two states for which a stiffness must be stable; 0: as it is measured."""
    switch_time: Number
    """Time in which a law takes over, and in which gains of a law change."""
    joint_stiffness: PerJoint
    """Stiffness of the impedance of joints, in N m/rad or N/m."""
    joint_ratio: Number
    """Its damping ratio."""
    joint_fastest: Number
    """Largest natural frequency times period that a loop with this ratio can control."""
    link_stiffness: Six
    """Stiffness of the impedance of a link, in N m/rad and N/m."""
    link_ratio: Number
    link_fastest: Number
    link_axes: Number
    """Whether its stiffness is along the axes of the reference, not of the root."""
    posture_frequency: Number
    """Natural frequency in rad/s with which the posture is approached."""
    own_lead: PerJoint
    """Distances by which references may lead an arm under a law that is called first."""
    own_link_lead: Six
    reference_velocity: PerJoint
    """Largest velocities and accelerations of the reference of joints."""
    reference_acceleration: PerJoint
    reference_timeout: Number
    """Time for which a target goes on with its velocity."""
    pose_velocity: Two
    """Largest velocities and accelerations of the reference of a link."""
    pose_acceleration: Two


class Output(NamedTuple):
    """The command to the drives."""

    torque: PerJoint
    """Torques or forces in N m or N."""
    position: PerJoint
    """Positions to hold in rad or m, in the turns that are reported."""
    stiffness: PerJoint
    """Shares of the gains of the drives' position loops."""
    damping: PerJoint
    active: Number
    """Whether anything is commanded."""


class Verdict(NamedTuple):
    """The result of each check in the period."""

    joint: PerCheck
    """For each check, the first joint that fails it; -1: the arm as a whole, NaN: it passes."""
    value: PerCheck
    limit: PerCheck


class Result(NamedTuple):
    """Result of a period, as vectors."""

    state: Any
    output: Any
    verdict: Any


R = TypeVar("R", bound=tuple[Any, ...])


class Layout(Generic[R]):
    """Places of the fields of a record in a vector.

    Parameters: ``record`` is a named tuple with annotated shapes, ``sizes`` the sizes by name.
    """

    def __init__(self, record: type[R], sizes: Mapping[str, int]) -> None:
        self.record = record
        hints = get_type_hints(record, include_extras=True)
        self.shapes = {
            name: tuple(sizes.get(one, one) for one in hint.__metadata__[0])
            for name, hint in hints.items()
        }
        self.places: dict[str, slice] = {}
        start = 0
        for name, shape in self.shapes.items():
            self.places[name] = slice(start, start + math.prod(shape))
            start += math.prod(shape)
        self.size = start
        self._fields = [
            (place if shape else place.start, shape)
            for place, shape in zip(self.places.values(), self.shapes.values(), strict=True)
        ]
        """Index and shape of each field."""

    def unpacked(self, vector: Any) -> R:
        """Return the fields of a vector (size,), or of many (..., size): numbers, and views."""
        fields = []
        for place, shape in self._fields:
            field = vector[place] if vector.ndim == 1 else vector[..., place]
            if len(shape) > 1:
                field = field.reshape(*vector.shape[:-1], *shape)
            fields.append(field)
        return self.record(*fields)

    def packed(self, record: R) -> Any:
        """Return the vector (size,) of a record of numbers or symbols."""
        rows = []
        for (name, shape), value in zip(self.shapes.items(), record, strict=True):
            rows.append(np.broadcast_to(np.asarray(value), shape).ravel())
            assert rows[-1].size == math.prod(shape), name
        return np.concatenate(rows)
