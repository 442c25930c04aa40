# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Parameters, topics and services of gravity_compensation_node and command_watchdog_node.

No ROS is needed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from mbs_dynamics.control.settings import ArmSettings
from mbs_dynamics.errors import ArgumentError, listed
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
    Service,
    Topic,
)
from mbs_dynamics.settings import Settings, parameter, parameters_of

COMMANDS = "/forward_effort_controller/commands"

BESIDE_GRAVITY = (
    "start_from",
    "damping",
    "friction_scale",
    "limit_zone",
    "tracking_tolerance",
)
"""Settings of what is not commanded, or cannot be compared, where a position loop holds the arm."""


def resets_position_command(else_it: str) -> Any:
    """Return the setting of that name; ``else_it``: what happens to a controller if it is false."""
    return parameter(
        False,
        "Whether the hardware sets its position commands to the measured positions before a "
        "position controller starts. false: a position_controller that starts from the last "
        f"command {else_it}, since the arm would leap.",
    )


@dataclass(frozen=True)
class ControllerSettings(Settings):
    """Parameters of nodes that command an effort controller, or watch its commands."""

    command_topic: str = parameter(
        COMMANDS,
        "Topic of the commands, std_msgs/Float64MultiArray in the order of joints.",
        read_only=True,
        constraints="A topic name; without a leading slash it is in the node's namespace.",
    )
    controller_manager: str = parameter(
        "controller_manager",
        "Name of ros2_control's controller manager; without a leading slash it is in the namespace "
        "of the controller, as the resolved command_topic shows it.",
        read_only=True,
    )
    effort_controller: str = parameter(
        "",
        "Name of the controller behind command_topic. Empty: as in command_topic.",
        read_only=True,
    )

    @property
    def controller(self) -> str:
        """The controller behind ``command_topic``; "" if neither name shows it.

        ``/left/forward_effort_controller/commands`` is that of ``forward_effort_controller``.
        """
        *_, name, last = ["", "", *self.command_topic.split("/")]
        return self.effort_controller or (name if last == "commands" else "")


@dataclass(frozen=True)
class GravityCompensationSettings(DescribedSettings, ArmSettings, ControllerSettings):
    """Values of the parameters of gravity_compensation_node.

    Raises ArgumentError for invalid values.
    """

    compensates_itself: bool | None = parameter(
        None,
        "Whether the robot or its driver already compensates gravity. Must be set; torques can be "
        "enabled only if it is false.",
        type="bool",
        at_rest_only=True,
    )
    payload_time: float = parameter(
        -1.0,
        "Time in which a payload takes effect while torques are commanded. -1: ramp_time. A load "
        "that is taken up at once, as by a gripper, needs a short one.",
        unit="s",
        low=-1.0,
        high=10.0,
    )
    use_imu: bool = parameter(
        False, "Take gravity, and the acceleration of the base, from the topic imu.", read_only=True
    )
    check_controller: bool = parameter(
        True,
        "Where there is a controller manager, enable only if the controller behind command_topic "
        "is active and takes efforts of the same joints in the same order.",
    )
    position_controller: str = parameter(
        "",
        "Name of a controller that holds the arm. ~/enable then switches from it to "
        "effort_controller, and back. Empty: no controller is switched.",
        read_only=True,
    )
    adds_to_position_control: bool = parameter(
        False,
        "Add gravity torques to a position loop that goes on holding the arm: position_controller, "
        "which must be active, or if that is empty the loop of the drives, which is not checked. "
        "No controller is switched; nothing is damped; torques ramp in within ramp_time or "
        "ramp_in_time, whichever is longer.",
        read_only=True,
        constraints="Only without damping, friction_scale, springs and "
        "tracking_tolerance, and with start_from zero.",
    )
    resets_position_command: bool = resets_position_command("is refused")
    release_timeout: float = parameter(
        5.0,
        "Time after a release in which gravity torques hold the arm, while states are valid and "
        "position_controller cannot be activated. Then they ramp out.",
        unit="s",
        low=0.0,
        high=60.0,
        at_rest_only=True,
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.adds_to_position_control:
            return
        wrong = []
        for one in parameters_of(type(self)):
            if one.name not in BESIDE_GRAVITY:
                continue
            value = getattr(self, one.name)
            each = {one.name: value}
            if one.per:
                each = {f"{one.name}.{k}": x for k, x in zip(self.joints, value, strict=True)}
            wrong += [f"{k} is {x}" for k, x in each.items() if x not in (0.0, one.default)]
            if isinstance(one.default, float) and not one.per:
                object.__setattr__(self, one.name, 0.0)
        if wrong:
            raise ArgumentError(
                f"adds_to_position_control adds gravity torques alone, but {listed(wrong)}; valid "
                "is 0 or the default of each"
            )

    @property
    def hands_over(self) -> bool:
        """Whether torques take the arm over from ``position_controller``, and give it back."""
        return bool(self.position_controller) and not self.adds_to_position_control


@dataclass(frozen=True)
class CommandWatchdogSettings(ControllerSettings):
    """Values of the parameters of command_watchdog_node.

    Raises ArgumentError for invalid values.
    """

    command_timeout: float = parameter(
        1.0,
        "Silence after a command that is not zero, after which the controller is deactivated. It "
        "must exceed the stale_timeout of gravity_compensation_node by 0.4 s or more.",
        unit="s",
        low=0.1,
        high=60.0,
    )
    position_controller: str = parameter(
        "",
        "Controller that is activated in the same call, to hold the arm. Empty: none, and the arm "
        "falls unless it has brakes.",
        read_only=True,
    )
    resets_position_command: bool = resets_position_command("is not activated")
    brakes: bool = parameter(
        False,
        "Whether the hardware brakes when the controller is deactivated. Then that is done at "
        "once where no position controller takes over. false: zeros are commanded before, since "
        "some hardware applies the last torque further.",
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
            condition="use_imu",
        ),
    ),
    published=(
        COMMAND_TOPIC,
        Topic(
            "~/commanded_torques",
            "sensor_msgs/msg/JointState",
            "The commanded torques in N m or N by name, with the stamp of the joint states; begins "
            "up to 0.1 s after the first subscription.",
        ),
        Topic(
            "~/enabled",
            "std_msgs/msg/Bool",
            "Whether torques follow the robot: from the start of the ramp in to that of the ramp "
            "out, or to a fault.",
            LATCHED,
        ),
        Topic(
            "~/collision",
            "sensor_msgs/msg/JointState",
            "External torques in N m or N at a collision, with the stamp of the joint states; that "
            "of the joint which detects it comes first.",
            condition="collision_file",
        ),
        Topic(
            "~/contact_wrench",
            "geometry_msgs/msg/WrenchStamped",
            "Estimated wrench on the tool in N and N m at a collision, with the same stamp.",
            condition="collision_file",
        ),
        DIAGNOSTICS,
    ),
    services=(
        Service(
            "~/enable",
            "std_srvs/srv/SetBool",
            "true: ramp in, or refuse with all reasons in message. false: ramp out.",
        ),
        Service(
            "~/clear",
            "std_srvs/srv/Trigger",
            "Forget the fault that stopped the torques. Until then ~/enable refuses.",
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
