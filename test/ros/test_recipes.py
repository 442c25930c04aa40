# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The parameters that the recipes print load into the nodes as they stand."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

pytest.importorskip("rclpy")

import rclpy

from mbs_dynamics.ros.compensation.interface import GravityCompensationSettings
from mbs_dynamics.ros.dynamics.interface import DynamicsSettings
from mbs_dynamics.ros.interface import parameter_groups
from mbs_dynamics.ros.parameters import declare

pytestmark = pytest.mark.backend_independent

FOLDER = Path(__file__).parents[2] / "docs" / "how_to" / "arms"
PAGES = sorted(path for path in FOLDER.glob("*.md") if path.stem != "index")
SETTINGS = {
    "dynamics_node": DynamicsSettings,
    "gravity_compensation_node": GravityCompensationSettings,
}


def yaml_of(page):
    return re.findall(r"^```yaml\n(.*?)^```", page.read_text(encoding="utf-8"), re.M | re.S)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_parameters_of_a_recipe_load(page, tmp_path):
    (text,) = yaml_of(page)
    file = tmp_path / "recipe.yaml"
    file.write_text(text, encoding="utf-8")
    found = [name.rpartition("/")[2] for name, _ in parameter_groups(file)]
    assert found
    assert set(found) <= set(SETTINGS)
    context = rclpy.Context()
    rclpy.init(args=["--ros-args", "--params-file", str(file)], context=context)
    try:
        for name in found:
            node = rclpy.create_node(
                name, context=context, automatically_declare_parameters_from_overrides=True
            )
            given = set(node.get_parameters_by_prefix("")) - {"start_type_description_service"}
            declare(node, SETTINGS[name])  # raises for a bad value
            assert given <= {*node.get_parameters_by_prefix("")}  # and removes what it ignores
            assert len(given) > 0
            node.destroy_node()
    finally:
        rclpy.shutdown(context=context)


def test_the_controller_has_the_joints_of_the_node():
    (text,) = yaml_of(FOLDER / "index.md")
    controller = yaml.safe_load(text)["forward_effort_controller"]["ros__parameters"]
    config = yaml.safe_load((FOLDER.parents[2] / "config/gravity_compensation.yaml").read_text())
    assert controller["joints"] == config["/**"]["ros__parameters"]["joints"]
