# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The records of a control period: what every number of its vectors means.

A period takes and returns flat vectors of doubles, which are the same in Python, in batches and in
C. :class:`Layout` tells where in a vector each field of a record stands. Fields are single numbers,
or arrays with one entry for each of the n joints of the model. A joint that is not commanded has
``commanded`` 0, and effort limits of 0. Conditions are 1.0 or 0.0. Times are those of one steady
clock, in s. A number that is not known is NaN.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
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
"""Number of commands of which a measured effort may be that of the oldest."""
LatestPerJoint = Annotated[Any, (LAG, "n")]
PerCheck = Annotated[Any, ("checks",)]


class State(NamedTuple):
    """All that one period leaves to the next."""

    now: Number
    """Time of the latest period that was sent; NaN before the first."""
    stood: Number
    """Number of successive periods in which the time did not advance."""
    mode: Number
    """One of the modes in ``transitions.py``."""
    since: Number
    """When the mode was entered."""

    fault: Number
    """Number of the check that failed, from 1; 0: none, -1: an external reason."""
    fault_joint: Number
    fault_value: Number
    fault_limit: Number
    doubt: Number
    """The quantity that the fault makes unreliable: one of the doubts in ``checks.py``."""

    stamp: PerJoint
    """When the latest accepted state was measured, by the clock of the measurements."""
    received: PerJoint
    """When it was received; -inf before the first."""
    interval: PerJoint
    """Mean time between two states; 0 before two have come."""
    stamp_interval: PerJoint
    """Usual time between two states by their stamps; 0 before two have come."""
    q: PerJoint
    """The latest accepted positions in rad or m, unwrapped."""
    turned: PerJoint
    """Whole turns in rad by which these exceed what is reported."""
    qd: PerJoint
    """The latest accepted velocities in rad/s or m/s."""
    effort: PerJoint
    """The latest measured efforts in N m or N."""
    refused: PerJoint
    """Why the latest report was not used, one of the refusals in ``measurement.py``; 0: it was."""
    refused_by: PerJoint
    """By how much: a jump in rad or m, or a time in s."""
    suspect: PerJoint
    """Position of the latest report that jumped, if the ones after it agree; else NaN."""
    suspect_stamp: PerJoint
    doubted: Number
    """Whether states are doubted since the arm was at rest: torques follow none of them."""
    rates_doubted: Number
    """Whether velocities are doubted since then: nothing is damped."""
    trusted: PerJoint
    """Positions that torques follow."""
    g: PerJoint
    """Gravity torques there, scaled."""
    smooth: PerJoint
    """Filtered velocities for damping."""

    slow_q: PerJoint
    """Positions behind a low pass, of which the speed over a window follows."""
    mean_qd: PerJoint
    """Reported velocities behind the same low pass."""
    changed_at: PerJoint
    """Stamp of the latest state in which the values of a joint changed."""
    lively: PerJoint
    """Number of successive states at rest in which noise changed the values."""
    lively_since: PerJoint
    """Stamp of the first of them."""
    reversals: PerJoint
    """Number of them in which it changed them to and fro."""
    noisy: PerJoint
    """Whether noise always changes the values at rest."""
    change: PerJoint
    """The latest change of the position."""
    change_qd: PerJoint
    """The latest change of the velocity."""
    asked: LatestPerJoint
    """The efforts that follow from the latest commands, the newest first."""
    asked_count: Number
    """How many of them there are since torques were enabled."""
    deviations: PerJoint
    """Weighted number of successive deviations of measured from commanded efforts."""
    unknown_since: Number
    """Since when efforts are unknown; +inf if they are known."""
    saturated_since: PerJoint
    """Since when the command is at its limit; +inf if it is not."""

    momentum: PerJoint
    """Generalised momentum of the latest state, in N m s or N s."""
    momentum_rate: PerJoint
    """Its rate without external torques."""
    residual: PerJoint
    """External torques by the momentum observer; NaN: not known."""
    sustained: PerJoint
    """The same behind a low-pass filter."""
    drift: PerJoint
    """Behind one high-pass filter they are less by the drift, behind a second by the trend too."""
    trend: PerJoint
    contact_time: Number
    """Time for which external torques have been known."""
    collided: Number
    """Joint of the latest collision since torques were enabled; -1: none."""
    yields_until: Number
    """Until when the arm goes along with the contact."""

    gravity: Vector
    """Gravity in force, in m/s^2, in the axes of the root."""
    gravity_goal: Vector
    gravity_end: Number
    """When gravity reaches its goal; likewise for the loads and gains below."""
    loads: PerLoad
    """Inertial parameters of the loads in force, of each body."""
    loads_goal: PerLoad
    loads_end: Number
    scale: PerJoint
    """Share of the gravity torques in force."""
    damping: PerJoint
    """In N m s/rad or N s/m, in force."""
    friction: PerJoint
    """Coulomb friction that is compensated, in N m or N, in force."""
    zone: Number
    """Length of the limit springs in force, in rad or m."""
    scale_goal: PerJoint
    damping_goal: PerJoint
    friction_goal: PerJoint
    zone_goal: Number
    gains_end: Number
    settling: Number
    """When the damping of the momentum ends."""
    spring_low: PerJoint
    """Where the lower limit spring begins; higher while the joint has not come inside."""
    spring_high: PerJoint

    command: PerJoint
    """The latest torques in N m or N."""
    carried: PerJoint
    """What of the latest torques of an engaged arm carries it: they neither damp nor assist."""
    commanded_at: Number
    start: PerJoint
    """Torques from which gravity torques ramp in."""
    share: Number
    """Share of the gravity torques that has ramped in."""
    hold: Number
    """Share of the gains of the drives' position loops."""
    held: PerJoint
    """Positions that the drives hold."""
    slipped: Number
    """A joint whose drive does not hold it; -1: none."""
    switched_at: Number
    """When the drives, or another controller, began or ended to control positions."""
    held_elsewhere: Number
    """Whether another controller holds the arm."""
    lets_go: Number
    """Whether torques that a fault has kept are to ramp out."""
    behind: Number
    """Whether the rate limit keeps the command from the torques that are wanted."""
    arrived: Number
    """Whether the command has reached the torques that a stop or a release leads to."""

    weighing: Number
    """Whether the arm is watched for evidence that the torques are right."""
    proven: Number
    """Whether they were found to be right."""
    verified: Number
    """Whether something had shown that they are right when they were enabled."""
    opposed: Number
    """What contradicts them: number of a kind of evidence; 0: nothing."""
    opposed_joint: Number
    opposed_value: Number
    most_share: Number
    """Largest share of the gravity torques that may be commanded."""
    first_q: PerJoint
    """Positions when watching began."""
    lowest_q: PerJoint
    """Positions where the arm was lowest since then."""
    lowest: Number
    """Its mean displacement there."""
    sinking: Number
    """Number of successive states in which the arm sinks."""
    sprung: Number
    """Whether drives have held the arm, which bring it back up to where it was."""
    whole_at: Number
    """When whole torques began to move the arm alone, or the latest time before; +inf: not yet."""
    whole_qd: PerJoint
    """Velocities at this time."""
    agreeing: Number
    """Number of states in which efforts of drives that hold the arm agree with gravity."""
    disagree_since: Number
    alone_since: Number
    """Since when whole torques hold the arm and are not contradicted; +inf: they do not."""

    law: Number
    """Law in force, one of the laws in ``laws.py``."""
    law_before: Number
    """Law that fades; the one in force if none does."""
    law_at: Number
    """When the law in force began to take over."""
    gap: Number
    """Longest of the latest times between two states; 0 before two have come."""
    joint_stiffness: PerJoint
    """Gains of the impedance laws in force, see Settings."""
    joint_ratio: Number
    link_stiffness: Six
    link_ratio: Number
    link_axes: Number
    posture_frequency: Number
    joint_stiffness_goal: PerJoint
    joint_ratio_goal: Number
    link_stiffness_goal: Six
    link_ratio_goal: Number
    link_axes_goal: Number
    posture_frequency_goal: Number
    springs_end: Number
    """When these gains reach their goals."""
    broken: Number
    """Whether torques of the laws were not numbers, and were left out."""
    stiffness_share: Number
    """Share of the stiffness that the loop can control with the latest times between states."""

    motion: Number
    """Number of the latest motion, see Request."""
    motion_at: Number
    """When it began."""
    obeys: Number
    """Whether a motion was requested since torques were enabled or a law took over."""
    shift: PerJoint
    """Whole turns in rad that bring targets of joints without limits nearest to them."""
    lead: PerJoint
    """Distances by which the reference of the joints may lead them; NEVER: without stiffness."""
    reference: PerJoint
    """Reference of the joints, or the posture of an arm whose link follows a pose."""
    reference_qd: PerJoint
    reference_qdd: PerJoint
    fading: PerJoint
    """Reference of the joints for the law that fades, which comes to rest."""
    fading_qd: PerJoint
    played: Number
    """Time since the first point of the trajectory that is played; NaN: none is."""
    pace: Number
    """Share of its speed with which it is played."""
    ended: Number
    """Whether the measured arm has arrived at its last point."""
    waits: PerJoint
    """Whether the reference of a joint waits for it."""
    waits_since: Number
    """Since when one waits; +inf: none."""
    halting: Number
    """Until when the posture comes to rest at the latest."""
    pose: Pose
    """Reference of the link."""
    twist: Six
    """Its angular and linear velocity, in the axes of the root."""
    link_lead: Six
    """Distances by which it may lead the link, along the axes of the stiffness."""
    link_waits_since: Number
    rotation: Vector
    """Rotation vector of the latest orientation error: near half a turn, it decides the side."""


class Sample(NamedTuple):
    """What is known in a period."""

    now: Number
    stamp: PerJoint
    """When states were measured, NaN of joints of which there is no new report."""
    received: PerJoint
    """When they were received."""
    reported: PerJoint
    """Whether there is a report of a joint."""
    q: PerJoint
    qd: PerJoint
    effort: PerJoint
    error: PerJoint
    """Error codes of drives."""
    temperature: PerJoint
    """In degrees Celsius."""
    apart: PerJoint
    """How far the positions of two motors of one joint differ."""
    law: PerJoint
    """Torques of a law that is called first, in addition to those of gravity compensation."""
    floats: Number
    """Whether no law moves the arm, so that its motion is evidence."""
    nudge: PerJoint
    """Torques in addition while the drives hold the arm."""


class Request(NamedTuple):
    """What is asked for in a period."""

    action: Number
    """One of the actions in ``transitions.py``."""
    sends: Number
    """Whether the command of the period is sent; else it stays as it is."""
    settle: Number
    """Whether the momentum of the arm is to be damped from now on."""
    doubt: Number
    """Of an external reason to stop."""
    holder: Number
    """Whether another controller is to hold the arm once torques are released."""
    holds: Number
    """Whether another controller holds the arm now."""

    law: Number
    """Law that is to be in force, one of the laws in ``laws.py``."""
    at_once: Number
    """Whether it takes over without a blend, as after a collision."""
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
    """Velocities with which they go on."""
    target_pose: Pose
    segment: Segment
    """Coefficients c of the segment of a trajectory, c_0 + c_1 x + ... + c_5 x^5. References go no
    faster than the joints may, whatever it holds."""
    segment_at: Number
    """Time of its beginning after the first point, from which x counts."""
    duration: Number
    """Time from the first point of the trajectory to the last."""
    delay: Number
    """Time after the beginning of the motion before which the trajectory does not begin."""
    pace: Number
    """Share of its speed, from 0 to 1, with which it is to be played."""


class Settings(NamedTuple):
    """Limits, gains, times and goals. Changing them compiles nothing."""

    commanded: PerJoint
    turning: PerJoint
    """Whether a joint turns without limits."""
    low: PerJoint
    """Positions in rad or m at which a joint is a fault; NEVER, with a sign, without a limit."""
    high: PerJoint
    spring_low: PerJoint
    """Where limit springs would begin without a zone, likewise."""
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
    """Time between two periods that is a fault."""
    differentiates: Number
    """Whether velocities that are not reported are differences of positions."""
    frozen_timeout: Number
    """0: not checked."""
    tolerance: Number
    """Of measured from commanded efforts, as a share of the limit; 0: not compared."""
    hottest: Number
    saturation: Number
    """Time at the effort limit after which a joint is a fault."""
    effort_check: Number
    """0: off, 1: auto, 2: always."""
    effort_tolerance: Number
    starts_from_effort: Number
    collides: Number
    """Whether collisions are watched for, which needs efforts."""
    on_collision: Number
    """0: stop, 1: float, 2: yield."""
    impact_threshold: PerJoint
    """Of sudden external torques of a joint at rest; NEVER: it is not watched."""
    impact_slope: PerJoint
    """What the speeds of the recording add, from which thresholds were tuned."""
    sustained_threshold: PerJoint
    """Of external torques with the errors of the model, likewise."""
    sustained_slope: PerJoint
    recorded_speed: PerJoint
    watches_efforts: Number
    """Whether efforts are known to be those of motors that hold the arm."""
    can_hold: Number
    """Whether the drives can hold the arm."""
    stiffness: PerJoint
    """Of the position loops of the drives, in N m/rad or N/m."""
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
    """Longest time in which whole torques wait for another holder after a release."""
    settle_time: Number
    filter: Number
    """Time constant of velocities for damping."""
    gravity: Vector
    gravity_time: Number
    """Time in which gravity changes."""
    loads: PerLoad
    loads_time: Number
    """Time in which loads change."""
    scale: PerJoint
    damping: PerJoint
    friction: PerJoint
    zone: Number

    state_period: Number
    """Time between two states for which a stiffness must be stable; 0: as it is measured."""
    switch_time: Number
    """Time in which a law takes over, and in which gains of a law change."""
    linear: PerJoint
    """Whether a joint is prismatic."""
    joint_stiffness: PerJoint
    """Of the impedance of joints, in N m/rad or N/m."""
    joint_ratio: Number
    """Its damping ratio."""
    joint_fastest: Number
    """Largest natural frequency times period that a loop with this ratio can control."""
    link_stiffness: Six
    """Of the impedance of a link, in N m/rad and N/m."""
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
    """What the motors are told."""

    torque: PerJoint
    """In N m or N."""
    position: PerJoint
    """In rad or m, in the turns that are reported."""
    stiffness: PerJoint
    """Shares of the gains of the drives' position loops."""
    damping: PerJoint
    active: Number
    """Whether anything is commanded."""


class Verdict(NamedTuple):
    """What was found in the period."""

    joint: PerCheck
    """For each check, the first joint that fails it; -1: the arm as a whole, NaN: it passes."""
    value: PerCheck
    limit: PerCheck
    fresh_for: Number
    """Time until a joint is stale, if nothing is reported."""


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


def sizes_of(n: int, loads: int, checks: Sequence[Any]) -> dict[str, int]:
    """Return sizes for a model with n joints, of which so many bodies may carry loads."""
    return {"n": n, "b": loads, "checks": len(checks)}
