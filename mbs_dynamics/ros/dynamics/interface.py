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
    service,
    topic,
)
from mbs_dynamics.settings import names_setting, number, option

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
                option(one.default)(f"Publish ~/{one.topic}. {one.about}".rstrip()),
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

    representation: str = option("hybrid")(
        "Representation of the published twists and Jacobians. Torques do not depend on it.",
        constraints=f"One of {', '.join(CHOICES)}; auto publishes body_fixed; mixed needs "
        "publish_twists false.",
    )
    algorithm: str = algorithm_setting(
        "torques, mass matrix, energy and the momentum of the observer"
    )
    bodies: tuple[str, ...] = names_setting("link", which="moving links")(
        "Links whose twists and Jacobians are published. Empty: the tool or hand of each "
        "branch, by its name, or else the last moving link; that of the longest branch first."
    )
    floating_base: bool = option(False, read_only=True)(
        "Move the root link by a free joint. Its pose and twist come on odom, or orientation and "
        "angular rate on imu.",
        constraints="Not with external torques, tool wrench, desired torques, markers and payload "
        "estimation.",
    )
    odom_frame: str = option("odom", read_only=True)(
        "Frame in which odometry states the pose of a floating base. Hybrid twists and gravity are "
        "resolved in its axes."
    )
    publish_desired_torques: bool = option(False)(
        "Answer each point on ~/desired with its inverse dynamics on ~/desired_torques, and each "
        "trajectory on ~/desired_trajectory likewise."
    )
    publish_markers: bool = option(False)(
        "Publish ~/markers for RViz: inertias, centre of mass, gravity torques as discs, the screw "
        "axis of the tool's twist, and the tool wrench."
    )
    estimate_payload: bool = option(False)(
        "Offer services that estimate the load on tool_body from efforts in still poses, and "
        "publish it on ~/payload_estimate. It is not applied."
    )
    joint_wrenches: tuple[str, ...] = names_setting("joint")(
        "Joints whose transmitted wrench is published on ~/joint_wrench/<joint>, fixed joints such "
        "as that of a force-torque sensor included. Empty: none."
    )
    observer_gain: float = number(20.0, 0.1, 1000.0, "1/s")(
        "Gain of the momentum observer: external torques pass a low-pass filter of this corner "
        "frequency in rad/s."
    )
    joint_friction: bool = option(True)(
        "Subtract the damping and friction of the robot_description from the efforts before "
        "external torques are computed from them."
    )
    friction_speed: float = number(0.05, 1e-4, 10.0, "rad/s or m/s")(
        "Speed at which Coulomb friction reaches three quarters of its value; it is smooth at zero."
    )
    tool_body: str = option("")(
        "Link on which the tool wrench acts, in its origin. Empty: the first of bodies.",
        constraints="Name of a moving link.",
    )
    wrench_damping: float = number(0.05, 0.0, 10.0)(
        "Smaller singular values of the Jacobian (lengths in m) are damped in ~/tool_wrench, so "
        "that it stays finite where the arm is singular."
    )
    controller_state: str = option("")(
        "Topic of the controller_state of a joint_trajectory_controller, whose reference is "
        "answered like points on ~/desired. Empty: none. Needs control_msgs."
    )
    desired_joints: tuple[str, ...] = names_setting("joint")(
        "Joints of the points on ~/desired, in their order. The others are assumed to be at "
        "rest at their measured positions. Empty: all, in the order of the model."
    )
    max_rate: float = number(0.0, 0.0, 10000.0, "Hz")(
        "Largest rate of publishing; joint_states in between are skipped. 0: every message is "
        "answered."
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
        topic("odom", "nav_msgs/msg/Odometry", SENSOR_DATA, "floating_base")(
            "Pose of the root link in odom_frame, and its twist in the root link."
        ),
        topic("imu", "sensor_msgs/msg/Imu", SENSOR_DATA, "floating_base")(
            "Orientation and angular rate of a link fixed to the base, used without odometry."
        ),
        topic("~/desired", "trajectory_msgs/msg/JointTrajectoryPoint", condition=DESIRED)(
            "Point of a trajectory, for the joints desired_joints."
        ),
        topic("~/desired_trajectory", TRAJECTORY, condition=DESIRED, largest=2**20)(
            "Trajectory with the names of its joints."
        ),
        topic(
            "<controller_state>",
            "control_msgs/msg/JointTrajectoryControllerState",
            SENSOR_DATA,
            "publish_desired_torques, with controller_state",
        )("Reference of a joint_trajectory_controller."),
    ),
    published=(
        *(
            topic(f"~/{one.topic}", one.type, condition=one.asked_by)(one.description)
            for one in OUTPUTS
        ),
        topic("~/markers", "visualization_msgs/msg/MarkerArray", condition="publish_markers")(
            f"Markers for RViz, at most {DISPLAY_RATE:.0f} messages per second."
        ),
        *(
            topic(f"~/{one.topic}{THROTTLE}", one.type, condition=one.asked_by)(
                f"~/{one.topic}, at most {DISPLAY_RATE:.0f} messages per second, for displays."
            )
            for one in OUTPUTS
            if one.displayed
        ),
        topic("~/payload_estimate", "geometry_msgs/msg/InertiaStamped", LATEST, ESTIMATE)(
            "Load that the still poses show, in the form that ~/payload takes."
        ),
        topic("~/desired_torques", EFFORTS, condition=DESIRED)(
            "Torques in N m or N of the point on ~/desired, by inverse dynamics."
        ),
        topic("~/desired_trajectory_torques", TRAJECTORY, condition=DESIRED)(
            "The trajectory on ~/desired_trajectory, with the effort of each point."
        ),
        DIAGNOSTICS,
    ),
    services=(
        service("~/payload_estimate/take", "std_srvs/srv/Trigger", ESTIMATE)(
            "Take the present pose, in which the arm stands still, and publish the estimate."
        ),
        service("~/payload_estimate/restart", "std_srvs/srv/Trigger", ESTIMATE)(
            "Discard all poses."
        ),
    ),
    lifecycle=True,
)
