# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The commands that start nodes, where ROS 2 is missing or too old."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

from mbs_dynamics.ros import entry_points

pytestmark = pytest.mark.backend_independent

ROOT = Path(__file__).resolve().parents[2]
NODES = sorted(entry_points.INTERFACES)


@pytest.fixture
def ros(monkeypatch):
    """Return a function that puts a class in place of the nodes of rclpy; None for no rclpy."""

    def replace(node: type | None) -> None:
        package, module = ModuleType("rclpy"), ModuleType("rclpy.node")
        module.Node = node
        package.node = module
        monkeypatch.setitem(sys.modules, "rclpy", package if node else None)
        monkeypatch.setitem(sys.modules, "rclpy.node", module if node else None)

    return replace


class Current:
    def add_post_set_parameters_callback(self):
        """Stand for the method that Jazzy has and Humble has not."""


@pytest.mark.parametrize("node", NODES)
def test_a_node_without_ros_says_what_to_install(ros, capsys, node):
    ros(None)
    assert getattr(entry_points, node)() == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"{node}: the Python package rclpy of ROS 2 was not found (")
    assert "; source ROS 2 ('source /opt/ros/jazzy/setup.bash')" in line
    assert "pip install 'mbs_dynamics[ros]'" in line


@pytest.mark.parametrize(
    ("distribution", "said"), [("humble", "ROS 2 Humble is not"), ("", "ROS 2 of this version is")]
)
def test_a_node_of_humble_is_refused(ros, capsys, monkeypatch, distribution, said):
    ros(SimpleNamespace)
    monkeypatch.setenv("ROS_DISTRO", distribution)
    assert entry_points.dynamics_node() == 1
    line = capsys.readouterr().err
    assert line.startswith(f"dynamics_node: {said}")
    assert line.endswith("Jazzy or later is needed\n")


@pytest.mark.parametrize("node", NODES)
def test_a_command_runs_the_main_function_of_its_node(ros, monkeypatch, node):
    ros(Current)
    module = ModuleType(node)
    module.main = lambda: 3
    monkeypatch.setitem(sys.modules, f"mbs_dynamics.ros.{node}", module)
    assert getattr(entry_points, node)() == 3


def test_a_missing_message_package_is_named_and_a_missing_module_is_a_bug(ros, capsys, monkeypatch):
    ros(Current)
    for name, known in (("sensor_msgs.msg", True), ("mbs_dynamics.ros.lost", False)):

        def fail(_: str, name: str = name) -> None:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

        monkeypatch.setattr(entry_points.importlib, "import_module", fail)
        if known:
            assert entry_points.simulator_node() == 1
            assert "the Python package sensor_msgs of ROS 2" in capsys.readouterr().err
        else:
            with pytest.raises(ModuleNotFoundError, match="lost"):
                entry_points.simulator_node()


@pytest.mark.parametrize("node", NODES)
def test_help_lists_the_parameters_without_ros(ros, capsys, monkeypatch, node):
    ros(None)
    monkeypatch.setattr(sys, "argv", [node, "--help"])
    assert getattr(entry_points, node)() == 0
    said = capsys.readouterr().out
    assert f"ros2 run mbs_dynamics {node} --ros-args" in said
    for name in {
        "command_watchdog_node": ("command_timeout (1.0 s)", "effort_controller"),
        "dynamics_node": ("representation ('hybrid')", "gravity ([0.0, 0.0, -9.81] m/s^2)"),
        "gravity_compensation_node": (
            "damping.<joint> (0.0 N m s/rad or N s/m)",
            "compensates_itself (None)",
        ),
        "simulator_node": ("brakes (True)", "drive_damping (0.2)"),
        "teaching_node": ("speed (1.0)", "file ('taught.npz')"),
        "wrench_compensation_node": ("sensor_frame (None)", "zero_time (1.0 s)"),
    }[node]:
        assert f"\n  {name}" in said
    assert all(len(line) <= 100 for line in said.splitlines())


def test_an_interrupt_while_modules_are_imported_is_no_failure(ros, monkeypatch):
    ros(Current)

    def interrupted(_: str) -> None:
        raise KeyboardInterrupt

    handlers = {}
    monkeypatch.setattr(entry_points.importlib, "import_module", interrupted)
    monkeypatch.setattr(entry_points.signal, "signal", handlers.__setitem__)
    assert entry_points.dynamics_node() == 0
    assert handlers == {signal.SIGINT: signal.SIG_IGN}  # a second one changes no exit code


def test_setup_names_these_functions():
    text = (ROOT / "setup.py").read_text()
    assert all(f"{node} = {{NAME}}.ros.entry_points:{node}" in text for node in NODES)
    assert all(callable(getattr(entry_points, node)) for node in NODES)


def test_the_module_needs_no_ros():
    code = "import sys, mbs_dynamics.ros.entry_points; print('rclpy' in sys.modules)"
    found = subprocess.check_output([sys.executable, "-c", code], cwd=ROOT, text=True)
    assert found == "False\n"
