# Copyright 2026 The mbs_dynamics authors
#
# Licensed under the Apache License, Version 2.0 (the "License");
# you may not use this file except in compliance with the License.
# You may obtain a copy of the License at
#
#     http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS,
# WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
# See the License for the specific language governing permissions and
# limitations under the License.
"""The launch file starts a node that answers."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("rclpy")
pytest.importorskip("launch_ros")
pytest.importorskip("xacro")

from ros_bench import NodeProcess, Probe, twist_of

import mbs_dynamics as mbs
from mbs_dynamics.resources import robot_path

pytestmark = pytest.mark.usefixtures("ros")

CHECKOUT = Path(__file__).parents[2]
PENDULUM = """<robot name="pendulum" xmlns:xacro="http://www.ros.org/wiki/xacro">
  <xacro:property name="mass" value="2"/>
  <link name="ceiling"/>
  <link name="rod"><inertial><origin xyz="0 0 -0.5"/><mass value="${mass}"/>
    <inertia ixx="0.1" iyy="0.1" izz="0.1" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <joint name="hinge" type="continuous">
    <parent link="ceiling"/><child link="rod"/><axis xyz="0 1 0"/></joint></robot>"""

LAUNCH = """
import sys
from launch import LaunchDescription, LaunchService
from launch.actions import IncludeLaunchDescription
from launch.launch_description_sources import PythonLaunchDescriptionSource

file, *arguments = sys.argv[1:]
included = IncludeLaunchDescription(
    PythonLaunchDescriptionSource(file),
    launch_arguments=[argument.split(":=", 1) for argument in arguments],
)
service = LaunchService(argv=[])
service.include_launch_description(LaunchDescription([included]))
sys.exit(service.run())
"""


class Launched(NodeProcess):
    """The dynamics node, started by launch."""

    def command(self, *arguments):
        file = str(CHECKOUT / "launch" / "dynamics.launch.py")
        return [sys.executable, "-c", LAUNCH, file, f"namespace:={self.namespace}", *arguments]


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """Make an ament prefix, as an installation does, that runs this checkout."""
    share, lib = tmp_path / "share", tmp_path / "lib" / "mbs_dynamics"
    index = share / "ament_index" / "resource_index" / "packages"
    for folder in (index, share / "mbs_dynamics", lib):
        folder.mkdir(parents=True)
    (index / "mbs_dynamics").touch()
    (share / "mbs_dynamics" / "config").symlink_to(CHECKOUT / "config")
    script = lib / "dynamics_node"
    script.write_text(
        f"#!{sys.executable}\nimport sys\nsys.path.insert(0, {str(CHECKOUT)!r})\n"
        "from mbs_dynamics.ros.dynamics_node import main\nsys.exit(main())\n",
        encoding="utf-8",
    )
    script.chmod(0o755)
    prefixes = [str(tmp_path), os.environ.get("AMENT_PREFIX_PATH", "")]
    monkeypatch.setenv("AMENT_PREFIX_PATH", os.pathsep.join(filter(None, prefixes)))
    monkeypatch.setenv("ROS_LOG_DIR", str(tmp_path / "log"))


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
