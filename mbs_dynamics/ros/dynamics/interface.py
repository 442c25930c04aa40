# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Parameters, topics and services of dynamics_node. No ROS is needed."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from mbs_dynamics.control.environment import LARGEST_GRAVITY, check_gravity
from mbs_dynamics.control.settings import algorithm_setting
from mbs_dynamics.errors import ArgumentError, UnknownRepresentationError
from mbs_dynamics.representation import REPRESENTATIONS
from mbs_dynamics.ros.interface import (
    DESCRIPTION,
    DIAGNOSTICS,
    GRAVITY,
    JOINT_STATES,
    LATEST,
    PAYLOAD,
    SENSOR_DATA,
    DescribedSettings,
    Interface,
    Service,
    Topic,
)
from mbs_dynamics.settings import check_once, setting

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

ACCELERATIONS = ("zero", "effort")
"""Valid values of ``joint_wrench_acceleration``."""


@dataclass(frozen=True)
class DynamicsSettings(DescribedSettings):
    """Values of the parameters of dynamics_node. Raises ArgumentError for invalid values."""

    representation: str = setting(
        "hybrid",
        "Representation of the published twists and Jacobians. Torques do not depend on it.",
        constraints=f"One of {', '.join(CHOICES)}; auto publishes body_fixed; mixed needs "
        "publish_twists false.",
    )
    algorithm: str = algorithm_setting("torques, mass matrix, energy, observer and accelerations")
    bodies: tuple[str, ...] = setting(
        (),
        "Links whose twists and Jacobians are published. Empty: the tool or hand of each "
        "branch, by its name, or else the last moving link; that of the longest branch first.",
        type="string_array",
        constraints="Names of moving links, each at most once.",
    )
    gravity: tuple[float, float, float] = setting(
        (0.0, 0.0, -9.81),
        "Free-fall acceleration in the axes of the URDF's root link. ~/gravity replaces it; the "
        "latest setting wins.",
        "m/s^2",
        constraints=f"Three finite numbers, a length of at most {LARGEST_GRAVITY:g}.",
    )
    floating_base: bool = setting(
        False,
        "Move the root link by a free joint. Its pose and twist come on odom, or orientation and "
        "angular rate on imu.",
        constraints="Not with external torques, tool wrench, desired torques, markers, payload "
        "estimation and accelerations from efforts.",
        read_only=True,
    )
    odom_frame: str = setting(
        "odom",
        "Frame in which odometry states the pose of a floating base. Hybrid twists and gravity are "
        "resolved in its axes.",
        read_only=True,
    )
    publish_gravity_torques: bool = setting(True, "Publish ~/gravity_torques.")
    publish_bias_torques: bool = setting(
        True, "Publish ~/bias_torques (gravity, Coriolis and centrifugal torques)."
    )
    publish_twists: bool = setting(True, "Publish ~/twist/<body>.")
    publish_jacobians: bool = setting(True, "Publish ~/jacobian/<body>.")
    publish_velocities: bool = setting(
        False, "Publish ~/velocity/<body>: the twist with its frames, which tf2 can transform."
    )
    publish_center_of_mass: bool = setting(
        False, "Publish ~/center_of_mass, that of all moving bodies."
    )
    publish_mass_matrix: bool = setting(False, "Publish ~/mass_matrix.")
    publish_energy: bool = setting(
        False, "Publish ~/energy: kinetic and potential energy, and the power of the efforts."
    )
    publish_external_torques: bool = setting(
        False,
        "Publish ~/external_torques: torques that the surroundings exert on the joints, by a "
        "momentum observer. Needs efforts in joint_states.",
    )
    publish_tool_wrench: bool = setting(
        False, "Publish ~/tool_wrench: the wrench on tool_body that explains the external torques."
    )
    publish_desired_torques: bool = setting(
        False,
        "Answer each point on ~/desired with its inverse dynamics on ~/desired_torques, and each "
        "trajectory on ~/desired_trajectory likewise.",
    )
    publish_markers: bool = setting(
        False,
        "Publish ~/markers for RViz: inertias, centre of mass, gravity torques as discs, the screw "
        "axis of the tool's twist, and the tool wrench.",
    )
    estimate_payload: bool = setting(
        False,
        "Offer services that estimate the load on tool_body from efforts in still poses, and "
        "publish it on ~/payload_estimate. It is not applied.",
    )
    joint_wrenches: tuple[str, ...] = setting(
        (),
        "Joints whose transmitted wrench is published on ~/joint_wrench/<joint>. Empty: none.",
        type="string_array",
        constraints="Names of joints, each at most once.",
    )
    joint_wrench_acceleration: str = setting(
        "zero",
        "Joint accelerations in joint wrenches: zero, or those that the efforts in joint_states "
        "cause.",
        choices=ACCELERATIONS,
    )
    observer_gain: float = setting(
        20.0,
        "Gain of the momentum observer: external torques pass a low-pass filter of this corner "
        "frequency in rad/s.",
        "1/s",
        range=(0.1, 1000.0),
    )
    joint_friction: bool = setting(
        True,
        "Subtract the damping and friction of the robot_description from the efforts before "
        "accelerations or external torques are computed from them.",
    )
    friction_speed: float = setting(
        0.05,
        "Speed at which Coulomb friction reaches three quarters of its value; it is smooth at "
        "zero.",
        "rad/s or m/s",
        range=(1e-4, 10.0),
    )
    tool_body: str = setting(
        "",
        "Link on which the tool wrench acts, in its origin. Empty: the first of bodies.",
        constraints="Name of a moving link.",
    )
    wrench_damping: float = setting(
        0.05,
        "Smaller singular values of the Jacobian (lengths in m) are damped in ~/tool_wrench, so "
        "that it stays finite where the arm is singular.",
        range=(0.0, 10.0),
    )
    controller_state: str = setting(
        "",
        "Topic of the controller_state of a joint_trajectory_controller, whose reference is "
        "answered like points on ~/desired. Empty: none. Needs control_msgs.",
    )
    desired_joints: tuple[str, ...] = setting(
        (),
        "Joints of the points on ~/desired, in their order. The others are assumed to be at "
        "rest at their measured positions. Empty: all, in the order of the model.",
        type="string_array",
        constraints="Names of joints, each at most once.",
    )
    max_rate: float = setting(
        0.0,
        "Largest rate of publishing; joint_states in between are skipped. 0: every message is "
        "answered.",
        "Hz",
        range=(0.0, 10000.0),
    )
    stale_timeout: float = setting(
        0.5,
        "Time without valid joint_states after which the input counts as stale.",
        "s",
        range=(0.001, 3600.0),
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.representation not in CHOICES:
            raise UnknownRepresentationError(self.representation, CHOICES)
        if self.representation == "mixed" and self.publish_twists:
            raise ArgumentError(
                "representation mixed resolves angular velocity in the body's frame and linear "
                "velocity in the root's, but a TwistStamped has one frame: valid is another "
                "representation, or mixed with publish_twists false"
            )
        check_once("bodies", "link", self.bodies)
        check_once("joint_wrenches", "joint", self.joint_wrenches)
        check_once("desired_joints", "joint", self.desired_joints)
        check_gravity("gravity", self.gravity)
        if self.floating_base:
            refused = {
                **{name: getattr(self, name) for name in OF_FIXED_BASES},
                "joint_wrench_acceleration effort": self.accelerates,
            }
            for name, asked in refused.items():
                if asked:
                    raise ArgumentError(f"floating_base does not go with {name}")

    @property
    def body_representation(self) -> str:
        """The representation of twists and Jacobians: ``auto`` means body_fixed."""
        return "body_fixed" if self.representation == "auto" else self.representation

    @cached_property
    def observes(self) -> bool:
        """Whether the momentum observer runs."""
        return bool(self.observed)

    @cached_property
    def needing_velocity(self) -> tuple[str, ...]:
        """The published quantities that need velocities, in words."""
        asked = {
            "bias torques": self.publish_bias_torques,
            "twists": self.publish_twists,
            "velocities": self.publish_velocities,
            "energy": self.publish_energy,
            "joint wrenches": bool(self.joint_wrenches),
            "external torques": self.publish_external_torques,
            "tool wrench": self.publish_tool_wrench,
        }
        return _wanted(asked)

    @cached_property
    def accelerates(self) -> bool:
        """Whether joint wrenches take the accelerations that efforts cause."""
        return self.joint_wrench_acceleration == "effort" and bool(self.joint_wrenches)

    @cached_property
    def observed(self) -> tuple[str, ...]:
        """The published topics of the momentum observer."""
        torques, wrench = self.publish_external_torques, self.publish_tool_wrench
        return _wanted({"~/external_torques": torques, "~/tool_wrench": wrench})

    @cached_property
    def needing_effort(self) -> tuple[str, ...]:
        """The other published topics that need efforts, in words."""
        power, wrench = "the power on ~/energy", "~/joint_wrench/<joint>"
        return _wanted({power: self.publish_energy, wrench: self.accelerates})

    @cached_property
    def needs_effort(self) -> bool:
        """Whether a published topic needs efforts."""
        return bool(self.observed or self.needing_effort)


def _wanted(asked: dict[str, bool]) -> tuple[str, ...]:
    return tuple(name for name, wanted in asked.items() if wanted)


EFFORTS, ARRAY = "sensor_msgs/msg/JointState", "std_msgs/msg/Float64MultiArray"
WRENCH, TRAJECTORY = "geometry_msgs/msg/WrenchStamped", "trajectory_msgs/msg/JointTrajectory"
DESIRED, ESTIMATE = "publish_desired_torques", "estimate_payload"

DISPLAYED = {
    "~/gravity_torques": EFFORTS,
    "~/external_torques": EFFORTS,
    "~/tool_wrench": WRENCH,
}
"""Topics, by type, that are offered at a low rate as well."""

THROTTLE = "_throttle"
"""Suffix of their names, as topic_tools uses it."""

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
            "floating_base",
        ),
        Topic(
            "imu",
            "sensor_msgs/msg/Imu",
            "Orientation and angular rate of a link fixed to the base, used without odometry.",
            SENSOR_DATA,
            "floating_base",
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
            "publish_desired_torques, with controller_state",
        ),
    ),
    published=(
        Topic(
            "~/gravity_torques",
            EFFORTS,
            "Torques in N m or N that hold the robot against gravity.",
            condition="publish_gravity_torques",
        ),
        Topic(
            "~/bias_torques",
            EFFORTS,
            "Gravity, Coriolis and centrifugal torques in N m or N: those that keep the "
            "velocities constant.",
            condition="publish_bias_torques",
        ),
        Topic(
            "~/base_wrench",
            WRENCH,
            "Wrench on a floating base that goes with ~/bias_torques, or without velocities "
            "~/gravity_torques, in N and N m.",
            condition="floating_base",
        ),
        Topic(
            "~/twist/<body>",
            "geometry_msgs/msg/TwistStamped",
            "Twist of the body in rad/s and m/s, resolved in the axes of header.frame_id.",
            condition="publish_twists",
        ),
        Topic(
            "~/velocity/<body>",
            "geometry_msgs/msg/VelocityStamped",
            "Twist of the body with its frames, measured at the origin of header.frame_id and "
            "resolved in its axes.",
            condition="publish_velocities",
        ),
        Topic(
            "~/jacobian/<body>",
            ARRAY,
            "Jacobian J (6, n) row by row, linear part first: twist = J qd.",
            condition="publish_jacobians",
        ),
        Topic(
            "~/mass_matrix",
            ARRAY,
            "Mass matrix (n, n) row by row, in kg m^2, kg m or kg.",
            condition="publish_mass_matrix",
        ),
        Topic(
            "~/center_of_mass",
            "geometry_msgs/msg/PointStamped",
            "Centre of mass of all moving bodies in m, in the frame of the root link.",
            condition="publish_center_of_mass",
        ),
        Topic(
            "~/energy",
            ARRAY,
            "Kinetic and potential energy in J, and the power of the efforts in W.",
            condition="publish_energy",
        ),
        Topic(
            "~/external_torques",
            EFFORTS,
            "Torques in N m or N that the surroundings exert on the joints.",
            condition="publish_external_torques",
        ),
        Topic(
            "~/tool_wrench",
            WRENCH,
            "Wrench on tool_body that explains the external torques, in N and N m.",
            condition="publish_tool_wrench",
        ),
        Topic(
            "~/joint_wrench/<joint>",
            WRENCH,
            "Wrench that the joint transmits to the body that it moves, in N and N m.",
            condition="joint_wrenches",
        ),
        Topic(
            "~/markers",
            "visualization_msgs/msg/MarkerArray",
            f"Markers for RViz, at most {DISPLAY_RATE:.0f} messages per second.",
            condition="publish_markers",
        ),
        *(
            Topic(
                f"{name}{THROTTLE}",
                kind,
                f"{name}, at most {DISPLAY_RATE:.0f} messages per second, for displays.",
                condition=f"publish_{name[2:]}",
            )
            for name, kind in DISPLAYED.items()
        ),
        Topic(
            "~/payload_estimate",
            "geometry_msgs/msg/InertiaStamped",
            "Load that the still poses show, in the form that ~/payload takes.",
            LATEST,
            ESTIMATE,
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
            ESTIMATE,
        ),
        Service(
            "~/payload_estimate/restart", "std_srvs/srv/Trigger", "Discard all poses.", ESTIMATE
        ),
    ),
    lifecycle=True,
)
