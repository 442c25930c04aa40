# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Commands of ``mbs-dynamics`` and the options that several have: a robot, a state, a page."""

from __future__ import annotations

import argparse
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import mbs_dynamics as mbs
from mbs_dynamics.checks import FloatArray
from mbs_dynamics.errors import ArgumentError, listed
from mbs_dynamics.model.coordinates import position_names, velocity_names
from mbs_dynamics.output_files import check_writable, expanded
from mbs_dynamics.resources import robot_path
from mbs_dynamics.ros.robot_description import read_robot, split_arguments
from mbs_dynamics.timeseries import TimeSeries

MOTION_DATA = "motion data: .csv, .npz, a bag, a JointTrajectory .yaml, or a LeRobot dataset"
"""Files of motion data in texts of options."""


class Command:
    """One command: its parser, and groups of options."""

    def __init__(self, commands: Any, name: str, run: Any, purpose: str) -> None:
        self.parser = commands.add_parser(name, help=purpose)
        self.parser.set_defaults(run=run)

    def add(self, names: str, text: str, **more: Any) -> None:
        """Add an argument; ``names`` are separated by blanks."""
        self.parser.add_argument(*names.split(), help=text, **more)

    def flag(self, name: str, text: str) -> None:
        """Add an option without a value."""
        self.add(name, text, action="store_true")

    def file(self, name: str, text: str, **more: Any) -> None:
        """Add the path of a file."""
        if name.startswith("-"):
            more.setdefault("metavar", "FILE")
        self.add(name, text, type=expanded, **more)

    def robot(self, **more: Any) -> None:
        """Add the argument of a robot, and that of a .xacro file."""
        shipped = "path of a URDF or .xacro, or the name of a robot shipped here: arm7"
        self.add("robot", shipped, **more)
        text = 'arguments of the .xacro, such as "ur_type:=ur5e name:=ur"'
        self.add("--xacro-args", text, default="", metavar="ARGS")

    def part(self) -> None:
        """Add the options that select a part of a robot and its base; see :func:`part_of`."""
        self.add("--root", "link to take as the ground (default: the root link)")
        self.add("--tip", "keep only the chain from the root to this link")
        self.flag("--floating-base", "move the root link by a free joint")

    def gravity(self) -> None:
        """Add the option of gravity."""
        text = "free-fall acceleration in the axes of the root link, m/s^2 (default: 0 0 -9.81)"
        self.add("--gravity", text, type=float, nargs=3, metavar=("X", "Y", "Z"))

    def algorithm(self) -> None:
        """Add the options of an algorithm."""
        self.add("--body", "body or link, for algorithms that take one")
        self.add("--representation", "of twists and wrenches", choices=mbs.REPRESENTATIONS)

    def pairs(
        self,
        name: str,
        text: str,
        value: Callable[[str], Any] = float,
        form: str = "JOINT=VALUE",
        *,
        named: bool = False,
    ) -> None:
        """Add an option of several NAME=VALUE; see :class:`Pair`."""
        kind = Pair(value, form, named=named)
        self.add(name, text, type=kind, nargs="+", default=[], metavar=form)

    def state(self) -> None:
        """Add the options of an initial state; see :func:`initial_state`."""
        self.pairs(
            "--q",
            "initial posture, in rad or m: JOINT=VALUE of any joints, such as elbow=0.5, while "
            "others start at zero or the nearest limit; or one VALUE for each joint, in the order "
            "that info prints",
        )
        self.pairs("--qd", "initial rates, in the same way (default: at rest)")

    def reading(self) -> None:
        """Add the options of reading a recording."""
        text = "topic of the joint states in bags, or number of the episode of a LeRobot dataset"
        self.add("--topic", text, default="")
        text = (
            "names and units of columns, such as Time=t[ms] J1=q_joint1; units of all joints, such "
            "as q=[deg]; t=rows/RATE for numbers of rows; qd=none for what is not to be used"
        )
        self.pairs("--columns", text, str, "NAME=MEANING", named=True)

    def page(self) -> None:
        """Add the options of a page in the browser."""
        self.add("--port", "of the page (default: 8080 or the next free)", type=int)
        self.flag("--no-browser", "only print the address")


class Pair:
    """The type of an argument NAME=VALUE, or VALUE with an empty name unless ``named``."""

    def __init__(self, value: Callable[[str], Any], form: str, *, named: bool) -> None:
        self.value, self.form, self.named = value, form, named

    def __call__(self, text: str) -> tuple[str, Any]:
        """Return name and value; raise ArgumentTypeError for another form."""
        name, _, given = text.rpartition("=")
        try:
            if given and (name or not self.named):
                return name, self.value(given)
        except (KeyError, ValueError):
            pass
        raise argparse.ArgumentTypeError(f"{text!r} is not {self.form}")


def part_of(options: argparse.Namespace) -> dict[str, Any]:
    """Return the options of :meth:`Command.part`, as ``Model.from_urdf`` takes them."""
    every = {name: getattr(options, name) for name in ("root", "tip", "floating_base")}
    return {name: value for name, value in every.items() if value}


def robot(name: str, xacro_args: str = "", **part: Any) -> mbs.Model:
    """Return the model of a URDF or .xacro, or of a robot shipped here, without warnings."""
    source = robot_source(robot_file(name), xacro_args)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", mbs.ModelWarning)
        return mbs.Model.from_urdf(source, **part)


def robot_of(options: argparse.Namespace) -> mbs.Model:
    """Return the model of a command line, with its gravity if it takes one."""
    model = robot(options.robot, options.xacro_args, **part_of(options))
    gravity = getattr(options, "gravity", None)
    return model if gravity is None else model.with_gravity(gravity)


def robot_source(path: Path, xacro_args: str) -> Path | str:
    """Return the path of a URDF, or the text of the URDF that a .xacro becomes."""
    if path.suffix != ".xacro" and not xacro_args:
        return path
    return read_robot("the robot", str(path), xacro_args)


def robot_file(name: str) -> Path:
    """Return the path of a URDF, given as such or as the name of a robot shipped here."""
    path = expanded(name)
    is_name = not path.exists() and "/" not in name and "." not in name
    return robot_path(name) if is_name else path


def model_code(path: Path, options: argparse.Namespace) -> str:
    """Return a Python expression for the model of a command line."""
    chain = "".join(f", {name}={x!r}" for name, x in part_of(options).items())
    source = repr(str(path))
    if path.suffix == ".xacro":
        given = split_arguments("xacro_args", options.xacro_args)
        source = f"xacro.process_file({source}, mappings={given}).toxml()"
    return f"mbs.Model.from_urdf({source}{chain})"


def initial_state(model: mbs.Model, options: argparse.Namespace) -> tuple[FloatArray, FloatArray]:
    """Return the initial positions (nq,) and rates (n,)."""
    q = _vector("--q", position_names(model.joints), options.q, model.neutral(within_limits=True))
    return q, _vector("--qd", velocity_names(model.joints), options.qd, np.zeros(model.n))


def _vector(
    option: str, names: Sequence[str], given: Sequence[tuple[str, float]], x: FloatArray
) -> FloatArray:
    """Return x with the settings of a command line in it."""
    if not all(joint for joint, _ in given):
        if len(given) != len(names) or any(joint for joint, _ in given):
            got = " ".join(f"{joint}={x:g}" if joint else f"{x:g}" for joint, x in given)
            raise ArgumentError(
                f"{option} takes JOINT=VALUE of any joints, or {len(names)} values, those of "
                f"{listed(names)}; got {got}"
            )
        return np.array([value for _, value in given])
    mbs.UnknownJointError.check([joint for joint, _ in given], names)
    x = x.copy()
    for joint, value in by_name(option, given).items():
        x[names.index(joint)] = value
    return x


def recording_in(path: Path, options: argparse.Namespace, *, timed: bool = True) -> TimeSeries:
    """Return the motion data in a file, read by the options of :meth:`Command.reading`."""
    columns = by_name("--columns", options.columns)
    return TimeSeries.read(path, columns=columns, topic=options.topic, timed=timed)


def check_output(option: str, path: Path | None, kinds: Sequence[str]) -> None:
    """Raise ArgumentError, naming the option, if no file of these kinds can be written there."""
    if path is None:
        return
    if path.suffix not in kinds:
        raise ArgumentError(f"{option} must end in {', '.join(kinds)}; got {str(path)!r}")
    check_writable(option, path)


def by_name(option: str, pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    """Return the values of an option NAME=VALUE by name; ArgumentError for a name given twice."""
    values = dict(pairs)
    for name, times in Counter(name for name, _ in pairs).items():
        if times > 1:
            raise ArgumentError(f"{option} has {name!r} twice; valid are different names")
    return values


def table(head: list[str], rows: list[list[str]]) -> Iterable[str]:
    """Yield a table with columns as wide as their contents; empty columns are omitted."""
    kept = [k for k in range(len(head)) if any(row[k] for row in rows)]
    widths = {k: max(len(line[k]) for line in [head, *rows]) for k in kept}

    def text(row: list[str], justify: Callable[[str, int], str] = str.ljust) -> str:
        return "  " + "  ".join(justify(row[k], widths[k]) for k in kept).rstrip()

    yield text(head)
    yield "  " + "  ".join("-" * widths[k] for k in kept)
    yield from (text(row) for row in rows)
