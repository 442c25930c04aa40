# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Robot descriptions and parameters are read from files, or refused in one line."""

import re

import pytest

from mbs_dynamics import Model
from mbs_dynamics.errors import ArgumentError, UrdfError
from mbs_dynamics.resources import robot_path
from mbs_dynamics.ros.interface import applies, read_parameters
from mbs_dynamics.ros.robot_description import UnknownXacroArgumentError, read_robot

PENDULUM = """<robot name="pendulum" xmlns:xacro="http://www.ros.org/wiki/xacro">
  <xacro:arg name="name" default="rod"/>
  <xacro:arg name="mass" default="2"/>
  <link name="ceiling"/>
  <link name="$(arg name)"><inertial><origin xyz="0 0 -0.5"/><mass value="$(arg mass)"/>
    <inertia ixx="0.1" iyy="0.1" izz="0.1" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <joint name="hinge" type="continuous">
    <parent link="ceiling"/><child link="$(arg name)"/><axis xyz="0 1 0"/></joint></robot>"""


@pytest.fixture
def pendulum(tmp_path):
    pytest.importorskip("xacro")
    path = tmp_path / "pendulum.urdf.xacro"
    path.write_text(PENDULUM, encoding="utf-8")
    return str(path)


def refusal(kind, function, *arguments):
    """Return the message of what is raised, which has one line."""
    with pytest.raises(kind) as raised:
        function(*arguments)
    assert "\n" not in str(raised.value)
    return str(raised.value)


def test_xacro_arguments_reach_the_file(pendulum):
    plain = Model.from_urdf(read_robot("urdf", pendulum))
    assert (plain.body_names, plain.total_mass) == (("rod",), 2.0)
    given = Model.from_urdf(read_robot("urdf", pendulum, "mass:=3.5 name:='long rod'"))
    assert (given.body_names, given.total_mass) == (("long rod",), 3.5)


def test_wrong_xacro_arguments_are_refused(pendulum):
    said = refusal(UnknownXacroArgumentError, read_robot, "urdf", pendulum, "mas:=3")
    assert said.startswith("no xacro argument 'mas' (did you mean 'mass'?)")
    said = refusal(ArgumentError, read_robot, "urdf", str(robot_path("arm7")), "mass:=2")
    assert "arm7.urdf' is not a .xacro file" in said


@pytest.mark.parametrize(
    ("mass", "given", "message"),
    [
        ("${1 / 0 * $(arg mass)}", "mass:=7", "division by zero"),
        ("$(arg weight)", "nam:=a", "Undefined substitution argument weight"),
    ],
)
def test_a_failing_xacro_reports_its_message_and_the_arguments(tmp_path, mass, given, message):
    pytest.importorskip("xacro")
    broken = tmp_path / "broken.xacro"
    broken.write_text(PENDULUM.replace("$(arg mass)", mass))
    said = refusal(UrdfError, read_robot, "urdf", str(broken), given)
    assert message in said
    assert f"(xacro_args: {given})" in said


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("arm7.udrf", r"urdf: there is no file '.*arm7.udrf' \(did you mean 'arm7.urdf'\?\)"),
        ("none/arm7.urdf", "and no folder '.*none'"),
        ("parameters.yaml", "which is not XML; it begins with '/\\*\\*:.*must be a URDF"),
        ("binary.urdf", "binary.urdf', which cannot be read"),
    ],
)
def test_a_file_that_is_no_description_is_refused(tmp_path, name, message):
    (tmp_path / "arm7.urdf").write_text("<robot/>", encoding="utf-8")
    (tmp_path / "parameters.yaml").write_text("/**:\n  ros__parameters: {}", encoding="utf-8")
    (tmp_path / "binary.urdf").write_bytes(b"\xff\xfe\x00")
    said = refusal((ArgumentError, UrdfError), read_robot, "urdf", str(tmp_path / name))
    assert re.search(message, said)


@pytest.mark.parametrize(
    "text",
    [
        "/**: {ros__parameters: {a: 1.5, b: {c: [k, l]}}}",
        "/arm: {ros__parameters: {a: 1.5}}",
        "left: {arm: {ros__parameters: {a: 1.5}}}",
        "/left/*: {ros__parameters: {a: 1.5}}",
        "/*: {ros__parameters: {a: 1.5}}",
        "/**/arm: {ros__parameters: {a: 1.5}}",
        "/**: {ros__parameters: {a: 1.5, b: 2}}\n/left/arm: {ros__parameters: {a: 2.5}}",
        "/left/arm: {ros__parameters: {a: 2.5}}\n/**: {ros__parameters: {a: 1.5, b: 2}}",
    ],
)
@pytest.mark.parametrize("namespace", ["/", "/left"])
def test_the_parameters_of_a_file_are_those_that_rclpy_finds(tmp_path, text, namespace):
    rclpy = pytest.importorskip("rclpy")
    path = tmp_path / "parameters.yaml"
    path.write_text(text, encoding="utf-8")
    context = rclpy.Context()
    rclpy.init(args=["--ros-args", "--params-file", str(path)], context=context)
    try:
        given = {"automatically_declare_parameters_from_overrides": True}
        node = rclpy.create_node("arm", namespace=namespace, context=context, **given)
        given = node.get_parameters_by_prefix("")
        expected = {name: p.value for name, p in given.items() if name[0] in "ab"}
        node.destroy_node()
    finally:
        rclpy.shutdown(context=context)
    name = f"{namespace}/arm".replace("//", "/")
    if expected:
        assert read_parameters("params_file", str(path), name) == expected
    else:
        said = refusal(ArgumentError, read_parameters, "params_file", str(path), name)
        assert f"must be a file with parameters of {name}" in said


@pytest.mark.parametrize(
    ("name", "node", "expected"),
    [
        ("/**/b/**", "/a/b", True),
        ("/**/b/**", "/a/c", False),
        ("/a.b", "/aXb", False),
    ],
)
def test_wildcards_stand_for_names(name, node, expected):
    assert applies(name, node) is expected


def test_sequences_as_launch_writes_them_are_read(tmp_path):
    path = tmp_path / "launch_params"
    path.write_text("/arm: {ros__parameters: {a: !!python/tuple [1, 2]}}", encoding="utf-8")
    assert read_parameters("params_file", str(path), "/arm") == {"a": [1, 2]}
