# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Parameters, topics and services of gravity_compensation_node and command_watchdog_node.

No ROS is needed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from mbs_dynamics.control.laws import AnyLaw
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
    DescriptionSettings,
    Interface,
    RobotSettings,
    Service,
    Topic,
)
from mbs_dynamics.settings import Settings, parameter

COMMANDS = "forward_effort_controller/commands"


def controller_of(topic: str) -> str:
    """Return the controller behind a topic of commands; "" if its name does not show it.

    ``/left/forward_effort_controller/commands`` is that of ``forward_effort_controller``.
    """
    *_, name, last = ["", "", *topic.split("/")]
    return name if last == "commands" else ""


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
        "of the controller, as the resolved command_topic shows it. Where it runs, torques are "
        "enabled only if the controller behind command_topic is active and takes efforts of the "
        "same joints in the same order. Empty: there is none, and no controller is checked.",
        read_only=True,
    )
    position_controller: str = parameter(
        "",
        "Name of a controller that holds the arm without torques. ~/enable switches from it to the "
        "one behind command_topic, and back; the watchdog activates it where commands end. Empty: "
        "none, and the arm falls without torques unless it has brakes.",
        read_only=True,
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        holder = self.position_controller
        if holder and not self.controller_manager:
            raise ArgumentError(
                f"position_controller is {holder!r} and controller_manager is empty; must be the "
                "name of the manager that switches it"
            )
        if holder and holder == controller_of(self.command_topic):
            raise ArgumentError(
                f"position_controller is {holder!r}, which takes the torques; must be another one"
            )


@dataclass(frozen=True)
class GravityCompensationSettings(
    DescriptionSettings, RobotSettings, ArmSettings, ControllerSettings
):
    """Values of the parameters of gravity_compensation_node.

    Raises ArgumentError for invalid values.
    """

    removed: ClassVar[Mapping[str, str]] = {
        "root": "the whole URDF is used, and gravity is in the axes of its root link",
        "tip": "the whole URDF is used; name joints that nothing reports in fixed_positions",
    }

    law_settings: ClassVar[tuple[str, ...]] = ()
    """Names of the settings that determine the law."""

    autostart: bool = parameter(
        True,
        "Configure on start. False: wait for the lifecycle transition. Torques come in by the "
        "transition activate, or by ~/enable, alone.",
        read_only=True,
    )
    compensates_itself: bool | None = parameter(
        None,
        "Whether the robot or its driver already compensates gravity. Must be set; torques can be "
        "enabled only if it is false.",
        type="bool",
        at_rest_only=True,
    )
    use_imu: bool = parameter(
        False, "Take gravity, and the acceleration of the base, from the topic imu.", read_only=True
    )
    adds_to_position_control: bool = parameter(
        False,
        "Add gravity torques to a position loop that goes on holding the arm: position_controller, "
        "which must be active, or if that is empty the loop of the drives, which is not checked. "
        "No controller is switched; nothing is damped, and no springs act; torques ramp in within "
        "ramp_time.",
        read_only=True,
        constraints="Only without damping and friction_scale, and not with effort_check tracking.",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.adds_to_position_control:
            return
        object.__setattr__(self, "limit_zone", 0.0)
        damping = zip(self.joints, self.damping, strict=True)
        wrong = [f"damping.{joint} is {value:g}" for joint, value in damping if value]
        if self.friction_scale:
            wrong.append(f"friction_scale is {self.friction_scale:g}")
        if self.largest_deviation:
            wrong.append("effort_check is tracking")
        if wrong:
            raise ArgumentError(
                f"adds_to_position_control adds gravity torques alone, but {listed(wrong)}; valid "
                "is 0, and another effort_check"
            )

    @property
    def rotors(self) -> dict[str, float]:
        """Inertia of the rotor by joint in kg m^2 or kg."""
        return {}

    def laws(self) -> list[AnyLaw | None]:
        """Return the laws of all modes. Raises ArgumentError."""
        return []

    def law_of_mode(self) -> AnyLaw | None:
        """Return the law in addition to gravity compensation; None if there is none."""
        return None

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
        read_only=True,
    )
    brakes: bool = parameter(
        False,
        "Whether the hardware brakes when the controller is deactivated. Then that is done at "
        "once where no position controller takes over. false: zeros are commanded before, since "
        "some hardware applies the last torque further.",
        read_only=True,
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if not controller_of(self.command_topic):
            raise ArgumentError(
                f"command_topic {self.command_topic!r} does not name a controller; must be a "
                "topic <controller>/commands"
            )
        if not self.controller_manager:
            raise ArgumentError("controller_manager is empty; must be its name")


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
            "The commanded torques in N m or N by name, with the stamp of the joint states.",
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
            "true: ramp in, or refuse with all reasons in message. false: ramp out. The lifecycle "
            "transitions activate and deactivate do the same, without a message.",
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
