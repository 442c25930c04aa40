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
"""The launch file of the simulation starts three nodes that work together."""

from __future__ import annotations

import importlib.util
import os
import signal
import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("rclpy")
pytest.importorskip("launch_ros")

from launch.actions import DeclareLaunchArgument
from ros_bench import NodeProcess
from sensor_msgs.msg import JointState
from simulator_bench import Watcher
from std_srvs.srv import SetBool
from test_launch import LAUNCH

import mbs_dynamics as mbs
from mbs_dynamics.resources import robot_path

pytestmark = pytest.mark.usefixtures("ros")

CHECKOUT = Path(__file__).parents[2]
FILE = CHECKOUT / "launch" / "simulation.launch.py"
NODES = ("simulator_node", "gravity_compensation_node", "dynamics_node")
JOINTS = mbs.Model.from_urdf(robot_path("arm7")).joint_names


class Launched(NodeProcess):
    """The simulation, started by launch."""

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.name = f"{self.namespace}/simulator_node"
        self.topic = f"{self.namespace}/forward_effort_controller/commands"

    def command(self, *arguments):
        return [sys.executable, "-c", LAUNCH, str(FILE), f"namespace:={self.namespace}", *arguments]


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """Make an ament prefix, as an installation does, that runs this checkout."""
    share, lib = tmp_path / "share", tmp_path / "lib" / "mbs_dynamics"
    index = share / "ament_index" / "resource_index" / "packages"
    for folder in (index, share / "mbs_dynamics", lib):
        folder.mkdir(parents=True)
    (index / "mbs_dynamics").touch()
    for folder in ("config", "urdf"):
        (share / "mbs_dynamics" / folder).symlink_to(CHECKOUT / folder)
    for name in NODES:
        script = lib / name
        script.write_text(
            f"#!{sys.executable}\nimport sys\nsys.path.insert(0, {str(CHECKOUT)!r})\n"
            f"from mbs_dynamics.ros.{name} import main\nsys.exit(main())\n",
            encoding="utf-8",
        )
        script.chmod(0o755)
    prefixes = [str(tmp_path), os.environ.get("AMENT_PREFIX_PATH", "")]
    monkeypatch.setenv("AMENT_PREFIX_PATH", os.pathsep.join(filter(None, prefixes)))
    monkeypatch.setenv("ROS_LOG_DIR", str(tmp_path / "log"))


def test_every_argument_is_described():
    spec = importlib.util.spec_from_file_location("simulation_launch", FILE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    entities = module.generate_launch_description().entities
    declared = [one for one in entities if isinstance(one, DeclareLaunchArgument)]
    assert [one.name for one in declared] == list(module.ARGUMENTS)
    assert all(len(one.description) > 20 for one in declared)


def test_the_arm_falls_and_floats_once_gravity_is_compensated(installed):
    with Launched() as process, Watcher(process) as probe:
        external = []
        topic = f"{process.namespace}/dynamics_node/external_torques"
        probe.node.create_subscription(JointState, topic, external.append, 10)
        probe.until(lambda: probe.states and external)
        assert tuple(probe.states[-1].name) == JOINTS
        assert tuple(external[-1].name) == JOINTS
        probe.until(lambda: probe.qd.any())  # it falls
        enable = probe.node.create_client(
            SetBool, f"{process.namespace}/gravity_compensation_node/enable"
        )
        probe.until(enable.service_is_ready)
        probe.spin(0.5)
        answers = []

        def ask():
            future = enable.call_async(SetBool.Request(data=True))
            future.add_done_callback(lambda done: answers.append(done.result()))
            probe.spin(0.5)

        probe.until(lambda: any(answer.success for answer in answers), again=ask)
        held = np.zeros(7)

        def compensated():
            held[:] = mbs.gravity_torques(mbs.Model.from_urdf(robot_path("arm7")), probe.q)
            return np.abs(probe.tau - held).max() < 0.5 and np.abs(probe.qd).max() < 0.1

        probe.until(compensated)
        assert np.abs(held).max() > 1.0
        assert process.stop(signal.SIGINT) == 0
