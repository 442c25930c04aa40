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
from geometry_msgs.msg import (
    InertiaStamped,
    PointStamped,
    TwistStamped,
    Vector3Stamped,
    VelocityStamped,
    WrenchStamped,
)
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray, MultiArrayDimension, MultiArrayLayout

from mbs_dynamics.checks import FloatArray
from mbs_dynamics.ros.robot_description import Gravity, Load

JACOBIAN_ROWS = "linear_xyz_angular_xyz"
"""What the rows of a Jacobian message are."""

ENERGIES = ("kinetic_J", "potential_J", "power_W")
"""What an energy message holds, joined by commas; the power may be missing."""


class LabelledArray:
    """A Float64MultiArray whose first label says what it holds, of what, and of which time.

    Labels are ``what; key=value; ...; stamp=<s>.<ns>``, since the message has no header.
    """

    def __init__(self, shape: Sequence[int], what: Sequence[str], about: Mapping[str, str]) -> None:
        strides = np.cumprod((1, *shape[::-1]))[:0:-1].tolist()
        dimensions = [
            MultiArrayDimension(label=label, size=size, stride=stride)
            for label, size, stride in zip(what, shape, strides, strict=True)
        ]
        self._label = "; ".join([what[0], *(f"{key}={value}" for key, value in about.items())])
        layout = MultiArrayLayout(dim=dimensions, data_offset=0)
        self.message = Float64MultiArray(layout=layout, data=[0.0] * strides[0])
        self._first, self._data = self.message.layout.dim[0], self.message.data

    def filled(self, stamp: Time, values: bytes) -> Float64MultiArray:
        """Return the message with the bytes of its numbers, row by row."""
        self._first.label = f"{self._label}; stamp={stamp.sec}.{stamp.nanosec:09d}"
        self._data[:] = array("d", values)
        return self.message


class EffortMessage:
    """A JointState with names and efforts; RViz needs its frame to be one of TF."""

    def __init__(self, joint_names: Sequence[str], frame_id: str = "") -> None:
        self.message = JointState(name=list(joint_names), effort=[0.0] * len(joint_names))
        self.message.header.frame_id = frame_id
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


class VelocityMessage:
    """A VelocityStamped: a twist measured at the origin of ``frame_id`` and resolved in its axes.

    It is that of the frame ``body`` seen from ``reference``. tf2 takes it to other frames.
    """

    def __init__(self, body: str, reference: str, frame_id: str) -> None:
        self.message = VelocityStamped(body_frame_id=body, reference_frame_id=reference)
        self.message.header.frame_id = frame_id
        self._header, twist = self.message.header, self.message.velocity
        self._linear, self._angular = twist.linear, twist.angular

    def fill(self, stamp: Time, V: FloatArray) -> VelocityStamped:
        """Return the message with the twist V (6,), angular part first, in rad/s and m/s."""
        self._header.stamp = stamp
        linear, angular = self._linear, self._angular
        angular.x, angular.y, angular.z, linear.x, linear.y, linear.z = V.tolist()
        return self.message


class PointMessage:
    """A PointStamped."""

    def __init__(self, frame_id: str) -> None:
        self.message = PointStamped()
        self.message.header.frame_id = frame_id

    def fill(self, stamp: Time, p: FloatArray) -> PointStamped:
        """Return the message with the point p (3,) in m."""
        self.message.header.stamp = stamp
        point = self.message.point
        point.x, point.y, point.z = p.tolist()
        return self.message


class JacobianMessage(LabelledArray):
    """An array of 6 rows, linear part first, and one column per joint."""

    def __init__(self, joint_names: Sequence[str], body: str, representation: str) -> None:
        columns = ",".join(joint_names)
        about = {"body": body, "representation": representation}
        super().__init__((6, len(joint_names)), (JACOBIAN_ROWS, columns), about)

    def fill(self, stamp: Time, J: FloatArray) -> Float64MultiArray:
        """Return the message with the Jacobian J (6, n), angular part first."""
        rows = J.tobytes()
        half = len(rows) // 2
        return self.filled(stamp, rows[half:] + rows[:half])


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


class MatrixMessage(LabelledArray):
    """An array of n rows and n columns, both labelled with the joints."""

    def __init__(self, joint_names: Sequence[str]) -> None:
        names = ",".join(joint_names)
        super().__init__((len(joint_names),) * 2, (names, names), {})

    def fill(self, stamp: Time, M: FloatArray) -> Float64MultiArray:
        """Return the message with the matrix M (n, n)."""
        return self.filled(stamp, M.tobytes())


class EnergyMessage(LabelledArray):
    """An array of the kinetic and potential energy, and of the power where it is known."""

    def __init__(self, *, power: bool) -> None:
        names = ENERGIES if power else ENERGIES[:2]
        super().__init__((len(names),), (",".join(names),), {})

    def fill(self, stamp: Time, energies: FloatArray) -> Float64MultiArray:
        """Return the message with the energies in J and the power in W."""
        return self.filled(stamp, energies.tobytes())


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


def link_of(frame_id: str, prefix: str) -> str:
    """Return the link that a frame of TF is that of; names without the prefix are those of links.

    A leading slash, as in tf before ROS 2, does not count.
    """
    return frame_id.removeprefix("/").removeprefix(prefix)


def gravity_of(message: Vector3Stamped, prefix: str = "") -> Gravity:
    """Return what a message on ~/gravity asks for."""
    v = message.vector
    return Gravity(link_of(message.header.frame_id, prefix), (v.x, v.y, v.z))


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


def load_of(message: InertiaStamped, prefix: str = "") -> Load:
    """Return what a message on ~/payload asks for."""
    I = message.inertia
    return Load(
        link_of(message.header.frame_id, prefix),
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
