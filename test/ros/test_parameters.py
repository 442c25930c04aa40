# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Parameters of gravity compensation as settings: whole ones, and those by joint."""

from types import SimpleNamespace

import pytest

pytest.importorskip("rclpy")

from gravity_bench import settings
from rclpy.node import Node
from rclpy.parameter import Parameter

from mbs_dynamics.errors import ArgumentError
from mbs_dynamics.ros.compensation.interface import GravityCompensationSettings
from mbs_dynamics.ros.parameters import changed, converted, declare

pytestmark = pytest.mark.backend_independent


def declaring(given):
    """Return a node with these values, as BaseNode makes it."""
    return Node(
        "declares",
        parameter_overrides=given,
        automatically_declare_parameters_from_overrides=True,
    )


def given(**values):
    return [SimpleNamespace(name=name.replace("__", "."), value=x) for name, x in values.items()]


def test_lists_become_tuples_without_the_empty_texts_that_stand_for_no_entry():
    before = settings()
    for value in ([""], [], None):
        assert changed(GravityCompensationSettings(), given(joints=value)).joints == ()
    assert changed(GravityCompensationSettings(), given(joints=["a", ""])).joints == ("a",)
    assert changed(before, given(ramp_time=2.5)).ramp_time == 2.5


def test_values_by_joint_replace_those_of_that_joint_alone():
    before = settings(damping=tuple(range(7)))
    found = changed(before, given(damping__joint3=9.0, damping__joint5=8.0))
    assert found.damping == (0, 1, 9.0, 3, 8.0, 5, 6)
    assert found.changed({"damping": before.damping}) == before


def test_declare_takes_an_empty_text_for_no_joint(ros):
    """An empty list of texts cannot be written in YAML, so that users write one empty text."""
    given = [Parameter("joints", value=["", "elbow"]), Parameter("damping.elbow", value=3.0)]
    node = declaring(given)
    try:
        declared = declare(node, GravityCompensationSettings)
        assert (declared.joints, declared.damping) == (("elbow",), (3.0,))
        assert not node.has_parameter("damping.")
    finally:
        node.destroy_node()


def test_integers_are_taken_for_doubles(ros):
    """YAML writes 2 for 2.0, and whoever types a parameter does too."""
    given = [
        Parameter("joints", value=["elbow"]),
        Parameter("ramp_time", value=2),
        Parameter("damping.elbow", value=3),
        Parameter("gravity", value=[0, 0, -10]),
        Parameter("fixed_positions.finger", value=1),
    ]
    node = declaring(given)
    try:
        declared = declare(node, GravityCompensationSettings)
        assert (declared.ramp_time, declared.damping) == (2.0, (3.0,))
        assert (declared.gravity, declared.fixed) == ((0.0, 0.0, -10.0), {"finger": 1.0})
        assert node.get_parameter("ramp_time").type_ is Parameter.Type.DOUBLE
        asked = [Parameter("ramp_time", value=1), Parameter("on_fault", value=1)]
        assert [one.value for one in converted(node, asked)] == [1.0, 1]
        assert [type(one.value) for one in converted(node, asked)] == [float, int]
    finally:
        node.destroy_node()


def test_constants_are_accepted_with_their_value_only(ros):
    """A file of an earlier version must not lose a check or a limit without notice."""
    node = declaring([Parameter("position_margin", value=0.05), Parameter("ramp_in_time", value=2)])
    try:
        with pytest.raises(ArgumentError, match="ramp_in_time is 2, and a constant"):
            declare(node, GravityCompensationSettings)
    finally:
        node.destroy_node()
    node = declaring([Parameter("position_margin", value=0.05)])
    try:
        assert declare(node, GravityCompensationSettings).position_margin == 0.05
        assert not node.has_parameter("position_margin")
    finally:
        node.destroy_node()
    node = declaring([Parameter("root", value="torso")])
    try:
        with pytest.raises(ArgumentError, match="root is not a parameter any more"):
            declare(node, GravityCompensationSettings)
    finally:
        node.destroy_node()
