# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The results that dynamics_node publishes for each state of a robot, one class for each.

A class carries all facts of its output. The choices of the parameter ``publish``, topics, pages,
kernel, publishers and diagnostics follow from :data:`OUTPUTS`. No ROS is needed, except by
``message``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

import mbs_dynamics as mbs
from mbs_dynamics.model.coordinates import velocity_names

if TYPE_CHECKING:
    from mbs_dynamics.ros.dynamics.interface import DynamicsSettings
    from mbs_dynamics.ros.dynamics.robot import Results, Robot

EFFORTS, ARRAY = "sensor_msgs/msg/JointState", "std_msgs/msg/Float64MultiArray"
WRENCH = "geometry_msgs/msg/WrenchStamped"

Algorithms = Mapping[str, Any]
"""Algorithms, or pairs of an algorithm and its options, by the names of their results."""


class Output(ABC):
    """A result that topics offer."""

    name: ClassVar[str]
    """As the parameter ``publish`` lists it."""
    topic: ClassVar[str]
    """Name of the topic in ``~/``, with ``<body>`` or ``<joint>`` where there is one for each."""
    type: ClassVar[str]
    description: ClassVar[str]
    default: ClassVar[bool] = False
    """Whether it is published by default."""
    fixed_base_only: ClassVar[bool] = False
    needs_velocity: ClassVar[bool] = False
    observed: ClassVar[bool] = False
    """Whether the momentum observer estimates it, which needs efforts."""

    @property
    def condition(self) -> str:
        """The parameter that asks for it, in words."""
        return f"{self.name} in publish"

    def asked(self, settings: DynamicsSettings) -> bool:
        """Return whether the settings ask for it."""
        return self.name in settings.publish

    def algorithms(self, robot: Robot) -> Algorithms:
        """Return what the kernel of a robot must compute for it."""
        return {}

    @abstractmethod
    def message(self, stamp: Any, robot: Robot, k: int, value: Any) -> Any:
        """Return the message with a :meth:`value`, for the body or joint number ``k``."""

    def value(self, results: Results, k: int) -> Any:
        """Return what the message is to hold; None if there is nothing to publish.

        By default it is the result of the same name, or its row k where each body has a topic.
        """
        result = results.get(self.name)
        return result if result is None or "<" not in self.topic else result[k]


def _recursion(function: Any, robot: Robot) -> Any:
    """Return an algorithm with its options, in the representation of ``algorithm``."""
    return function, {"representation": robot.settings.algorithm}


class GravityTorques(Output):
    """Gravity torques of the joints."""

    name = topic = "gravity_torques"
    type = EFFORTS
    description = "Torques in N m or N that hold the robot against gravity."
    default = True

    def algorithms(self, robot: Robot) -> Algorithms:
        return {self.name: _recursion(mbs.gravity_torques, robot)}

    def message(self, stamp: Any, robot: Robot, k: int, value: Any) -> Any:
        from mbs_dynamics.ros.messages import joint_message

        return joint_message(stamp, robot.joint_names, effort=value, frame_id=robot.frame())


class BiasTorques(GravityTorques):
    """Bias torques of the joints."""

    name = topic = "bias_torques"
    description = (
        "Gravity, Coriolis and centrifugal torques in N m or N: those that keep the velocities "
        "constant."
    )
    needs_velocity = True

    def algorithms(self, robot: Robot) -> Algorithms:
        return {self.name: _recursion(mbs.bias_torques, robot)}


class BaseWrench(Output):
    """Wrench on a floating base, the first rows of the bias or gravity torques."""

    name = topic = "base_wrench"
    type = WRENCH
    description = (
        "Wrench on a floating base that goes with ~/bias_torques, or without velocities "
        "~/gravity_torques, in N and N m."
    )
    condition = "floating_base"

    def asked(self, settings: DynamicsSettings) -> bool:
        return settings.floating_base

    def message(self, stamp: Any, robot: Robot, k: int, value: Any) -> Any:
        from mbs_dynamics.ros.messages import wrench_message

        return wrench_message(stamp, robot.frame(robot.model.body_names[0]), value)


class Twists(Output):
    """Twists of the bodies."""

    name = "twists"
    topic = "twist/<body>"
    type = "geometry_msgs/msg/TwistStamped"
    description = "Twist of the body in rad/s and m/s, resolved in the axes of header.frame_id."
    default = True
    needs_velocity = True

    def algorithms(self, robot: Robot) -> Algorithms:
        rep = robot.settings.body_representation
        return {self.name: (mbs.twists, {"bodies": robot.bodies, "representation": rep})}

    def message(self, stamp: Any, robot: Robot, k: int, value: Any) -> Any:
        from mbs_dynamics.ros.messages import twist_message

        return twist_message(stamp, robot.frame(robot.twist_frame(robot.bodies[k])), value)


class Jacobians(Output):
    """Jacobians of the bodies."""

    name = "jacobians"
    topic = "jacobian/<body>"
    type = ARRAY
    description = "Jacobian J (6, n) row by row, linear part first: twist = J qd."
    default = True

    def algorithms(self, robot: Robot) -> Algorithms:
        rep = robot.settings.body_representation
        return {
            f"jacobian_{k}": (mbs.jacobian, {"body": body, "representation": rep})
            for k, body in enumerate(robot.bodies)
        }

    def message(self, stamp: Any, robot: Robot, k: int, value: Any) -> Any:
        from mbs_dynamics.ros.messages import jacobian_message

        names, rep = velocity_names(robot.model.joints), robot.settings.body_representation
        return jacobian_message(stamp, names, robot.bodies[k], rep, value)

    def value(self, results: Results, k: int) -> Any:
        return results.get(f"jacobian_{k}")


class MassMatrix(Output):
    """Mass matrix of the robot."""

    name = topic = "mass_matrix"
    type = ARRAY
    description = "Mass matrix (n, n) row by row, in kg m^2, kg m or kg."

    def algorithms(self, robot: Robot) -> Algorithms:
        return {self.name: _recursion(mbs.mass_matrix, robot)}

    def message(self, stamp: Any, robot: Robot, k: int, value: Any) -> Any:
        from mbs_dynamics.ros.messages import array_message

        names = ",".join(velocity_names(robot.model.joints))
        return array_message(stamp, value, (names, names))


class CenterOfMass(Output):
    """Centre of mass of the robot."""

    name = topic = "center_of_mass"
    type = "geometry_msgs/msg/PointStamped"
    description = "Centre of mass of all moving bodies in m, in the frame of the root link."

    def algorithms(self, robot: Robot) -> Algorithms:
        return {self.name: mbs.center_of_mass}

    def message(self, stamp: Any, robot: Robot, k: int, value: Any) -> Any:
        from mbs_dynamics.ros.messages import point_message

        return point_message(stamp, robot.frame(), value)


class Energy(Output):
    """Energies of the robot."""

    name = topic = "energy"
    type = ARRAY
    description = "Kinetic and potential energy in J."
    needs_velocity = True

    def algorithms(self, robot: Robot) -> Algorithms:
        kinetic = _recursion(mbs.kinetic_energy, robot)
        return {"kinetic_energy": kinetic, "potential_energy": mbs.potential_energy}

    def message(self, stamp: Any, robot: Robot, k: int, value: Any) -> Any:
        from mbs_dynamics.ros.messages import array_message

        return array_message(stamp, value, ("kinetic_J,potential_J",))

    def value(self, results: Results, k: int) -> Any:
        if "kinetic_energy" not in results:
            return None
        return np.array([results["kinetic_energy"], results["potential_energy"]], float)


class JointWrenches(Output):
    """Wrenches that joints transmit."""

    name = "joint_wrenches"
    topic = "joint_wrench/<joint>"
    type = WRENCH
    description = "Wrench that the joint transmits to the link beyond it, in N and N m."
    condition = "joint_wrenches"
    needs_velocity = True

    def asked(self, settings: DynamicsSettings) -> bool:
        return bool(settings.joint_wrenches)

    def algorithms(self, robot: Robot) -> Algorithms:
        options = {"joints": robot.settings.joint_wrenches, "representation": "body_fixed"}
        return {self.name: (mbs.joint_wrenches, options)}

    def message(self, stamp: Any, robot: Robot, k: int, value: Any) -> Any:
        from mbs_dynamics.ros.messages import wrench_message

        return wrench_message(stamp, robot.frame(robot.wrench_links[k]), value)


class ExternalTorques(Output):
    """External torques, by the momentum observer: the joints where they are known, and values."""

    name = topic = "external_torques"
    type = EFFORTS
    description = (
        "Torques in N m or N that the surroundings exert on the joints. A momentum observer "
        "estimates them from the efforts in joint_states."
    )
    fixed_base_only = True
    needs_velocity = True
    observed = True

    def algorithms(self, robot: Robot) -> Algorithms:
        return {"momentum": _recursion(mbs.generalized_momentum, robot)}

    def message(self, stamp: Any, robot: Robot, k: int, value: Any) -> Any:
        from mbs_dynamics.ros.messages import joint_message

        names, tau = value
        return joint_message(stamp, names, effort=tau, frame_id=robot.frame())


class ToolWrench(ExternalTorques):
    """Wrench on the tool that explains the external torques."""

    name = topic = "tool_wrench"
    type = WRENCH
    description = (
        "Wrench on the first of bodies that explains the external torques, in N and N m. It needs "
        "efforts in joint_states."
    )

    def algorithms(self, robot: Robot) -> Algorithms:
        options = {"body": robot.bodies[0], "representation": "body_fixed"}
        return {**super().algorithms(robot), "tool_jacobian": (mbs.jacobian, options)}

    def message(self, stamp: Any, robot: Robot, k: int, value: Any) -> Any:
        from mbs_dynamics.ros.messages import wrench_message

        return wrench_message(stamp, robot.frame(robot.bodies[0]), value)


OUTPUTS: tuple[Output, ...] = (
    GravityTorques(),
    BiasTorques(),
    BaseWrench(),
    Twists(),
    Jacobians(),
    MassMatrix(),
    CenterOfMass(),
    Energy(),
    JointWrenches(),
    ExternalTorques(),
    ToolWrench(),
)
