# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""What can be set on the dynamics node. Knows no ROS."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from mbs_dynamics.errors import ArgumentError, UnknownRepresentationError
from mbs_dynamics.representation import REPRESENTATIONS
from mbs_dynamics.ros.settings import (
    LARGEST_GRAVITY,
    DescribedSettings,
    algorithm_setting,
    check_gravity,
    check_once,
    setting,
)

CHOICES = (*REPRESENTATIONS, "auto")
"""The valid values of ``representation``."""

ACCELERATIONS = ("zero", "effort")
"""The valid values of ``joint_wrench_acceleration``."""


@dataclass(frozen=True)
class DynamicsSettings(DescribedSettings):
    """The parameters of the dynamics node, each checked; ArgumentError says what is wrong."""

    representation: str = setting(
        "hybrid",
        "Representation of the published twists and Jacobians. Torques do not depend on it.",
        constraints=f"One of {', '.join(CHOICES)}; auto publishes body_fixed; mixed needs "
        "publish_twists false.",
    )
    algorithm: str = algorithm_setting("torques, mass matrix, energy, observer and accelerations")
    bodies: tuple[str, ...] = setting(
        (),
        "Links whose twists and Jacobians are published. Empty: the last moving link of each "
        "branch.",
        constraints="Names of moving links, each at most once.",
    )
    gravity: tuple[float, float, float] = setting(
        (0.0, 0.0, -9.81),
        "Free-fall acceleration in the root link's frame, m/s^2. The topic ~/gravity replaces it; "
        "what was set last is in force.",
        constraints=f"Three finite numbers, a length of at most {LARGEST_GRAVITY:g}.",
    )
    publish_gravity_torques: bool = setting(True, "Publish ~/gravity_torques.")
    publish_bias_torques: bool = setting(
        True, "Publish ~/bias_torques (gravity, Coriolis and centrifugal torques)."
    )
    publish_twists: bool = setting(True, "Publish ~/twist/<body>.")
    publish_jacobians: bool = setting(True, "Publish ~/jacobian/<body>.")
    publish_velocities: bool = setting(
        False,
        "Publish ~/velocity/<body>: the twist with the frames that it is of, in a form that tf2 "
        "transforms.",
    )
    publish_center_of_mass: bool = setting(False, "Publish ~/center_of_mass, of all that moves.")
    publish_mass_matrix: bool = setting(False, "Publish ~/mass_matrix.")
    publish_energy: bool = setting(
        False, "Publish ~/energy: kinetic and potential energy, and the power of the efforts."
    )
    publish_external_torques: bool = setting(
        False,
        "Publish ~/external_torques: what the surroundings exert on the joints, by a momentum "
        "observer. Needs efforts in joint_states.",
    )
    publish_tool_wrench: bool = setting(
        False, "Publish ~/tool_wrench: the wrench at tool_body that explains the external torques."
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
        "Have services that take still poses and estimate the load on tool_body from the efforts, "
        "which is offered on ~/payload_estimate. It is not applied.",
    )
    joint_wrenches: tuple[str, ...] = setting(
        (),
        "Joints whose transmitted wrench is published on ~/joint_wrench/<joint>. Empty: none.",
        constraints="Names of joints, each at most once.",
    )
    joint_wrench_acceleration: str = setting(
        "zero",
        "Joint accelerations that joint wrenches are computed with: zero, or those that the "
        "efforts in joint_states cause.",
        choices=ACCELERATIONS,
    )
    observer_gain: float = setting(
        20.0,
        "Gain of the momentum observer in 1/s: external torques are seen through a low-pass filter "
        "of this corner frequency in rad/s.",
        range=(0.1, 1000.0),
    )
    joint_friction: bool = setting(
        True,
        "Take the damping and friction that the robot_description states off the efforts, before "
        "accelerations or external torques are found from them.",
    )
    friction_speed: float = setting(
        0.05,
        "Speed in rad/s or m/s at which Coulomb friction has risen to three quarters; it is smooth "
        "at zero.",
        range=(1e-4, 10.0),
    )
    tool_body: str = setting(
        "",
        "Link on which the tool wrench acts, in its origin. Empty: the first of bodies.",
        constraints="Name of a moving link.",
    )
    wrench_damping: float = setting(
        0.05,
        "Singular values of the Jacobian (lengths in m) below this are damped in ~/tool_wrench, so "
        "that it stays finite where the arm is singular.",
        range=(0.0, 10.0),
    )
    controller_state: str = setting(
        "",
        "Topic of a joint_trajectory_controller's controller_state, whose reference is answered as "
        "the points on ~/desired are. Empty: none. Needs control_msgs.",
    )
    desired_joints: tuple[str, ...] = setting(
        (),
        "Joints of the points on ~/desired, in their order. The others are taken to stand where "
        "they were measured. Empty: all, in the order of the model.",
        constraints="Names of joints, each at most once.",
    )
    max_rate: float = setting(
        0.0,
        "Largest rate of publishing in Hz; joint_states in between are skipped. 0: every message "
        "is answered.",
        range=(0.0, 10000.0),
    )
    stale_timeout: float = setting(
        0.5,
        "Without valid joint_states for this long, in s, the input counts as stale.",
        range=(0.001, 3600.0),
    )
    velocity_from_position: bool = setting(
        False,
        "Take velocities as differences of positions where a driver sends none. Without this, "
        "bias torques and twists are not published for such a driver.",
    )
    autostart: bool = setting(
        True,
        "Configure and activate on start. False: wait for lifecycle transitions.",
        read_only=True,
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

    @property
    def body_representation(self) -> str:
        """The representation of what is published per body: ``auto`` stands for body_fixed."""
        return "body_fixed" if self.representation == "auto" else self.representation

    @cached_property
    def observes(self) -> bool:
        """Whether the momentum observer runs."""
        return self.publish_external_torques or self.publish_tool_wrench

    @cached_property
    def needing_velocity(self) -> tuple[str, ...]:
        """What is published that takes velocities, in words."""
        asked = {
            "bias torques": self.publish_bias_torques,
            "twists": self.publish_twists,
            "velocities": self.publish_velocities,
            "energy": self.publish_energy,
            "joint wrenches": bool(self.joint_wrenches),
            "external torques": self.publish_external_torques,
            "tool wrench": self.publish_tool_wrench,
        }
        return tuple(name for name, wanted in asked.items() if wanted)

    @cached_property
    def accelerates(self) -> bool:
        """Whether joint wrenches take the accelerations that efforts cause."""
        return self.joint_wrench_acceleration == "effort" and bool(self.joint_wrenches)

    @cached_property
    def needs_effort(self) -> bool:
        """Whether anything is published that takes efforts."""
        return self.observes or self.publish_energy or self.accelerates
