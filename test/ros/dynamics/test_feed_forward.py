# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Desired points: read by order, completed by what was measured, or refused with a reason."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("rclpy")

import mbs_dynamics as mbs
from mbs_dynamics.control.joint_input import Rejection
from mbs_dynamics.resources import robot_path
from mbs_dynamics.ros.dynamics.feed_forward import answers_to, desired_state
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
