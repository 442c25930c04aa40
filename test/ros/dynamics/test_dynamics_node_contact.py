# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""What the dynamics node publishes for those who ask: contact, feed-forward, energy, wrenches."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("rclpy")

from builtin_interfaces.msg import Time
from diagnostic_msgs.msg import DiagnosticStatus
from documented import declared, found, qualities, quality, says, types
from ros_bench import NodeProcess, Probe, about, wrench_of
from std_msgs.msg import Header
from std_srvs.srv import Trigger
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

import mbs_dynamics as mbs
from mbs_dynamics.errors import ArgumentError
from mbs_dynamics.resources import robot_path
from mbs_dynamics.ros.dynamics.feed_forward import FeedForward, check_feed_forward
from mbs_dynamics.ros.dynamics.interface import DynamicsSettings
from mbs_dynamics.ros.dynamics.robot import Robot
from mbs_dynamics.ros.node_base import message_type

pytestmark = pytest.mark.usefixtures("ros")

MODEL = mbs.Model.from_urdf(robot_path("arm7"))
JOINTS = MODEL.joint_names
Q = np.array([0.3, -0.5, 0.7, -1.1, 0.2, 0.9, -0.4])
QD = np.array([0.5, -0.2, 0.8, -1.0, 1.5, -0.7, 0.3])
TAU = np.linspace(-3.0, 5.0, 7)
ARM = {"robot_description_file": robot_path("arm7")}
PUSH = np.array([0.3, -0.2, 0.5, 10.0, -6.0, 4.0])
"""A wrench on the tool, moment first."""


def test_mass_matrix_energy_and_joint_wrenches():
    asked = {"publish_mass_matrix": True, "publish_energy": True, "joint_wrenches": "[joint4]"}
    topics = ["mass_matrix", "energy", "joint_wrench/joint4"]
    with NodeProcess(**ARM, **asked) as process, Probe(process) as probe:
        probe.hear(*topics)
        M, energy, wrench = probe.answer(topics, JOINTS, Q, QD, efforts=TAU)
        assert [dim.label.split("; ")[0] for dim in M.layout.dim] == [",".join(JOINTS)] * 2
        expected = mbs.mass_matrix(MODEL, Q)
        np.testing.assert_allclose(np.reshape(M.data, (7, 7)), expected, rtol=1e-12)
        assert about(energy)[0] == "kinetic_J,potential_J,power_W"
        found = [0.5 * QD @ expected @ QD, mbs.potential_energy(MODEL, Q), TAU @ QD]
        np.testing.assert_allclose(energy.data, found, rtol=1e-12)
        assert wrench.header.frame_id == "link4"
        W = mbs.joint_wrenches(MODEL, Q, QD, np.zeros(7))[3]
        np.testing.assert_allclose(wrench_of(wrench), [*W[3:], *W[:3]], rtol=1e-12)
        # without efforts there is no power, and that is said
        (energy,) = probe.answer(["energy"], JOINTS, Q, QD)
        assert about(energy)[0] == "kinetic_J,potential_J"
        probe.until(
            lambda: probe.level("effort") == DiagnosticStatus.WARN,
            again=lambda: probe.send(JOINTS, Q, QD),
        )
        assert "the message holds no efforts" in probe.said("effort")
        assert "the power on ~/energy missing or partial: the message holds" in process.log


def test_a_push_shows_and_joints_without_effort_are_said():
    J = mbs.jacobian(MODEL, Q, "tool", representation="body_fixed")
    external = J.T @ PUSH
    held = mbs.gravity_torques(MODEL, Q) - external  # what the drives exert in equilibrium
    asked = {
        "publish_external_torques": True,
        "publish_tool_wrench": True,
        "tool_body": "tool",
        "observer_gain": 100.0,
    }
    with NodeProcess(**ARM, **asked) as process, Probe(process) as probe:
        probe.hear("external_torques", "tool_wrench")
        time = [10**18]

        def feed(efforts):
            for _ in range(5):
                time[0] += 10_000_000
                probe.send(JOINTS, Q, np.zeros(7), stamp=time[0], efforts=efforts)
                probe.spin(0.01)

        def shown(topic):
            return topic in probe.latest

        def settled():
            if not (shown("external_torques") and shown("tool_wrench")):
                return False
            return np.allclose(probe.latest["external_torques"].effort, external, atol=1e-6)

        probe.until(settled, again=lambda: feed(held))
        assert tuple(probe.latest["external_torques"].name) == JOINTS
        wrench = probe.latest["tool_wrench"]
        assert wrench.header.frame_id == "tool"
        np.testing.assert_allclose(wrench_of(wrench), [*PUSH[3:], *PUSH[:3]], atol=1e-3)
        probe.until(lambda: probe.level("effort") == DiagnosticStatus.OK, again=lambda: feed(held))
        lacking = np.where(np.arange(7) == 4, np.nan, held)
        probe.until(
            lambda: len(probe.latest["external_torques"].name) == 6, again=lambda: feed(lacking)
        )
        assert "joint5" not in probe.latest["external_torques"].name
        probe.until(lambda: "joint5" in probe.said("effort"), again=lambda: feed(lacking))
        probe.quiet()
        for _ in range(3):
            feed(np.full(7, np.inf))
        probe.spin(0.3)
        assert not shown("external_torques")
        assert not shown("tool_wrench")
        assert probe.set(publish_external_torques=False, publish_tool_wrench=False) == ""
        assert probe.set(observer_gain=0.0) != ""


def test_desired_points_are_answered_and_malformed_ones_refused():
    with NodeProcess(**ARM, publish_desired_torques=True) as process, Probe(process) as probe:
        probe.hear("desired_torques")
        desired = probe.node.create_publisher(JointTrajectoryPoint, f"{process.name}/desired", 10)
        qdd = np.linspace(1.0, -1.0, 7)

        def point(q=Q, qd=QD, qdd=qdd):
            message = JointTrajectoryPoint(
                positions=list(map(float, q)),
                velocities=list(map(float, qd)),
                accelerations=list(map(float, qdd)),
            )
            desired.publish(message)

        probe.until(lambda: "desired_torques" in probe.latest, again=point)
        answer = probe.latest["desired_torques"]
        assert tuple(answer.name) == JOINTS
        expected = mbs.inverse_dynamics(MODEL, Q, QD, qdd)
        np.testing.assert_allclose(answer.effort, expected, rtol=1e-12)
        probe.quiet()
        for bad in ({"q": Q[:-1]}, {"qdd": np.full(7, np.nan)}, {"qd": ()}):
            point(**bad)
        probe.until(lambda: probe.level("desired") == DiagnosticStatus.WARN)
        probe.until(lambda: process.log.count("desired point rejected") == 3)
        assert "desired_torques" not in probe.latest
        # some joints only: the others stand where joint_states say
        assert probe.set(desired_joints=["joint3", "joint2"]) == ""
        point(q=(0.1, 0.2), qd=(), qdd=())
        probe.until(lambda: "no fresh joint_states of the other joints" in process.log)
        standing = Q.copy()
        standing[[2, 1]] = 0.1, 0.2

        def both():
            probe.send(JOINTS, Q, QD)
            probe.spin(0.05)
            point(q=(0.1, 0.2), qd=(), qdd=())

        probe.until(lambda: "desired_torques" in probe.latest, again=both)
        answer = probe.latest["desired_torques"]
        assert answer.name == ["joint3", "joint2"]
        expected = mbs.gravity_torques(MODEL, standing)[[2, 1]]
        np.testing.assert_allclose(answer.effort, expected, rtol=1e-12)
        assert "no joint 'joint9'" in probe.set(desired_joints=["joint9"])
        assert probe.set(publish_desired_torques=False) == ""
        probe.quiet()
        both()
        probe.spin(0.3)
        assert "desired_torques" not in probe.latest


def test_trajectories_are_answered():
    with NodeProcess(**ARM, publish_desired_torques=True) as process, Probe(process) as probe:
        probe.hear("desired_trajectory_torques")
        topic = f"{process.name}/desired_trajectory"
        trajectories = probe.node.create_publisher(JointTrajectory, topic, 10)
        names, order = ["joint7", *JOINTS[:6]], [6, *range(6)]
        points = [
            JointTrajectoryPoint(positions=(s * Q)[order].tolist(), velocities=QD[order].tolist())
            for s in (1.0, 0.5)
        ]
        trajectory = JointTrajectory(joint_names=names, points=points)
        probe.until(
            lambda: "desired_trajectory_torques" in probe.latest,
            again=lambda: trajectories.publish(trajectory),
        )
        answer = probe.latest["desired_trajectory_torques"]
        assert answer.joint_names == names
        for point, s in zip(answer.points, (1.0, 0.5), strict=True):
            expected = mbs.bias_torques(MODEL, s * Q, QD)[order]
            np.testing.assert_allclose(point.effort, expected, rtol=1e-12)
            np.testing.assert_allclose(point.positions, (s * Q)[order])
        trajectory.joint_names[0] = "elbow"
        trajectories.publish(trajectory)
        probe.until(lambda: "desired trajectory rejected: the robot has no joint" in process.log)


def test_controller_states_need_their_messages(monkeypatch):
    monkeypatch.setitem(sys.modules, "control_msgs.msg", None)  # as if it were not installed
    asked = DynamicsSettings(publish_desired_torques=True, controller_state="jtc/controller_state")
    with pytest.raises(ArgumentError, match="needs the package control_msgs"):
        check_feed_forward(asked)
    check_feed_forward(asked.changed({"publish_desired_torques": False}))


def test_controller_states_are_answered_with_their_joints_and_stamp(monkeypatch):
    """Without DDS, as control_msgs is on no package index: its message has these fields."""
    kind = type("JointTrajectoryControllerState", (), {})
    there = SimpleNamespace(JointTrajectoryControllerState=kind)
    monkeypatch.setitem(sys.modules, "control_msgs.msg", there)
    topics, published, warned = {}, [], []
    node = SimpleNamespace(
        advertise=lambda declared: SimpleNamespace(publish=published.append),
        subscribe=lambda declared, hear, name="": topics.update({name or declared: hear}),
        warn=lambda *line: warned.append(line),
    )
    asked = DynamicsSettings(publish_desired_torques=True, controller_state="jtc/controller_state")
    robot = Robot(MODEL, asked)
    feed = FeedForward(node, lambda: robot, lambda: Q)
    feed.adopt(robot)
    feed.listen(asked, True)
    answer = topics["jtc/controller_state"]
    assert message_type("control_msgs/msg/JointTrajectoryControllerState") is kind
    state = kind()
    state.header = Header(stamp=Time(sec=77))
    state.joint_names = ["joint7", "joint2"]
    state.reference = JointTrajectoryPoint(positions=[0.3, 0.4], effort=[1.0, 2.0])
    answer(state)
    (torques,) = published
    assert (torques.header.stamp.sec, torques.name) == (77, ["joint7", "joint2"])
    q = Q.copy()
    q[[6, 1]] = 0.3, 0.4
    np.testing.assert_allclose(torques.effort, mbs.gravity_torques(MODEL, q)[[6, 1]], rtol=1e-12)
    state.joint_names = ["joint7", "elbow"]
    answer(state)
    assert len(published) == 1
    assert "no joint 'elbow'" in warned[0][1]


def test_a_load_is_estimated_from_still_poses_and_not_applied():
    asked = {"estimate_payload": True, "tool_body": "tool"}
    with NodeProcess(**ARM, **asked) as process, Probe(process) as probe:
        probe.hear("payload_estimate", "gravity_torques")
        loaded = MODEL.with_payload("tool", 1.5, (0.01, -0.02, 0.06))

        def take(once=True):  # asked again, it would take a pose twice
            service = "payload_estimate/take"
            return probe.call(Trigger, service, Trigger.Request(), once=once)

        probe.send(JOINTS, Q, QD)
        probe.until(lambda: "stand still for 0.5 s" in take(once=False).message)
        rng = np.random.default_rng(1)
        answer = None
        for q in 0.5 * rng.uniform(MODEL.lower, MODEL.upper, (4, 7)):
            tau = mbs.gravity_torques(loaded, q)

            def hold(q=q, tau=tau):
                for _ in range(30):
                    probe.send(JOINTS, q, np.zeros(7), efforts=tau)
                    probe.spin(0.02)

            hold()
            answer = take()
            while not answer.success:
                hold()
                answer = take()
        assert "4 pose(s) taken: 1.500" in answer.message
        probe.until(lambda: "payload_estimate" in probe.latest)
        load = probe.latest["payload_estimate"]
        assert load.header.frame_id == "tool"
        com = [load.inertia.com.x, load.inertia.com.y, load.inertia.com.z]
        np.testing.assert_allclose([load.inertia.m, *com], [1.5, 0.01, -0.02, 0.06], atol=1e-6)
        (tau,) = probe.answer(["gravity_torques"], JOINTS, Q)
        np.testing.assert_allclose(tau.effort, mbs.gravity_torques(MODEL, Q), rtol=1e-10)
        restart = "payload_estimate/restart"
        assert probe.call(Trigger, restart, Trigger.Request()).success


@pytest.mark.backend_independent
def test_every_topic_and_service_is_documented():
    asked = {
        "publish_mass_matrix": True,
        "publish_energy": True,
        "joint_wrenches": "[joint4]",
        "publish_external_torques": True,
        "publish_tool_wrench": True,
        "publish_desired_torques": True,
        "publish_velocities": True,
        "estimate_payload": True,
        "publish_markers": True,
        "publish_center_of_mass": True,
    }
    with NodeProcess(**asked) as process, Probe(process) as probe:
        probe.describe(robot_path("arm7").read_text(encoding="utf-8"))
        probe.until(
            lambda: len(probe.health) == 4 and probe.input_value("latency computed max [ms]"),
            again=lambda: probe.send(JOINTS, Q, QD, efforts=TAU),
        )
        entries = declared("dynamics_node")
        for name in ("<controller_state>", "odom", "imu", "~/base_wrench"):
            del entries[name]
        there = {}
        for kind in ("publishers", "subscribers", "services"):
            there |= found(probe, kind)
        lifecycle = {name for name, kind in there.items() if "lifecycle_msgs" in kind}
        assert {name: there[name] for name in set(there) - lifecycle} == types(entries)
        services = lifecycle - {"~/transition_event"}
        assert [name for name in services if not says("dynamics_node", name)] == []
        for topic, words in (
            qualities(probe, "publishers") | qualities(probe, "subscribers")
        ).items():
            assert topic in lifecycle or words == quality(entries[topic]), topic
        values = [pair.key for status in probe.health.values() for pair in status.values]
        others = [value for value in values if not value.startswith("latency")]
        assert [value for value in others if not says("dynamics_node", value)] == []
