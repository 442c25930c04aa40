# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Parameters of gravity compensation as settings: whole ones, and those by joint."""

from contextlib import contextmanager
from types import SimpleNamespace

import pytest

pytest.importorskip("rclpy")

from gravity_bench import settings
from rclpy.node import Node
from rclpy.parameter import Parameter

from mbs_dynamics.errors import ArgumentError
from mbs_dynamics.ros.compensation.interface import GravityCompensationSettings
from mbs_dynamics.ros.parameters import changed, converted, declare


@contextmanager
def declaring(**given):
    """Yield a node with these values, as BaseNode makes it."""
    node = Node(
        "declares",
        parameter_overrides=[Parameter(k.replace("__", "."), value=x) for k, x in given.items()],
        automatically_declare_parameters_from_overrides=True,
    )
    try:
        yield node
    finally:
        node.destroy_node()


def given(**values):
    return [SimpleNamespace(name=name.replace("__", "."), value=x) for name, x in values.items()]


def test_lists_become_tuples_without_the_empty_texts_that_stand_for_no_entry(ros):
    """An empty list of texts cannot be written in YAML, so that users write one empty text."""
    before = settings()
    for value in ([""], [], None):
        assert changed(GravityCompensationSettings(), given(joints=value)).joints == ()
    assert changed(GravityCompensationSettings(), given(joints=["a", ""])).joints == ("a",)
    assert changed(before, given(ramp_time=2.5)).ramp_time == 2.5
    with declaring(joints=["", "elbow"], damping__elbow=3.0) as node:
        declared = declare(node, GravityCompensationSettings)
        assert (declared.joints, declared.damping) == (("elbow",), (3.0,))
        assert not node.has_parameter("damping.")


def test_values_by_joint_replace_those_of_that_joint_alone():
    before = settings(damping=tuple(range(7)))
    found = changed(before, given(damping__joint3=9.0, damping__joint5=8.0))
    assert found.damping == (0, 1, 9.0, 3, 8.0, 5, 6)
    assert found.changed({"damping": before.damping}) == before


def test_integers_are_taken_for_doubles(ros):
    """YAML writes 2 for 2.0, and whoever types a parameter does too."""
    scalars = {"ramp_time": 2, "damping__elbow": 3, "fixed_positions__finger": 1}
    with declaring(joints=["elbow"], gravity=[0, 0, -10], **scalars) as node:
        declared = declare(node, GravityCompensationSettings)
        assert (declared.ramp_time, declared.damping) == (2.0, (3.0,))
        assert (declared.gravity, declared.fixed) == ((0.0, 0.0, -10.0), {"finger": 1.0})
        assert node.get_parameter("ramp_time").type_ is Parameter.Type.DOUBLE
        asked = [Parameter("ramp_time", value=1), Parameter("on_fault", value=1)]
        assert [one.value for one in converted(node, asked)] == [1.0, 1]
        assert [type(one.value) for one in converted(node, asked)] == [float, int]


def test_constants_are_accepted_with_their_value_only(ros):
    """A file of an earlier version must not lose a check or a limit without notice."""
    with declaring(position_margin=0.05) as node:
        assert declare(node, GravityCompensationSettings).position_margin == 0.05
        assert not node.has_parameter("position_margin")
    for given, said in (
        ({"ramp_in_time": 2}, "ramp_in_time is 2, and a constant"),
        ({"root": "torso"}, "root is not a parameter any more"),
    ):
        with declaring(**given) as node, pytest.raises(ArgumentError, match=said):
            declare(node, GravityCompensationSettings)
