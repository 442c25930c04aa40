# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""What can be set on the gravity compensation node: defaults, meanings, and what is refused.

Knows no ROS.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from mbs_dynamics import checks
from mbs_dynamics.errors import ArgumentError
from mbs_dynamics.model.model import STANDARD_GRAVITY
from mbs_dynamics.ros.compensation.command_policy import ON_FAULT
from mbs_dynamics.ros.settings import (
    DescribedSettings,
    algorithm_setting,
    by_joint,
    by_joint_fields,
    check_gravity,
    check_once,
    setting,
)

START_FROM = ("zero", "effort")
"""Where the torques can begin when they are enabled."""

EFFORT_CHECKS = ("auto", "always", "off")
"""When measured efforts are compared with gravity torques before enabling."""

RATE_SHARE = 50.0
"""Share of its effort limit by which a torque may change in a second, if nothing else is set."""

AT_REST_ONLY = frozenset(
    {
        "algorithm",
        "compensates_itself",
        "effort_limits",
        "effort_scale",
        "effort_rate_limit",
        "ramp_in_time",
        "ramp_time",
    }
)
"""What changes only while no torque is commanded or held."""


@dataclass(frozen=True)
class GravityCompensationSettings(DescribedSettings):
    """The parameters of the gravity compensation node; ArgumentError says what is wrong."""

    joints: tuple[str, ...] = setting(
        (),
        "Joints to command, in the order in which the controller takes them. Must be set.",
        read_only=True,
        constraints="Names of joints of the robot that mimic no other, each at most once.",
    )
    command_topic: str = setting(
        "/forward_effort_controller/commands",
        "Topic of the commands, std_msgs/Float64MultiArray in the order of joints.",
        read_only=True,
        constraints="A topic name; without a slash in front it is in the node's namespace.",
    )
    algorithm: str = algorithm_setting(
        "gravity torques and mass matrix", "Changes only while disabled."
    )
    compensates_itself: bool | None = setting(
        None,
        "Whether the robot or its driver already compensates gravity. Must be set; only if it is "
        "false can torques be enabled.",
        constraints="Changes only while disabled.",
    )
    effort_limits: tuple[float, ...] = by_joint(
        0.0,
        "Effort limit of this joint, N m or N, in place of the URDF's. 0: the URDF's. Either is "
        "multiplied by effort_scale. Changes only while disabled.",
        (0.0, 1e5),
    )
    effort_scale: float = setting(
        1.0,
        "Share of the effort limits that may be commanded.",
        range=(0.01, 1.0),
        constraints="Changes only while disabled.",
    )
    effort_rate_limit: float = setting(
        0.0,
        f"Largest change of each torque, N m/s or N/s. 0: {RATE_SHARE:g} times the effort limit of "
        "each joint per second.",
        range=(0.0, 1e6),
        constraints="Changes only while disabled. Times ramp_time at least the largest torque.",
    )
    ramp_in_time: float = setting(
        0.03,
        "Time in which torques come in when they are enabled, s. An arm that nothing supports "
        "falls for as long.",
        range=(0.0, 10.0),
        constraints="Changes only while disabled.",
    )
    ramp_time: float = setting(
        2.0,
        "Time in which torques go out, and in which changes of gravity, payload and gains take "
        "effect, s.",
        range=(0.05, 10.0),
        constraints="Changes only while disabled.",
    )
    start_from: str = setting(
        "zero",
        "Where torques begin when they are enabled: at zero, or at the measured effort, which "
        "holds the arm until then.",
        choices=START_FROM,
    )
    settle_time: float = setting(
        1.0,
        "For this long after enabling, s, the momentum of the arm is damped as well, less and "
        "less, so that an arm that was falling comes to rest. 0: not at all.",
        range=(0.0, 10.0),
    )
    gravity_scale: tuple[float, ...] = by_joint(
        1.0, "Share of this joint's gravity torque that is commanded.", (0.0, 1.5)
    )
    damping: tuple[float, ...] = by_joint(
        0.0, "Viscous damping that is added at this joint, N m s/rad or N s/m.", (0.0, 1e4)
    )
    friction: tuple[float, ...] = by_joint(
        -1.0, "Coulomb friction of this joint, N m or N. -1: that of the URDF.", (-1.0, 1e4)
    )
    friction_scale: float = setting(
        0.0, "Share of the Coulomb friction that is compensated.", range=(0.0, 1.0)
    )
    friction_speed: float = setting(
        0.05,
        "Speed at which 76 % of that is reached, rad/s or m/s: smooth at zero.",
        range=(0.001, 10.0),
    )
    velocity_filter: float = setting(
        0.0,
        "Time constant of the low-pass on the velocities that damping and friction take, s. "
        "0: none.",
        range=(0.0, 1.0),
    )
    limit_zone: float = setting(
        0.1,
        "Distance from its position limit at which a soft spring begins to hold a joint back, "
        "rad or m. 0: no springs.",
        range=(0.0, 1.0),
    )
    limit_frequency: float = setting(
        10.0,
        "Natural frequency of a joint on that spring, rad/s: its stiffness. 0: no springs.",
        range=(0.0, 50.0),
    )
    gravity: tuple[float, float, float] = setting(
        STANDARD_GRAVITY,
        "Free-fall acceleration in the root link's frame, m/s^2. The topic ~/gravity replaces it; "
        "the latest setting wins.",
        constraints="Three finite numbers, a length within gravity_tolerance of 9.81.",
    )
    gravity_tolerance: float = setting(
        0.2,
        "Share by which the length of gravity may differ from 9.81 m/s^2.",
        range=(0.0, 10.0),
    )
    max_payload: float = setting(
        0.0,
        "Largest mass of all payloads together, kg. 0: the mass of the moving links.",
        range=(0.0, 1e4),
    )
    use_imu: bool = setting(
        False,
        "Take gravity, and the acceleration of the base, from the topic imu.",
        read_only=True,
    )
    imu_time_constant: float = setting(
        0.1, "Time constant of the low-pass on the imu, s. 0: none.", range=(0.0, 10.0)
    )
    effort_check: str = setting(
        "auto",
        "Compare the measured efforts with the gravity torques before enabling: auto (where the "
        "motors bear something, or are known to hold the arm), always, or off.",
        choices=EFFORT_CHECKS,
    )
    effort_tolerance: float = setting(
        0.5,
        "How far measured efforts may be from the gravity torques, as a share of the largest "
        "gravity torque; both relative to the effort limits.",
        range=(0.0, 10.0),
    )
    on_fault: str = setting(
        "ramp_down",
        "What is done at a fault: hold (stop publishing), ramp_down, or zero.",
        choices=ON_FAULT,
    )
    stale_timeout: float = setting(
        0.5,
        "Without valid joint_states of the joints (and imu, if used) for this long, s, it stops. "
        "Damping ends within two periods.",
        range=(0.005, 10.0),
    )
    other_joints_timeout: float = setting(
        1.0,
        "How old the positions of the joints that are not commanded may be, s.",
        range=(0.005, 3600.0),
    )
    max_age: float = setting(
        1.0,
        "Largest difference between the stamp of a message and the node's clock, s. 0: not "
        "watched, for clocks that are not synchronised.",
        range=(0.0, 3600.0),
    )
    callback_timeout: float = setting(
        0.1,
        "A callback that works for longer than this, s, stops it. The time that it waits for the "
        "middleware or for other processes does not count.",
        range=(1e-6, 10.0),
    )
    saturation_timeout: float = setting(
        1.0,
        "A joint that is at its effort limit for longer than this, s, stops it.",
        range=(0.01, 3600.0),
    )
    position_margin: float = setting(
        0.05,
        "How far beyond its limit a joint may be, rad or m, before it stops.",
        range=(0.0, 1.0),
    )
    velocity_from_position: bool = setting(
        False, "Take velocities as differences of positions where a driver sends none."
    )
    controller_manager: str = setting(
        "controller_manager",
        "Name of ros2_control's controller manager; without a slash in front it is in the node's "
        "namespace.",
        read_only=True,
    )
    check_controller: bool = setting(
        True,
        "Where there is a controller manager, enable only if the controller behind command_topic "
        "is active and takes efforts of the same joints in the same order.",
    )
    effort_controller: str = setting(
        "",
        "Name of the controller behind command_topic. Empty: as in command_topic.",
        read_only=True,
    )
    position_controller: str = setting(
        "",
        "Name of a controller that holds the arm. ~/enable then switches from it to "
        "effort_controller, and back. Empty: no controller is switched.",
        read_only=True,
    )
    autostart: bool = setting(
        True,
        "Configure and activate on start. False: wait for lifecycle transitions. Torques are "
        "enabled by the service alone.",
        read_only=True,
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        check_once("joints", "joint", self.joints)
        check_earthly("gravity", self.gravity, self.gravity_tolerance)
        for item in by_joint_fields(type(self)):
            self._fill(item.name, item.metadata["each_default"], *item.metadata["each"])

    def _fill(self, name: str, default: float, low: float, high: float) -> None:
        given = getattr(self, name) or (default,) * len(self.joints)
        values = checks.numbers(name, given, (len(self.joints),)).tolist()
        for joint, value in zip(self.joints, values, strict=True):
            if not low <= value <= high:
                raise ArgumentError(f"{name}.{joint} is {value:g}; valid is {low:g} to {high:g}")
        object.__setattr__(self, name, tuple(values))


def check_earthly(name: str, value: Any, tolerance: float) -> None:
    """Raise ArgumentError unless the length of a gravity (3,) is 9.81 m/s^2, within a share."""
    length = math.hypot(*check_gravity(name, value))
    standard = math.hypot(*STANDARD_GRAVITY)
    if abs(length - standard) > tolerance * standard:
        raise ArgumentError(
            f"{name} has a length of {length:g} m/s^2; valid is "
            f"{max(0.0, 1.0 - tolerance) * standard:.4g} to {(1.0 + tolerance) * standard:.4g}, "
            f"by gravity_tolerance {tolerance:g}"
        )
