# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The robot of a command: a URDF, .xacro or MJCF, and the part of it that is used."""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Collection
from pathlib import Path
from typing import Any

import mbs_dynamics as mbs
from mbs_dynamics.errors import ArgumentError
from mbs_dynamics.model.mjcf import UNSUPPORTED, is_mjcf
from mbs_dynamics.output_files import expanded, missing_file
from mbs_dynamics.resources import robot_path
from mbs_dynamics.ros.robot_description import read_robot
from mbs_dynamics.view import PageOptions


class Description:
    """The description of a robot, and the options that apply to it."""

    def __init__(self, options: argparse.Namespace) -> None:
        """Find the file, and expand a .xacro. Raises ArgumentError if there is no such file."""
        name, path = options.robot, expanded(options.robot)
        is_name = not path.exists() and "/" not in name and "." not in name
        self.path = robot_path(name) if is_name else path
        if not self.path.exists():
            raise ArgumentError(missing_file(self.path))
        self.is_mjcf = is_mjcf(self.path)
        self.source: Path | str = self.path
        """The path, or the text of the URDF from a .xacro."""
        if self.path.suffix == ".xacro" or options.xacro_args:
            self.source = read_robot("the robot", str(self.path), options.xacro_args)
        given = {name: getattr(options, name, None) for name in ("root", "tip", "floating_base")}
        self._part = {name: value for name, value in given.items() if value}
        self._gravity = getattr(options, "gravity", None)
        if self.is_mjcf and self._part:
            options_given = ", ".join("--" + name.replace("_", "-") for name in self._part)
            raise ArgumentError(f"{options_given}: valid for a URDF; {self.path} is an MJCF")

    @property
    def urdf(self) -> Path | str:
        """The URDF, as a path or as text. Raises ArgumentError for an MJCF."""
        if self.is_mjcf:
            raise ArgumentError(f"this command needs a URDF; {self.path} is an MJCF")
        return self.source

    def model(self, *, leave_out: Collection[str] = ()) -> mbs.Model:
        """Return the model, with its gravity if the command takes one.

        ``leave_out`` are elements of an MJCF to ignore, since no tree has them. Warnings are in the
        diagnostics of the model.
        """
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", mbs.ModelWarning)
            if self.is_mjcf:
                model = mbs.Model.from_mjcf(self.path, leave_out=leave_out)
            else:
                model = mbs.Model.from_urdf(self.source, **self._part)
        return model if self._gravity is None else model.with_gravity(self._gravity)

    def drawn(self) -> mbs.Model:
        """Return the model for display: a tree, without elements that close loops."""
        return self.model(leave_out=UNSUPPORTED)

    def page(self, options: argparse.Namespace, **more: Any) -> PageOptions:
        """Return the options of a page of the robot; ``more`` are options besides the port."""
        folders = [*getattr(options, "package_path", ()), *self.path.absolute().parents]
        return PageOptions(self.source, packages=folders, port=options.port, **more)
