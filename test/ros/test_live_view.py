# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The page of a running robot: real topics over DDS, and messages that cannot be right."""

from __future__ import annotations

import re
import threading
import time
from contextlib import contextmanager
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import numpy as np
import pytest

pytest.importorskip("rclpy")
pytest.importorskip("viser")

import rclpy
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue
from geometry_msgs.msg import PoseStamped, WrenchStamped
from rclpy.executors import SingleThreadedExecutor
from rclpy.qos import qos_profile_sensor_data
from sensor_msgs.msg import JointState
from std_msgs.msg import Bool, String
from waiting import TIMEOUT

import mbs_dynamics as mbs
from mbs_dynamics.resources import robot_path
from mbs_dynamics.ros import live_view
from mbs_dynamics.ros.live_view import LiveRobot, LiveView, Viewer
from mbs_dynamics.ros.node_base import LATCHED

TEXT = robot_path("arm7").read_text()
ARM = mbs.Model.from_urdf(robot_path("arm7"))
Q = np.array([0.3, -0.5, 0.7, -1.1, 0.2, 0.9, -0.4])
QD = np.array([0.5, -0.2, 0.8, -1.0, 1.5, -0.7, 0.3])


class Robot:
    """The publishers of a robot and its nodes."""

    def __init__(self, namespace):
        self.node = rclpy.create_node("robot", namespace=namespace)
        make = self.node.create_publisher
        self.description = make(String, "robot_description", LATCHED)
        self.states = make(JointState, "joint_states", qos_profile_sensor_data)
        self.torques = {
            name: make(JointState, f"dynamics_node/{name}_throttle", 10)
            for name in ("gravity_torques", "external_torques")
        }
        self.wrench = make(WrenchStamped, "dynamics_node/tool_wrench_throttle", 10)
        self.target = make(PoseStamped, "impedance_control_node/target_pose", 10)
        self.diagnostics = make(DiagnosticArray, "/diagnostics", 10)
        self.enabled = make(Bool, "gravity_compensation_node/enabled", LATCHED)

    def stamp(self, message):
        message.header.stamp = self.node.get_clock().now().to_msg()
        return message

    def send(self, q, names=ARM.joint_names):
        message = JointState(name=list(names), position=list(q), velocity=QD.tolist())
        self.states.publish(self.stamp(message))

    def send_torques(self, name, tau):
        message = JointState(name=list(ARM.joint_names), effort=tau.tolist())
        self.torques[name].publish(self.stamp(message))


@contextmanager
def viewed(namespace):
    """Run a viewer in a thread, and yield it, its robot, its node and its messages."""
    said, over = [], threading.Event()
    node, robot = LiveView(namespace), Robot(namespace)
    executor = SingleThreadedExecutor()
    executor.add_node(node)
    executor.add_node(robot.node)
    spinning = threading.Thread(target=executor.spin, daemon=True)
    spinning.start()
    viewer = Viewer(node, over.is_set, report=said.append, port=0)
    showing = threading.Thread(target=viewer.run)
    showing.start()
    try:
        yield viewer, robot, node, said
    finally:
        over.set()
        showing.join()
        viewer.close()
        executor.shutdown()
        spinning.join()
        robot.node.destroy_node()
        node.destroy_node()


def until(condition, again=lambda: None):
    end = time.monotonic() + TIMEOUT
    while time.monotonic() < end:
        again()
        if condition():
            return True
        time.sleep(0.05)
    return False


def test_the_robot_is_where_its_topics_say(ros, capsys, monkeypatch):
    for age in ("STALE", "REPORTED"):  # this machine may be busy
        monkeypatch.setattr(live_view, age, TIMEOUT)
    with viewed("/left") as (viewer, robot, node, said):
        assert until(lambda: any("waiting for a robot description on /left/" in x for x in said))
        robot.description.publish(String(data=TEXT))
        assert until(lambda: viewer.live is not None)
        assert until(lambda: "arm7: http://127.0.0.1:" in capsys.readouterr().out)
        gravity, external = np.arange(1.0, 8.0), -np.arange(1.0, 8.0)
        wrench = WrenchStamped()
        wrench.header.frame_id = "left/tool"
        wrench.wrench.force.x = 20.0
        own = ("mbs_dynamics_view", "/left")
        robot.enabled.publish(Bool(data=True))

        target = PoseStamped()
        target.header.frame_id = "left/tool"  # relative to the tool
        target.pose.position.y = 0.05
        target.pose.orientation.x, target.pose.orientation.w = (
            np.sin(np.pi / 12),
            np.cos(np.pi / 12),
        )
        offset = np.eye(4)
        offset[:3, :3] = mbs.lie.so3.exp(np.array([np.pi / 6, 0.0, 0.0]))
        offset[1, 3] = 0.05
        values = [KeyValue(key="state", value="enabled"), KeyValue(key="law", value="cartesian")]
        status = [
            DiagnosticStatus(name=f"{side}/impedance: command", values=values)
            for side in ("left", "right")
        ]

        def speak():
            robot.send(Q)
            robot.target.publish(target)
            robot.diagnostics.publish(DiagnosticArray(status=status))
            robot.send_torques("gravity_torques", gravity)
            robot.send_torques("external_torques", external)
            robot.wrench.publish(wrench)

        live, received = viewer.live, node.robot
        fresh = lambda: received.wrench("tool_wrench") is not None and node.compensation  # noqa: E731
        assert until(
            lambda: (
                fresh()
                and received.target
                and node.modes
                and all(received.torques(name) is not None for name in robot.torques)
            ),
            speak,
        )
        scene = live.scene("tool", "hybrid")
        np.testing.assert_array_equal(scene.q, Q)
        np.testing.assert_array_equal(scene.qd, QD)
        np.testing.assert_array_equal(scene.torques, gravity)
        (_, (arrows,)), (_, (label,)) = viewer.live.page.canvas._drawn["tool wrench"]
        assert label.text == "tool wrench: 20.0 N, 0.00 N m"
        pose = mbs.forward_kinematics(ARM, Q, bodies=["tool"])[0]
        np.testing.assert_allclose(arrows.points[0, 1], pose[:3, 3], atol=1e-6)
        way = arrows.points[0, 1] - arrows.points[0, 0]
        np.testing.assert_allclose(way, 0.2 * pose[:3, 0], atol=1e-6)
        cells, rows = [], {}

        def written():  # while the page is drawn by its own thread
            html = live._table()
            cells[:] = re.findall(r"<td>(.*?)</td>", html)
            rows.update(zip(cells[::2], cells[1::2], strict=False))
            return "<b>enabled</b>" in html and {"tool wrench on tool", "target"} <= rows.keys()

        assert until(written)
        assert rows["left/impedance"] == "enabled, cartesian"
        assert rows["tool wrench on tool"] == "20.0 N, 0.00 N m"
        assert "right/impedance" not in rows
        assert rows["target"].startswith("error 50.0 mm, 30.00 deg")
        first = cells.index("joint1")
        assert cells[first : first + 3] == ["joint1", "1.000", "-1.000"]
        (_, _), (_, (line,)), (_, (label,)) = live.page.canvas._drawn["target"]
        assert label.text == "target: 50.0 mm"
        np.testing.assert_allclose(line.points[0], [pose[:3, 3], (pose @ offset)[:3, 3]], atol=1e-6)
        published = {name for name, _ in node.get_publisher_names_and_types_by_node(*own)}
        assert published <= {"/parameter_events"}
        served = [name for name, _ in node.get_service_names_and_types_by_node(*own)]
        assert all(name.endswith("/get_type_description") for name in served)


def test_a_new_description_opens_a_new_page_at_the_same_address(ros):
    with viewed("") as (viewer, robot, _, said):
        robot.description.publish(String(data=TEXT))
        assert until(lambda: viewer.live is not None)
        first, port = viewer.live.page, viewer.live.page.port
        robot.description.publish(String(data="<robot"))
        assert until(lambda: any("is invalid" in x for x in said))
        assert "is invalid" in first._status.content
        robot.description.publish(String(data=TEXT.replace('name="arm7"', 'name="other"')))
        assert until(lambda: viewer.live.page is not first and viewer.live is not None)
        assert viewer.live.page.name == "other"
        assert viewer.live.page.port == port
        foreign = Request(viewer.live.page.address, headers={"Origin": "http://evil.example"})
        with pytest.raises(HTTPError, match="403"):
            urlopen(foreign)


def state(q, names=ARM.joint_names, stamp=1):
    message = JointState(name=list(names), position=list(q), velocity=[])
    message.header.stamp.sec = stamp
    return message


def test_bad_messages_change_nothing_and_are_named():
    received = LiveRobot(ARM)
    received.on_state(state(Q))
    assert received.fault == ""
    bad = Q.copy()
    bad[2] = np.nan
    received.on_state(state(bad, stamp=2))
    assert "joint3" in received.fault
    np.testing.assert_array_equal(received.state[0], Q)
    received.on_state(state(Q + 0.1, stamp=3))
    assert received.fault == ""
    received.on_torques(JointState(name=["joint1"], effort=[1.0]), "gravity_torques")
    assert received.torques("gravity_torques") is None  # not of all joints
    foreign = WrenchStamped()
    foreign.header.frame_id = "another_robot"
    received.on_wrench(foreign, "tool_wrench")
    assert received.wrench("tool_wrench") is None


def test_stale_torques_are_not_shown(monkeypatch):
    clock = [10.0]
    monkeypatch.setattr("mbs_dynamics.ros.live_view.time.monotonic", lambda: clock[0])
    received = LiveRobot(ARM)
    message = JointState(name=list(ARM.joint_names), effort=[1.0] * ARM.n)
    received.on_torques(message, "gravity_torques")
    assert received.torques("gravity_torques") is not None
    clock[0] += 1.0
    assert received.torques("gravity_torques") is None
