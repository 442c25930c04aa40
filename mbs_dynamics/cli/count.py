# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The command ``mbs-dynamics count``: operations of all algorithms of a robot or of chains."""

from __future__ import annotations

import argparse
from typing import Any

from mbs_dynamics.cli.info import OPERATIONS, operation_rows
from mbs_dynamics.cli.options import Command, robot, table
from mbs_dynamics.operation_counts import Count, forward_dynamics_counts


def add_commands(commands: Any) -> None:
    """Add the command to the parser's subcommands."""
    purpose = "print operation counts of a robot's algorithms, or of chains with published ones"
    count = Command(commands, "count", _count, purpose)
    count.add("robot", "path or name, as for info (default: chains)", nargs="?")
    sizes: dict[str, Any] = {"type": _size, "nargs": "+", "metavar": "N"}
    text = "numbers of joints of the chains (default: 6 10 14)"
    count.add("--sizes", text, default=[6, 10, 14], **sizes)


def _count(options: argparse.Namespace) -> int:
    if options.robot is None:
        sizes = sorted(set(options.sizes))
        counts = forward_dynamics_counts(sizes)
        print("Forward dynamics of n revolute joints: multiplications / additions")
        rows = [[name, *map(str, row)] for name, row in counts.items()]
        lines = table(["algorithm", *(f"n = {n}" for n in sizes)], rows)
    else:
        model = robot(options.robot)
        print(f"{model.name}: multiplications / additions (the cheapest has a star)")
        rows = list(operation_rows(model, Count.of))
        lines = table(OPERATIONS, rows)
    for line in lines:
        print(line)
    return 0


def _size(text: str) -> int:
    """Return a number of joints, limited so that counting ends in reasonable time."""
    n = int(text)
    if not 1 <= n <= 100:
        raise argparse.ArgumentTypeError(f"a size must be from 1 to 100; got {n}")
    return n
