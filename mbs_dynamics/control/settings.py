# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Settings of an arm under guard: arguments in Python, parameters of the nodes."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from mbs_dynamics import checks
from mbs_dynamics.control.environment import check_earthly
from mbs_dynamics.errors import ArgumentError, UnknownJointError, listed
from mbs_dynamics.model.model import STANDARD_GRAVITY, Model
from mbs_dynamics.representation import AUTO, REPRESENTATIONS
from mbs_dynamics.settings import Settings, parameter, parameters_of

A = TypeVar("A", bound="ArmSettings")

ALGORITHMS = (AUTO, *REPRESENTATIONS)
"""Valid values of ``algorithm``."""

YIELDING = 0.5
"""Time in s for which an arm yields to a contact."""

LARGEST_SHARE = 0.9
"""Largest share of the identified friction that is compensated."""

RATE_SHARE = 50.0
"""Largest change of a torque per second, as a multiple of its effort limit: from zero to the limit
within 0.02 s, five periods of a loop of 250 Hz."""

GRAVITY_TOLERANCE = 0.2
"""Share by which the length of gravity may differ from 9.81 m/s^2, for errors of an imu."""

TRACKING = 0.1
"""Largest accepted difference of measured from commanded efforts with ``effort_check`` tracking, as
a share of the effort limit: what friction and currents leave uncertain."""

ON_FAULT = ("hold", "ramp_down", "zero")
"""Reactions to a fault."""


def algorithm_setting(computed: str, *, at_rest_only: bool = False) -> Any:
    """Return the field ``algorithm`` of a node; ``computed`` are the results that depend on it."""
    return parameter(
        AUTO,
        f"Representation of the recursion that computes {computed}. The results agree to rounding; "
        "the time differs. auto: body_fixed, which takes the fewest operations for dynamics.",
        choices=ALGORITHMS,
        at_rest_only=at_rest_only,
    )


@dataclass(frozen=True)
class InputSettings(Settings):
    """Settings of how states of joints are read."""

    fixed_positions: tuple[tuple[str, float], ...] = parameter(
        (),
        "Position of this joint, which no driver reports in joint_states. It is assumed to be at "
        "rest there.",
        unit="rad or m",
        type="double",
        read_only=True,
        per="other_joint",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        for joint, position in self.fixed_positions:
            checks.number(f"fixed_positions.{joint}", position)

    @property
    def fixed(self) -> dict[str, float]:
        """Positions in rad or m of the joints that no driver reports, by name."""
        return dict(self.fixed_positions)


@dataclass(frozen=True)
class VelocitySettings(InputSettings):
    """Settings of how states are read where velocities are needed."""

    velocity_from_position: bool = parameter(
        False,
        "Take velocities as differences of positions for joints of which a driver sends none, or "
        "NaN.",
    )


@dataclass(frozen=True)
class ArmSettings(VelocitySettings):
    """Settings of an arm under guard. Raises ArgumentError for invalid values."""

    joints: tuple[str, ...] = parameter(
        (),
        "Joints to command, in the order in which the controller takes them. Must be set.",
        once="joint",
        read_only=True,
        constraints="Names of joints of the robot that mimic no other, each at most once.",
    )
    algorithm: str = algorithm_setting("gravity torques and mass matrix", at_rest_only=True)
    effort_limits: tuple[float, ...] = parameter(
        0.0,
        "Effort limit of this joint, in place of the URDF's. 0: the URDF's.",
        unit="N m or N",
        low=0.0,
        high=1e5,
        at_rest_only=True,
        per="joint",
    )
    effort_scale: float = parameter(
        1.0,
        "Share of the effort limits that may be commanded.",
        low=0.01,
        high=1.0,
        at_rest_only=True,
        constant="effort_limits state the limits of commands.",
    )
    ramp_in_time: float = parameter(
        0.03,
        "Time in which torques ramp in when they are enabled, if measured efforts agree with "
        "gravity, or the arm sinks. Where nothing has shown that they are right, they take 1 s or "
        "longer, and grow only while the arm stays still.",
        unit="s",
        low=0.0,
        high=10.0,
        at_rest_only=True,
        constant="Slower, an arm that nothing supports falls farther; faster, it jerks.",
    )
    ramp_time: float = parameter(
        2.0,
        "Time in which torques ramp out, and in which changes of gravity, payload and gains take "
        "effect.",
        unit="s",
        low=0.05,
        high=10.0,
        at_rest_only=True,
    )
    start_from: str = parameter(
        "zero",
        "Torques at the start of the ramp when they are enabled: zero, or the measured effort, "
        "which holds the arm until then.",
        choices=("zero", "effort"),
        constant="Torques that measured efforts confirm are in after 0.03 s: an arm hardly sinks.",
    )
    gravity_scale: tuple[float, ...] = parameter(
        1.0,
        "Share of this joint's gravity torque that is commanded.",
        low=0.0,
        high=1.5,
        per="joint",
    )
    damping: tuple[float, ...] = parameter(
        0.0,
        "Viscous damping that is added at this joint.",
        unit="N m s/rad or N s/m",
        low=0.0,
        high=1e4,
        per="joint",
    )
    friction: tuple[float, ...] = parameter(
        -1.0,
        "Coulomb friction of this joint. -1: that of the URDF.",
        unit="N m or N",
        low=-1.0,
        high=1e4,
        per="joint",
        constant="The URDF states the friction, as `mbs-dynamics identify` writes it.",
    )
    friction_scale: float = parameter(
        0.0,
        f"Share of the friction that is compensated, limited to {LARGEST_SHARE:g}: compensation "
        "must exert less than friction does.",
        low=0.0,
        high=1.0,
    )
    velocity_filter: float = parameter(
        0.0,
        "Time constant of the low-pass filter on the velocities in damping and friction. 0: none.",
        unit="s",
        low=0.0,
        high=1.0,
        constant="Its delay would limit the damping; drivers filter velocities themselves.",
    )
    limit_zone: float = parameter(
        0.1,
        "Distance from its position limit at which a soft spring begins to hold a joint back. "
        "0: no springs.",
        unit="rad or m",
        low=0.0,
        high=1.0,
        constant="The springs are soft, and act close to the limits only.",
    )
    gravity: tuple[float, float, float] = parameter(
        STANDARD_GRAVITY,
        "Free-fall acceleration in the axes of the URDF's root link.",
        unit="m/s^2",
        constraints="Three finite numbers, a length within 20 % of 9.81.",
    )
    max_payload: float = parameter(
        0.0,
        "Largest mass of all payloads together. 0: the mass of the moving links.",
        unit="kg",
        low=0.0,
        high=1e4,
        constant="Hardly any arm carries more than its own mass.",
    )
    effort_check: str = parameter(
        "auto",
        "Compare the measured efforts with the gravity torques before enabling: auto (where the "
        "motors exert torques, or are known to hold the arm), always, or off. With always, efforts "
        "that end while torques are commanded are a fault after stale_timeout. tracking: always, "
        f"and efforts that differ from the commanded ones by {TRACKING:g} of the effort limit in "
        "five successive states are a fault.",
        choices=("auto", "always", "tracking", "off"),
    )
    on_fault: str = parameter(
        "ramp_down",
        "Reaction to a fault where no drive holds the arm: hold (send no further command), "
        "ramp_down, or zero.",
        choices=ON_FAULT,
    )
    stale_timeout: float = parameter(
        0.5,
        "Time without valid states of the joints (and of an imu, if used) after which torques "
        "stop. Damping ends within two periods.",
        unit="s",
        low=0.005,
        high=10.0,
    )
    other_joints_timeout: float = parameter(
        1.0,
        "Largest age of the positions of the joints that are not commanded.",
        unit="s",
        low=0.005,
        high=3600.0,
        constant="With a longer time, gravity torques follow an old posture; name a joint in "
        "fixed_positions if nothing reports it.",
    )
    max_age: float = parameter(
        1.0,
        "Largest difference between the stamp of a message and the node's clock. 0: not checked, "
        "for clocks that are not synchronised.",
        unit="s",
        low=0.0,
        high=3600.0,
        constant="Stamps that are farther off come from clocks that are not synchronised.",
    )
    position_margin: float = parameter(
        0.05,
        "Distance beyond its position limit at which a joint is a fault.",
        unit="rad or m",
        low=0.0,
        high=1.0,
        constant="It covers errors of encoders and zeros, and no more.",
    )

    tracking_tolerance: float = parameter(
        0.0,
        "Largest accepted difference of measured from commanded efforts, as a share of the effort "
        "limit. More in five successive states is a fault; so is more than both 0.4 of it and half "
        "of the command in fifteen. 0: not compared, for drivers whose efforts are not those of "
        "the motors.",
        low=0.0,
        high=1.0,
        constant="effort_check tracking compares.",
    )
    collision_file: str = parameter(
        "",
        "File of thresholds that `mbs-dynamics tune-collision` has written. Empty: collisions are "
        "not detected. Not for arms that hands guide.",
        read_only=True,
    )
    on_collision: str = parameter(
        "stop",
        "Reaction to a collision: stop (a fault), float (gravity compensation alone, until torques "
        f"are enabled again), or yield (float, and for {YIELDING:g} s move with the contact).",
        choices=("stop", "float", "yield"),
    )
    frozen_timeout: float = parameter(
        0.0,
        "Time after which a position that stays exactly the same while a velocity is reported is a "
        "fault; so are values at rest that repeat for as long although noise changed them before. "
        "0: not checked.",
        unit="s",
        low=0.0,
        high=10.0,
        constant="Coarse encoders repeat positions, and states that end are found by their stamps.",
    )

    period: float = parameter(
        0.0,
        "Period of the states of the joints, by which a stiffness is accepted or refused before "
        "torques are enabled. 0: that of their stamps while torques are disabled, even if some "
        "states are lost.",
        unit="s",
        low=0.0,
        high=1.0,
        at_rest_only=True,
        constant="The period by the stamps of the received states decides.",
    )

    @classmethod
    def of(cls: type[A], joints: Sequence[str], **options: Any) -> A:
        """Return settings for these joints.

        Options that hold one value for each joint may be one value for all, or a mapping from names
        of joints to values. Raises ArgumentError for other options and invalid values,
        UnknownJointError for other joints.
        """
        declared = {one.name: one for one in parameters_of(cls)}
        for name, value in options.items():
            if name not in declared or name == "joints":
                raise ArgumentError(f"there is no setting {name!r}; valid: {listed(declared)}")
            one = declared[name]
            if one.per != "joint":
                continue
            if isinstance(value, Mapping):
                UnknownJointError.check(value, joints)
                options[name] = tuple(value.get(joint, one.default) for joint in joints)
            elif np.ndim(value) == 0:
                options[name] = (value,) * len(joints)
        return cls(joints=tuple(joints), **options)

    @property
    def largest_deviation(self) -> float:
        """Largest accepted difference of measured from commanded efforts, as a share of the effort
        limit; 0: not compared."""
        return self.tracking_tolerance or TRACKING * (self.effort_check == "tracking")

    def largest_values(self, model: Model) -> dict[str, float]:
        """Return the largest useful values of settings, by name: what the limits of an arm allow.

        Damping exerts the effort limit at the velocity limit; infinite where no limit is stated.
        """
        largest = {}
        for name, own in zip(self.joints, self.effort_limits, strict=True):
            k = model.joint_names.index(name)
            effort, fastest = float(model.effort_limits[k]), float(model.velocity_limits[k])
            most = own or effort
            largest[f"effort_limits.{name}"] = effort
            largest[f"damping.{name}"] = most / fastest if fastest < math.inf else math.inf
        return largest

    def __post_init__(self) -> None:
        super().__post_init__()
        check_earthly("gravity", self.gravity, GRAVITY_TOLERANCE)


@dataclass(frozen=True)
class MotionSettings(ArmSettings):
    """Settings of an arm under guard whose law follows references."""

    switch_time: float = parameter(
        0.3,
        "Time in which one law takes over from another, and in which changes of stiffness and "
        "damping ratio take effect.",
        unit="s",
        low=0.05,
        high=10.0,
        constant="Much longer than a period, and shorter than a motion.",
    )
    reference_velocity: tuple[float, ...] = parameter(
        0.5,
        "Velocity within which this joint approaches references; at most its velocity limit.",
        unit="rad/s or m/s",
        low=1e-3,
        high=100.0,
        per="joint",
    )
    reference_acceleration: tuple[float, ...] = parameter(
        2.0,
        "Acceleration within which this joint approaches references.",
        unit="rad/s^2 or m/s^2",
        low=1e-2,
        high=1e4,
        per="joint",
        constant="The default velocity is reached in 0.25 s.",
    )
    reference_linear_velocity: float = parameter(
        0.25, "Velocity within which a link approaches poses.", unit="m/s", low=1e-3, high=100.0
    )
    reference_linear_acceleration: float = parameter(
        1.0,
        "Acceleration within which a link approaches poses.",
        unit="m/s^2",
        low=1e-2,
        high=1e4,
        constant="The default velocity is reached in 0.25 s.",
    )
    reference_angular_velocity: float = parameter(
        1.0,
        "Angular velocity within which a link approaches poses.",
        unit="rad/s",
        low=1e-3,
        high=100.0,
        constant="That of a link 0.25 m long at the default linear velocity.",
    )
    reference_angular_acceleration: float = parameter(
        4.0,
        "Angular acceleration within which a link approaches poses.",
        unit="rad/s^2",
        low=1e-2,
        high=1e4,
        constant="The default velocity is reached in 0.25 s.",
    )
    reference_timeout: float = parameter(
        0.2,
        "Time after which joints that move on with the velocities of a target come to rest, unless "
        "another target arrives.",
        unit="s",
        low=0.005,
        high=10.0,
        constant="Several messages of any sender of velocities.",
    )
