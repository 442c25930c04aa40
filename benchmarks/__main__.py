# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Run benchmarks by name, or all: print their tables, and keep them in benchmarks/results."""

import argparse
import importlib
import os

from benchmarks import report
from mbs_dynamics.compiler import default_backend

BENCHMARKS = {
    "suite": "Every algorithm compared with Pinocchio, MuJoCo and Drake: one state and batches.",
    "floating": "The same for robots on a floating base, compared with Pinocchio.",
    "calls": "Time of one evaluation in microseconds, called in every possible way.",
    "startup": "From a fresh process to compiled kernels.",
    "guarded_arm": "A step of an arm behind a bus of motors, by what it is doing.",
    "guarded_events": "Motion of an arm under guard at every event, on a simulated bus of drives.",
    "collision": "Contacts that are detected in 20 ms, and false alarms, with wrong masses.",
    "identification": "Held-out torques of real arms, trials with known parameters, and speed.",
    "simulation": "Simulation steps per second: one arm and a batch, compared with MuJoCo.",
}


def main() -> None:
    """Run the benchmarks named in the command line."""
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
    os.environ["MBS_CACHE"] = "0"  # compilation is measured
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
