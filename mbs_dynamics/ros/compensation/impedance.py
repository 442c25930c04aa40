# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Parameters, topics and laws of impedance_control_node. No ROS is needed.

The node is gravity_compensation_node with further laws.
"""

from __future__ import annotations

from dataclasses import dataclass

from mbs_dynamics import checks
from mbs_dynamics.control.laws import AnyLaw, law_from
from mbs_dynamics.control.laws.impedance import (
    AXES,
    RATIOS,
    CartesianImpedance,
    JointImpedance,
)
from mbs_dynamics.control.settings import MotionSettings
from mbs_dynamics.errors import ArgumentError
from mbs_dynamics.ros.compensation.interface import (
    GRAVITY_COMPENSATION_NODE,
    GravityCompensationSettings,
)
from mbs_dynamics.ros.interface import Service, Topic
from mbs_dynamics.settings import parameter

MODES = ("floating", "joint", "cartesian", "law")
"""Valid values of ``mode``."""


@dataclass(frozen=True)
class ImpedanceControlSettings(GravityCompensationSettings, MotionSettings):
    """Values of the parameters of impedance_control_node. Raises ArgumentError for invalid ones."""

    law_settings = (
        "mode",
        "link",
        "stiffness",
        "linear_stiffness",
        "angular_stiffness",
        "stiffness_axes",
        "damping_ratio",
        "posture_frequency",
    )

    mode: str = parameter(
        "joint",
        "Law that commands the arm: gravity compensation alone, impedance of the joints or of "
        "link, or the law that the parameter law names. Changes take 0.3 s, without a jump.",
        choices=MODES,
    )
    law: str = parameter(
        "",
        "Python import path of a law, module:name, for the mode law: a function of model, state "
        "and reference, or a class that is called without arguments and makes one.",
        read_only=True,
    )
    link: str = parameter(
        "",
        "Link that the mode cartesian moves. Empty: the tool, as in dynamics_node: the tool or "
        "hand at the end of the longest branch, by its name, or else the last moving link.",
        at_rest_only=True,
    )
    stiffness: tuple[float, ...] = parameter(
        10.0,
        "Stiffness of this joint in the mode joint. Values that are too stiff for the period of "
        "joint_states are refused.",
        unit="N m/rad or N/m",
        low=0.0,
        high=1e5,
        per="joint",
    )
    linear_stiffness: tuple[float, float, float] = parameter(
        (300.0, 300.0, 300.0),
        "Stiffness of the link along the axes of stiffness_axes, in the mode cartesian.",
        unit="N/m",
        constraints="Three numbers from 0.",
    )
    angular_stiffness: tuple[float, float, float] = parameter(
        (10.0, 10.0, 10.0),
        "Stiffness of the link about the axes of stiffness_axes, in the mode cartesian.",
        unit="N m/rad",
        constraints="Three numbers from 0.",
    )
    stiffness_axes: str = parameter(
        "root", "Axes of the stiffness of the link: root link, or target.", choices=AXES
    )
    damping_ratio: float = parameter(
        1.0,
        "Damping ratio of every mode of the arm on its springs.",
        low=RATIOS[0],
        high=RATIOS[1],
    )
    posture_frequency: float = parameter(
        2.0,
        "Natural frequency with which joints return to the posture, as far as that does not move "
        "the link. 0: not at all.",
        unit="rad/s",
        low=0.0,
        high=50.0,
        constant="Slow compared with the springs of the link, which it must not disturb.",
    )
    adds_to_position_control: bool = parameter(
        False,
        "Whether torques are added to a position loop.",
        constant="A position loop would resist the springs.",
    )
    armature: tuple[float, ...] = parameter(
        0.0,
        "Inertia of the rotor of this joint, times gear ratio squared.",
        unit="kg m^2 or kg",
        low=0.0,
        high=1e3,
        read_only=True,
        per="joint",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("linear_stiffness", "angular_stiffness"):
            if checks.not_negative(name, getattr(self, name)).shape != (3,):
                raise ArgumentError(f"{name} is {getattr(self, name)}; valid: three numbers")
        if self.mode == "law" and not self.law:
            raise ArgumentError("mode is 'law', and law is empty; must be an import path")

    @property
    def rotors(self) -> dict[str, float]:
        """Inertia of the rotor by joint in kg m^2 or kg."""
        return dict(zip(self.joints, self.armature, strict=True))

    def laws(self) -> list[AnyLaw | None]:
        """Return the laws of all modes. Raises ArgumentError."""
        return [self.law_of(mode) for mode in MODES if mode != "law" or self.law]

    def law_of_mode(self) -> AnyLaw | None:
        """Return the law in addition to gravity compensation; None if there is none."""
        return self.law_of(self.mode)

    def law_of(self, mode: str) -> AnyLaw | None:
        """Return the law of a mode; None for floating. Raises ArgumentError if there is none."""
        if mode == "joint":
            return JointImpedance(self.stiffness, self.damping_ratio)
        if mode == "cartesian":
            return CartesianImpedance(
                self.link,
                self.linear_stiffness,
                self.angular_stiffness,
                self.damping_ratio,
                axes=self.stiffness_axes,
                posture_frequency=self.posture_frequency,
            )
        return law_from(self.law) if mode == "law" else None


IMPEDANCE_CONTROL_NODE = GRAVITY_COMPENSATION_NODE._replace(
    node="impedance_control_node",
    description="Lets an arm follow references as on springs, once its service has enabled it.",
    settings=ImpedanceControlSettings,
    subscribed=(
        *GRAVITY_COMPENSATION_NODE.subscribed,
        Topic(
            "~/target_joint",
            "sensor_msgs/msg/JointState",
            "Positions to go to, of some or all joints; in the mode cartesian the posture to "
            "prefer. With velocities they go on moving for 0.2 s.",
        ),
        Topic(
            "~/target_pose",
            "geometry_msgs/msg/PoseStamped",
            "Pose for the link to go to, in the fixed link header.frame_id; empty: the root link.",
        ),
        Topic(
            "~/trajectory",
            "trajectory_msgs/msg/JointTrajectory",
            "Motion of all joints, played once its first point is reached and due. Without points: "
            "come to rest.",
        ),
    ),
    services=(
        *GRAVITY_COMPENSATION_NODE.services,
        Service(
            "~/pause",
            "std_srvs/srv/SetBool",
            "true: the trajectory comes to rest on its path. false: it goes on.",
        ),
        Service(
            "~/stop",
            "std_srvs/srv/Trigger",
            "Come to rest, and forget the trajectory or the target.",
        ),
    ),
)
