# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The tables of parameters, topics and services that pages and nodes are made from."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from mbs_dynamics.ros.entry_points import INTERFACES, interface_of

NODES = sorted(INTERFACES)
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
