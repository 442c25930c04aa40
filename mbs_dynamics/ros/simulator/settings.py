# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""What can be set on the simulator node. Knows no ROS."""

from __future__ import annotations

from dataclasses import dataclass

from mbs_dynamics import checks
from mbs_dynamics.errors import ArgumentError
from mbs_dynamics.integrate.joints import STEPS
from mbs_dynamics.ros.settings import (
    RobotSettings,
    algorithm_setting,
    check_gravity,
    check_once,
    setting,
)

ONE_OR_EACH = "No number, one for all joints, or one for each in the order of the model."


@dataclass(frozen=True)
class SimulatorSettings(RobotSettings):
    """The parameters of the simulator node, each checked; ArgumentError says what is wrong."""

    robot_description: str = setting(
        "", "The text of a URDF. Empty: robot_description_file is used.", read_only=True
    )
    robot_description_file: str = setting(
        "", "Path of a URDF file. Empty: robot_description is used.", read_only=True
    )
    joints: tuple[str, ...] = setting(
        (),
        "Order of the efforts on command_topic. Empty: all joints, in the order of the model.",
        read_only=True,
        constraints="Names of joints, each at most once.",
    )
    command_topic: str = setting(
        "/forward_effort_controller/commands",
        "Topic of efforts in the order of joints, as forward_command_controller hears them.",
        read_only=True,
    )
    rate: float = setting(
        500.0,
        "Joint states per second of simulated time, in Hz.",
        read_only=True,
        range=(1.0, 10000.0),
    )
    step: float = setting(
        0.001,
        "Largest step of the integrator in s; the time between two joint states is divided into "
        "equal steps no longer than this.",
        read_only=True,
        range=(1e-5, 0.1),
    )
    integrator: str = setting(
        "semi_implicit_euler",
        "How a step is made.",
        read_only=True,
        choices=STEPS,
    )
    algorithm: str = algorithm_setting("accelerations")
    realtime_factor: float = setting(1.0, "Simulated seconds per second.", range=(0.01, 100.0))
    gravity: tuple[float, float, float] = setting(
        (0.0, 0.0, -9.81),
        "Free-fall acceleration in the root link's frame, m/s^2.",
        read_only=True,
        constraints="Three finite numbers, a length of at most 100.",
    )
    joint_damping: tuple[float, ...] = setting(
        (),
        "Viscous damping, N m s/rad or N s/m. Empty: as the description states, or as drives have "
        "it, see drive_damping.",
        constraints=f"{ONE_OR_EACH} None is negative.",
        element=float,
    )
    joint_friction: tuple[float, ...] = setting(
        (),
        "Coulomb friction, N m or N. Empty: as the description states.",
        constraints=f"{ONE_OR_EACH} None is negative.",
        element=float,
    )
    drive_damping: float = setting(
        0.2,
        "Share of its effort limit that a joint's damping exerts at its velocity limit, as in a "
        "geared drive, where the description states less damping. 0: as it states.",
        read_only=True,
        range=(0.0, 10.0),
    )
    friction_speed: float = setting(
        0.05,
        "Speed in rad/s or m/s at which Coulomb friction has risen to three quarters; it is smooth "
        "at zero, so that a joint under load creeps.",
        range=(1e-4, 10.0),
    )
    joint_stops: bool = setting(
        True,
        "Put stiff stops at the limits of position that the description states.",
        read_only=True,
    )
    stop_time: float = setting(
        0.01, "Time constant of the joint stops in s.", read_only=True, range=(1e-3, 1.0)
    )
    limit_efforts: bool = setting(
        True, "Motors exert no more than the effort limits of the description.", read_only=True
    )
    initial_positions: tuple[float, ...] = setting(
        (),
        "Positions at the start and after ~/reset, rad or m. Empty: bent, half a radian from the "
        "middle of each range, at most a quarter of the range.",
        read_only=True,
        constraints=ONE_OR_EACH,
        element=float,
    )
    initial_velocities: tuple[float, ...] = setting(
        (),
        "Velocities at the start and after ~/reset, rad/s or m/s. Empty: zero.",
        read_only=True,
        constraints=ONE_OR_EACH,
        element=float,
    )
    brakes: bool = setting(
        True,
        "Brakes hold the robot at the start and after ~/reset, unless it has initial_velocities, "
        "until the commands carry it or ~/brakes releases it.",
    )
    command_timeout: float = setting(
        0.0,
        "Simulated seconds without a valid command after which all efforts are zero. 0: the last "
        "command holds for ever, as that of a forward_command_controller does.",
        range=(0.0, 3600.0),
    )
    disturbance_duration: float = setting(
        0.2,
        "Simulated seconds for which a wrench on ~/disturbance acts, unless another replaces it.",
        range=(1e-3, 3600.0),
    )
    publish_clock: bool = setting(
        False,
        "Publish simulated time on /clock, from zero, and stamp joint states with it.",
        read_only=True,
    )
    publish_description: bool = setting(
        True, "Publish the URDF on robot_description, latched.", read_only=True
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if bool(self.robot_description) == bool(self.robot_description_file):
            came = "both are given" if self.robot_description else "neither is given"
            raise ArgumentError(
                "robot_description (the text of a URDF) or robot_description_file (its path) must "
                f"be given, and not both; {came}"
            )
        check_once("joints", "joint", self.joints)
        check_gravity("gravity", self.gravity)
        for name in ("joint_damping", "joint_friction"):
            values = getattr(self, name)
            if checks.numbers(name, values, (len(values),)).min(initial=0.0) < 0.0:
                raise ArgumentError(f"{name} must not be negative; got {list(values)}")


def for_each(name: str, values: tuple[float, ...], n: int) -> checks.FloatArray | None:
    """Return one number for each of n joints, or None for none; ArgumentError for another count."""
    if not values:
        return None
    return checks.numbers(name, values * n if len(values) == 1 else values, (n,))
