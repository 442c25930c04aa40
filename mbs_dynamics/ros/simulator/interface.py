# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Parameters, topics and services of simulator_node. No ROS is needed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from mbs_dynamics import checks
from mbs_dynamics.control.environment import check_gravity
from mbs_dynamics.control.settings import algorithm_setting
from mbs_dynamics.errors import ArgumentError
from mbs_dynamics.integrate.stepper import STEPS
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

NOT_NEGATIVE = ("joint_damping", "joint_friction", "joint_armature", "stribeck", "load_friction")


def joint_numbers(
    description: str, *, unit: str = "", signed: bool = False, read_only: bool = False
) -> Any:
    """Return the field of a setting that is empty, one number for all joints, or one for each."""
    return parameter(
        (),
        description,
        unit=unit,
        type="double_array",
        constraints="No number, one for all joints, or one for each in the order of the model."
        + ("" if signed else " None is negative."),
        read_only=read_only,
    )


@dataclass(frozen=True)
class SimulatorSettings(RobotSettings):
    """Values of the parameters of simulator_node. Raises ArgumentError for invalid values."""

    robot_description: str = parameter(
        "", "Text of a URDF. Empty: robot_description_file is used.", read_only=True
    )
    robot_description_file: str = parameter(
        "", "Path of a URDF or .xacro file. Empty: robot_description is used.", read_only=True
    )
    joints: tuple[str, ...] = parameter(
        (),
        "Order of the efforts on command_topic. Empty: all joints, in the order of the model.",
        once="joint",
        read_only=True,
    )
    command_topic: str = parameter(
        "/forward_effort_controller/commands",
        "Topic of efforts in the order of joints, as forward_command_controller takes them.",
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
    step: float = parameter(
        0.001,
        "Largest step of the integrator; the time between two joint states is divided into equal "
        "steps no longer than this.",
        unit="s",
        low=1e-5,
        high=0.1,
        read_only=True,
    )
    integrator: str = parameter(
        "semi_implicit_euler", "Integration scheme of a step.", choices=tuple(STEPS), read_only=True
    )
    algorithm: str = algorithm_setting("accelerations")
    realtime_factor: float = parameter(
        1.0, "Simulated seconds per second of real time.", low=0.01, high=100.0
    )
    gravity: tuple[float, float, float] = parameter(
        (0.0, 0.0, -9.81),
        "Free-fall acceleration in the axes of the URDF's root link.",
        unit="m/s^2",
        constraints="Three finite numbers, a length of at most 100.",
    )
    joint_damping: tuple[float, ...] = joint_numbers(
        "Viscous damping. Empty: that of the description, or that of geared drives, see "
        "drive_damping.",
        unit="N m s/rad or N s/m",
    )
    joint_friction: tuple[float, ...] = joint_numbers(
        "Coulomb friction. Empty: that of the description.", unit="N m or N"
    )
    joint_armature: tuple[float, ...] = joint_numbers(
        "Rotor inertia of each motor times its gear ratio squared. Empty: 0.",
        unit="kg m^2 or kg",
        read_only=True,
    )
    drive_damping: float = parameter(
        0.2,
        "Share of its effort limit that a joint's damping exerts at its velocity limit, as in a "
        "geared drive, where the description states less damping. 0: that of the description.",
        low=0.0,
        high=10.0,
        read_only=True,
    )
    stribeck: tuple[float, ...] = joint_numbers(
        "Share by which static friction exceeds Coulomb friction. Empty: 0."
    )
    stribeck_speed: float = parameter(
        0.05, "Speed at which half of this share is left.", unit="rad/s or m/s", low=1e-4, high=10.0
    )
    load_friction: tuple[float, ...] = joint_numbers(
        "Friction over the torque of gravity and disturbances, which adds to Coulomb friction. "
        "Empty: 0."
    )
    joint_stops: bool = parameter(
        True, "Simulate stiff stops at the position limits of the description.", read_only=True
    )
    stop_time: float = parameter(
        0.01, "Time constant of the joint stops.", unit="s", low=1e-3, high=1.0, read_only=True
    )
    contact_planes: tuple[float, ...] = parameter(
        (),
        "Planes to touch, as a table or a wall: normal and offset of each, in the axes of the "
        "root link. Solid is where normal . position < offset. Empty: none.",
        unit="m",
        type="double_array",
        read_only=True,
        constraints="Four finite numbers for each plane; no normal is zero.",
    )
    contact_stiffness: float = parameter(
        1e4, "Stiffness of the planes.", unit="N/m", low=1.0, high=1e7, read_only=True
    )
    contact_damping: float = parameter(
        100.0, "Damping of the planes.", unit="N s/m", low=0.0, high=1e5, read_only=True
    )
    contact_links: tuple[str, ...] = parameter(
        (),
        "Links whose origins touch the planes. Empty: the tool or hand of each branch.",
        once="link",
        read_only=True,
    )
    limit_efforts: bool = parameter(
        True, "Limit the efforts of motors to the effort limits of the description.", read_only=True
    )
    initial_positions: tuple[float, ...] = joint_numbers(
        "Positions at the start and after ~/reset. Empty: bent, half a radian from the middle of "
        "each range, at most a quarter of the range.",
        unit="rad or m",
        signed=True,
        read_only=True,
    )
    initial_velocities: tuple[float, ...] = joint_numbers(
        "Velocities at the start and after ~/reset. Empty: zero.",
        unit="rad/s or m/s",
        signed=True,
        read_only=True,
    )
    brakes: bool = parameter(
        True,
        "Brakes hold the robot at the start and after ~/reset, unless it has initial_velocities, "
        "until the commands carry it or ~/brakes releases it.",
    )
    command_timeout: float = parameter(
        0.0,
        "Simulated time without a valid command after which all efforts are zero. 0: the last "
        "command holds indefinitely, as that of a forward_command_controller does.",
        unit="s",
        low=0.0,
        high=3600.0,
    )
    disturbance_duration: float = parameter(
        0.2,
        "Simulated time for which a wrench on ~/disturbance acts, unless another replaces it.",
        unit="s",
        low=1e-3,
        high=3600.0,
    )
    publish_clock: bool = parameter(
        False,
        "Publish simulated time on /clock, from zero, and stamp joint states with it.",
        read_only=True,
    )
    publish_description: bool = parameter(
        True, "Publish the URDF on robot_description, latched.", read_only=True
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if bool(self.robot_description) == bool(self.robot_description_file):
            given = "both are given" if self.robot_description else "neither is given"
            raise ArgumentError(
                "robot_description (the text of a URDF) or robot_description_file (its path) must "
                f"be given, and not both; {given}"
            )
        check_gravity("gravity", self.gravity)
        for name in NOT_NEGATIVE:
            checks.not_negative(name, getattr(self, name))


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
            "~/effort_commands",
            "sensor_msgs/msg/JointState",
            "Efforts in N m or N by name. Joints that are not named keep theirs.",
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
        Topic(
            "robot_description",
            "std_msgs/msg/String",
            "The given URDF.",
            LATCHED,
            condition="publish_description",
        ),
        Topic(
            "~/contact",
            "geometry_msgs/msg/WrenchStamped",
            "Wrench of the planes in N and N m on the link header.frame_id, in its origin and "
            "axes, while it touches one; then zero, once.",
            condition="contact_planes",
        ),
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
