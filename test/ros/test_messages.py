# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Arrays to messages and back: order of components, layout, names."""

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("rclpy")

from builtin_interfaces.msg import Time
from geometry_msgs.msg import Inertia, InertiaStamped, Twist, Vector3, Vector3Stamped, Wrench
from rclpy.serialization import deserialize_message, serialize_message
from rclpy.validate_topic_name import validate_topic_name
from std_msgs.msg import Header

from mbs_dynamics.ros import messages
from mbs_dynamics.ros.messages import topic_names

STAMP = Time(sec=12, nanosec=34)
SCREW = np.arange(1.0, 7.0)


def sent(message):
    """Return the message as a subscriber receives it."""
    return deserialize_message(serialize_message(message), type(message))


def test_screws_have_their_angular_part_in_its_field():
    angular, linear = Vector3(x=1.0, y=2.0, z=3.0), Vector3(x=4.0, y=5.0, z=6.0)
    message = sent(messages.twist_message(STAMP, "base", SCREW))
    assert message.header == Header(stamp=STAMP, frame_id="base")
    assert message.twist == Twist(angular=angular, linear=linear)
    message = sent(messages.wrench_message(STAMP, "base", SCREW))
    assert message.header == Header(stamp=STAMP, frame_id="base")
    assert message.wrench == Wrench(torque=angular, force=linear)
    assert messages.wrench_of(message).tolist() == SCREW.tolist()


@pytest.mark.parametrize(
    ("values", "labels", "strides"),
    [
        ([[1.0, 2.0], [3.0, 4.0]], ["a,b", "c,d"], [4, 2]),
        ([1.0, 2.0], ["kinetic_J,potential_J"], [2]),
    ],
)
def test_arrays_are_labelled_and_row_by_row(values, labels, strides):
    message = sent(messages.array_message(STAMP, np.array(values), labels))
    labels = [f"{labels[0]}; stamp=12.000000034", *labels[1:]]
    layout = [(one.label, one.stride) for one in message.layout.dim]
    assert layout == [*zip(labels, strides, strict=True)]
    assert message.data.tolist() == np.ravel(values).tolist()


@pytest.mark.parametrize(
    ("frame", "prefix", "link"),
    [
        ("left/tool", "left/", "tool"),
        ("tool", "left/", "tool"),
        ("/left/tool", "left/", "tool"),
        ("", "left/", ""),
        ("left/tool", "", "left/tool"),
    ],
)
def test_frames_of_tf_are_links_behind_their_prefix(frame, prefix, link):
    assert messages.link_of(frame, prefix) == link
    message = Vector3Stamped(header=Header(frame_id=frame), vector=Vector3(x=1.0, y=2.0, z=3.0))
    assert messages.gravity_of(message, prefix) == (link, (1.0, 2.0, 3.0))


def test_load():
    inertia = Inertia(m=9.0, com=Vector3(x=7.0, y=8.0, z=9.0))
    for k, name in enumerate(("ixx", "ixy", "ixz", "iyy", "iyz", "izz")):
        setattr(inertia, name, float(k))
    load = messages.load_of(InertiaStamped(header=Header(frame_id="tool"), inertia=inertia))
    assert load[:3] == ("tool", 9.0, (7.0, 8.0, 9.0))
    assert load.inertia_at_com == ((0.0, 1.0, 2.0), (1.0, 3.0, 4.0), (2.0, 4.0, 5.0))


@given(st.lists(st.text("aB0_/- .\0\u00e9\u8155", min_size=1), unique=True, max_size=8))
def test_topic_names_are_valid_visible_and_unique(links):
    names = topic_names(links)
    assert list(names) == links
    assert len(set(names.values())) == len(links)
    for name in names.values():
        assert validate_topic_name(f"~/twist/{name}")
        assert re.fullmatch(r"[A-Za-z][A-Za-z0-9_]*", name)
