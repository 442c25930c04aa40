# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Markers against kinematics: places, sizes and frames of what RViz draws."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("rclpy")
pytest.importorskip("visualization_msgs")

from builtin_interfaces.msg import Time
from visualization_msgs.msg import Marker

import mbs_dynamics as mbs
from mbs_dynamics.control.contact import ToolWrench
from mbs_dynamics.resources import robot_path
from mbs_dynamics.ros.dynamics.interface import DynamicsSettings
from mbs_dynamics.ros.dynamics.markers import Markers
from mbs_dynamics.ros.dynamics.robot import Robot
from mbs_dynamics.view.layers import LARGEST_DISC, PER_NEWTON, SMALLEST_DISC

MODEL = mbs.Model.from_urdf(robot_path("arm7"))
Q = np.array([0.3, -0.5, 0.7, -1.1, 0.2, 0.9, -0.4])
QD = np.array([0.5, -0.2, 0.8, -1.0, 1.5, -0.7, 0.3])
W = np.array([0.0, 0.0, 0.0, 5.0, -10.0, 20.0])


def drawn(model=MODEL, qd=QD, wrench=None, **settings):
    robot = Robot(model, DynamicsSettings(publish_markers=True, tool_body="tool", **settings))
    message = Markers(robot).message(Time(sec=7), Q, qd, wrench)
    first, *markers = message.markers
    assert first.action == Marker.DELETEALL
    assert len({marker.id for marker in markers}) == len(markers)
    return markers


def of(namespace, markers):
    return [marker for marker in markers if marker.ns == namespace]


def at(point):
    return np.array([point.x, point.y, point.z])


def turned(q):
    """Return the z axis of a quaternion."""
    return np.array(
        [2 * (q.x * q.z + q.y * q.w), 2 * (q.y * q.z - q.x * q.w), 1 - 2 * (q.x**2 + q.y**2)]
    )


def test_masses_are_where_kinematics_says():
    loaded = MODEL.with_payload("tool", 2.0, (0.0, 0.0, 0.1))
    for model in (MODEL, loaded):
        markers = drawn(model)
        (centre,) = of("center_of_mass", markers)
        np.testing.assert_allclose(at(centre.pose.position), mbs.center_of_mass(model, Q))
        poses = mbs.forward_kinematics(model, Q)
        ellipsoids = of("inertia", markers)
        assert len(ellipsoids) == 7
        for marker, body, C in zip(ellipsoids, model.loaded().bodies, poses, strict=True):
            expected = C[:3, :3] @ body.inertia.com + C[:3, 3]
            np.testing.assert_allclose(at(marker.pose.position), expected)


def test_discs_are_about_the_joints_and_show_the_share_of_the_limit():
    discs = of("joint_torques", drawn())
    torques, poses = mbs.gravity_torques(MODEL, Q), mbs.forward_kinematics(MODEL, Q)
    for k, disc in enumerate(discs):
        np.testing.assert_allclose(at(disc.pose.position), poses[k][:3, 3])
        axis = poses[k][:3, :3] @ MODEL.bodies[k].joint.screw[:3]
        np.testing.assert_allclose(turned(disc.pose.orientation), axis, atol=1e-12)
        share = abs(torques[k]) / MODEL.effort_limits[k]
        assert disc.scale.x == pytest.approx(
            2.0 * LARGEST_DISC * (SMALLEST_DISC + (1.0 - SMALLEST_DISC) * share)
        )


def test_the_screw_axis_is_where_the_tool_is_slowest():
    (arrow,) = of("screw_axis", drawn())
    ends = [at(point) for point in arrow.points]
    V = mbs.twists(MODEL, Q, QD, bodies=["tool"], representation="spatial")[0]
    direction = (ends[1] - ends[0]) / np.linalg.norm(ends[1] - ends[0])
    for end in ends:
        v = V[3:] + np.cross(V[:3], end)
        np.testing.assert_allclose(v, (v @ direction) * direction, atol=1e-9)
    assert of("screw_axis", drawn(qd=None)) == []
    assert of("screw_axis", drawn(qd=np.zeros(7))) == []


def test_the_wrench_is_an_arrow_that_ends_at_the_tool():
    (arrow,) = of("tool_wrench", drawn(wrench=ToolWrench(W, 6, 1.0)))
    begin, end = (at(point) for point in arrow.points)
    C = mbs.forward_kinematics(MODEL, Q, bodies=["tool"])[0]
    np.testing.assert_allclose(end, C[:3, 3])
    np.testing.assert_allclose(end - begin, PER_NEWTON * C[:3, :3] @ W[3:])
    assert of("tool_wrench", drawn(wrench=ToolWrench(0.01 * W, 6, 1.0))) == []


def test_all_are_in_the_frame_of_the_root_with_the_prefix_and_the_stamp():
    for marker in drawn(frame_prefix="left/"):
        assert marker.header.frame_id == "left/base_link"
        assert marker.header.stamp.sec == 7
