# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Desired points: read by order, completed by what was measured, or refused with a reason."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("rclpy")

import yaml
from builtin_interfaces.msg import Duration, Time
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

import mbs_dynamics as mbs
from mbs_dynamics.control import PositionArm
from mbs_dynamics.control.joint_input import Rejection
from mbs_dynamics.errors import ArgumentError
from mbs_dynamics.resources import robot_path
from mbs_dynamics.ros.dynamics.feed_forward import FeedForward, answers_to, desired_state
from mbs_dynamics.ros.dynamics.interface import DynamicsSettings
from mbs_dynamics.ros.dynamics.robot import Robot

ALL = ("a", "b"), ("a", "b")
SOME = ("c", "a"), ("a", "b", "c")
MEASURED = np.array([7.0, 8.0, 9.0])
MODEL = mbs.Model.from_urdf(robot_path("arm7"))


def test_other_joints_stand_where_they_were_measured():
    state = desired_state(([1.0, 2.0], [3.0, 4.0], [5.0, 6.0], []), *SOME, MEASURED)
    assert state.tolist() == [[2.0, 8.0, 1.0], [4.0, 0.0, 3.0], [6.0, 0.0, 5.0]]
    assert MEASURED.tolist() == [7.0, 8.0, 9.0]
    rejection = desired_state(([1.0, 2.0], [], [], []), *SOME, None)
    assert rejection.kind == "not_measured"
    assert rejection.reason.endswith("b")


@pytest.mark.parametrize(
    ("point", "kind", "said"),
    [
        (([], [], [], []), "position_length", "2 desired joints but 0 position value(s)"),
        (([1.0, 2.0], [1.0], [], []), "velocity_length", "but 1 velocity value(s)"),
        (([1.0, 2.0], [], [1.0, 2.0], []), "velocity_length", "accelerations but no velocities"),
        (([1.0, 2.0], [1.0, 2.0], [3.0], []), "acceleration_length", "but 1 acceleration value"),
        (([1.0, 2.0], [1.0, 2.0], [np.inf, 0.0], []), "not_finite", "desired acceleration is not"),
        (([1e10, 0.0], [], [], []), "too_large", "desired position is too large to be true: a ="),
        (([1.0, 2.0], [], [], [1.0, 2.0]), "effort", "the point has efforts"),
    ],
)
def test_malformed_points_are_refused(point, kind, said):
    rejection = desired_state(point, *ALL, None)
    assert isinstance(rejection, Rejection)
    assert rejection.kind == kind
    assert said in rejection.reason


@pytest.mark.parametrize(
    ("names", "points", "kind", "said"),
    [
        (("elbow",), [([0.1], [], [], [])], "unknown_joint", "no joint 'elbow'; its joints are:"),
        (("joint2",) * 2, [([0.1, 0.2], [], [], [])], "duplicate_joints", "joint2, joint2"),
        (("joint2",), [], "no_points", "no points"),
        (("joint2",), [([0.1], [], [], []), ([np.nan], [], [], [])], "not_finite", "point 1"),
    ],
)
def test_bad_trajectories_are_refused_as_a_whole(names, points, kind, said):
    robot = Robot(MODEL, DynamicsSettings(publish=("desired_torques",)))
    rejection = answers_to(robot, names, points, np.zeros(7))
    assert rejection.kind == kind
    assert said in rejection.reason


def written(tmp_path, names):
    """Return the path of servos of 50 N m/rad, as mbs-dynamics identify writes them."""
    servo = {"stiffness": 50.0, "damping": 0.5, "friction": 0.2, "offset": 0.001}
    path = tmp_path / "servos.yaml"
    path.write_text(yaml.safe_dump({"servos": {name: dict(servo) for name in names}}))
    return str(path)


@pytest.fixture
def servos_file(tmp_path):
    return written(tmp_path, MODEL.joint_names)


def answering(servos_file, clock=(5.0,)):
    """Return subscriptions and published messages of a node that answers with servo goals."""
    subscribed, published = {}, []
    node = SimpleNamespace(
        advertise=lambda declared: SimpleNamespace(
            publish=lambda message: published.append((declared, message))
        ),
        subscribe=lambda declared, hear: subscribed.update({declared: hear}),
        warn=lambda *line: published.append(("warning", line)),
        stamp_now=Time,
        steady_time=lambda: clock[0],
    )
    settings = DynamicsSettings(publish=(), servos_file=servos_file)
    robot = Robot(MODEL.with_payload("link7", 1.0), settings)
    feed = FeedForward(node, lambda: robot, lambda: None)
    feed.listen(settings, True)
    return subscribed, published, PositionArm.read(servos_file, robot.model)


def test_a_trajectory_is_answered_with_goals_that_lead_it_more_and_more(servos_file):
    subscribed, published, arm = answering(servos_file)
    q, qd = np.linspace(-0.4, 0.5, 7), np.full(7, 0.3)
    points = [
        JointTrajectoryPoint(
            positions=q, velocities=qd, accelerations=0.0 * q, time_from_start=Duration(sec=k)
        )
        for k in range(3)
    ]
    names = list(MODEL.joint_names)
    subscribed["~/desired_trajectory"](JointTrajectory(joint_names=names, points=points))
    ((topic, answer),) = published
    assert topic == "~/servo_trajectory"
    assert answer.joint_names == names
    for point, share in zip(answer.points, (0.0, 1.0, 1.0), strict=True):
        np.testing.assert_allclose(point.positions, arm.goals(q, qd, share=share), atol=1e-12)
        assert list(point.velocities) == qd.tolist()
        assert len(point.effort) == 0


def test_goals_that_would_lead_too_far_are_limited_and_reported(servos_file):
    clock = [5.0]
    subscribed, published, _ = answering(servos_file, clock)
    outstretched = np.array([0.0, 1.5, 0.0, 0.0, 0.0, 0.0, 0.0])
    for clock[0] in (5.0, 7.0):
        published.clear()
        subscribed["~/desired"](JointTrajectoryPoint(positions=outstretched))
    (_, line), (topic, goals) = published
    assert topic == "~/servo_goals"
    assert goals.data[1] == pytest.approx(1.2)
    assert "joint2" in line[1]


def test_servo_goals_need_the_servos_of_all_joints(tmp_path):
    with pytest.raises(ArgumentError, match="servos_file"):
        DynamicsSettings(servos_file="servos.yaml", floating_base=True)
    with pytest.raises(ArgumentError, match=r"servos_file.*joint7"):
        Robot(MODEL, DynamicsSettings(servos_file=written(tmp_path, ["joint1"])))
