# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""What RViz shows of a robot: masses, torques, the tool's twist and wrench, as markers."""

from __future__ import annotations

from typing import Any

import numpy as np
from builtin_interfaces.msg import Time
from geometry_msgs.msg import Point, Pose, Vector3
from std_msgs.msg import ColorRGBA
from visualization_msgs.msg import Marker, MarkerArray

import mbs_dynamics as mbs
from mbs_dynamics.checks import FloatArray
from mbs_dynamics.lie.so3 import to_quaternion
from mbs_dynamics.ros.dynamics.contact import ToolWrench
from mbs_dynamics.ros.dynamics.robot import Robot
from mbs_dynamics.view import ellipsoid_of_inertia, screw_axis, turn_to

# colours that the colour-blind tell apart (Okabe and Ito 2008)
ORANGE, SKY, GREEN, YELLOW, BLUE, RED = (
    (0.90, 0.62, 0.0),
    (0.34, 0.71, 0.91),
    (0.0, 0.62, 0.45),
    (0.94, 0.89, 0.26),
    (0.0, 0.45, 0.70),
    (0.84, 0.37, 0.0),
)

LENGTH = 0.5
"""Half the length of a screw axis, in m."""

PER_NEWTON = 0.01
"""Metres of an arrow for a newton."""

LARGEST_DISC = 0.12
"""Radius in m of a disc for a torque at its limit."""

UNLIMITED = 100.0
"""Effort in N m or N that counts as the limit of a joint without one."""


class Markers:
    """The markers of one robot, in the frame of its root link."""

    def __init__(self, robot: Robot) -> None:
        self._robot = robot
        model = robot.model.loaded()
        self._bodies = [
            (i, float(body.inertia.mass), ellipsoid_of_inertia(body.inertia))
            for i, body in enumerate(model.bodies)
        ]
        limits = np.where(np.isfinite(model.effort_limits), model.effort_limits, UNLIMITED)
        self._limits = limits.tolist()
        moving = [i for i, body in enumerate(model.bodies) if body.joint.mimics is None]
        self._joints = {model.bodies[i].joint.coordinate: i for i in reversed(moving)}

    def message(
        self, stamp: Time, q: FloatArray, qd: FloatArray | None, wrench: ToolWrench | None
    ) -> MarkerArray:
        """Return the markers of a state; without velocities there is no screw axis."""
        model = self._robot.model
        poses = mbs.forward_kinematics(model, q)
        made = [*self._masses(poses), *self._torques(q, poses)]
        tool = self._robot.tool_body
        pose = mbs.forward_kinematics(model, q, bodies=[tool])[0]
        if qd is not None:
            V = mbs.twists(model, q, qd, bodies=[tool], representation="spatial")[0]
            made += self._axis(V, pose[:3, 3])
        if wrench is not None:
            made += self._wrench(wrench, pose)
        markers = [self._delete_all()]
        for number, marker in enumerate(made):
            marker.id = number
            markers.append(marker)
        frame = self._robot.settings.frame_prefix + self._robot.root
        for marker in markers:
            marker.header.frame_id, marker.header.stamp = frame, stamp
        return MarkerArray(markers=markers)

    def _delete_all(self) -> Marker:
        return Marker(action=Marker.DELETEALL)

    def _masses(self, poses: FloatArray) -> list[Marker]:
        """Return an ellipsoid for each inertia, and a ball in the centre of all mass."""
        made = []
        total, moment = 0.0, np.zeros(3)
        for i, mass, ellipsoid in self._bodies:
            if not ellipsoid.semi_axes.any():
                continue
            C = poses[i]
            centre, R = C[:3, :3] @ ellipsoid.centre + C[:3, 3], C[:3, :3] @ ellipsoid.axes
            size = np.maximum(2.0 * ellipsoid.semi_axes, 1e-3)
            made.append(_marker("inertia", Marker.SPHERE, centre, R, size, SKY, 0.35))
            total, moment = total + mass, moment + mass * centre
        if total > 0.0:
            ball = np.full(3, 0.06)
            made.append(
                _marker(
                    "center_of_mass", Marker.SPHERE, moment / total, np.eye(3), ball, YELLOW, 1.0
                )
            )
        return made

    def _torques(self, q: FloatArray, poses: FloatArray) -> list[Marker]:
        """Return a disc about each joint: the larger, the nearer its torque is to the limit."""
        model, made = self._robot.model, []
        torques = mbs.gravity_torques(model, q).tolist()
        for coordinate, i in sorted(self._joints.items()):
            screw = model.bodies[i].joint.screw
            axis = screw[:3] if screw[:3].any() else screw[3:]
            share = min(abs(torques[coordinate]) / self._limits[coordinate], 1.0)
            R = poses[i][:3, :3] @ turn_to(axis)
            radius = LARGEST_DISC * (0.15 + 0.85 * share)
            size = np.array([2.0 * radius, 2.0 * radius, 0.01])
            colour = _between(BLUE, RED, share)
            disc = _marker("joint_torques", Marker.CYLINDER, poses[i][:3, 3], R, size, colour, 0.8)
            made.append(disc)
        return made

    def _axis(self, V: FloatArray, near: FloatArray) -> list[Marker]:
        """Return the screw axis of the tool's twist, where it passes the tool."""
        axis = screw_axis(V)
        if not axis.direction.any():
            return []
        middle = axis.point if axis.rate else near
        middle = middle + (axis.direction @ (near - middle)) * axis.direction
        ends = [middle + s * LENGTH * axis.direction for s in (-1.0, 1.0)]
        return [_arrow("screw_axis", ends[0], ends[1], ORANGE)]

    def _wrench(self, wrench: ToolWrench, pose: FloatArray) -> list[Marker]:
        """Return the force on the tool as an arrow that ends there."""
        force = pose[:3, :3] @ wrench.W[3:]
        if np.linalg.norm(force) * PER_NEWTON < 0.01:
            return []
        at = pose[:3, 3]
        return [_arrow("tool_wrench", at - PER_NEWTON * force, at, GREEN)]


def _marker(
    namespace: str,
    kind: int,
    centre: FloatArray,
    R: FloatArray,
    size: FloatArray,
    colour: tuple[float, float, float],
    alpha: float,
) -> Marker:
    pose = Pose()
    place, turn = pose.position, pose.orientation
    place.x, place.y, place.z = centre.tolist()
    turn.x, turn.y, turn.z, turn.w = to_quaternion(R).tolist()
    x, y, z = size.tolist()
    r, g, b = colour
    return Marker(
        ns=namespace,
        type=kind,
        pose=pose,
        scale=Vector3(x=x, y=y, z=z),
        color=ColorRGBA(r=r, g=g, b=b, a=alpha),
    )


def _arrow(
    namespace: str, begin: FloatArray, end: FloatArray, colour: tuple[float, float, float]
) -> Marker:
    size = np.array([0.015, 0.03, 0.05])  # of the shaft, of the head, and its length
    marker = _marker(namespace, Marker.ARROW, np.zeros(3), np.eye(3), size, colour, 1.0)
    marker.points = [Point(x=x, y=y, z=z) for x, y, z in (begin.tolist(), end.tolist())]
    return marker


def _between(low: Any, high: Any, share: float) -> tuple[float, float, float]:
    r, g, b = ((1.0 - share) * x + share * y for x, y in zip(low, high, strict=True))
    return r, g, b
