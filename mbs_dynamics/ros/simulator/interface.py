# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Parameters, topics and services of simulator_node. No ROS is needed."""

from __future__ import annotations

from collections.abc import Callable
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
    service,
    topic,
)
from mbs_dynamics.settings import names_setting, number, option

NOT_NEGATIVE = ("joint_damping", "joint_friction", "joint_armature")


def of_joints(unit: str = "", *, signed: bool = False, **declared: Any) -> Callable[..., Any]:
    """Return the function that declares numbers of joints, empty by default, as `option` does."""
    one_or_each = "No number, one for all joints, or one for each in the order of the model."
    constraints = one_or_each + ("" if signed else " None is negative.")
    return option((), unit, type="double_array", constraints=constraints, **declared)


@dataclass(frozen=True)
class SimulatorSettings(RobotSettings):
    """Values of the parameters of simulator_node. Raises ArgumentError for invalid values."""

    robot_description: str = option("", read_only=True)(
        "Text of a URDF. Empty: robot_description_file is used."
    )
    robot_description_file: str = option("", read_only=True)(
        "Path of a URDF or .xacro file. Empty: robot_description is used."
    )
    joints: tuple[str, ...] = names_setting("joint", read_only=True)(
        "Order of the efforts on command_topic. Empty: all joints, in the order of the model."
    )
    command_topic: str = option("/forward_effort_controller/commands", read_only=True)(
        "Topic of efforts in the order of joints, as forward_command_controller takes them."
    )
    rate: float = number(500.0, 1.0, 10000.0, "Hz", read_only=True)(
        "Joint states per second of simulated time."
    )
    step: float = number(0.001, 1e-5, 0.1, "s", read_only=True)(
        "Largest step of the integrator; the time between two joint states is divided into equal "
        "steps no longer than this."
    )
    integrator: str = option("semi_implicit_euler", choices=STEPS, read_only=True)(
        "Integration scheme of a step."
    )
    algorithm: str = algorithm_setting("accelerations")
    realtime_factor: float = number(1.0, 0.01, 100.0)("Simulated seconds per second of real time.")
    gravity: tuple[float, float, float] = option((0.0, 0.0, -9.81), "m/s^2")(
        "Free-fall acceleration in the axes of the URDF's root link.",
        constraints="Three finite numbers, a length of at most 100.",
    )
    joint_damping: tuple[float, ...] = of_joints("N m s/rad or N s/m")(
        "Viscous damping. Empty: that of the description, or that of geared drives, see "
        "drive_damping."
    )
    joint_friction: tuple[float, ...] = of_joints("N m or N")(
        "Coulomb friction. Empty: that of the description."
    )
    joint_armature: tuple[float, ...] = of_joints("kg m^2 or kg", read_only=True)(
        "Rotor inertia of each motor times its gear ratio squared. Empty: 0."
    )
    drive_damping: float = number(0.2, 0.0, 10.0, read_only=True)(
        "Share of its effort limit that a joint's damping exerts at its velocity limit, as in a "
        "geared drive, where the description states less damping. 0: that of the description."
    )
    joint_stops: bool = option(True, read_only=True)(
        "Simulate stiff stops at the position limits of the description."
    )
    stop_time: float = number(0.01, 1e-3, 1.0, "s", read_only=True)(
        "Time constant of the joint stops."
    )
    contact_planes: tuple[float, ...] = option((), "m", type="double_array", read_only=True)(
        "Planes to touch, as a table or a wall: normal and offset of each, in the axes of the "
        "root link. Solid is where normal . position < offset. Empty: none.",
        constraints="Four finite numbers for each plane; no normal is zero.",
    )
    contact_stiffness: float = number(1e4, 1.0, 1e7, "N/m", read_only=True)(
        "Stiffness of the planes."
    )
    contact_damping: float = number(100.0, 0.0, 1e5, "N s/m", read_only=True)(
        "Damping of the planes."
    )
    contact_links: tuple[str, ...] = names_setting("link", read_only=True)(
        "Links whose origins touch the planes. Empty: the tool or hand of each branch."
    )
    limit_efforts: bool = option(True, read_only=True)(
        "Limit the efforts of motors to the effort limits of the description."
    )
    initial_positions: tuple[float, ...] = of_joints("rad or m", signed=True, read_only=True)(
        "Positions at the start and after ~/reset. Empty: bent, half a radian from the middle of "
        "each range, at most a quarter of the range."
    )
    initial_velocities: tuple[float, ...] = of_joints("rad/s or m/s", signed=True, read_only=True)(
        "Velocities at the start and after ~/reset. Empty: zero."
    )
    brakes: bool = option(True)(
        "Brakes hold the robot at the start and after ~/reset, unless it has initial_velocities, "
        "until the commands carry it or ~/brakes releases it."
    )
    command_timeout: float = number(0.0, 0.0, 3600.0, "s")(
        "Simulated time without a valid command after which all efforts are zero. 0: the last "
        "command holds indefinitely, as that of a forward_command_controller does."
    )
    disturbance_duration: float = number(0.2, 1e-3, 3600.0, "s")(
        "Simulated time for which a wrench on ~/disturbance acts, unless another replaces it."
    )
    publish_clock: bool = option(False, read_only=True)(
        "Publish simulated time on /clock, from zero, and stamp joint states with it."
    )
    publish_description: bool = option(True, read_only=True)(
        "Publish the URDF on robot_description, latched."
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
        topic("<command_topic>", "std_msgs/msg/Float64MultiArray")(
            "Efforts in N m or N, in the order of joints."
        ),
        topic("~/effort_commands", "sensor_msgs/msg/JointState")(
            "Efforts in N m or N by name. Joints that are not named keep theirs."
        ),
        topic("~/disturbance", "geometry_msgs/msg/WrenchStamped")(
            "Wrench in N and N m on the link header.frame_id, in its origin and axes."
        ),
        PAYLOAD,
    ),
    published=(
        JOINT_STATES._replace(
            description="Positions, velocities and efforts, in the order of the model.",
            quality=RELIABLE,
        ),
        topic("robot_description", "std_msgs/msg/String", LATCHED, "publish_description")(
            "The given URDF."
        ),
        topic("~/contact", "geometry_msgs/msg/WrenchStamped", condition="contact_planes")(
            "Wrench of the planes in N and N m on the link header.frame_id, in its origin and "
            "axes, while it touches one; then zero, once."
        ),
        topic("/clock", "rosgraph_msgs/msg/Clock", LATEST, "publish_clock")("Simulated time."),
        DIAGNOSTICS,
    ),
    services=(
        service("~/reset", "std_srvs/srv/Trigger")(
            "Return to the initial state, brakes included, without efforts and disturbances."
        ),
        service("~/brakes", "std_srvs/srv/SetBool")(
            "true: brakes hold the robot where it is. false: they release it."
        ),
    ),
)
