# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The commands ``info``, for a robot's tree and limits, and ``count``, for operation counts."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from typing import Any

import mbs_dynamics as mbs
from mbs_dynamics.cli.description import Description
from mbs_dynamics.cli.options import Command
from mbs_dynamics.compiler import call_mechanism, default_backend
from mbs_dynamics.errors import shortened
from mbs_dynamics.model.body import GROUND
from mbs_dynamics.model.model import warnings_about
from mbs_dynamics.operation_counts import Count, algorithm_counts, forward_dynamics_counts

OPERATIONS = ["algorithm", *mbs.REPRESENTATIONS, "not available"]
"""Columns of a table of operation counts; the last one states why an algorithm has none."""


def add_commands(commands: Any) -> None:
    """Add the commands to the parser's subcommands."""
    purpose = "print a robot's tree, masses, limits and warnings"
    info = Command(commands, "info", _info, purpose, "arm7 --tip tool")
    info.robot()
    info.part()

    purpose = "print operation counts of a robot's algorithms, or of chains with published ones"
    count = Command(commands, "count", _count, purpose, "--sizes 6 7")
    count.robot(nargs="?")
    text = "numbers of joints of the chains that are counted without a robot (default: 6 10 14)"
    count.add("--sizes", text, type=_size, nargs="+", default=[6, 10, 14], metavar="N")


def _size(text: str) -> int:
    """Return a number of joints, limited so that counting ends in reasonable time."""
    if not (text.isdecimal() and 1 <= int(text) <= 100):
        raise argparse.ArgumentTypeError(f"must be a number of joints from 1 to 100; got {text!r}")
    return int(text)


def _info(options: argparse.Namespace) -> int:
    model = Description(options).drawn()
    print("\n".join(_described(model)))
    backend = default_backend()
    print(f"\nKernels: back end {backend}, called through {call_mechanism(backend)}")
    return 0


def _count(options: argparse.Namespace) -> int:
    if options.robot is None:
        sizes = sorted(set(options.sizes))
        print("Forward dynamics of n revolute joints: multiplications / additions")
        rows = [[name, *map(str, row)] for name, row in forward_dynamics_counts(sizes).items()]
        lines = _table(["algorithm", *(f"n = {n}" for n in sizes)], rows)
    else:
        model = Description(options).drawn()
        print(f"{model.name}: multiplications / additions (the cheapest has a star)")
        lines = _table(OPERATIONS, list(_operation_rows(model)))
    print("\n".join(lines))
    return 0


def _described(model: mbs.Model) -> Iterable[str]:
    names = model.body_names
    yield str(model)
    yield f"{sum(body.inertia.mass for body in model.bodies):.6g} kg in motion"
    yield from ("", "Centres of mass of the bodies, and joints (SI units: m, rad, N m, N)")
    header = ["body", "centre of mass", "joint", "velocity", "effort", "damping", "friction"]
    yield from _table(header, _joint_rows(model))
    frames = [
        f"{frame.name}, fixed to {'ground' if frame.body == GROUND else names[frame.body]}"
        for frame in model.frames.values()
        if frame.name not in names
    ]
    notes = [str(each) for each in model.diagnostics if each.severity == "note"]
    sections = ("Frames", frames), ("Warnings", warnings_about(model)), ("Notes", notes)
    for title, lines in sections:
        if lines:
            yield from ("", title, *(f"  {each}" for each in lines))


def _joint_rows(model: mbs.Model) -> list[list[str]]:
    rows = []
    for body in model.bodies:
        joint, com = body.joint, ", ".join(f"{x + 0.0:.4g}" for x in body.inertia.com)
        stated = joint.limits.velocity, joint.limits.effort, joint.damping, joint.friction
        rows.append(
            [body.name, com, joint.name, *("-" if x is None else f"{x:.5g}" for x in stated)]
        )
    return rows


def _operation_rows(model: mbs.Model) -> Iterable[list[str]]:
    """Yield the rows of a table with the columns :data:`OPERATIONS`."""
    for title, operations, reason in algorithm_counts(model, mbs.ALGORITHMS):
        if not operations:
            yield [title, *["-"] * len(mbs.REPRESENTATIONS), shortened(reason)]
            continue
        least = min(count.total for count in operations.values())
        cells = [
            f"{Count.of(count)}{' *' if count.total == least and len(operations) > 1 else ''}"
            for count in operations.values()
        ]
        yield [title, *(cells if len(cells) > 1 else cells * len(mbs.REPRESENTATIONS)), ""]


def _table(header: list[str], rows: list[list[str]]) -> Iterable[str]:
    """Yield a table with columns as wide as their contents; empty columns are omitted."""
    used = [k for k in range(len(header)) if any(row[k] for row in rows)]
    widths = {k: max(len(line[k]) for line in [header, *rows]) for k in used}
    for row in (header, ["-" * widths.get(k, 0) for k in range(len(header))], *rows):
        yield "  " + "  ".join(row[k].ljust(widths[k]) for k in used).rstrip()
