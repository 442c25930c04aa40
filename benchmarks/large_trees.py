# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Large programs: straight-line code and chunks; long chains compared with Pinocchio."""

from __future__ import annotations

import importlib.metadata
import os
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from time import thread_time
from typing import Any
from unittest.mock import patch

import pinocchio as pin

import mbs_dynamics as mbs
from benchmarks import mechanisms
from benchmarks.mechanisms import ARMS, Twins, chain, chain_twins
from benchmarks.report import Table
from benchmarks.timing import Call, interleaved, kernel_alone, median, ratio
from mbs_dynamics.compiler import Kernel, Program
from mbs_dynamics.compiler.passes import pipeline
from mbs_dynamics.model.orders import leaves

LENGTHS = (10, 30, 60, 100, 200)

ROBOTS = {
    "G1": "g1_description/urdf/g1_29dof_rev_1_0.urdf",
    "Talos": "talos_data/robots/talos_reduced.urdf",
    "TIAGo": "tiago_description/robots/tiago.urdf",
    "Baxter": "baxter_description/urdf/baxter.urdf",
    "iCub": "icub_description/robots/icub.urdf",
}
"""Robots by their path in example-robot-data."""

SMALLEST, LARGEST = 5000, 50_000
"""Operations of the programs of which both forms are measured."""

ALGORITHMS = (
    mbs.inverse_dynamics,
    mbs.forward_dynamics,
    mbs.jacobian,
    mbs.mass_matrix,
    mbs.inverse_mass_matrix,
    mbs.coriolis_matrix,
    mbs.inverse_dynamics_derivatives,
    mbs.forward_dynamics_derivatives,
    mbs.inverse_dynamics_regressor,
)


def large_trees() -> Iterator[Table]:
    """Yield where chunks begin to pay, and chains beside Pinocchio."""
    yield _forms()
    for n in LENGTHS:
        yield _beside_pinocchio(n)


# -- straight on, or in chunks ---------------------------------------------------------------------


def _forms() -> Table:
    columns = (
        "mechanism",
        "algorithm",
        "operations",
        "compile s, straight",
        "compile s, chunks",
        "ratio",
        "kernel us, straight",
        "kernel us, chunks",
        "ratio",
        "chunks",
    )
    note = (
        "Body-fixed, one state at a time. A ratio below one says that chunks take less. "
        f"Programs of more than {pipeline.LARGEST_BLOCK['llvm']} nodes are cut into chunks."
    )
    table = Table("Straight-line code and chunks", columns, note=note)
    for name, model in _models():
        for function in ALGORITHMS:
            program = mechanisms.program(function, model, "body_fixed")
            if program.in_loops:
                continue
            if SMALLEST <= program.operations.total <= LARGEST:
                table.rows.append([name, function.__name__, *_form(program, model)])
    table.rows.sort(key=lambda row: int(row[2]))
    return table


def _models() -> Iterator[tuple[str, mbs.Model]]:
    for name in ARMS:
        yield name, mechanisms.robot(name).model
    for name, below in ROBOTS.items():
        distribution = importlib.metadata.distribution("example-robot-data")
        found = [file for file in distribution.files or () if str(file).endswith(below)]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", mbs.ModelWarning)
            yield name, mbs.Model.from_urdf(Path(str(distribution.locate_file(found[0]))))
    for n in (30, 100, 200):
        yield f"chain of {n}", chain(n)


def _form(program: Program, model: mbs.Model) -> list[Any]:
    with patch.object(pipeline, "LARGEST_BLOCK", dict.fromkeys(pipeline.LARGEST_BLOCK, 0)):
        chunks, there = _compiled(program, model)
    with patch.object(
        pipeline, "LARGEST_BLOCK", dict.fromkeys(pipeline.LARGEST_BLOCK, sys.maxsize)
    ):
        straight, here = _compiled(program, model)
    calls = {
        name: kernel_alone(kernel, _arrays(kernel, model), 20)
        for name, kernel in (("straight", straight), ("chunks", chunks))
    }
    taken = interleaved(calls, 21)
    return [
        program.operations.total,
        here,
        there,
        there / here,
        median(taken["straight"]),
        median(taken["chunks"]),
        ratio(taken["chunks"], taken["straight"]),
        -(-program.operations.total // pipeline.CHUNK),
    ]


def _compiled(program: Any, model: mbs.Model) -> tuple[Kernel, float]:
    defaults = {"gravity": model.gravity, "payload": model.payloads.parameters}
    with patch.dict(os.environ, MBS_CACHE="0"):  # compile, whatever is kept on disk
        begin = thread_time()
        kernel = Kernel(program, backend="llvm", defaults=defaults)
        return kernel, thread_time() - begin


def _arrays(kernel: Kernel, model: mbs.Model) -> list[Any]:
    count = kernel.required
    return list(model.random_state(1))[:count]


# -- beside Pinocchio ------------------------------------------------------------------------------


def _beside_pinocchio(n: int) -> Table:
    """Return one chain's table."""
    columns = (
        "algorithm",
        "operations",
        "trace s",
        "compile s",
        "kernel us",
        "Kernel us",
        "Pinocchio us",
        "Pinocchio / Kernel",
    )
    note = (
        "Traced as the algorithm's options say, auto being the cheapest representation, and "
        "compiled in a warm process. Kernel is a call from Python with a new array, Pinocchio "
        "is called from Python."
    )
    table = Table(f"A chain of {n} generic joints", columns, note=note)
    twins = chain_twins(n)
    for function, arrays, theirs in _subjects(twins):
        table.rows.append([function.__name__, *_row(twins.model, function, arrays, theirs)])
    return table


def _row(model: mbs.Model, function: Any, arrays: tuple[Any, ...], theirs: Call) -> list[Any]:
    begin = thread_time()
    program = mechanisms.program(function, model, "auto")
    traced = thread_time() - begin
    operations = program.operations.total
    kernel, compiled = _compiled(program, model)
    ours = {"kernel": kernel_alone(kernel, arrays, 5), "Kernel": Call(kernel, arrays)}
    taken = interleaved({**ours, "Pinocchio": theirs}, 31)
    times = [median(samples) for samples in taken.values()]
    return [operations, traced, compiled, *times, ratio(taken["Pinocchio"], taken["Kernel"])]


def _subjects(twins: Twins) -> Iterator[tuple[Any, tuple[Any, ...], Call]]:
    """Yield algorithms with their arguments, and Pinocchio's call that computes the same."""
    model, data = twins.pin_model, twins.pin_data
    q, qd, qdd = twins.model.random_state(1)
    p, pd, pdd = twins.configuration(q), twins.velocity(qd), twins.velocity(qdd)
    frame = model.getFrameId(leaves(twins.model)[0])
    theirs = (
        ((q, qd, qdd), Call(pin.rnea, (model, data, p, pd, pdd))),
        ((q, qd, qdd), Call(pin.aba, (model, data, p, pd, pdd))),
        ((q,), Call(pin.computeFrameJacobian, (model, data, p, frame, pin.LOCAL))),
        ((q,), Call(pin.crba, (model, data, p))),
        ((q,), Call(pin.computeMinverse, (model, data, p))),
        ((q, qd), Call(pin.computeCoriolisMatrix, (model, data, p, pd))),
        ((q, qd, qdd), Call(pin.computeRNEADerivatives, (model, data, p, pd, pdd))),
        ((q, qd, qdd), Call(pin.computeABADerivatives, (model, data, p, pd, pdd))),
        ((q, qd, qdd), Call(pin.computeJointTorqueRegressor, (model, data, p, pd, pdd))),
    )
    for function, (arrays, call) in zip(ALGORITHMS, theirs, strict=True):
        yield function, arrays, call
