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
    service,
    topic,
)
from mbs_dynamics.settings import Settings, number, option, parameters_of

COMMANDS = "/forward_effort_controller/commands"

BESIDE_GRAVITY = (
    "start_from",
    "settle_time",
    "damping",
    "friction_scale",
    "limit_zone",
    "limit_frequency",
    "tracking_tolerance",
)
"""Settings of what is not commanded, or cannot be compared, where a position loop holds the arm."""


def resets_position_command(else_it: str) -> Any:
    """Return the setting of that name; ``else_it``: what happens to a controller if it is false."""
    return option(False)(
        "Whether the hardware sets its position commands to the measured positions before a "
        "position controller starts. false: a position_controller that starts from the last "
        f"command {else_it}, since the arm would leap."
    )


@dataclass(frozen=True)
class ControllerSettings(Settings):
    """Parameters of nodes that command an effort controller, or watch its commands."""

    command_topic: str = option(COMMANDS, read_only=True)(
        "Topic of the commands, std_msgs/Float64MultiArray in the order of joints.",
        constraints="A topic name; without a leading slash it is in the node's namespace.",
    )
    controller_manager: str = option("controller_manager", read_only=True)(
        "Name of ros2_control's controller manager; without a leading slash it is in the namespace "
        "of the controller, as the resolved command_topic shows it."
    )
    effort_controller: str = option("", read_only=True)(
        "Name of the controller behind command_topic. Empty: as in command_topic."
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

    compensates_itself: bool | None = option(None, type="bool", at_rest_only=True)(
        "Whether the robot or its driver already compensates gravity. Must be set; torques can be "
        "enabled only if it is false."
    )
    motors_file: str = option("", read_only=True)(
        "YAML table of motors: joint_states and commands are in the units of the drives, with "
        "their signs and zeros. Empty: in SI units."
    )
    payload_time: float = number(-1.0, -1.0, 10.0, "s")(
        "Time in which a payload takes effect while torques are commanded. -1: ramp_time. A load "
        "that is taken up at once, as by a gripper, needs a short one."
    )
    use_imu: bool = option(False, read_only=True)(
        "Take gravity, and the acceleration of the base, from the topic imu."
    )
    imu_time_constant: float = number(0.1, 0.0, 10.0, "s")(
        "Time constant of the low-pass filter on the imu. 0: none."
    )
    callback_timeout: float = number(0.1, 1e-6, 10.0, "s")(
        "Processor time of a callback above which the node stops. Time that it waits for the "
        "middleware or for other processes does not count."
    )
    check_controller: bool = option(True)(
        "Where there is a controller manager, enable only if the controller behind command_topic "
        "is active and takes efforts of the same joints in the same order."
    )
    position_controller: str = option("", read_only=True)(
        "Name of a controller that holds the arm. ~/enable then switches from it to "
        "effort_controller, and back. Empty: no controller is switched."
    )
    adds_to_position_control: bool = option(False, read_only=True)(
        "Add gravity torques to a position loop that goes on holding the arm: position_controller, "
        "which must be active, or if that is empty the loop of the drives, which is not checked. "
        "No controller is switched; nothing is damped; torques ramp in within ramp_time or "
        "ramp_in_time, whichever is longer.",
        constraints="Only without damping, friction_scale, springs, settling and "
        "tracking_tolerance, and with start_from zero.",
    )
    resets_position_command: bool = resets_position_command("is refused")
    release_timeout: float = number(5.0, 0.0, 60.0, "s", at_rest_only=True)(
        "Time after a release in which gravity torques hold the arm, while states are valid and "
        "position_controller cannot be activated. Then they ramp out."
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

    command_timeout: float = number(1.0, 0.1, 60.0, "s")(
        "Silence after a command that is not zero, after which the controller is deactivated. It "
        "must exceed the stale_timeout of gravity_compensation_node by 0.4 s or more."
    )
    position_controller: str = option("", read_only=True)(
        "Controller that is activated in the same call, to hold the arm. Empty: none, and the arm "
        "falls unless it has brakes."
    )
    resets_position_command: bool = resets_position_command("is not activated")
    brakes: bool = option(False)(
        "Whether the hardware brakes when the controller is deactivated. Then that is done at "
        "once where no position controller takes over. false: zeros are commanded before, since "
        "some hardware applies the last torque further."
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


COMMAND_TOPIC = topic("<command_topic>", "std_msgs/msg/Float64MultiArray", LATEST)(
    "Torques in N m or N, in the order of joints."
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
        topic("imu", "sensor_msgs/msg/Imu", SENSOR_DATA, "use_imu")(
            "linear_acceleration of a base that is tilted or moves."
        ),
    ),
    published=(
        COMMAND_TOPIC,
        topic("~/commanded_torques", "sensor_msgs/msg/JointState")(
            "The commanded torques in N m or N by name, with the stamp of the joint states; begins "
            "up to 0.1 s after the first subscription."
        ),
        topic("~/enabled", "std_msgs/msg/Bool", LATCHED)(
            "Whether torques follow the robot: from the start of the ramp in to that of the ramp "
            "out, or to a fault."
        ),
        topic("~/collision", "sensor_msgs/msg/JointState", condition="collision_file")(
            "External torques in N m or N at a collision, with the stamp of the joint states; that "
            "of the joint which detects it comes first."
        ),
        topic("~/contact_wrench", "geometry_msgs/msg/WrenchStamped", condition="collision_file")(
            "Estimated wrench on the tool in N and N m at a collision, with the same stamp."
        ),
        DIAGNOSTICS,
    ),
    services=(
        service("~/enable", "std_srvs/srv/SetBool")(
            "true: ramp in, or refuse with all reasons in message. false: ramp out."
        ),
        service("~/clear", "std_srvs/srv/Trigger")(
            "Forget the fault that stopped the torques. Until then ~/enable refuses."
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
