# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Parameters, topics and services of dynamics_node. No ROS is needed."""

from __future__ import annotations

from dataclasses import dataclass, make_dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from mbs_dynamics.control.settings import algorithm_setting
from mbs_dynamics.errors import ArgumentError, UnknownRepresentationError
from mbs_dynamics.representation import REPRESENTATIONS
from mbs_dynamics.ros.dynamics.results import EFFORTS, OUTPUTS, Output
from mbs_dynamics.ros.interface import (
    DESCRIPTION,
    DIAGNOSTICS,
    GRAVITY,
    JOINT_STATES,
    LATEST,
    PAYLOAD,
    SENSOR_DATA,
    Interface,
    SensedSettings,
    Service,
    Topic,
)
from mbs_dynamics.settings import parameter

CHOICES = (*REPRESENTATIONS, "auto")
"""Valid values of ``representation``."""

OF_FIXED_BASES = (
    "publish_external_torques",
    "publish_tool_wrench",
    "publish_desired_torques",
    "publish_markers",
    "estimate_payload",
)
"""Parameters that must be false with a floating base."""

if TYPE_CHECKING:
    Switches = SensedSettings
else:
    Switches = make_dataclass(
        "Switches",
        [
            (
                one.asked_by,
                bool,
                parameter(one.default, f"Publish ~/{one.topic}. {one.about}".rstrip()),
            )
            for one in OUTPUTS
            if not one.parameter
        ],
        bases=(SensedSettings,),
        frozen=True,
    )


@dataclass(frozen=True)
class DynamicsSettings(Switches):
    """Values of the parameters of dynamics_node. Raises ArgumentError for invalid values."""

    representation: str = parameter(
        "hybrid",
        "Representation of the published twists and Jacobians. Torques do not depend on it.",
        constraints=f"One of {', '.join(CHOICES)}; auto publishes body_fixed; mixed needs "
        "publish_twists false.",
    )
    algorithm: str = algorithm_setting(
        "torques, mass matrix, energy and the momentum of the observer"
    )
    bodies: tuple[str, ...] = parameter(
        (),
        "Links whose twists and Jacobians are published. Empty: the tool or hand of each "
        "branch, by its name, or else the last moving link; that of the longest branch first.",
        once="link",
        constraints="Names of moving links, each at most once.",
    )
    floating_base: bool = parameter(
        False,
        "Move the root link by a free joint. Its pose and twist come on odom, or orientation and "
        "angular rate on imu.",
        read_only=True,
        constraints="Not with external torques, tool wrench, desired torques, markers and payload "
        "estimation.",
    )
    odom_frame: str = parameter(
        "odom",
        "Frame in which odometry states the pose of a floating base. Hybrid twists and gravity are "
        "resolved in its axes.",
        read_only=True,
    )
    publish_desired_torques: bool = parameter(
        False,
        "Answer each point on ~/desired with its inverse dynamics on ~/desired_torques, and each "
        "trajectory on ~/desired_trajectory likewise.",
    )
    publish_markers: bool = parameter(
        False,
        "Publish ~/markers for RViz: inertias, centre of mass, gravity torques as discs, the screw "
        "axis of the tool's twist, and the tool wrench.",
    )
    estimate_payload: bool = parameter(
        False,
        "Offer services that estimate the load on tool_body from efforts in still poses, and "
        "publish it on ~/payload_estimate. It is not applied.",
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
    friction_speed: float = parameter(
        0.05,
        "Speed at which Coulomb friction reaches 76 % of its value; it is smooth at zero.",
        unit="rad/s or m/s",
        low=1e-4,
        high=10.0,
    )
    tool_body: str = parameter(
        "",
        "Link on which the tool wrench acts, in its origin. Empty: the first of bodies.",
        constraints="Name of a moving link.",
    )
    wrench_damping: float = parameter(
        0.05,
        "Smaller singular values of the Jacobian (lengths in m) are damped in ~/tool_wrench, so "
        "that it stays finite where the arm is singular.",
        low=0.0,
        high=10.0,
    )
    controller_state: str = parameter(
        "",
        "Topic of the controller_state of a joint_trajectory_controller, whose reference is "
        "answered like points on ~/desired. Empty: none. Needs control_msgs.",
    )
    desired_joints: tuple[str, ...] = parameter(
        (),
        "Joints of the points on ~/desired, in their order. The others are assumed to be at "
        "rest at their measured positions. Empty: all, in the order of the model.",
        once="joint",
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
        if self.representation == "mixed" and self.asks("twists"):
            raise ArgumentError(
                "representation mixed resolves angular velocity in the body's frame and linear "
                "velocity in the root's, but a TwistStamped has one frame: valid is another "
                "representation, or mixed with publish_twists false"
            )
        for name in OF_FIXED_BASES:
            if self.floating_base and getattr(self, name):
                raise ArgumentError(f"floating_base does not go with {name}")

    @property
    def body_representation(self) -> str:
        """The representation of twists and Jacobians: ``auto`` means body_fixed."""
        return "body_fixed" if self.representation == "auto" else self.representation

    @cached_property
    def asked(self) -> tuple[Output, ...]:
        """The results that are published."""
        return tuple(one for one in OUTPUTS if getattr(self, one.asked_by))

    def asks(self, name: str) -> bool:
        """Return whether a result is published."""
        return any(one.name == name for one in self.asked)

    @cached_property
    def needing_velocity(self) -> tuple[str, ...]:
        """The published results that need velocities, in words."""
        return tuple(one.name.replace("_", " ") for one in self.asked if one.velocity)

    @cached_property
    def observed(self) -> tuple[str, ...]:
        """The published topics of the momentum observer, which runs if there are any."""
        return tuple(f"~/{one.topic}" for one in self.asked if one.observed)

    @cached_property
    def needing_effort(self) -> tuple[str, ...]:
        """The other published topics that need efforts, in words."""
        return ("the power on ~/energy",) if self.asks("energy") else ()

    @cached_property
    def needs_effort(self) -> bool:
        """Whether a published topic needs efforts."""
        return bool(self.observed or self.needing_effort)


DESIRED, ESTIMATE = "publish_desired_torques", "estimate_payload"
TRAJECTORY = "trajectory_msgs/msg/JointTrajectory"

THROTTLE = "_throttle"
"""Suffix of topics at a low rate for displays, as topic_tools uses it."""

DISPLAY_RATE = 30.0
"""Largest rate in Hz of topics for displays."""

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
            condition=DESIRED,
        ),
        Topic(
            "~/desired_trajectory",
            TRAJECTORY,
            "Trajectory with the names of its joints.",
            condition=DESIRED,
            largest=2**20,
        ),
        Topic(
            "<controller_state>",
            "control_msgs/msg/JointTrajectoryControllerState",
            "Reference of a joint_trajectory_controller.",
            SENSOR_DATA,
            condition="publish_desired_torques, with controller_state",
        ),
    ),
    published=(
        *(
            Topic(f"~/{one.topic}", one.type, one.description, condition=one.asked_by)
            for one in OUTPUTS
        ),
        Topic(
            "~/markers",
            "visualization_msgs/msg/MarkerArray",
            f"Markers for RViz, at most {DISPLAY_RATE:.0f} messages per second.",
            condition="publish_markers",
        ),
        *(
            Topic(
                f"~/{one.topic}{THROTTLE}",
                one.type,
                f"~/{one.topic}, at most {DISPLAY_RATE:.0f} messages per second, for displays.",
                condition=one.asked_by,
            )
            for one in OUTPUTS
            if one.displayed
        ),
        Topic(
            "~/payload_estimate",
            "geometry_msgs/msg/InertiaStamped",
            "Load that the still poses show, in the form that ~/payload takes.",
            LATEST,
            condition=ESTIMATE,
        ),
        Topic(
            "~/desired_torques",
            EFFORTS,
            "Torques in N m or N of the point on ~/desired, by inverse dynamics.",
            condition=DESIRED,
        ),
        Topic(
            "~/desired_trajectory_torques",
            TRAJECTORY,
            "The trajectory on ~/desired_trajectory, with the effort of each point.",
            condition=DESIRED,
        ),
        DIAGNOSTICS,
    ),
    services=(
        Service(
            "~/payload_estimate/take",
            "std_srvs/srv/Trigger",
            "Take the present pose, in which the arm stands still, and publish the estimate.",
            condition=ESTIMATE,
        ),
        Service(
            "~/payload_estimate/restart",
            "std_srvs/srv/Trigger",
            "Discard all poses.",
            condition=ESTIMATE,
        ),
    ),
    lifecycle=True,
)
