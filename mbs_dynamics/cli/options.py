# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Common parts of the commands: options of a robot, a state and files, and output."""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import mbs_dynamics as mbs
from mbs_dynamics.checks import FloatArray
from mbs_dynamics.errors import ArgumentError, listed
from mbs_dynamics.model.coordinates import position_names, velocity_names
from mbs_dynamics.output_files import check_writable, expanded, missing_file
from mbs_dynamics.timeseries import TimeSeries

MOTION_DATA = "motion data: .csv, .npz, a bag, a JointTrajectory .yaml, or a LeRobot dataset"
"""Files of motion data in help texts."""


class Command:
    """A subcommand: its parser, and groups of options. Its help text ends with an example."""

    def __init__(self, commands: Any, name: str, run: Any, purpose: str, example: str) -> None:
        self.parser = commands.add_parser(
            name,
            help=purpose,
            description=f"{purpose[0].upper()}{purpose[1:]}.",
            epilog=f"example: mbs-dynamics {name} {example}",
        )
        self._inputs: list[str] = []
        self._outputs: list[tuple[str, str, Sequence[str]]] = []
        self.parser.set_defaults(run=run, inputs=self._inputs, outputs=self._outputs)

    def add(self, names: str, text: str, **more: Any) -> argparse.Action:
        """Add an argument; ``names`` are separated by spaces."""
        action: argparse.Action = self.parser.add_argument(*names.split(), help=text, **more)
        return action

    def flag(self, name: str, text: str) -> None:
        """Add an option without a value."""
        self.add(name, text, action="store_true")

    def file(self, name: str, text: str, **more: Any) -> None:
        """Add the path of a file or folder to read, which must exist."""
        if name.startswith("-"):
            more.setdefault("metavar", "FILE")
        self._inputs.append(self.add(name, text, type=expanded, **more).dest)

    def output(self, name: str, text: str, kinds: Sequence[str] = (), **more: Any) -> None:
        """Add the path of a file to write; ``kinds`` are its valid endings, by default any."""
        dest = self.add(name, text, type=expanded, metavar="FILE", **more).dest
        self._outputs.append((name, dest, kinds))

    def robot(self, names: str = "robot", **more: Any) -> None:
        """Add the argument of a robot, and the arguments of a .xacro file."""
        text = "URDF, .xacro or MJCF (.xml, .mjb), or the name of a robot of this package: arm7"
        self.add(names, text, **more)
        text = 'arguments of the .xacro, such as "ur_type:=ur5e name:=ur"'
        self.add("--xacro-args", text, default="", metavar="ARGS")

    def part(self) -> None:
        """Add the options that select a part of a robot and its base."""
        self.add("--root", "link to take as the ground (default: the root link)")
        self.add("--tip", "keep only the chain from the root to this link")
        self.flag("--floating-base", "give the root link a free joint to the ground")

    def gravity(self) -> None:
        """Add the option of gravity."""
        text = "free-fall acceleration in the axes of the root link, m/s^2 (default: 0 0 -9.81)"
        self.add("--gravity", text, type=float, nargs=3, metavar=("X", "Y", "Z"))

    def numbers(self, *options: tuple[str, str, float]) -> None:
        """Add options of numbers: name, meaning and default."""
        for name, text, default in options:
            shown = f"{text} (default: {default:g})"
            self.add(name, shown, type=type(default), default=default)

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
            "initial positions, in rad or m: JOINT=VALUE of any joints, such as elbow=0.5, others "
            "start at zero or the nearest limit; or one VALUE for each joint, in the order that "
            "info prints",
        )
        self.pairs("--qd", "initial rates, in the same way (default: at rest)")

    def reading(self) -> None:
        """Add the options of reading a recording."""
        text = "topic of the joint states in bags, or number of the episode of a LeRobot dataset"
        self.add("--topic", text, default="")
        text = (
            "names and units of columns, such as Time=t[ms] J1=q_joint1; units of all joints, such "
            "as q=[deg]; t=rows/RATE for times by row numbers; qd=none for unused columns"
        )
        self.pairs("--columns", text, str, "NAME=MEANING", named=True)

    def page(self) -> None:
        """Add the options of a page in the browser."""
        self.add("--port", "port of the page (default: 8080 or the next free)", type=int)
        self.flag("--no-browser", "only print the address")


class Pair:
    """The argparse type of NAME=VALUE; unless ``named``, VALUE is valid and has the name ''."""

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


def check_files(options: argparse.Namespace) -> None:
    """Raise ArgumentError if an input is missing, or an output cannot be written.

    It is called before anything is computed.
    """
    for name in options.inputs:
        given = getattr(options, name)
        for path in given if isinstance(given, list) else [given]:
            if path is not None and not path.exists():
                raise ArgumentError(missing_file(path))
    for option, name, kinds in options.outputs:
        if (path := getattr(options, name)) is None:
            continue
        check_writable(option, path)
        if kinds and path.suffix not in kinds:
            raise ArgumentError(f"{option} must end in {', '.join(kinds)}; got {str(path)!r}")


def initial_state(model: mbs.Model, options: argparse.Namespace) -> tuple[FloatArray, FloatArray]:
    """Return the initial positions (nq,) and rates (n,)."""
    q = _vector("--q", position_names(model.joints), options.q, model.neutral(within_limits=True))
    return q, _vector("--qd", velocity_names(model.joints), options.qd, np.zeros(model.n))


def _vector(
    option: str, names: Sequence[str], given: Sequence[tuple[str, float]], x: FloatArray
) -> FloatArray:
    """Return x with the values that an option gives, by name or for all coordinates."""
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
    """Return the motion data in a file, read with the options of :meth:`Command.reading`."""
    columns = by_name("--columns", options.columns)
    return TimeSeries.read(path, columns=columns, topic=options.topic, timed=timed)


def by_name(option: str, pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    """Return the values of an option NAME=VALUE by name; ArgumentError for a name given twice."""
    values = dict(pairs)
    for name, times in Counter(name for name, _ in pairs).items():
        if times > 1:
            raise ArgumentError(f"{option} has {name!r} twice; names must differ")
    return values


def write_text(path: Path | None, text: str) -> None:
    """Write a text file and print its name, unless the path is None."""
    if path is not None:
        path.write_text(text, encoding="utf-8")
        print(f"wrote {path}")


def write_json(path: Path | None, **results: Any) -> None:
    """Write results as JSON, unless the path is None."""
    if path is not None:
        path.write_text(json.dumps(results, indent=2) + "\n", encoding="utf-8")


def remark(*texts: str, kind: str = "note") -> None:
    """Print remarks to the standard error."""
    for text in texts:
        print(f"{kind}: {text}", file=sys.stderr)
