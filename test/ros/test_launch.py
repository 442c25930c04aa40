# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The launch file starts a node that answers."""

from __future__ import annotations

import signal

import numpy as np
import pytest

pytest.importorskip("rclpy")
pytest.importorskip("launch_ros")
pytest.importorskip("xacro")

from launch_bench import launch_command, make_installation
from ros_bench import NodeProcess, Probe, twist_of

import mbs_dynamics as mbs
from mbs_dynamics.resources import robot_path

pytestmark = pytest.mark.usefixtures("ros")

PENDULUM = """<robot name="pendulum" xmlns:xacro="http://www.ros.org/wiki/xacro">
  <xacro:property name="mass" value="2"/>
  <link name="ceiling"/>
  <link name="rod"><inertial><origin xyz="0 0 -0.5"/><mass value="${mass}"/>
    <inertia ixx="0.1" iyy="0.1" izz="0.1" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <joint name="hinge" type="continuous">
    <parent link="ceiling"/><child link="rod"/><axis xyz="0 1 0"/></joint></robot>"""


class Launched(NodeProcess):
    """The dynamics node, started by launch."""

    def command(self, *arguments):
        return launch_command("dynamics", self.namespace, *arguments)


@pytest.fixture
def installed(tmp_path, monkeypatch):
    make_installation(tmp_path, monkeypatch)


def test_launch_with_a_xacro_file(installed, tmp_path):
    robot = tmp_path / "pendulum.urdf.xacro"
    robot.write_text(PENDULUM, encoding="utf-8")
    arguments = [f"urdf:={robot}", "representation:=body_fixed"]
    with Launched(*arguments) as process, Probe(process) as probe:
        probe.hear("gravity_torques", "twist/rod")
        tau, twist = probe.answer(["gravity_torques", "twist/rod"], ["hinge"], [np.pi / 6.0], [1.0])
        np.testing.assert_allclose(tau.effort, [2.0 * 9.81 * 0.5 * 0.5], rtol=1e-12)
        np.testing.assert_allclose(twist_of(twist), [0, 0, 0, 0, 1, 0], atol=1e-12)
        assert twist.header.frame_id == "rod"
        assert process.stop(signal.SIGINT) == 0


def test_launch_waits_for_a_description(installed):
    with Launched() as process, Probe(process) as probe:
        probe.hear("gravity_torques")
        model = mbs.Model.from_urdf(robot_path("arm7"))
        probe.describe(robot_path("arm7").read_text(encoding="utf-8"))
        q = np.linspace(-1.0, 1.0, model.n)
        (tau,) = probe.answer(["gravity_torques"], model.joint_names, q)
        np.testing.assert_allclose(tau.effort, mbs.gravity_torques(model, q), rtol=1e-12)
        assert process.stop(signal.SIGINT) == 0
