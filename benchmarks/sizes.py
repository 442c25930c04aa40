# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Longer chains and humanoids: time to trace, compile and evaluate, compared with Pinocchio."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from time import thread_time
from typing import Any

import numpy as np
import pinocchio as pin

import mbs_dynamics as mbs
from benchmarks import mechanisms
from benchmarks.mechanisms import HUMANOIDS, Twins, chain_twins, robot
from benchmarks.report import Table
from benchmarks.timing import Call, interleaved, kernel_alone, median, ratio
from mbs_dynamics.compiler import Kernel, Program
from mbs_dynamics.model.orders import leaves
from mbs_dynamics.representation import AUTO

LENGTHS = (10, 30, 60)

GROWTH = (20, 30, 45, 60)
"""Lengths between which the slope of the cost is fitted."""

MOST = 1_000_000
"""Operations above which a kernel is not compiled, so that the whole takes a minute."""

NOT_MEASURED = f"over {MOST} operations, not measured"

COLUMNS = (
    "mechanism",
    "n",
    "algorithm",
    "operations",
    "trace ms",
    "compile ms",
    "kernel us",
    "Kernel us",
    "Pinocchio us",
    "kernel / Pin.",
    "Kernel / Pin.",
)

NOTE = (
    "Representation auto; traced and compiled once, in a warm process. Pinocchio is called from "
    "Python. forward_kinematics does not include the reading of Pinocchio's placements."
)

GROWTH_NOTE = (
    "Slope of log(time) over log(n), by least squares: 1 is linear. Times are for the kernel "
    "alone. It reads its code once per state, so the time grows faster than the number of "
    "operations once the code exceeds the caches of the processor."
)


def sizes() -> Iterator[Table]:
    """Yield one table of chains, one of their growth and one of humanoids."""
    yield _table("Chains with generic placements and inertias", map(chain_twins, LENGTHS))
    yield _growth()
    yield _table("Humanoids with fixed bases", map(robot, HUMANOIDS))


def _table(title: str, mechanisms: Iterator[Twins]) -> Table:
    table = Table(title, COLUMNS, note=NOTE)
    for twins in mechanisms:
        table.rows += [_row(twins, *subject) for subject in _subjects(twins)]
    return table


def _subjects(twins: Twins) -> Iterator[tuple[Any, tuple[Any, ...], Call]]:
    model, data = twins.pin_model, twins.pin_data
    q, qd, qdd = twins.model.random_state(1)
    p, pd, pdd = twins.configuration(q), twins.velocity(qd), twins.velocity(qdd)
    state, motion = (model, data, p, pd), (model, data, p, pd, pdd)
    yield mbs.inverse_dynamics, (q, qd, qdd), Call(pin.rnea, motion)
    yield mbs.gravity_torques, (q,), Call(pin.computeGeneralizedGravity, (model, data, p))
    yield mbs.bias_torques, (q, qd), Call(pin.nonLinearEffects, state)
    yield mbs.mass_matrix, (q,), Call(pin.crba, (model, data, p))
    yield mbs.inverse_mass_matrix, (q,), Call(pin.computeMinverse, (model, data, p))
    yield mbs.coriolis_matrix, (q, qd), Call(pin.computeCoriolisMatrix, state)
    yield mbs.forward_dynamics, (q, qd, qdd), Call(pin.aba, motion)
    derivatives = Call(pin.computeRNEADerivatives, motion)
    yield mbs.inverse_dynamics_derivatives, (q, qd, qdd), derivatives
    derivatives = Call(pin.computeABADerivatives, motion)
    yield mbs.forward_dynamics_derivatives, (q, qd, qdd), derivatives
    yield mbs.forward_kinematics, (q,), Call(pin.forwardKinematics, (model, data, p))
    frame = model.getFrameId(leaves(twins.model)[0])
    jacobian = Call(pin.computeFrameJacobian, (model, data, p, frame, pin.LOCAL))
    yield mbs.jacobian, (q,), jacobian


def _row(twins: Twins, function: Any, arrays: tuple[Any, ...], theirs: Call) -> list[Any]:
    model = twins.model
    begin = thread_time()
    program = mechanisms.program(function, model, AUTO)
    traced = thread_time()
    said = [twins.name, model.n, function.__name__, program.operations.total]
    said.append(1e3 * (traced - begin))
    if program.operations.total > MOST:
        alone = median(interleaved({"pinocchio": theirs})["pinocchio"])
        return [*said, NOT_MEASURED, None, None, alone, None, None]
    kernel = _kernel(program, model)
    compiled = thread_time()
    ours = {"kernel": kernel_alone(kernel, arrays, 20), "Kernel": Call(kernel, arrays)}
    taken = interleaved({**ours, "pinocchio": theirs})
    return [
        *said,
        1e3 * (compiled - traced),
        *(median(samples) for samples in taken.values()),
        *(ratio(taken[way], taken["pinocchio"]) for way in ours),
    ]


def _kernel(program: Program, model: mbs.Model) -> Kernel:
    defaults = {"gravity": model.gravity, "payload": model.payloads.parameters}
    return Kernel(program, backend="llvm", defaults=defaults)


def _growth() -> Table:
    """Return how the cost of the recursions grows with the length of a chain."""
    columns = [f"{what}, n = {n}" for n in GROWTH for what in ("operations", "us")]
    title = f"Growth from n = {GROWTH[0]} to {GROWTH[-1]}"
    slopes = ("slope of operations", "slope of time")
    table = Table(title, ("algorithm", *columns, *slopes), note=GROWTH_NOTE)
    models = [mechanisms.chain(n) for n in GROWTH]
    for function in (mbs.inverse_dynamics, mbs.forward_dynamics):
        kernels = [_kernel(mechanisms.program(function, m, AUTO), m) for m in models]
        calls = {
            str(m.n): kernel_alone(kernel, m.random_state(1), 20)
            for m, kernel in zip(models, kernels, strict=True)
        }
        times = [median(samples) for samples in interleaved(calls).values()]
        counts = [kernel.operations.total for kernel in kernels]
        cells = [cell for pair in zip(counts, times, strict=True) for cell in pair]
        table.rows.append([function.__name__, *cells, _slope(counts), _slope(times)])
    return table


def _slope(values: Sequence[float]) -> float:
    """Return the fitted exponent of n with which values for the lengths in GROWTH grow."""
    return float(np.polyfit(np.log(GROWTH), np.log(values), 1)[0])
