# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Arrays to messages and back: order of components, layout, names."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("rclpy")

from builtin_interfaces.msg import Time
from geometry_msgs.msg import Inertia, InertiaStamped, Vector3, Vector3Stamped
from rclpy.serialization import deserialize_message, serialize_message
from rclpy.validate_topic_name import validate_topic_name
from std_msgs.msg import Header

from mbs_dynamics.ros.messages import (
    EnergyMessage,
    JacobianMessage,
    JointMessage,
    PointMessage,
    gravity_of,
    link_of,
    load_of,
    matrix_message,
    stamp_of,
    topic_names,
    twist_message,
    velocity_message,
    wrench_message,
)

pytestmark = pytest.mark.backend_independent

STAMP = Time(sec=12, nanosec=34)


def sent(message):
    """Return what a subscriber gets."""
    return deserialize_message(serialize_message(message), type(message))


def test_efforts():
    effort = JointMessage(("a", "b"), "effort")
    for tau in ([1.0, -2.0], [3.0, 4.0]):
        message = sent(effort.fill(STAMP, np.array(tau)))
        assert message.header.stamp == STAMP
        assert message.name == ["a", "b"]
        assert message.effort.tolist() == tau
        assert len(message.position) == len(message.velocity) == 0


def test_twist_is_linear_first():
    message = sent(twist_message("base").fill(STAMP, np.array([1.0, 2.0, 3.0, 4.0, 5.0, 6.0])))
    assert message.header == Header(stamp=STAMP, frame_id="base")
    assert message.twist.angular == Vector3(x=1.0, y=2.0, z=3.0)
    assert message.twist.linear == Vector3(x=4.0, y=5.0, z=6.0)


def test_velocity_names_its_three_frames():
    V = np.array([1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
    message = sent(velocity_message("tool", "base", "tool").fill(STAMP, V))
    assert message.header == Header(stamp=STAMP, frame_id="tool")
    assert (message.body_frame_id, message.reference_frame_id) == ("tool", "base")
    assert message.velocity.angular == Vector3(x=1.0, y=2.0, z=3.0)
    assert message.velocity.linear == Vector3(x=4.0, y=5.0, z=6.0)


def test_point():
    message = sent(PointMessage("base").fill(STAMP, np.array([1.0, 2.0, 3.0])))
    assert message.header == Header(stamp=STAMP, frame_id="base")
    assert (message.point.x, message.point.y, message.point.z) == (1.0, 2.0, 3.0)


def test_jacobian_is_linear_first_and_says_so():
    J = np.arange(24.0).reshape(6, 4)
    message = sent(JacobianMessage(("a", "b", "c", "d"), "tool", "hybrid").fill(STAMP, J))
    rows, columns = message.layout.dim
    said = "linear_xyz_angular_xyz; body=tool; representation=hybrid; stamp=12.000000034"
    assert (rows.label, rows.size, rows.stride) == (said, 6, 24)
    assert (columns.label, columns.size, columns.stride) == ("a,b,c,d", 4, 4)
    assert message.layout.data_offset == 0
    for row in range(6):
        for column in range(4):
            # std_msgs/MultiArrayLayout: multiarray(i, j) = data[offset + dim[1].stride i + j]
            value = message.data[message.layout.data_offset + columns.stride * row + column]
            assert value == J[(row + 3) % 6, column]


def test_wrench_is_force_first():
    message = sent(wrench_message("tool").fill(STAMP, np.array([1.0, 2.0, 3.0, 4.0, 5.0, 6.0])))
    assert message.header == Header(stamp=STAMP, frame_id="tool")
    assert message.wrench.torque == Vector3(x=1.0, y=2.0, z=3.0)
    assert message.wrench.force == Vector3(x=4.0, y=5.0, z=6.0)


def test_matrix_is_row_by_row():
    M = np.array([[1.0, 2.0], [3.0, 4.0]])
    message = sent(matrix_message(("a", "b")).fill(STAMP, M))
    rows, columns = message.layout.dim
    assert (rows.label, rows.size, rows.stride) == ("a,b; stamp=12.000000034", 2, 4)
    assert (columns.label, columns.size, columns.stride) == ("a,b", 2, 2)
    assert message.data.tolist() == [1.0, 2.0, 3.0, 4.0]


def test_energies_are_labelled():
    stamp = "; stamp=12.000000034"
    message = sent(EnergyMessage().fill(STAMP, np.array([1.0, 2.0, 3.0])))
    assert message.layout.dim[0].label == "kinetic_J,potential_J,power_W" + stamp
    assert message.data.tolist() == [1.0, 2.0, 3.0]
    message = sent(EnergyMessage().fill(STAMP, np.array([1.0, 2.0])))
    assert message.layout.dim[0].label == "kinetic_J,potential_J" + stamp
    assert (message.layout.dim[0].size, message.layout.dim[0].stride) == (2, 2)


def test_frames_of_tf_are_links_behind_their_prefix():
    assert link_of("left/tool", "left/") == "tool"
    assert link_of("tool", "left/") == "tool"
    assert link_of("/left/tool", "left/") == "tool"
    assert link_of("", "left/") == ""
    assert link_of("left/tool", "") == "left/tool"


def test_topic_names_of_joints():
    assert topic_names(["7/x"], "joint") == {"7/x": "joint_7_x"}


def test_stamps():
    assert stamp_of(STAMP) == 12_000_000_034
    assert stamp_of(Time()) == 0


def test_gravity():
    message = Vector3Stamped(header=Header(frame_id="base"), vector=Vector3(x=1.0, y=2.0, z=3.0))
    assert gravity_of(message) == ("base", (1.0, 2.0, 3.0))


def test_load():
    inertia = Inertia(m=9.0, com=Vector3(x=7.0, y=8.0, z=9.0))
    inertia.ixx, inertia.ixy, inertia.ixz, inertia.iyy, inertia.iyz, inertia.izz = map(
        float, range(6)
    )
    load = load_of(InertiaStamped(header=Header(frame_id="tool"), inertia=inertia))
    assert load[:3] == ("tool", 9.0, (7.0, 8.0, 9.0))
    assert load.inertia_at_com == ((0.0, 1.0, 2.0), (1.0, 3.0, 4.0), (2.0, 4.0, 5.0))


def test_topic_names_of_the_usual_links_are_the_links():
    assert topic_names(["panda_hand", "link7"]) == {"panda_hand": "panda_hand", "link7": "link7"}


def test_topic_names_of_unusual_links():
    assert topic_names(["tool-0", "tool 0", "a/b.c", "7th", "_hidden", "grün"]) == {
        "tool-0": "tool_0",
        "tool 0": "tool_0_2",
        "a/b.c": "a_b_c",
        "7th": "link_7th",
        "_hidden": "link_hidden",
        "grün": "gr_n",
    }


@given(st.lists(st.text(min_size=1), unique=True, max_size=8))
def test_topic_names_are_valid_visible_and_unique(links):
    names = topic_names(links)
    assert list(names) == links
    assert len(set(names.values())) == len(links)
    for name in names.values():
        assert validate_topic_name(f"~/twist/{name}")
        assert re.fullmatch(r"[A-Za-z][A-Za-z0-9_]*", name)
