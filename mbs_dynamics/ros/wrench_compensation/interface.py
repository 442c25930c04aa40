# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Parameters, topics and services of wrench_compensation_node. No ROS is needed."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from mbs_dynamics.checks import FloatArray
from mbs_dynamics.control.force_sensor import checked_limits
from mbs_dynamics.errors import ArgumentError
from mbs_dynamics.ros.interface import (
    DESCRIPTION,
    DIAGNOSTICS,
    GRAVITY,
    JOINT_STATES,
    PAYLOAD,
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
        "Link of the force-torque sensor. Wrenches in the frame of a link that is fixed to it are "
        "transformed, others refused.",
        type="string",
        read_only=True,
        constraints="Name of a moving link.",
    )
    tool_frame: str = parameter(
        "",
        "Link of ~/tool_wrench. Empty: sensor_frame.",
        read_only=True,
        constraints="Name of a link that is fixed to that of the sensor.",
    )
    reversed: bool = parameter(
        False,
        "Whether the sensor reports the wrench of the arm on the tool: the opposite of that of the "
        "tool on the arm.",
        read_only=True,
    )
    calibration_file: str = parameter(
        "",
        "Path of a YAML file with bias, mass and centre of mass. It is read at the start, and "
        "written by ~/fit. Empty: none.",
        read_only=True,
    )
    limits: tuple[float, ...] = parameter(
        (),
        "Measuring range of the sensor in the axes of sensor_frame: force x, y, z and torque x, y, "
        "z. A wrench with a component at its limit is refused as saturated. Empty: none.",
        unit="N and N m",
        type="double_array",
        read_only=True,
        constraints="No number, or six positive ones.",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.sensor_frame:
            raise ArgumentError("sensor_frame is not set; must be the link of the sensor")
        checked_limits(self.wrench_limits)

    @property
    def wrench_limits(self) -> FloatArray:
        """The limits (6,), moment first, in N m and N; inf without."""
        return np.roll(self.limits or (math.inf,) * 6, 3)


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
        PAYLOAD._replace(
            description="Known load in addition to the tool, on the link header.frame_id. A mass "
            "of zero removes it."
        ),
    ),
    published=(
        Topic("~/wrench", WRENCH, "Wrench in N and N m on the tool, in the sensor's frame."),
        Topic("~/tool_wrench", WRENCH, "The same in tool_frame."),
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
