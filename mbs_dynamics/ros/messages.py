# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Between arrays and ROS messages.

Here, and nowhere else, angular-first (as in the papers) becomes linear-first (as in ROS), and a
matrix becomes a list. Outgoing messages are made once and filled again, in place, for each state:
publishing copies them.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from builtin_interfaces.msg import Time
from diagnostic_msgs.msg import DiagnosticStatus, KeyValue
from geometry_msgs.msg import InertiaStamped, TwistStamped, Vector3Stamped, WrenchStamped
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray, MultiArrayDimension, MultiArrayLayout

from mbs_dynamics.checks import FloatArray
from mbs_dynamics.ros.robot_description import Gravity, Load

JACOBIAN_ROWS = "linear_xyz_angular_xyz"
"""Label of the first dimension of a Jacobian message."""

ENERGIES = ("kinetic_J", "potential_J", "power_W")
"""Label of the dimension of an energy message, joined by commas; the power may be missing."""


class EffortMessage:
    """A JointState with names and efforts."""

    def __init__(self, joint_names: Sequence[str]) -> None:
        self.message = JointState(name=list(joint_names), effort=[0.0] * len(joint_names))
        self._header, self._effort = self.message.header, self.message.effort

    def fill(self, stamp: Time, tau: FloatArray) -> JointState:
        """Return the message with the torques tau (n,) in N m or N."""
        self._header.stamp = stamp
        self._effort[:] = array("d", tau.tobytes())
        return self.message


class StateMessage:
    """A JointState with names, positions, velocities and efforts."""

    def __init__(self, joint_names: Sequence[str]) -> None:
        zeros = [0.0] * len(joint_names)
        self.message = JointState(
            name=list(joint_names), position=zeros, velocity=zeros, effort=zeros
        )
        self._header = self.message.header
        self._fields = self.message.position, self.message.velocity, self.message.effort

    def fill(self, stamp: Time, q: FloatArray, qd: FloatArray, tau: FloatArray) -> JointState:
        """Return the message with a state q, qd (n,) and torques tau (n,), SI units."""
        self._header.stamp = stamp
        for field, values in zip(self._fields, (q, qd, tau), strict=True):
            field[:] = array("d", values.tobytes())
        return self.message


class TwistMessage:
    """A TwistStamped."""

    def __init__(self, frame_id: str) -> None:
        self.message = TwistStamped()
        self.message.header.frame_id = frame_id
        self._header, twist = self.message.header, self.message.twist
        self._linear, self._angular = twist.linear, twist.angular

    def fill(self, stamp: Time, V: FloatArray) -> TwistStamped:
        """Return the message with the twist V (6,), angular part first, in rad/s and m/s."""
        self._header.stamp = stamp
        linear, angular = self._linear, self._angular
        angular.x, angular.y, angular.z, linear.x, linear.y, linear.z = V.tolist()
        return self.message


class JacobianMessage:
    """A Float64MultiArray of 6 rows, linear part first, and one column per joint."""

    def __init__(self, joint_names: Sequence[str]) -> None:
        n = len(joint_names)
        rows = MultiArrayDimension(label=JACOBIAN_ROWS, size=6, stride=6 * n)
        columns = MultiArrayDimension(label=",".join(joint_names), size=n, stride=n)
        layout = MultiArrayLayout(dim=[rows, columns], data_offset=0)
        self.message = Float64MultiArray(layout=layout, data=[0.0] * (6 * n))
        self._data = self.message.data

    def fill(self, J: FloatArray) -> Float64MultiArray:
        """Return the message with the Jacobian J (6, n), angular part first."""
        rows = J.tobytes()
        half = len(rows) // 2
        self._data[:] = array("d", rows[half:] + rows[:half])
        return self.message


class WrenchMessage:
    """A WrenchStamped."""

    def __init__(self, frame_id: str) -> None:
        self.message = WrenchStamped()
        self.message.header.frame_id = frame_id
        self._header, wrench = self.message.header, self.message.wrench
        self._force, self._torque = wrench.force, wrench.torque

    def fill(self, stamp: Time, W: FloatArray) -> WrenchStamped:
        """Return the message with the wrench W (6,), moment first, in N m and N."""
        self._header.stamp = stamp
        force, torque = self._force, self._torque
        torque.x, torque.y, torque.z, force.x, force.y, force.z = W.tolist()
        return self.message


class MatrixMessage:
    """A Float64MultiArray of n rows and n columns, both labelled with the joints."""

    def __init__(self, joint_names: Sequence[str]) -> None:
        n, names = len(joint_names), ",".join(joint_names)
        rows = MultiArrayDimension(label=names, size=n, stride=n * n)
        columns = MultiArrayDimension(label=names, size=n, stride=n)
        layout = MultiArrayLayout(dim=[rows, columns], data_offset=0)
        self.message = Float64MultiArray(layout=layout, data=[0.0] * (n * n))
        self._data = self.message.data

    def fill(self, M: FloatArray) -> Float64MultiArray:
        """Return the message with the matrix M (n, n)."""
        self._data[:] = array("d", M.tobytes())
        return self.message


def energy_message(energies: FloatArray) -> Float64MultiArray:
    """Return kinetic and potential energy in J, and the power in W if there is a third number."""
    size = len(energies)
    label = MultiArrayDimension(label=",".join(ENERGIES[:size]), size=size, stride=size)
    return Float64MultiArray(layout=MultiArrayLayout(dim=[label]), data=array("d", energies))


def wrench_of(message: WrenchStamped) -> FloatArray:
    """Return the wrench (6,) of a message, moment first, in N m and N."""
    force, torque = message.wrench.force, message.wrench.torque
    return np.array([torque.x, torque.y, torque.z, force.x, force.y, force.z])


def time_of(nanoseconds: int) -> Time:
    """Return a time stamp from ns."""
    sec, nanosec = divmod(nanoseconds, 1_000_000_000)
    return Time(sec=sec, nanosec=nanosec)


def stamp_of(stamp: Time) -> int:
    """Return a time stamp in ns; 0 means that the message has none."""
    return int(stamp.sec) * 1_000_000_000 + int(stamp.nanosec)


def gravity_of(message: Vector3Stamped) -> Gravity:
    """Return what a message on ~/gravity asks for."""
    v = message.vector
    return Gravity(message.header.frame_id, (v.x, v.y, v.z))


def said_of_gravity(gravity: Gravity) -> str:
    """Return the log line that a gravity is in force."""
    link, (x, y, z) = gravity
    where = f"in the axes of {link!r}" if link else "in the axes of the root link"
    return f"gravity in force: [{x:.6g}, {y:.6g}, {z:.6g}] m/s^2 {where}"


def said_of_payload(load: Load) -> str:
    """Return the log line that a load is in force."""
    if load.mass == 0.0:
        return f"payload taken off {load.link!r}"
    return f"payload in force: {load.mass:.6g} kg at {load.link!r}"


def load_of(message: InertiaStamped) -> Load:
    """Return what a message on ~/payload asks for."""
    I = message.inertia
    return Load(
        message.header.frame_id,
        I.m,
        (I.com.x, I.com.y, I.com.z),
        ((I.ixx, I.ixy, I.ixz), (I.ixy, I.iyy, I.iyz), (I.ixz, I.iyz, I.izz)),
    )


def topic_names(links: Iterable[str], kind: str = "link") -> dict[str, str]:
    """Return for each link the name under which its topics stand: a valid and visible one.

    What ROS does not allow in a topic becomes an underscore; a name that begins with a digit or an
    underscore (which would hide the topic) gets ``link_`` (or another kind) in front; a name that
    is taken gets a number behind.
    """
    names: dict[str, str] = {}
    for link in links:
        plain = re.sub(r"[^A-Za-z0-9_]", "_", link)
        if not re.match(r"[A-Za-z]", plain):
            plain = f"{kind}_{plain.lstrip('_')}"
        name, number = plain, 2
        while name in names.values():
            name, number = f"{plain}_{number}", number + 1
        names[link] = name
    return names


def status(name: str, level: bytes, message: str, values: Mapping[str, object]) -> DiagnosticStatus:
    """Return one status of a node, its values as text."""
    pairs = [KeyValue(key=key, value=str(value)) for key, value in values.items()]
    return DiagnosticStatus(name=name, level=level, message=message, values=pairs)
