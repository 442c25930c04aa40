# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""From a fresh process to the compiled kernels of the dynamics node, and where the time goes."""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import mbs_dynamics as mbs
from benchmarks.mechanisms import program, representations, robot, urdf
from benchmarks.report import Table
from benchmarks.timing import Call, interleaved, median
from mbs_dynamics.algorithms import algorithm_of
from mbs_dynamics.compiler import Kernel
from mbs_dynamics.representation import AUTO

PROCESSES = 15
"""Fresh processes of each kind."""

ROUNDS = 9

CHECKOUT = Path(__file__).resolve().parents[1]

TIMED = (
    mbs.twists,
    mbs.jacobian,
    mbs.gravity_torques,
    mbs.bias_torques,
    mbs.inverse_dynamics,
)
"""Functions that are timed: all of the dynamics node, and inverse dynamics."""

IN_KERNELS = ("trace", "compile")


def startup() -> Iterator[Table]:
    """Yield fresh processes of the arms, then the share of each kernel of one arm."""
    for name in ("arm7", "Panda"):
        yield _fresh(name, cached=False)
        yield _fresh(name, cached=True)
    yield _kernels("arm7")


def _fresh(name: str, *, cached: bool) -> Table:
    command = [sys.executable, "-m", "benchmarks.fresh_process", str(urdf(name))]
    with tempfile.TemporaryDirectory() as cache:
        environment = {**os.environ, "PYTHONPYCACHEPREFIX": cache}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        environment |= {"MBS_CACHE": str(int(cached)), "MBS_CACHE_DIR": f"{cache}/objects"}
        runs = [
            json.loads(subprocess.check_output(command, cwd=CHECKOUT, env=environment))
            for _ in range(PROCESSES + 1)
        ][1:]  # the first one writes the bytecode, and the objects
    taken = {key: [median([run[key][k] for run in runs]) for k in (0, 1)] for key in runs[0]}
    columns = ("milliseconds", "passed", "on a processor")
    what = "loads all kernels, which an earlier one compiled" if cached else "compiles all kernels"
    table = Table(f"{name}: a fresh process that {what}", columns)
    parts = [key for key in taken if key not in IN_KERNELS and key != "all"]
    table.rows = [(key, *taken[key]) for key in (*parts, "all")]
    table.rows += [(f"of this, to {key}", *taken[key]) for key in IN_KERNELS]
    table.note = (
        f"Medians of {PROCESSES} processes. Bytecode is cached, and files are in the operating "
        "system's cache. The start of Python itself is not included. The kernels are those of the "
        "dynamics node with its default parameters."
    )
    return table


def _kernels(name: str) -> Table:
    """Time the stages of making a kernel, for each algorithm and representation."""
    model = robot(name)
    defaults = {"gravity": model.gravity, "payload": model.payloads.parameters}
    columns = ("milliseconds", "representation", "operations", "trace", "compile", "of this: IR")
    table = Table(f"{name}: time of each kernel", columns)
    for function in TIMED:
        auto = (AUTO,) if algorithm_of(function).invariant else ()
        for representation in (*representations(function), *auto):
            traced = program(function, model, representation)
            kernel = Kernel(traced, backend="llvm", defaults=defaults)
            taken = interleaved(
                {
                    "trace": Call(program, (function, model, representation)),
                    "compile": Call(Kernel, (traced,), {"backend": "llvm", "defaults": defaults}),
                    "IR": Call(kernel.to_llvm),
                },
                ROUNDS,
            )
            times = [1e-3 * median(samples) for samples in taken.values()]
            total = kernel.operations.total
            table.rows.append((function.__name__, representation, total, *times))
    table.note = f"Medians of {ROUNDS} in one warm process. auto traces all four and keeps one."
    return table
