# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Parameters, topics and services of simulator_node. No ROS is needed."""

from __future__ import annotations

from dataclasses import dataclass

from mbs_dynamics import checks
from mbs_dynamics.control.environment import check_gravity
from mbs_dynamics.control.settings import algorithm_setting
from mbs_dynamics.errors import ArgumentError
from mbs_dynamics.ros.interface import (
    DIAGNOSTICS,
    JOINT_STATES,
    LATCHED,
    LATEST,
    PAYLOAD,
    RELIABLE,
    Interface,
    RobotSettings,
    Service,
    Topic,
)
from mbs_dynamics.settings import parameter

FOR_EACH = "No number, one for all joints, or one for each in the order of the model."


@dataclass(frozen=True)
class SimulatorSettings(RobotSettings):
    """Values of the parameters of simulator_node. Raises ArgumentError for invalid values."""

    robot_description: str = parameter(
        "",
        "Text of a URDF, or path of a URDF or .xacro file. Must be set.",
        read_only=True,
    )
    joints: tuple[str, ...] = parameter(
        (),
        "Joints with a motor, in the order of the efforts on command_topic; others are held. "
        "Empty: all joints, in the order of the model.",
        once="joint",
        read_only=True,
    )
    command_topic: str = parameter(
        "forward_effort_controller/commands",
        "Topic of efforts in the order of joints, as forward_command_controller takes them; "
        "without a leading slash it is in the namespace of the node.",
        read_only=True,
    )
    rate: float = parameter(
        500.0,
        "Joint states per second of simulated time.",
        unit="Hz",
        low=1.0,
        high=10000.0,
        read_only=True,
    )
    algorithm: str = algorithm_setting("accelerations")
    realtime_factor: float = parameter(
        1.0,
        "Simulated seconds per second of real time. Unless it is 1, stamps leave the system's "
        "clock: set publish_clock, and use_sim_time of the other nodes.",
        low=0.01,
        high=100.0,
        read_only=True,
    )
    gravity: tuple[float, float, float] = parameter(
        (0.0, 0.0, -9.81),
        "Free-fall acceleration in the axes of the URDF's root link.",
        unit="m/s^2",
        constraints="Three finite numbers, a length of at most 100.",
    )
    joint_damping: tuple[float, ...] = parameter(
        (),
        "Viscous damping. Empty: that of the description, or of geared drives where that is more: "
        "a fifth of the effort limit at the velocity limit.",
        unit="N m s/rad or N s/m",
        type="double_array",
        constraints=f"{FOR_EACH} None is negative.",
    )
    contact_planes: tuple[float, ...] = parameter(
        (),
        "Planes such as a table or a wall: normal and offset of each, in the axes of the root "
        "link. The solid side is normal . position < offset. Empty: none.",
        unit="m",
        type="double_array",
        read_only=True,
        constraints="Four finite numbers for each plane; no normal is zero.",
    )
    initial_positions: tuple[float, ...] = parameter(
        (),
        "Positions at the start and after ~/reset. Empty: bent, half a radian from the middle of "
        "each range, at most a quarter of the range.",
        unit="rad or m",
        type="double_array",
        constraints=FOR_EACH,
        read_only=True,
    )
    brakes: bool = parameter(
        True,
        "Brakes hold the robot at the start and after ~/reset, until the commands carry it or "
        "~/brakes releases it.",
    )
    publish_clock: bool = parameter(
        False,
        "Publish simulated time on /clock, from zero, and stamp joint states with it.",
        read_only=True,
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.robot_description:
            raise ArgumentError(
                "robot_description is not set; must be the text of a URDF, or its path"
            )
        check_gravity("gravity", self.gravity)
        checks.not_negative("joint_damping", self.joint_damping)


def for_each(name: str, values: tuple[float, ...], n: int) -> checks.FloatArray | None:
    """Return one number for each of n joints, or None for none; ArgumentError for another count."""
    if not values:
        return None
    return checks.numbers(name, values * n if len(values) == 1 else values, (n,))


SIMULATOR_NODE = Interface(
    "simulator_node",
    "Simulates a robot: a URDF under forward dynamics in real time.",
    SimulatorSettings,
    subscribed=(
        Topic(
            "<command_topic>",
            "std_msgs/msg/Float64MultiArray",
            "Efforts in N m or N, in the order of joints.",
        ),
        Topic(
            "~/disturbance",
            "geometry_msgs/msg/WrenchStamped",
            "Wrench in N and N m on the link header.frame_id, in its origin and axes.",
        ),
        PAYLOAD,
    ),
    published=(
        JOINT_STATES._replace(
            description="Positions, velocities and efforts, in the order of the model.",
            quality=RELIABLE,
        ),
        Topic("robot_description", "std_msgs/msg/String", "The given URDF.", LATCHED),
        Topic(
            "/clock",
            "rosgraph_msgs/msg/Clock",
            "Simulated time.",
            LATEST,
            condition="publish_clock",
        ),
        DIAGNOSTICS,
    ),
    services=(
        Service(
            "~/reset",
            "std_srvs/srv/Trigger",
            "Return to the initial state, brakes included, without efforts and disturbances.",
        ),
        Service(
            "~/brakes",
            "std_srvs/srv/SetBool",
            "true: brakes hold the robot where it is. false: they release it.",
        ),
    ),
)
