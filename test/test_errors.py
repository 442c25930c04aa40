# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Exceptions, which process pools pickle; a package that is missing; files that are replaced."""

import os
import pickle
import sys

import pytest

import mbs_dynamics as mbs
from mbs_dynamics.control import Motors
from mbs_dynamics.control.motor_table import UnknownKeyError
from mbs_dynamics.errors import ArgumentError, SimulationError, UnknownBodyError
from mbs_dynamics.output_files import write_at_once
from mbs_dynamics.resources import robot_path
from mbs_dynamics.timeseries.columns import UnknownColumnError


@pytest.mark.parametrize(
    "error",
    [
        ArgumentError("a message"),
        UnknownBodyError("elbwo", ["elbow", "wrist"]),
        UnknownColumnError("q_elbwo", ["q_elbow", "q_wrist"]),
        UnknownKeyError("motors", "sing", ["sign", "zero"]),
        SimulationError("the step is too long", time=0.5, motion=(1.0, 2.0)),
    ],
    ids=lambda error: type(error).__name__,
)
def test_exceptions_survive_pickling(error):
    """A plain one, and each kind that takes more than a message."""
    error.remark = "set by a caller"
    copy = pickle.loads(pickle.dumps(error))
    assert type(copy) is type(error)
    assert str(copy) == str(error)
    assert copy.args == error.args
    assert vars(copy) == vars(error)


def test_a_table_of_motors_without_pyyaml_says_what_to_install(tmp_path, monkeypatch):
    path = tmp_path / "motors.yaml"
    path.write_text("motors: {}")
    monkeypatch.setitem(sys.modules, "yaml", None)
    with pytest.raises(mbs.BackendError, match="pip install pyyaml"):
        Motors.read(path, mbs.Model.from_urdf(robot_path("arm7")))


def test_files_are_replaced_without_a_predictable_name_beside_them(tmp_path):
    path = tmp_path / "table.yaml"
    path.write_text("old")
    trap = tmp_path / f".{path.name}.{os.getpid()}"
    trap.symlink_to(tmp_path / "victim")
    write_at_once("--out", path, "new")
    assert path.read_text() == "new"
    assert sorted(x.name for x in tmp_path.iterdir()) == sorted([path.name, trap.name])
