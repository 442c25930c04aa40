# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The results that dynamics_node publishes for each state of a robot, each declared once.

Parameters, topics, the kernel, publishers and the names in diagnostics follow from :data:`OUTPUTS`.
No ROS is needed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import mbs_dynamics as mbs
from mbs_dynamics.model.coordinates import velocity_names

EFFORTS, ARRAY = "sensor_msgs/msg/JointState", "std_msgs/msg/Float64MultiArray"
WRENCH = "geometry_msgs/msg/WrenchStamped"

Algorithms = Mapping[str, Any]
"""Algorithms, or pairs of an algorithm and its options, by the names of their results."""


class Output(NamedTuple):
    """A result that a topic offers."""

    name: str
    """Of the result. The parameter that asks for it is ``publish_<name>``, or ``parameter``."""
    topic: str
    """Name of the topic in ``~/``, with ``<body>`` or ``<joint>`` where there is one for each."""
    type: str
    description: str
    """Of the topic."""
    message: Callable[[Any, Any, int], Any]
    """Returns the message to fill, from the module ``messages``, the robot, and the number of the
    body or joint."""
    algorithms: Callable[[Any], Algorithms]
    """Returns what the kernel of a robot must compute for it."""
    default: bool = False
    about: str = ""
    """Further sentence on the parameter."""
    velocity: bool = False
    """Whether it needs velocities."""
    observed: bool = False
    """Whether the momentum observer estimates it."""
    displayed: bool = False
    """Whether it is offered at a low rate as well."""
    parameter: str = ""

    @property
    def asked_by(self) -> str:
        """The parameter that asks for it."""
        return self.parameter or f"publish_{self.name}"


def _recursion(name: str, result: str = "") -> Callable[[Any], Algorithms]:
    """Return the algorithm of that name, in the representation of the parameter ``algorithm``."""
    function = getattr(mbs, name)
    return lambda robot: {result or name: (function, {"representation": robot.settings.algorithm})}


_momentum = _recursion("generalized_momentum", "momentum")


def _tool(robot: Any) -> Algorithms:
    options = {"body": robot.tool_body, "representation": "body_fixed"}
    return {**_momentum(robot), "tool_jacobian": (mbs.jacobian, options)}


def _twists(robot: Any, name: str = "twists") -> Algorithms:
    rep = robot.settings.body_representation
    if name == "velocities" and rep != "spatial":
        rep = "body_fixed"
    return {name: (mbs.twists, {"bodies": robot.bodies, "representation": rep})}


def _jacobians(robot: Any) -> Algorithms:
    rep = robot.settings.body_representation
    return {
        f"jacobian_{k}": (mbs.jacobian, {"body": body, "representation": rep})
        for k, body in enumerate(robot.bodies)
    }


def _efforts(of: Any, robot: Any, _: int) -> Any:
    return of.JointMessage(robot.joint_names, "effort", frame_id=robot.frame())


def _output(name: str, type: str, topic: str = "", **more: Any) -> Callable[..., Output]:
    """Return the function that declares an output by description, message and algorithms.

    By default it is that of the algorithm of its name, on the topic of its name.
    """

    def declared(
        description: str,
        message: Callable[[Any, Any, int], Any],
        algorithms: Callable[[Any], Algorithms] | None = None,
    ) -> Output:
        algorithms = algorithms or _recursion(name)
        return Output(name, topic or name, type, description, message, algorithms, **more)

    return declared


OUTPUTS = (
    _output("gravity_torques", EFFORTS, default=True, displayed=True)(
        "Torques in N m or N that hold the robot against gravity.", _efforts
    ),
    _output("bias_torques", EFFORTS, default=True, velocity=True)(
        "Gravity, Coriolis and centrifugal torques in N m or N: those that keep the velocities "
        "constant.",
        _efforts,
    ),
    _output("base_wrench", WRENCH, parameter="floating_base")(
        "Wrench on a floating base that goes with ~/bias_torques, or without velocities "
        "~/gravity_torques, in N and N m.",
        lambda of, robot, _: of.wrench_message(robot.frame(robot.model.body_names[0])),
        lambda robot: {},
    ),
    _output(
        "twists",
        "geometry_msgs/msg/TwistStamped",
        topic="twist/<body>",
        default=True,
        velocity=True,
    )(
        "Twist of the body in rad/s and m/s, resolved in the axes of header.frame_id.",
        lambda of, robot, k: of.twist_message(robot.frame(robot.twist_frame(robot.bodies[k]))),
        _twists,
    ),
    _output(
        "velocities",
        "geometry_msgs/msg/VelocityStamped",
        about="The twist with its frames, which tf2 can transform.",
        topic="velocity/<body>",
        velocity=True,
    )(
        "Twist of the body with its frames, measured at the origin of header.frame_id and resolved "
        "in its axes.",
        lambda of, robot, k: of.velocity_message(*robot.velocity_frames(robot.bodies[k])),
        lambda robot: _twists(robot, "velocities"),
    ),
    _output("jacobians", ARRAY, topic="jacobian/<body>", default=True)(
        "Jacobian J (6, n) row by row, linear part first: twist = J qd.",
        lambda of, robot, k: of.JacobianMessage(
            velocity_names(robot.model.joints), robot.bodies[k], robot.settings.body_representation
        ),
        _jacobians,
    ),
    _output("mass_matrix", ARRAY)(
        "Mass matrix (n, n) row by row, in kg m^2, kg m or kg.",
        lambda of, robot, _: of.matrix_message(velocity_names(robot.model.joints)),
    ),
    _output("center_of_mass", "geometry_msgs/msg/PointStamped")(
        "Centre of mass of all moving bodies in m, in the frame of the root link.",
        lambda of, robot, _: of.PointMessage(robot.frame()),
        lambda robot: {"center_of_mass": mbs.center_of_mass},
    ),
    _output("energy", ARRAY, velocity=True)(
        "Kinetic and potential energy in J, and the power of the efforts in W.",
        lambda of, robot, _: of.EnergyMessage(),
        lambda robot: {
            **_recursion("kinetic_energy")(robot),
            "potential_energy": mbs.potential_energy,
        },
    ),
    _output(
        "joint_wrenches",
        WRENCH,
        topic="joint_wrench/<joint>",
        velocity=True,
        parameter="joint_wrenches",
    )(
        "Wrench that the joint transmits to the link beyond it, in N and N m.",
        lambda of, robot, k: of.wrench_message(robot.frame(robot.wrench_links[k])),
        lambda robot: {
            "joint_wrenches": (
                mbs.joint_wrenches,
                {"joints": robot.settings.joint_wrenches, "representation": "body_fixed"},
            )
        },
    ),
    _output(
        "external_torques",
        EFFORTS,
        about="A momentum observer estimates them, and needs efforts in joint_states.",
        velocity=True,
        observed=True,
        displayed=True,
    )(
        "Torques in N m or N that the surroundings exert on the joints.",
        lambda of, robot, _: of.KnownEffortsMessage(robot.frame()),
        _momentum,
    ),
    _output(
        "tool_wrench",
        WRENCH,
        about="It needs efforts in joint_states.",
        velocity=True,
        observed=True,
        displayed=True,
    )(
        "Wrench on tool_body that explains the external torques, in N and N m.",
        lambda of, robot, _: of.wrench_message(robot.frame(robot.tool_body)),
        _tool,
    ),
)
