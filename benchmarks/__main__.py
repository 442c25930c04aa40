# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Run benchmarks by name, or all: print their tables, and keep them in benchmarks/results."""

from __future__ import annotations

import argparse
import importlib
import os

from benchmarks import report
from mbs_dynamics.compiler import default_backend

BENCHMARKS = {
    "suite": "Every algorithm beside Pinocchio, MuJoCo and Drake, one state and batches.",
    "calls": "What one evaluation takes, in microseconds, beside Pinocchio from Python.",
    "batch": "Batches of states in one call, beside loops.",
    "first_torque": "From a fresh clone to the first gravity torque on a terminal.",
    "startup": "From a fresh process to compiled kernels.",
    "compilation": "Seconds to trace and to compile every function, of arms and of 500 joints.",
    "operations": "Operations of each algorithm in each representation.",
    "kinematics_higher": "Higher-order kinematics and all bodies at once, beside Pinocchio.",
    "large_trees": "Straight-line code beside chunks, and long chains beside Pinocchio.",
    "passes": "What each pass of the compiler buys that could be left out.",
    "sizes": "Longer chains and humanoids: time to compile and time to evaluate.",
    "view": "The page in the browser: its start, a slider, scenes per second, its cost to a node.",
    "identification": "Held-out torques of real arms, trials on known truth, and speed.",
    "simulation": "Simulated steps per second: one arm and a batch, beside MuJoCo's rollout.",
    "accuracy": "The largest difference from Pinocchio.",
}


def main() -> None:
    """Run what the command line names."""
    listed = "\n".join(f"  {name:19}{what}" for name, what in BENCHMARKS.items())
    parser = argparse.ArgumentParser(
        "python -m benchmarks",
        description=f"{__doc__}\n\n{listed}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("names", nargs="*", metavar="name", help="a benchmark; all by default")
    names = parser.parse_args().names
    unknown = [name for name in names if name not in BENCHMARKS]
    if unknown:
        parser.error(f"no benchmark {unknown[0]!r}; there are: {', '.join(BENCHMARKS)}")
    if default_backend() != "llvm":
        parser.error("machine code is measured: install llvmlite, and unset MBS_BACKEND")
    os.environ["MBS_CACHE"] = "0"  # what it takes to compile is measured
    for name in names or BENCHMARKS:
        benchmark = getattr(importlib.import_module(f"benchmarks.{name}"), name)
        print(f"# {name}\n\n{BENCHMARKS[name]}\n\n{report.conditions()}\n", flush=True)
        tables = []
        for table in benchmark():
            tables.append(table)
            print(table, flush=True)
        report.write(name, BENCHMARKS[name], report.conditions(), tables)


if __name__ == "__main__":
    main()
