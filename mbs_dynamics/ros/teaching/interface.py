# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Parameters, topics and services of teaching_node. No ROS is needed."""

from __future__ import annotations

from dataclasses import dataclass

from mbs_dynamics.errors import ArgumentError, quoted
from mbs_dynamics.ros.interface import (
    DESCRIPTION,
    DIAGNOSTICS,
    GRAVITY,
    JOINT_STATES,
    PAYLOAD,
    SENSOR_DATA,
    Interface,
    RobotSettings,
    Service,
    Topic,
)
from mbs_dynamics.settings import check_once, parameter


@dataclass(frozen=True)
class TeachingSettings(RobotSettings):
    """Values of the parameters of teaching_node. Raises ArgumentError for invalid values."""

    file: str = parameter(
        "taught.npz",
        "Recording that ~/record writes and ~/play reads: .npz or .csv. ~/play reads bags, too.",
    )
    joints: tuple[str, ...] = parameter(
        (),
        "Joints to record and play. Empty: all joints of the model.",
        once="joint",
        read_only=True,
    )
    speed: float = parameter(
        1.0, "Times the taught speed. 0: the largest speed within the limits.", low=0.0, high=100.0
    )
    tolerance: float = parameter(
        0.002,
        "Largest distance of the recorded positions from the smooth motion.",
        unit="rad or m",
        low=1e-5,
        high=0.1,
    )
    velocity: float = parameter(
        0.8, "Share of the velocity limits of the URDF.", low=0.01, high=1.0
    )
    acceleration: float = parameter(
        20.0, "Largest acceleration.", unit="rad/s^2 or m/s^2", low=0.01, high=1000.0
    )
    torque: float = parameter(
        0.8,
        "Share of the effort limits of the URDF, for gravity, inertia and friction together.",
        low=0.01,
        high=1.0,
    )
    approach_velocity: float = parameter(
        0.3,
        "Largest velocity on the way to the first point.",
        unit="rad/s or m/s",
        low=0.01,
        high=3.0,
    )
    trajectory_topic: str = parameter(
        "impedance_control_node/trajectory",
        "Topic of the trajectories: that of an impedance_control_node, of a "
        "joint_trajectory_controller, or of dynamics_node, which adds efforts for one.",
        read_only=True,
    )
    other_topics: tuple[str, ...] = parameter(
        (),
        "Topics of other parts of the robot, each with its joints. All parts begin together. An "
        "example is 'gripper_controller/joint_trajectory: finger_joint'.",
        type="string_array",
        read_only=True,
        constraints="A topic, a colon, and names of joints. No joint is named twice.",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        check_once("other_topics", "joint", [x for names in self.others.values() for x in names])

    @property
    def others(self) -> dict[str, list[str]]:
        """The joints of each topic of other parts."""
        joints_of = {}
        for text in self.other_topics:
            topic, _, names = text.partition(":")
            if not topic.strip() or not names.split():
                raise ArgumentError(f"other_topics has {quoted(text)}; must be 'topic: joint ...'")
            joints_of[topic.strip()] = names.split()
        return joints_of


RECORDED = JOINT_STATES._replace(quality=SENSOR_DATA._replace(depth=2000))
"""Deep, so that a recording has no gap where this process had to wait for the processor."""

TEACHING_NODE = Interface(
    "teaching_node",
    "Records the motion of an arm that is guided by hand, and sends it as a trajectory.",
    TeachingSettings,
    subscribed=(DESCRIPTION._replace(condition=""), RECORDED, GRAVITY, PAYLOAD),
    published=(
        Topic(
            "<trajectory_topic>",
            "trajectory_msgs/msg/JointTrajectory",
            "The taught motion, once for each call of ~/play. Its first point is due after the "
            "way there.",
        ),
        DIAGNOSTICS,
    ),
    services=(
        Service(
            "~/record",
            "std_srvs/srv/SetBool",
            "true: begin a recording. false: end it, and write it if it can be played.",
        ),
        Service("~/play", "std_srvs/srv/Trigger", "Send the recording as a trajectory."),
    ),
)
