# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Converts between arrays and ROS messages.

This module alone converts angular-first (as in the papers) to linear-first (as in ROS), and
matrices to lists.
"""

from __future__ import annotations

import math
import re
from array import array
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from builtin_interfaces.msg import Duration, Time
from diagnostic_msgs.msg import DiagnosticStatus, KeyValue
from geometry_msgs.msg import (
    InertiaStamped,
    Point,
    PointStamped,
    PoseStamped,
    Twist,
    TwistStamped,
    Vector3,
    Vector3Stamped,
    Wrench,
    WrenchStamped,
)
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray, Header, MultiArrayDimension, MultiArrayLayout
from trajectory_msgs.msg import JointTrajectory

from mbs_dynamics.checks import FloatArray
from mbs_dynamics.compiler import default_backend
from mbs_dynamics.control.environment import LinkGravity, LinkLoad
from mbs_dynamics.control.references import JointTarget, PoseTarget
from mbs_dynamics.control.trajectory import Trajectory
from mbs_dynamics.errors import LONGEST_MESSAGE, ArgumentError, quoted, shortened
from mbs_dynamics.lie import se3, so3
from mbs_dynamics.model.model import Model
from mbs_dynamics.ros.performance import Report

JACOBIAN_ROWS = "linear_xyz_angular_xyz"
"""Label of the rows of a Jacobian message."""

REPORTED = ("payload", "gravity", "desired")
"""Inputs whose refusal stands in the diagnostics until one is accepted."""

UNIT_QUATERNION = 1e-3
"""How far the length of a quaternion may be from one."""


def _doubles(values: FloatArray | Sequence[float]) -> array[float]:
    return array("d", np.asarray(values, dtype=float).tobytes())


def joint_message(
    stamp: Time,
    joint_names: Sequence[str],
    *,
    position: FloatArray | Sequence[float] = (),
    velocity: FloatArray | Sequence[float] = (),
    effort: FloatArray | Sequence[float] = (),
    frame_id: str = "",
) -> JointState:
    """Return a JointState, SI units, each field (n,) or empty.

    RViz shows efforts only with a ``frame_id`` of TF.
    """
    return JointState(
        header=Header(stamp=stamp, frame_id=frame_id),
        name=list(joint_names),
        position=_doubles(position),
        velocity=_doubles(velocity),
        effort=_doubles(effort),
    )


def _screw(X: FloatArray) -> tuple[Vector3, Vector3]:
    """Return the angular and the linear part of a twist or wrench (6,), angular part first."""
    ax, ay, az, x, y, z = X.tolist()
    return Vector3(x=ax, y=ay, z=az), Vector3(x=x, y=y, z=z)


def twist_message(stamp: Time, frame_id: str, V: FloatArray) -> TwistStamped:
    """Return the twist V (6,), angular part first, that is resolved in a frame."""
    angular, linear = _screw(V)
    header = Header(stamp=stamp, frame_id=frame_id)
    return TwistStamped(header=header, twist=Twist(angular=angular, linear=linear))


def wrench_message(stamp: Time, frame_id: str, W: FloatArray) -> WrenchStamped:
    """Return the wrench W (6,), moment first, at the origin of a frame and in its axes."""
    torque, force = _screw(W)
    header = Header(stamp=stamp, frame_id=frame_id)
    return WrenchStamped(header=header, wrench=Wrench(torque=torque, force=force))


def point_message(stamp: Time, frame_id: str, p: FloatArray) -> PointStamped:
    """Return the point p (3,) in m."""
    x, y, z = p.tolist()
    header = Header(stamp=stamp, frame_id=frame_id)
    return PointStamped(header=header, point=Point(x=x, y=y, z=z))


def array_message(
    stamp: Time, values: FloatArray, labels: Sequence[str], **about: str
) -> Float64MultiArray:
    """Return an array row by row, with a label for each dimension; the first describes the array.

    The label is ``contents; key=value; ...; stamp=<s>.<ns>``, since the message has no header.
    """
    said = [f"{key}={value}" for key, value in about.items()]
    first = "; ".join([labels[0], *said, f"stamp={stamp.sec}.{stamp.nanosec:09d}"])
    dimensions = [
        MultiArrayDimension(label=label, size=size, stride=math.prod(values.shape[k:]))
        for k, (label, size) in enumerate(zip([first, *labels[1:]], values.shape, strict=True))
    ]
    return Float64MultiArray(layout=MultiArrayLayout(dim=dimensions), data=_doubles(values))


def jacobian_message(
    stamp: Time, joint_names: Sequence[str], body: str, representation: str, J: FloatArray
) -> Float64MultiArray:
    """Return the Jacobian J (6, n), angular part first: in the message the linear part is first."""
    labels = JACOBIAN_ROWS, ",".join(joint_names)
    rows = np.concatenate([J[3:], J[:3]])
    return array_message(stamp, rows, labels, body=body, representation=representation)


def components(of: Any) -> list[float]:
    """Return x, y, z, and w if there is one, of a message."""
    return [float(getattr(of, name)) for name in "xyzw" if hasattr(of, name)]


def wrench_of(message: WrenchStamped) -> FloatArray:
    """Return the wrench (6,) of a message, moment first, in N m and N."""
    force, torque = message.wrench.force, message.wrench.torque
    return np.array([torque.x, torque.y, torque.z, force.x, force.y, force.z])


def seconds_of(duration: Duration) -> float:
    """Return a duration in s."""
    return float(duration.sec + 1e-9 * duration.nanosec)


def time_of(nanoseconds: int) -> Time:
    """Return a time stamp from ns."""
    sec, nanosec = divmod(nanoseconds, 1_000_000_000)
    return Time(sec=sec, nanosec=nanosec)


def stamp_of(stamp: Time) -> int:
    """Return a time stamp in ns; 0 means that the message has none."""
    nanoseconds: int = stamp.sec * 1_000_000_000 + stamp.nanosec
    return nanoseconds


def link_of(frame_id: str, prefix: str) -> str:
    """Return the link of a TF frame; a name without the prefix is that of a link itself.

    A leading slash, as in tf before ROS 2, is ignored.
    """
    return frame_id.removeprefix("/").removeprefix(prefix)


def imu_of(message: Any, prefix: str = "") -> tuple[str, tuple[float, float, float], int]:
    """Return link, proper acceleration (3,) in m/s^2, NaN if not measured, and stamp of an Imu."""
    a = message.linear_acceleration
    acceleration = (float(a.x), float(a.y), float(a.z))
    if message.linear_acceleration_covariance[0] == -1.0:
        acceleration = (float("nan"),) * 3
    link = link_of(message.header.frame_id, prefix)
    return link, acceleration, stamp_of(message.header.stamp)


def gravity_of(message: Vector3Stamped, prefix: str = "") -> LinkGravity:
    """Return the gravity in a message on ~/gravity."""
    v = message.vector
    return LinkGravity(link_of(message.header.frame_id, prefix), (v.x, v.y, v.z))


def gravity_line(gravity: LinkGravity) -> str:
    """Return the log line about a gravity that was accepted."""
    link, (x, y, z) = gravity
    where = f"in the axes of {quoted(link)}" if link else "in the axes of the root link"
    return f"gravity in force: [{x:.6g}, {y:.6g}, {z:.6g}] m/s^2 {where}"


def payload_line(load: LinkLoad) -> str:
    """Return the log line about a load that was accepted."""
    if load.mass == 0.0:
        return f"payload removed from {quoted(load.link)}"
    return f"payload in force: {load.mass:.6g} kg at {quoted(load.link)}"


def load_of(message: InertiaStamped, prefix: str = "") -> LinkLoad:
    """Return the load in a message on ~/payload."""
    I = message.inertia
    return LinkLoad(
        link_of(message.header.frame_id, prefix),
        I.m,
        (I.com.x, I.com.y, I.com.z),
        ((I.ixx, I.ixy, I.ixz), (I.ixy, I.iyy, I.iyz), (I.ixz, I.iyz, I.izz)),
    )


def joint_target_of(message: JointState) -> JointTarget:
    """Return the target in a message on ~/target_joint."""
    return JointTarget(message.name, message.position, message.velocity)


def pose_target_of(message: PoseStamped, prefix: str = "") -> PoseTarget:
    """Return the target in a message on ~/target_pose, or raise ArgumentError for no pose."""
    p, q = message.pose.position, message.pose.orientation
    quaternion = np.array([q.x, q.y, q.z, q.w])
    if not abs(float(np.linalg.norm(quaternion)) - 1.0) < UNIT_QUATERNION:
        raise ArgumentError(
            f"the orientation is the quaternion {quaternion.tolist()}; must be one of length 1"
        )
    pose = se3.pose(so3.from_quaternion(quaternion), np.array([p.x, p.y, p.z]))
    return PoseTarget(pose, link_of(message.header.frame_id, prefix))


def trajectory_of(message: JointTrajectory) -> Trajectory | None:
    """Return the trajectory in a message; None without points. Raises ArgumentError."""
    points = message.points
    if not points:
        return None
    rows = [[list(x) for x in (p.positions, p.velocities, p.accelerations)] for p in points]
    positions, *rates = zip(*rows, strict=True)
    times = [seconds_of(p.time_from_start) for p in points]
    return Trajectory(
        message.joint_names, times, positions, *(x if any(x) else None for x in rates)
    )


def topic_names(links: Iterable[str], kind: str = "link") -> dict[str, str]:
    """Return a valid and visible topic name for each link.

    Characters that ROS does not allow in a topic become underscores. A name that begins with a
    digit or an underscore (which would hide the topic) gets the prefix ``link_`` (or another kind);
    a name that is taken gets a number as suffix.
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


def status(
    name: str,
    summary: str,
    values: Mapping[str, object],
    *,
    warning: str = "",
    error: str = "",
    refusals: Mapping[str, str] | None = None,
) -> DiagnosticStatus:
    """Return one status of a node, its values as text; long ones are shortened.

    An ``error``, or else a ``warning``, replaces the summary. ``refusals`` say why the latest
    inputs were refused. A refusal of those in REPORTED is a warning.
    """
    refused = {what: why for what, why in (refusals or {}).items() if what in REPORTED}
    if refused:
        lines = [f"{what} refused: {why}" for what, why in refused.items()]
        warning = "; ".join([warning or summary, *lines])
    level = DiagnosticStatus.WARN if warning else DiagnosticStatus.OK
    level, summary = (DiagnosticStatus.ERROR, error) if error else (level, warning or summary)
    values = {**values, **{f"refused {what}": why for what, why in refused.items()}}
    pairs = [KeyValue(key=k, value=shortened(str(v), LONGEST_MESSAGE)) for k, v in values.items()]
    message = shortened(summary, LONGEST_MESSAGE)
    return DiagnosticStatus(name=name, level=level, message=message, values=pairs)


def input_status(
    state: str,
    report: Report,
    stale_for: float | None,
    stale_joints: Sequence[str],
    kind: str = "joint_states",
    missing: str = "",
) -> DiagnosticStatus:
    """Return the state of the input of a node in a state of the lifecycle: rates and rejections.

    ``stale_for`` is the age in s of stale input, else None; ``stale_joints`` the stale joints;
    ``kind`` names the messages; ``missing`` are results that these do not allow.
    """
    values: dict[str, object] = {
        "lifecycle state": state,
        "joints not fresh": ", ".join(stale_joints) or "none",
        **report.values,
    }
    if state != "active":
        return status("input", f"not active: {state}", values)
    rejected = error = ""
    if report.rejected:
        last = report.values["last rejection"]
        rejected = f"{report.rejected} {kind} rejected: {last}"
    if stale_for is not None:
        stale = f"stale: no valid {kind} for {stale_for:.1f} s"
        error = "; ".join(filter(None, (stale, rejected)))
    rate = f"{report.rate:.1f} Hz"
    return status("input", rate, values, warning=rejected or missing, error=error)


def model_status(
    model: Model | None,
    values: Mapping[str, object],
    loads: Iterable[LinkLoad],
    *,
    waits: str = "",
    refused: str = "",
    refusals: Mapping[str, str],
) -> DiagnosticStatus:
    """Return the state of the model in force, None if there is none.

    ``values`` are those of the node. ``waits`` is a warning about a description that waits,
    ``refused`` why the latest one was refused; ``refusals`` as for :func:`status`.
    """
    if model is None:
        summary, values, effect = "", {}, "there is no model"
        waits = waits or "no robot_description yet"
    else:
        summary = f"model {quoted(model.name)} in force"
        effect = "the model before it stays in force"
        values = {
            "model": model.name,
            **values,
            "backend": default_backend(),
            **environment_values(model.gravity, loads),
        }
    error = f"robot_description refused, {effect}: {refused}" if refused else ""
    return status("model", summary, values, warning=waits, error=error, refusals=refusals)


def environment_values(gravity: Iterable[float], loads: Iterable[LinkLoad]) -> dict[str, object]:
    """Return the values of diagnostics about gravity (3,) in m/s^2 and loads."""
    return {
        "gravity [m/s^2]": ", ".join(f"{x:.6g}" for x in gravity),
        "payloads": ", ".join(f"{load.mass:.6g} kg at {load.link}" for load in loads) or "none",
    }
