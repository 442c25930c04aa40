# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Parameters, topics and services of dynamics_node. No ROS is needed."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from mbs_dynamics.control.settings import VelocitySettings, algorithm_setting
from mbs_dynamics.errors import ArgumentError, UnknownRepresentationError, listed
from mbs_dynamics.representation import REPRESENTATIONS
from mbs_dynamics.ros.dynamics.outputs import EFFORTS, OUTPUTS, Output
from mbs_dynamics.ros.interface import (
    DESCRIPTION,
    DIAGNOSTICS,
    GRAVITY,
    JOINT_STATES,
    LATEST,
    PAYLOAD,
    SENSOR_DATA,
    DescriptionSettings,
    GravitySettings,
    Interface,
    RobotSettings,
    Topic,
)
from mbs_dynamics.settings import parameter

CHOICES = (*REPRESENTATIONS, "auto")
"""Valid values of ``representation``."""

DESIRED = "desired_torques"
"""Torques of desired motions, which ``publish`` lists as well."""

PUBLISHED = (*(one.name for one in OUTPUTS if one.condition.endswith("publish")), DESIRED)
"""Valid entries of ``publish``."""


@dataclass(frozen=True)
class DynamicsSettings(GravitySettings, VelocitySettings, DescriptionSettings, RobotSettings):
    """Values of the parameters of dynamics_node. Raises ArgumentError for invalid values."""

    root: str = parameter(
        "",
        "Link to start from in place of the URDF's root. Empty: the URDF's root.",
        read_only=True,
    )
    tip: str = parameter(
        "",
        "Last link of the chain to extract from the URDF. Empty: the whole tree.",
        read_only=True,
    )

    publish: tuple[str, ...] = parameter(
        tuple(one.name for one in OUTPUTS if one.default),
        "Results to publish, on the topics of these names. desired_torques answers each point on "
        "~/desired with its inverse dynamics, and each trajectory on ~/desired_trajectory.",
        choices=PUBLISHED,
    )
    representation: str = parameter(
        "hybrid",
        "Representation of the published twists and Jacobians. Torques do not depend on it.",
        constraints=f"One of {', '.join(CHOICES)}; auto publishes body_fixed; mixed does "
        "not go with twists in publish.",
    )
    algorithm: str = algorithm_setting(
        "torques, mass matrix, energy and the momentum of the observer"
    )
    bodies: tuple[str, ...] = parameter(
        (),
        "Links whose twists and Jacobians are published. The tool wrench acts on the first one, at "
        "its origin. Empty: the tool or hand of each branch, by its name, or else the last moving "
        "link; that of the longest branch first.",
        once="link",
        constraints="Names of moving links, each at most once.",
    )
    floating_base: bool = parameter(
        False,
        "Move the root link by a free joint. Its pose and twist come on odom, or orientation and "
        "angular rate on imu.",
        read_only=True,
        constraints="Not with external_torques, tool_wrench and desired_torques in publish, and "
        "not with servos_file.",
    )
    odom_frame: str = parameter(
        "odom",
        "Frame in which odometry states the pose of a floating base. Hybrid twists and gravity are "
        "resolved in its axes.",
        read_only=True,
    )
    joint_wrenches: tuple[str, ...] = parameter(
        (),
        "Joints whose transmitted wrench is published on ~/joint_wrench/<joint>, fixed joints such "
        "as that of a force-torque sensor included. Empty: none.",
        once="joint",
    )
    observer_gain: float = parameter(
        20.0,
        "Gain of the momentum observer: external torques pass a low-pass filter of this corner "
        "frequency in rad/s.",
        unit="1/s",
        low=0.1,
        high=1000.0,
    )
    joint_friction: bool = parameter(
        True,
        "Subtract the damping and friction of the robot_description from the efforts before "
        "external torques are computed from them.",
    )
    desired_joints: tuple[str, ...] = parameter(
        (),
        "Joints of the points on ~/desired, in their order. The others are assumed to be at "
        "rest at their measured positions. Empty: all, in the order of the model.",
        once="joint",
    )
    servos_file: str = parameter(
        "",
        "YAML file with the stiffness of the position servos of all joints, as mbs-dynamics "
        "identify writes it. Points on ~/desired and trajectories on ~/desired_trajectory are then "
        "answered with goals that these servos reach without sag. Empty: none.",
        read_only=True,
    )
    stale_timeout: float = parameter(
        0.5,
        "Time without valid messages after which input counts as stale and is not used.",
        unit="s",
        low=0.001,
        high=3600.0,
    )
    max_rate: float = parameter(
        0.0,
        "Largest rate of publishing; joint_states in between are skipped. 0: every message is "
        "answered.",
        unit="Hz",
        low=0.0,
        high=10000.0,
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.representation not in CHOICES:
            raise UnknownRepresentationError(self.representation, CHOICES)
        if self.representation == "mixed" and "twists" in self.publish:
            raise ArgumentError(
                "representation mixed resolves angular velocity in the body's frame and linear "
                "velocity in the root's, but a TwistStamped has one frame: choose another "
                "representation, or mixed without twists in publish"
            )
        fixed_only = [DESIRED, *(one.name for one in OUTPUTS if one.fixed_base_only)]
        wrong = [name for name in self.publish if name in fixed_only]
        if self.floating_base and wrong:
            raise ArgumentError(f"floating_base does not go with {listed(wrong)} in publish")
        if self.floating_base and self.servos_file:
            raise ArgumentError("floating_base does not go with servos_file")

    @property
    def body_representation(self) -> str:
        """The representation of twists and Jacobians: ``auto`` means body_fixed."""
        return "body_fixed" if self.representation == "auto" else self.representation

    @cached_property
    def asked(self) -> tuple[Output, ...]:
        """The results that are published."""
        return tuple(one for one in OUTPUTS if one.asked(self))

    @property
    def answers_desired(self) -> bool:
        """Whether desired points and trajectories are answered."""
        return DESIRED in self.publish or bool(self.servos_file)

    @cached_property
    def needing_velocity(self) -> tuple[str, ...]:
        """The published results that need velocities, in words."""
        return tuple(one.name.replace("_", " ") for one in self.asked if one.needs_velocity)

    @cached_property
    def observed(self) -> tuple[str, ...]:
        """The published topics of the momentum observer, which runs if there are any."""
        return tuple(f"~/{one.topic}" for one in self.asked if one.observed)


IN_PUBLISH = f"{DESIRED} in publish"
TORQUES_OR_GOALS = f"{IN_PUBLISH}, or servos_file"
TRAJECTORY = "trajectory_msgs/msg/JointTrajectory"

DYNAMICS_NODE = Interface(
    "dynamics_node",
    "Publishes torques, twists, Jacobians and contact forces of a robot.",
    DynamicsSettings,
    subscribed=(
        DESCRIPTION,
        JOINT_STATES,
        GRAVITY,
        PAYLOAD,
        Topic(
            "odom",
            "nav_msgs/msg/Odometry",
            "Pose of the root link in odom_frame, and its twist in the root link.",
            SENSOR_DATA,
            condition="floating_base",
        ),
        Topic(
            "imu",
            "sensor_msgs/msg/Imu",
            "Orientation and angular rate of a link fixed to the base, used without odometry.",
            SENSOR_DATA,
            condition="floating_base",
        ),
        Topic(
            "~/desired",
            "trajectory_msgs/msg/JointTrajectoryPoint",
            "Point of a trajectory, for the joints desired_joints.",
            condition=TORQUES_OR_GOALS,
        ),
        Topic(
            "~/desired_trajectory",
            TRAJECTORY,
            "Trajectory with the names of its joints.",
            condition=TORQUES_OR_GOALS,
        ),
    ),
    published=(
        *(
            Topic(f"~/{one.topic}", one.type, one.description, condition=one.condition)
            for one in OUTPUTS
        ),
        Topic(
            "~/desired_torques",
            EFFORTS,
            "Torques in N m or N of the point on ~/desired, by inverse dynamics.",
            condition=IN_PUBLISH,
        ),
        Topic(
            "~/desired_trajectory_torques",
            TRAJECTORY,
            "The trajectory on ~/desired_trajectory, with the effort of each point.",
            condition=IN_PUBLISH,
        ),
        Topic(
            "~/servo_goals",
            "std_msgs/msg/Float64MultiArray",
            "Goals in rad or m of the servos for the point on ~/desired, in the order of its "
            "joints, as a forward_command_controller takes them.",
            LATEST,
            condition="servos_file",
        ),
        Topic(
            "~/servo_trajectory",
            TRAJECTORY,
            "The trajectory on ~/desired_trajectory, with goals of the servos as positions.",
            condition="servos_file",
        ),
        DIAGNOSTICS,
    ),
    lifecycle=True,
)
