# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The commands that start nodes, where ROS 2 is missing or too old."""

from __future__ import annotations

import signal
import sys
from types import ModuleType, SimpleNamespace

import pytest

from mbs_dynamics.ros import entry_points

NODES = sorted(entry_points.INTERFACES)
CURRENT = SimpleNamespace(add_post_set_parameters_callback=None)  # which Humble lacks


@pytest.fixture
def ros(monkeypatch):
    """Return a function that puts a class in place of the nodes of rclpy; None for no rclpy."""

    def replace(node):
        package, module = ModuleType("rclpy"), ModuleType("rclpy.node")
        module.Node = node
        package.node = module
        monkeypatch.setitem(sys.modules, "rclpy", package if node else None)
        monkeypatch.setitem(sys.modules, "rclpy.node", module if node else None)

    return replace


def importing(monkeypatch, error):
    """Let the import of a node raise an error."""

    def fail(_):
        raise error

    monkeypatch.setattr(entry_points.importlib, "import_module", fail)


@pytest.mark.parametrize("node", NODES)
def test_a_node_without_ros_names_the_package_and_how_to_install_it(ros, capsys, node):
    ros(None)
    assert getattr(entry_points, node)() == 1
    (line,) = capsys.readouterr().err.splitlines()
    for words in (node, "rclpy", "source /opt/ros", "pip install 'mbs_dynamics[ros]'"):
        assert words in line


@pytest.mark.parametrize(("distribution", "named"), [("humble", "Humble"), ("", "of this version")])
def test_a_node_of_humble_is_refused(ros, capsys, monkeypatch, distribution, named):
    ros(SimpleNamespace)
    monkeypatch.setenv("ROS_DISTRO", distribution)
    assert entry_points.dynamics_node() == 1
    line = capsys.readouterr().err
    assert line.startswith(f"dynamics_node: ROS 2 {named}")
    assert "Jazzy" in line


def test_a_missing_message_package_is_named_and_a_missing_module_is_a_bug(ros, capsys, monkeypatch):
    ros(CURRENT)
    importing(monkeypatch, ModuleNotFoundError("No module", name="sensor_msgs.msg"))
    assert entry_points.simulator_node() == 1
    assert "sensor_msgs" in capsys.readouterr().err
    importing(monkeypatch, ModuleNotFoundError("No module", name="mbs_dynamics.ros.lost"))
    with pytest.raises(ModuleNotFoundError):
        entry_points.simulator_node()


def test_an_interrupt_while_modules_are_imported_is_no_failure(ros, monkeypatch):
    ros(CURRENT)
    handlers = {}
    importing(monkeypatch, KeyboardInterrupt)
    monkeypatch.setattr(entry_points.signal, "signal", handlers.__setitem__)
    assert entry_points.dynamics_node() == 0
    assert handlers == {signal.SIGINT: signal.SIG_IGN}  # a second one changes no exit code
