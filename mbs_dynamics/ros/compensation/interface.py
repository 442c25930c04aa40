# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Parameters, topics and services of gravity_compensation_node and command_watchdog_node.

No ROS is needed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from mbs_dynamics.errors import ArgumentError
from mbs_dynamics.model.description import STANDARD_GRAVITY
from mbs_dynamics.ros.compensation.command_policy import ON_FAULT
from mbs_dynamics.ros.interface import (
    DESCRIPTION,
    DIAGNOSTICS,
    GRAVITY,
    JOINT_STATES,
    LATCHED,
    LATEST,
    PAYLOAD,
    SENSOR_DATA,
    DescribedSettings,
    Interface,
    NodeSettings,
    Service,
    Topic,
    algorithm_setting,
    check_gravity,
    check_once,
    setting,
)

COMMANDS = "/forward_effort_controller/commands"

START_FROM = ("zero", "effort")
"""Valid values of ``start_from``."""

EFFORT_CHECKS = ("auto", "always", "off")
"""Valid values of ``effort_check``."""

RATE_SHARE = 50.0
"""Default largest change of a torque per second, as a multiple of its effort limit."""

AT_REST_ONLY = frozenset(
    {
        "algorithm",
        "compensates_itself",
        "effort_limits",
        "effort_scale",
        "effort_rate_limit",
        "ramp_in_time",
        "ramp_time",
        "release_timeout",
    }
)
"""Parameters that can be changed only while no torque is commanded or held."""


def resets_position_command(else_it: str) -> Any:
    """Return the setting of that name; ``else_it``: what happens to a controller if it is false."""
    return setting(
        False,
        "Whether the hardware sets its position commands to the measured positions before a "
        "position controller starts. false: a position_controller that starts from the last "
        f"command {else_it}, since the arm would leap.",
    )


@dataclass(frozen=True)
class GravityCompensationSettings(DescribedSettings):
    """Values of the parameters of gravity_compensation_node.

    Raises ArgumentError for invalid values.
    """

    joints: tuple[str, ...] = setting(
        (),
        "Joints to command, in the order in which the controller takes them. Must be set.",
        type="string_array",
        constraints="Names of joints of the robot that mimic no other, each at most once.",
        read_only=True,
    )
    command_topic: str = setting(
        COMMANDS,
        "Topic of the commands, std_msgs/Float64MultiArray in the order of joints.",
        constraints="A topic name; without a leading slash it is in the node's namespace.",
        read_only=True,
    )
    algorithm: str = algorithm_setting(
        "gravity torques and mass matrix", "Changes only while disabled."
    )
    compensates_itself: bool | None = setting(
        None,
        "Whether the robot or its driver already compensates gravity. Must be set; torques can be "
        "enabled only if it is false.",
        type="bool",
        constraints="Changes only while disabled.",
    )
    effort_limits: tuple[float, ...] = setting(
        0.0,
        "Effort limit of this joint, in place of the URDF's. 0: the URDF's. Either is multiplied "
        "by effort_scale.",
        "N m or N",
        range=(0.0, 1e5),
        constraints="Changes only while disabled.",
        per="joint",
    )
    effort_scale: float = setting(
        1.0,
        "Share of the effort limits that may be commanded.",
        range=(0.01, 1.0),
        constraints="Changes only while disabled.",
    )
    effort_rate_limit: float = setting(
        0.0,
        f"Largest change of each torque per second. 0: {RATE_SHARE:g} times the effort limit of "
        "each joint.",
        "N m/s or N/s",
        range=(0.0, 1e6),
        constraints="Changes only while disabled. Times ramp_time at least the largest torque.",
    )
    ramp_in_time: float = setting(
        0.03,
        "Time in which torques ramp in when they are enabled. An arm that nothing supports falls "
        "for as long.",
        "s",
        range=(0.0, 10.0),
        constraints="Changes only while disabled.",
    )
    ramp_time: float = setting(
        2.0,
        "Time in which torques ramp out, and in which changes of gravity, payload and gains take "
        "effect.",
        "s",
        range=(0.05, 10.0),
        constraints="Changes only while disabled.",
    )
    start_from: str = setting(
        "zero",
        "Torques at the start of the ramp when they are enabled: zero, or the measured effort, "
        "which holds the arm until then.",
        choices=START_FROM,
    )
    settle_time: float = setting(
        1.0,
        "Time after enabling in which the momentum of the arm is damped as well, with a falling "
        "coefficient, so that a falling arm comes to rest. 0: not at all.",
        "s",
        range=(0.0, 10.0),
    )
    gravity_scale: tuple[float, ...] = setting(
        1.0,
        "Share of this joint's gravity torque that is commanded.",
        range=(0.0, 1.5),
        per="joint",
    )
    damping: tuple[float, ...] = setting(
        0.0,
        "Viscous damping that is added at this joint.",
        "N m s/rad or N s/m",
        range=(0.0, 1e4),
        per="joint",
    )
    friction: tuple[float, ...] = setting(
        -1.0,
        "Coulomb friction of this joint. -1: that of the URDF.",
        "N m or N",
        range=(-1.0, 1e4),
        per="joint",
    )
    friction_scale: float = setting(
        0.0, "Share of the Coulomb friction that is compensated.", range=(0.0, 1.0)
    )
    friction_speed: float = setting(
        0.05,
        "Speed at which 76 % of the friction compensation is reached; it is smooth at zero.",
        "rad/s or m/s",
        range=(0.001, 10.0),
    )
    velocity_filter: float = setting(
        0.0,
        "Time constant of the low-pass filter on the velocities in damping and friction. 0: none.",
        "s",
        range=(0.0, 1.0),
    )
    limit_zone: float = setting(
        0.1,
        "Distance from its position limit at which a soft spring begins to hold a joint back. "
        "0: no springs.",
        "rad or m",
        range=(0.0, 1.0),
    )
    limit_frequency: float = setting(
        10.0,
        "Natural frequency of a joint on that spring, which sets its stiffness. 0: no springs.",
        "rad/s",
        range=(0.0, 50.0),
    )
    gravity: tuple[float, float, float] = setting(
        STANDARD_GRAVITY,
        "Free-fall acceleration in the axes of the URDF's root link. ~/gravity replaces it; the "
        "latest setting wins.",
        "m/s^2",
        constraints="Three finite numbers, a length within gravity_tolerance of 9.81.",
    )
    gravity_tolerance: float = setting(
        0.2,
        "Share by which the length of gravity may differ from 9.81 m/s^2.",
        range=(0.0, 10.0),
    )
    max_payload: float = setting(
        0.0,
        "Largest mass of all payloads together. 0: the mass of the moving links.",
        "kg",
        range=(0.0, 1e4),
    )
    use_imu: bool = setting(
        False,
        "Take gravity, and the acceleration of the base, from the topic imu.",
        read_only=True,
    )
    imu_time_constant: float = setting(
        0.1, "Time constant of the low-pass filter on the imu. 0: none.", "s", range=(0.0, 10.0)
    )
    effort_check: str = setting(
        "auto",
        "Compare the measured efforts with the gravity torques before enabling: auto (where the "
        "motors exert torques, or are known to hold the arm), always, or off.",
        choices=EFFORT_CHECKS,
    )
    effort_tolerance: float = setting(
        0.5,
        "Largest accepted difference of measured efforts from the gravity torques, as a share of "
        "the largest gravity torque; both relative to the effort limits.",
        range=(0.0, 10.0),
    )
    on_fault: str = setting(
        "ramp_down",
        "Reaction to a fault: hold (stop publishing), ramp_down, or zero.",
        choices=ON_FAULT,
    )
    stale_timeout: float = setting(
        0.5,
        "Time without valid joint_states of the joints (and imu, if used) after which the node "
        "stops. Damping ends within two periods.",
        "s",
        range=(0.005, 10.0),
    )
    other_joints_timeout: float = setting(
        1.0,
        "Largest age of the positions of the joints that are not commanded.",
        "s",
        range=(0.005, 3600.0),
    )
    max_age: float = setting(
        1.0,
        "Largest difference between the stamp of a message and the node's clock. 0: not checked, "
        "for clocks that are not synchronised.",
        "s",
        range=(0.0, 3600.0),
    )
    callback_timeout: float = setting(
        0.1,
        "Processor time of a callback above which the node stops. Time that it waits for the "
        "middleware or for other processes does not count.",
        "s",
        range=(1e-6, 10.0),
    )
    saturation_timeout: float = setting(
        1.0,
        "Time at its effort limit after which a joint stops the node.",
        "s",
        range=(0.01, 3600.0),
    )
    position_margin: float = setting(
        0.05,
        "Distance beyond its position limit at which a joint stops the node.",
        "rad or m",
        range=(0.0, 1.0),
    )
    controller_manager: str = setting(
        "controller_manager",
        "Name of ros2_control's controller manager; without a leading slash it is in the node's "
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
    resets_position_command: bool = resets_position_command("is refused")
    release_timeout: float = setting(
        5.0,
        "Time after a release in which gravity torques hold the arm, while states are valid and "
        "position_controller cannot be activated. Then they ramp out.",
        "s",
        range=(0.0, 60.0),
        constraints="Changes only while disabled.",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        check_once("joints", "joint", self.joints)
        check_earthly("gravity", self.gravity, self.gravity_tolerance)


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


@dataclass(frozen=True)
class CommandWatchdogSettings(NodeSettings):
    """Values of the parameters of command_watchdog_node.

    Raises ArgumentError for invalid values.
    """

    command_topic: str = setting(
        COMMANDS, "Topic of the commands, std_msgs/Float64MultiArray.", read_only=True
    )
    command_timeout: float = setting(
        1.0,
        "Silence after a command that is not zero, after which the controller is deactivated. It "
        "must exceed the stale_timeout of gravity_compensation_node by 0.4 s or more.",
        "s",
        range=(0.1, 60.0),
    )
    effort_controller: str = setting(
        "",
        "Controller that is deactivated. Empty: the one that command_topic names.",
        read_only=True,
    )
    position_controller: str = setting(
        "",
        "Controller that is activated in the same call, to hold the arm. Empty: none, and the arm "
        "falls unless it has brakes.",
        read_only=True,
    )
    resets_position_command: bool = resets_position_command("is not activated")
    brakes: bool = setting(
        False,
        "Whether the hardware brakes when the controller is deactivated. Then that is done at "
        "once where no position controller takes over. false: zeros are commanded before, since "
        "some hardware applies the last torque further.",
    )
    controller_manager: str = setting(
        "controller_manager",
        "Name of the controller manager, relative to the node's namespace.",
        read_only=True,
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.controller:
            raise ArgumentError(
                f"effort_controller is empty, and command_topic {self.command_topic!r} does not "
                "name a controller; valid is a name, or a topic <controller>/commands"
            )
        if self.controller == self.position_controller:
            raise ArgumentError(
                f"position_controller is {self.controller!r}, the controller that is deactivated; "
                "valid is another one"
            )

    @property
    def controller(self) -> str:
        """The controller that is deactivated."""
        return self.effort_controller or controller_of(self.command_topic)


def controller_of(topic: str) -> str:
    """Return the controller that takes the commands on a topic; "" if the name does not show it.

    ``/left/forward_effort_controller/commands`` is that of ``forward_effort_controller``.
    """
    *_, name, last = ["", "", *topic.split("/")]
    return name if last == "commands" else ""


COMMAND_TOPIC = Topic(
    "<command_topic>",
    "std_msgs/msg/Float64MultiArray",
    "Torques in N m or N, in the order of joints.",
    LATEST,
)

GRAVITY_COMPENSATION_NODE = Interface(
    "gravity_compensation_node",
    "Holds an arm against gravity, once its service has enabled it.",
    GravityCompensationSettings,
    subscribed=(
        DESCRIPTION,
        JOINT_STATES,
        PAYLOAD,
        GRAVITY,
        Topic(
            "imu",
            "sensor_msgs/msg/Imu",
            "linear_acceleration of a base that is tilted or moves.",
            SENSOR_DATA,
            "use_imu",
        ),
    ),
    published=(
        COMMAND_TOPIC,
        Topic(
            "~/commanded_torques",
            "sensor_msgs/msg/JointState",
            "The commanded torques in N m or N by name, with the stamp of the joint states.",
        ),
        Topic(
            "~/enabled",
            "std_msgs/msg/Bool",
            "Whether torques follow the robot: from the start of the ramp in to that of the ramp "
            "out, or to a fault.",
            LATCHED,
        ),
        DIAGNOSTICS,
    ),
    services=(
        Service(
            "~/enable",
            "std_srvs/srv/SetBool",
            "true: ramp in, or refuse with all reasons in message. false: ramp out.",
        ),
    ),
    lifecycle=True,
)

COMMAND_WATCHDOG_NODE = Interface(
    "command_watchdog_node",
    "Deactivates an effort controller whose commands have stopped.",
    CommandWatchdogSettings,
    subscribed=(COMMAND_TOPIC,),
    published=(
        COMMAND_TOPIC._replace(
            description="Zeros for 0.3 s before a controller is deactivated without a successor.",
            condition="while it ends torques",
        ),
        DIAGNOSTICS,
    ),
)
