# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The commands that start nodes where ROS 2 is missing, and tables that need no ROS."""

import re
import signal
import subprocess
import sys
from pathlib import Path
from unittest import mock

import pytest
import yaml

from mbs_dynamics.ros import entry_points
from mbs_dynamics.ros.entry_points import INTERFACES, interface_of

NODES = sorted(INTERFACES)


def import_raises(monkeypatch, error):
    """Let the import of a node raise an error."""
    monkeypatch.setattr(entry_points.importlib, "import_module", mock.Mock(side_effect=error))


@pytest.mark.parametrize("node", NODES)
def test_a_node_without_ros_names_the_package_and_how_to_install_it(monkeypatch, capsys, node):
    import_raises(monkeypatch, ModuleNotFoundError("No module named 'rclpy'", name="rclpy"))
    assert getattr(entry_points, node)() == 1
    (line,) = capsys.readouterr().err.splitlines()
    for words in (node, "rclpy", "source /opt/ros", "pip install 'mbs_dynamics[ros]'"):
        assert words in line


def test_a_missing_message_package_is_named_and_a_missing_module_is_a_bug(monkeypatch, capsys):
    import_raises(monkeypatch, ModuleNotFoundError("No module", name="sensor_msgs.msg"))
    assert entry_points.simulator_node() == 1
    assert "sensor_msgs" in capsys.readouterr().err
    import_raises(monkeypatch, ModuleNotFoundError("No module", name="mbs_dynamics.ros.lost"))
    with pytest.raises(ModuleNotFoundError):
        entry_points.simulator_node()


def test_an_interrupt_while_modules_are_imported_is_no_failure(monkeypatch):
    handlers = {}
    import_raises(monkeypatch, KeyboardInterrupt)
    monkeypatch.setattr(entry_points.signal, "signal", handlers.__setitem__)
    assert entry_points.dynamics_node() == 0
    assert handlers == {signal.SIGINT: signal.SIG_IGN}  # a second one changes no exit code


CONFIG = Path(__file__).parents[2] / "config"


@pytest.mark.process
def test_the_tables_need_no_ros():
    code = (
        "import sys; from mbs_dynamics.ros.entry_points import *;"
        f"[interface_of(node).parameters for node in {NODES}];"
        "print([name for name in sys.modules if name.endswith('_msgs') or name == 'rclpy'])"
    )
    assert subprocess.check_output([sys.executable, "-c", code], text=True) == "[]\n"


FILES = {
    "dynamics": "dynamics_node",
    "gravity_compensation": "gravity_compensation_node",
    "simulation": "simulator_node",
    "wrench_compensation": "wrench_compensation_node",
}


@pytest.mark.parametrize("file", FILES)
def test_parameter_files_are_complete_and_hold_the_defaults(file):
    text = (CONFIG / f"{file}.yaml").read_text(encoding="utf-8")
    declared = {one.name: one for one in interface_of(FILES[file]).parameters}
    named = set(re.findall(r"^    (?:# )?([a-z_]+): ", text, re.MULTILINE))
    assert named & declared.keys() == declared.keys()
    given = yaml.safe_load(text)["/**"]["ros__parameters"]
    for name, value in given.items():
        if name == "joints":
            continue
        values = value.values() if declared[name].per else [value]
        for one in values:
            one = tuple(x for x in one if x != "") if isinstance(one, list) else one
            assert one == declared[name].default, name
