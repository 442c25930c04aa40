# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The results that dynamics_node publishes for each state of a robot, as a table.

The choices of the parameter ``publish``, topics, pages, kernel, publishers and diagnostics follow
from :data:`OUTPUTS`. The type of a message decides how it is formed, see ``publishers.py``. No ROS
is needed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import mbs_dynamics as mbs
from mbs_dynamics.model.coordinates import velocity_names

if TYPE_CHECKING:
    from mbs_dynamics.ros.dynamics.interface import DynamicsSettings
    from mbs_dynamics.ros.dynamics.robot import Results, Robot

EFFORTS, ARRAY = "sensor_msgs/msg/JointState", "std_msgs/msg/Float64MultiArray"
TWIST, WRENCH = "geometry_msgs/msg/TwistStamped", "geometry_msgs/msg/WrenchStamped"
POINT = "geometry_msgs/msg/PointStamped"

Algorithms = Mapping[str, Any]
"""Algorithms, or pairs of an algorithm and its options, by the names of their results."""


def _root(robot: Robot, k: int) -> str:
    return robot.root


@dataclass(frozen=True)
class Output:
    """A result that topics offer."""

    name: str
    """As the parameter ``publish`` lists it, and as results of the kernel have it."""
    topic: str
    """Name of the topic in ``~/``, with ``<body>`` or ``<joint>`` where there is one for each."""
    type: str
    description: str
    algorithms: Callable[[Robot], Algorithms]
    """Returns what the kernel of a robot must compute for it."""
    frame: Callable[[Robot, int], str] = _root
    """Returns the frame in which it is resolved, for the body or joint number k."""
    labels: Callable[[Robot], Sequence[str]] | None = None
    """Returns the label of each dimension of an array."""
    parameter: str = "publish"
    """The parameter that asks for it."""
    default: bool = False
    """Whether it is published by default."""
    fixed_base_only: bool = False
    needs_velocity: bool = False
    observed: bool = False
    """Whether the momentum observer estimates it, which needs efforts."""

    @property
    def condition(self) -> str:
        """The parameter that asks for it, in words."""
        return f"{self.name} in publish" if self.parameter == "publish" else self.parameter

    def asked(self, settings: DynamicsSettings) -> bool:
        """Return whether the settings ask for it."""
        if self.parameter == "publish":
            return self.name in settings.publish
        return bool(getattr(settings, self.parameter))

    def value(self, results: Results, k: int) -> Any:
        """Return what message number ``k`` is to hold; None if there is nothing to publish."""
        result = results.get(self.name)
        return result if result is None or "<" not in self.topic else result[k]


def _recursion(function: Any, robot: Robot) -> Any:
    """Return an algorithm with its options, in the representation of ``algorithm``."""
    return function, {"representation": robot.settings.algorithm}


def gravity(robot: Robot) -> Algorithms:
    """Return the gravity torques, by the name of their result."""
    return {"gravity_torques": _recursion(mbs.gravity_torques, robot)}


def _bias(robot: Robot) -> Algorithms:
    return {"bias_torques": _recursion(mbs.bias_torques, robot)}


def _twists(robot: Robot) -> Algorithms:
    representation = robot.settings.body_representation
    return {"twists": (mbs.twists, {"bodies": robot.bodies, "representation": representation})}


def _jacobians(robot: Robot) -> Algorithms:
    representation = robot.settings.body_representation
    return {
        f"jacobian_{k}": (mbs.jacobian, {"body": body, "representation": representation})
        for k, body in enumerate(robot.bodies)
    }


def _energies(robot: Robot) -> Algorithms:
    kinetic = _recursion(mbs.kinetic_energy, robot)
    return {"kinetic_energy": kinetic, "potential_energy": mbs.potential_energy}


def _joint_wrenches(robot: Robot) -> Algorithms:
    options = {"joints": robot.settings.joint_wrenches, "representation": "body_fixed"}
    return {"joint_wrenches": (mbs.joint_wrenches, options)}


def _momentum(robot: Robot) -> Algorithms:
    return {"momentum": _recursion(mbs.generalized_momentum, robot)}


def _momentum_and_jacobian(robot: Robot) -> Algorithms:
    options = {"body": robot.bodies[0], "representation": "body_fixed"}
    return {**_momentum(robot), "tool_jacobian": (mbs.jacobian, options)}


OUTPUTS: tuple[Output, ...] = (
    Output(
        "gravity_torques",
        "gravity_torques",
        EFFORTS,
        "Torques in N m or N that hold the robot against gravity.",
        gravity,
        default=True,
    ),
    Output(
        "bias_torques",
        "bias_torques",
        EFFORTS,
        "Gravity, Coriolis and centrifugal torques in N m or N: those that keep the velocities "
        "constant.",
        _bias,
        default=True,
        needs_velocity=True,
    ),
    Output(
        "base_wrench",
        "base_wrench",
        WRENCH,
        "Wrench on a floating base that goes with ~/bias_torques, or without velocities "
        "~/gravity_torques, in N and N m.",
        lambda robot: {},  # rows of the bias or gravity torques
        frame=lambda robot, k: robot.model.body_names[0],
        parameter="floating_base",
    ),
    Output(
        "twists",
        "twist/<body>",
        TWIST,
        "Twist of the body in rad/s and m/s, resolved in the axes of header.frame_id.",
        _twists,
        frame=lambda robot, k: robot.twist_frame(robot.bodies[k]),
        default=True,
        needs_velocity=True,
    ),
    Output(
        "jacobians",
        "jacobian/<body>",
        ARRAY,
        "Jacobian J (6, n) row by row, linear part first: twist = J qd.",
        _jacobians,
        default=True,
    ),
    Output(
        "mass_matrix",
        "mass_matrix",
        ARRAY,
        "Mass matrix (n, n) row by row, in kg m^2, kg m or kg.",
        lambda robot: {"mass_matrix": _recursion(mbs.mass_matrix, robot)},
        labels=lambda robot: [",".join(velocity_names(robot.model.joints))] * 2,
    ),
    Output(
        "center_of_mass",
        "center_of_mass",
        POINT,
        "Centre of mass of all moving bodies in m, in the frame of the root link.",
        lambda robot: {"center_of_mass": mbs.center_of_mass},
    ),
    Output(
        "energy",
        "energy",
        ARRAY,
        "Kinetic and potential energy in J.",
        _energies,
        labels=lambda robot: ["kinetic_J,potential_J"],
        needs_velocity=True,
    ),
    Output(
        "joint_wrenches",
        "joint_wrench/<joint>",
        WRENCH,
        "Wrench that the joint transmits to the link beyond it, in N and N m.",
        _joint_wrenches,
        frame=lambda robot, k: robot.wrench_links[k],
        parameter="joint_wrenches",
        needs_velocity=True,
    ),
    Output(
        "external_torques",
        "external_torques",
        EFFORTS,
        "Torques in N m or N that the surroundings exert on the joints. A momentum observer "
        "estimates them from the efforts in joint_states.",
        _momentum,
        fixed_base_only=True,
        needs_velocity=True,
        observed=True,
    ),
    Output(
        "tool_wrench",
        "tool_wrench",
        WRENCH,
        "Wrench on the first of bodies that explains the external torques, in N and N m. It needs "
        "efforts in joint_states.",
        _momentum_and_jacobian,
        frame=lambda robot, k: robot.bodies[0],
        fixed_base_only=True,
        needs_velocity=True,
        observed=True,
    ),
)
