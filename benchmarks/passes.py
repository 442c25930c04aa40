# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Effect of each optional pass: kernels compiled with the pass and without it.

Lowering is not optional: the LLVM code assumes that values that are equal in all lanes
of a parallel loop are computed before the loop.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from time import thread_time
from typing import Any, NamedTuple
from unittest import mock

import numpy as np

import mbs_dynamics as mbs
from benchmarks.mechanisms import program, robot
from benchmarks.report import Table
from benchmarks.timing import Call, interleaved
from mbs_dynamics.compiler import Kernel, Program
from mbs_dynamics.compiler.ir.nodes import Module
from mbs_dynamics.representation import AUTO

ROUNDS = 41

Case = tuple[str, str, int]
"""A mechanism, an algorithm, and how many states."""

ROBOTS: tuple[Case, ...] = (
    ("UR5", "gravity_torques", 1),
    ("Panda", "inverse_dynamics", 1),
    ("G1", "inverse_dynamics", 1),
    ("Talos", "coriolis_matrix", 1),
    ("G1", "forward_dynamics", 1),
    ("Panda", "inverse_dynamics", 1000),
    ("G1", "inverse_dynamics_derivatives", 1000),
)
LARGE: tuple[Case, ...] = tuple(
    (name, "forward_dynamics_derivatives", states) for name in ("G1", "Talos") for states in (1, 64)
)
MATRICES: tuple[Case, ...] = (
    ("Panda", "mass_matrix", 1000),
    ("Talos", "mass_matrix", 1000),
    ("G1", "coriolis_matrix", 1000),
    ("Talos", "coriolis_matrix", 1000),
    ("G1", "forward_kinematics", 1000),
)


class Pass(NamedTuple):
    """A pass that is left out."""

    where: str
    """Where the pipeline looks it up."""
    without: Any
    """Its replacement."""
    cases: tuple[Case, ...]
    """Cases that it is meant for."""


def _unchanged(module: Module, *_: Any) -> Module:
    return module


def _all_entries(traced: Program) -> Any:
    return traced, [np.arange(port.size) for port in traced.outputs]


PASSES = "mbs_dynamics.compiler.passes."

EVERY = {
    "sines": Pass(PASSES + "pipeline.with_sines_together", _unchanged, ROBOTS),
    "spilling": Pass(PASSES + "pipeline.spilled", _unchanged, ROBOTS),
    "chunks": Pass(PASSES + "pipeline.CHUNK", None, LARGE),
    "deduplication": Pass(
        "mbs_dynamics.compiler.runtime.machine.deduplicated", _all_entries, MATRICES
    ),
}


def passes() -> Iterator[Table]:
    """Yield one table for each pass."""
    for name, each in EVERY.items():
        columns = ("mechanism", "algorithm", "states", "us with", "us without", "without / with")
        table = Table(f"Without {name}", (*columns, "compile s with", "compile s without"))
        ratios = []
        for case in each.cases:
            row = _compared(each, *case)
            ratios.append(row[2] / row[1])
            table.rows.append((*case, *row[1:3], ratios[-1], row[0], row[3]))
        mean = math.exp(float(np.mean(np.log(ratios))))
        table.note = (
            f"Geometric mean of the ratios: {mean:.2f}. Times are minima of {ROUNDS} samples."
        )
        yield table


def _compared(each: Pass, name: str, algorithm: str, states: int) -> tuple[float, ...]:
    """Return seconds to compile, microseconds with the pass and without, and seconds without."""
    model = robot(name)
    traced = program(getattr(mbs, algorithm), model, AUTO)
    batch = (states,) if states > 1 else ()
    rng = np.random.default_rng(0)
    defaults = {"gravity": model.gravity, "payload": model.payloads.parameters}

    def compiled() -> tuple[float, Call]:
        begin = thread_time()
        kernel = Kernel(traced, backend="llvm", defaults=defaults)
        arrays = tuple(
            rng.uniform(-1.0, 1.0, batch + x.shape) for x in kernel.inputs[: kernel.required]
        )
        kernel(*arrays)
        return thread_time() - begin, Call(kernel, arrays)

    first, with_it = compiled()
    with mock.patch(each.where, each.without):
        second, without = compiled()
    taken = interleaved({"with": with_it, "without": without}, ROUNDS)
    return first, float(taken["with"].min()), float(taken["without"].min()), second
