# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Markers for RViz: inertias, torques, the screw axis of the tool and its wrench."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from builtin_interfaces.msg import Time
from geometry_msgs.msg import Point, Pose, Vector3
from std_msgs.msg import ColorRGBA
from visualization_msgs.msg import Marker, MarkerArray

import mbs_dynamics as mbs
from mbs_dynamics.checks import FloatArray
from mbs_dynamics.control.contact import ToolWrench
from mbs_dynamics.lie.so3 import to_quaternion
from mbs_dynamics.ros.dynamics.robot import Robot
from mbs_dynamics.view import layers
from mbs_dynamics.view.drawings import Arrows, Discs, Drawing, Ellipsoids
from mbs_dynamics.view.scene import DrawnModel, Scene

DRAWN = (
    ("inertia", layers.inertia_ellipsoids),
    ("center_of_mass", layers.centre_of_all_mass),
    ("joint_torques", layers.torque_discs),
    ("screw_axis", layers.screw),
    ("tool_wrench", layers.wrench),
)
"""Namespaces of the markers and the layers drawn in them."""


class Markers:
    """The markers of a robot, in the frame of its root link."""

    def __init__(self, robot: Robot) -> None:
        self._robot = robot
        self._drawn = DrawnModel.of(robot.model)

    def message(
        self, stamp: Time, q: FloatArray, qd: FloatArray | None, wrench: ToolWrench | None
    ) -> MarkerArray:
        """Return the markers of a state; no screw axis if ``qd`` is None."""
        model, tool = self._robot.model, self._robot.tool_body
        scene = Scene(self._drawn, q, qd, body=tool, measured=mbs.gravity_torques(model, q))
        if wrench is not None:
            R = scene.pose[:3, :3]
            on_tool = np.concatenate([np.zeros(3), R @ wrench.W[3:]])
            scene = replace(scene, wrench=on_tool)
        markers = [Marker(action=Marker.DELETEALL)]
        for namespace, draw in DRAWN:
            for drawing in draw(scene):
                for marker in _markers(drawing):
                    marker.ns, marker.id = namespace, len(markers)
                    markers.append(marker)
        frame = self._robot.settings.frame_prefix + self._robot.root
        for marker in markers:
            marker.header.frame_id, marker.header.stamp = frame, stamp
        return MarkerArray(markers=markers)


def _markers(drawing: Drawing) -> Iterator[Marker]:
    if isinstance(drawing, Ellipsoids):
        for centre, R, semi_axes, colour in zip(*drawing[:4], strict=True):
            yield _marker(Marker.SPHERE, centre, R, 2.0 * semi_axes, colour, drawing.opacity)
    elif isinstance(drawing, Discs):
        for centre, R, radius, colour in zip(*drawing[:4], strict=True):
            size = np.array([2.0 * radius, 2.0 * radius, drawing.thickness])
            yield _marker(Marker.CYLINDER, centre, R, size, colour, drawing.opacity)
    elif isinstance(drawing, Arrows):
        size = np.array([0.015, 0.03, 0.05])  # of the shaft, of the head, and its length
        for ends, colour in zip(*drawing, strict=True):
            marker = _marker(Marker.ARROW, np.zeros(3), np.eye(3), size, colour, 1.0)
            marker.points = [Point(x=x, y=y, z=z) for x, y, z in ends.tolist()]
            yield marker


def _marker(
    kind: int, centre: FloatArray, R: FloatArray, size: FloatArray, colour: FloatArray, alpha: float
) -> Marker:
    pose = Pose()
    place, turn = pose.position, pose.orientation
    place.x, place.y, place.z = centre.tolist()
    turn.x, turn.y, turn.z, turn.w = to_quaternion(R).tolist()
    x, y, z = size.tolist()
    r, g, b = colour.tolist()
    return Marker(
        type=kind,
        pose=pose,
        scale=Vector3(x=x, y=y, z=z),
        color=ColorRGBA(r=r, g=g, b=b, a=alpha),
    )
