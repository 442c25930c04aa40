# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The dynamics node over DDS: parameters, lifecycle, start and end."""

from __future__ import annotations

import signal
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("rclpy")

import yaml
from rclpy.parameter import parameter_value_to_python
from ros_bench import NodeProcess, Probe

from mbs_dynamics.resources import robot_path
from mbs_dynamics.ros.dynamics.interface import DynamicsSettings
from mbs_dynamics.settings import parameters_of

pytestmark = pytest.mark.usefixtures("ros")

JOINTS = tuple(f"joint{k}" for k in range(1, 8))
ARM7 = robot_path("arm7")
TAU = ["gravity_torques"]


@pytest.fixture(scope="module")
def arm(ros):
    """Start a node with the arm in force, for tests that leave it as they find it."""
    with NodeProcess(robot_description_file=ARM7) as process, Probe(process) as probe:
        probe.hear(*TAU)
        probe.answer(TAU, JOINTS, np.zeros(7))
        yield probe


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"representation": "hybird"}, "no representation 'hybird' (did you mean 'hybrid'?)"),
        ({"representation": "mixed"}, "a TwistStamped has one frame"),
        ({"bodies": ["tol"]}, "no body 'tol' (did you mean 'tool'?)"),
        ({"bodies": ["base_link"]}, "does not move"),
        ({"bodies": ["tool", "tool"]}, "got twice: tool"),
        ({"gravity": [0.0, -9.81]}, "gravity has shape (2,); valid is (3,)"),
        ({"gravity": [0.0, 0.0, float("inf")]}, "gravity must be finite"),
        ({"gravity": [0.0, 0.0, -981.0]}, "valid is at most 100"),
        ({"max_rate": -1.0}, "out of range"),
        ({"max_rate": "20"}, "Wrong parameter type"),
        ({"stale_timeout": 0.0}, "out of range"),
        ({"publish_twists": "yes"}, "Wrong parameter type"),
        ({"publish_twist": True}, "no parameter 'publish_twist' (did you mean 'publish_twists'?)"),
        ({"root": "link1"}, "read-only"),
        ({"robot_description_file": "other.urdf"}, "read-only"),
        ({"autostart": False}, "read-only"),
    ],
)
def test_bad_parameters_are_refused_with_the_reason(arm, values, said):
    assert said in arm.set(**values)
    for name in set(values) - {"publish_twist"}:
        held = parameter_value_to_python(arm.get(name))
        default = (
            str(ARM7) if name == "robot_description_file" else getattr(DynamicsSettings(), name)
        )
        assert held == (list(default) if isinstance(default, tuple) else default)


def test_every_parameter_is_described(arm):
    items = [item for item in parameters_of(DynamicsSettings) if not item.per]
    for item, descriptor in zip(items, arm.described(*(i.name for i in items)), strict=True):
        assert descriptor.name == item.name
        unit = f" Unit: {item.unit}." if item.unit else ""
        assert descriptor.description == item.description + unit
        assert descriptor.additional_constraints == item.remarks
        assert descriptor.read_only == item.read_only
        assert not descriptor.dynamic_typing
        ranges = [(r.from_value, r.to_value) for r in descriptor.floating_point_range]
        assert ranges == ([item.range] if item.range else [])


def test_outputs_are_switched_at_run_time(arm):
    def publishers():
        topics = ("gravity_torques", "bias_torques", "twist/tool", "jacobian/tool", "twist/link7")
        return [arm.node.count_publishers(f"{arm.target.name}/{topic}") for topic in topics]

    arm.until(lambda: publishers() == [1, 1, 1, 1, 0])
    assert arm.set(publish_bias_torques=False, publish_jacobians=False, bodies=["link7"]) == ""
    arm.until(lambda: publishers() == [1, 0, 0, 0, 1])
    assert arm.set(publish_bias_torques=True, publish_jacobians=True, bodies=["tool"]) == ""
    arm.until(lambda: publishers() == [1, 1, 1, 1, 0])


def test_lifecycle():
    with NodeProcess(autostart=False) as process, Probe(process) as probe:
        assert probe.lifecycle_state() == "unconfigured"
        probe.hear(*TAU)
        probe.describe(ARM7.read_text(encoding="utf-8"))
        assert probe.transition("configure")
        assert probe.lifecycle_state() == "inactive"
        probe.until(
            lambda: probe.model_value("model") == "arm7",
            again=lambda: probe.send(JOINTS, np.zeros(7)),
        )
        assert probe.input_value("lifecycle state") == "inactive"
        assert probe.latest == {}
        assert probe.transition("activate")
        assert probe.lifecycle_state() == "active"
        probe.answer(TAU, JOINTS, np.zeros(7))
        assert probe.transition("deactivate")
        probe.quiet()
        probe.until(
            lambda: probe.input_value("lifecycle state") == "inactive",
            again=lambda: probe.send(JOINTS, np.zeros(7)),
        )
        assert probe.latest == {}
        assert probe.transition("activate")
        probe.answer(TAU, JOINTS, np.zeros(7))
        assert probe.transition("deactivate")
        assert probe.transition("cleanup")
        assert probe.lifecycle_state() == "unconfigured"
        probe.until(lambda: probe.said("model") == "no robot_description yet")
        assert probe.transition("configure")
        assert probe.transition("activate")
        probe.answer(TAU, JOINTS, np.zeros(7))
        assert probe.transition("shutdown")
        assert probe.lifecycle_state() == "finalized"
        assert process.stop() == 0


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_ends_cleanly_while_messages_arrive(ros, how):
    with NodeProcess(robot_description_file=ARM7) as process, Probe(process) as probe:
        probe.hear(*TAU)
        probe.answer(TAU, JOINTS, np.zeros(7))
        process.process.send_signal(how)
        while process.process.poll() is None:
            probe.send(JOINTS, np.zeros(7), np.zeros(7))
            probe.spin(0.001)
        assert process.wait() == 0
        assert "Traceback" not in process.log
        assert "rror" not in process.log


def test_ends_cleanly_without_ever_having_had_a_robot(ros):
    with NodeProcess() as process, Probe(process) as probe:
        probe.until(lambda: "model" in probe.health)
        assert probe.said("model") == "no robot_description yet"
        assert process.stop() == 0
        assert "Traceback" not in process.log


@pytest.mark.parametrize(
    ("parameters", "said"),
    [
        ({"representation": "hybird"}, "cannot start: no representation 'hybird'"),
        ({"representation": "mixed"}, "cannot start: representation mixed"),
        ({"max_rate": -5.0}, "out of range"),
        ({"max_rat": 5.0}, "cannot start: no parameter 'max_rat' (did you mean 'max_rate'?)"),
        ({"max_rate": "'5'"}, "expecting type 'DOUBLE'"),
        ({"max_rate": -5}, "out of range"),
        ({"robot_description_file": "/no/such/file.urdf"}, "is no file"),
        ({"robot_description_file": __file__}, "which is no XML"),
        ({"robot_description_file": ARM7, "bodies": "[tol]"}, "did you mean 'tool'"),
        (
            {
                "robot_description_file": ARM7,
                "fixed_joints": "[joint9]",
                "fixed_positions": "[0.5]",
            },
            "robot_description refused: no joint 'joint9' (did you mean 'joint",
        ),
        ({"fixed_joints": "[joint7]"}, "fixed_joints has 1 name(s) but fixed_positions has 0"),
        ({"fixed_joints": "[joint7]", "fixed_positions": "[a]"}, "expecting type 'DOUBLE_ARRAY'"),
    ],
)
def test_does_not_start_with_bad_parameters(ros, parameters, said):
    with NodeProcess(**parameters) as process:
        assert process.wait() == 1
        assert said in process.log
        assert "Traceback" not in process.log


def test_the_parameter_file_holds_the_defaults(ros):
    file = Path(__file__).parents[3] / "config" / "dynamics.yaml"
    with NodeProcess("--params-file", str(file)) as process, Probe(process) as probe:
        for item in [item for item in parameters_of(DynamicsSettings) if not item.per]:
            value = parameter_value_to_python(probe.get(item.name))
            if item.default == ():
                value = [name for name in value if name]
            assert value == (
                list(item.default) if isinstance(item.default, tuple) else item.default
            )
        assert "no parameter" not in process.log


def test_the_description_can_be_a_parameter(ros, tmp_path):
    file = tmp_path / "parameters.yaml"
    given = {"ros__parameters": {"robot_description": ARM7.read_text(encoding="utf-8")}}
    file.write_text(yaml.safe_dump({"/**": given}), encoding="utf-8")
    with NodeProcess("--params-file", str(file)) as process, Probe(process) as probe:
        probe.hear(*TAU)
        probe.answer(TAU, JOINTS, np.zeros(7))


def test_parameters_of_other_nodes_at_start_are_ignored_and_named(ros):
    with NodeProcess(joints="[a]", robot_description_file=ARM7) as process:
        with Probe(process) as probe:
            probe.hear(*TAU)
            probe.answer(TAU, JOINTS, np.zeros(7))
        assert "ignored, as they are no parameters: joints" in process.log
