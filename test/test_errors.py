# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Exceptions survive pickling, as process pools send them from one process to another."""

from __future__ import annotations

import importlib
import os
import pickle
import pkgutil
import sys
from collections.abc import Iterator

import pytest

import mbs_dynamics as mbs
from mbs_dynamics.control import Motors
from mbs_dynamics.control.motor_table import UnknownKeyError
from mbs_dynamics.errors import SimulationError, UnknownNameError
from mbs_dynamics.output_files import write_at_once
from mbs_dynamics.resources import robot_path


def exceptions() -> list[type[Exception]]:
    """Return every exception class that the modules of the package define."""
    for module in pkgutil.walk_packages(mbs.__path__, "mbs_dynamics."):
        if not module.name.endswith("__main__"):
            try:
                importlib.import_module(module.name)
            except (ImportError, mbs.BackendError):  # ROS or an extra is not installed
                continue
    found = {x for x in below(Exception) if x.__module__.startswith("mbs_dynamics.")}
    return sorted(found, key=lambda cls: cls.__name__)


def below(cls: type[Exception]) -> Iterator[type[Exception]]:
    for subclass in cls.__subclasses__():
        yield subclass
        yield from below(subclass)


def instance(cls: type[Exception]) -> Exception:
    if cls is UnknownKeyError:
        return cls("motors", "sing", ["sign", "zero"])
    if issubclass(cls, UnknownNameError):
        return cls("elbwo", ["elbow", "wrist"])
    if issubclass(cls, SimulationError):
        return cls("the step is too long", time=0.5, motion=(1.0, 2.0))
    return cls("a message")


def test_exceptions_survive_pickling():
    assert len(exceptions()) > 20
    for cls in exceptions():
        error = instance(cls)
        error.remark = "set by a caller"  # type: ignore[attr-defined]
        copy = pickle.loads(pickle.dumps(error))
        assert type(copy) is cls
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
