# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Parameters, topics and services of wrench_compensation_node. No ROS is needed."""

from __future__ import annotations

from dataclasses import dataclass

from mbs_dynamics.errors import ArgumentError
from mbs_dynamics.ros.interface import (
    DESCRIPTION,
    DIAGNOSTICS,
    GRAVITY,
    JOINT_STATES,
    SENSOR_DATA,
    DescriptionSettings,
    GravitySettings,
    Interface,
    Service,
    Topic,
)
from mbs_dynamics.settings import parameter


@dataclass(frozen=True)
class WrenchCompensationSettings(GravitySettings, DescriptionSettings):
    """Values of the parameters of wrench_compensation_node. Raises ArgumentError."""

    sensor_frame: str = parameter(
        None,
        "Link of the force-torque sensor: the frame of its readings. Others are refused.",
        type="string",
        read_only=True,
        constraints="Name of a moving link.",
    )
    reversed: bool = parameter(
        False,
        "Whether the sensor reports the wrench of the arm on the tool: the opposite one.",
        read_only=True,
    )
    calibration_file: str = parameter(
        "",
        "Path of a YAML file with bias, mass and centre of mass, read at the start and written by "
        "~/fit. Empty: none.",
        read_only=True,
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.sensor_frame:
            raise ArgumentError("sensor_frame is not set; must be the link of the sensor")


WRENCH, TRIGGER = "geometry_msgs/msg/WrenchStamped", "std_srvs/srv/Trigger"

WRENCH_COMPENSATION_NODE = Interface(
    "wrench_compensation_node",
    "Publishes the wrench of a wrist sensor without bias and weight of the tool.",
    WrenchCompensationSettings,
    subscribed=(
        DESCRIPTION,
        JOINT_STATES,
        Topic("wrench", WRENCH, "Readings of the sensor, in N and N m.", SENSOR_DATA),
        GRAVITY,
    ),
    published=(
        Topic("~/wrench", WRENCH, "Wrench in N and N m on the tool, in the sensor's frame."),
        DIAGNOSTICS,
    ),
    services=(
        Service("~/take_pose", TRIGGER, "Take the readings of the present still pose."),
        Service("~/fit", TRIGGER, "Fit bias and tool to all poses, use them and write the file."),
        Service("~/restart", TRIGGER, "Discard all poses. Bias and tool stay."),
        Service("~/zero", TRIGGER, "Bring the present mean output of the still arm to zero."),
    ),
    lifecycle=True,
)
