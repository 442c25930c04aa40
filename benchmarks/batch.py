# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Batches of states in one call, compared with loops of calls and of Pinocchio."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import pinocchio as pin

import mbs_dynamics as mbs
from benchmarks.mechanisms import urdf
from benchmarks.report import Table
from benchmarks.timing import Call, interleaved, median, ratio
from mbs_dynamics.model.orders import leaves

STATES = 10_000
ROUNDS = 15
SIZES = (1, 8, 32, 64, 256, 1000, STATES)
ROBOTS = ("UR5", "Panda")

COLUMNS = (
    "nanoseconds per state",
    "operations",
    "batch",
    "batch last",
    "loop of calls",
    "Pinocchio",
    "Pin. / batch",
    "Pin. / batch last",
)

NOTE = (
    f"Medians for {STATES} states, one thread. batch: one call with arrays (N, ...), which returns "
    "a new array. batch last: input arrays in which the batch is the last axis in memory. loop of "
    "calls: one call of the kernel for each state. Pinocchio: a loop in Python with one call for "
    "each state, which stores each result in an array (N, ...). Pinocchio has no forward dynamics "
    "for mimic joints, so the fingers of the Panda are independent joints there. Ratios are "
    "medians over rounds."
)


class Subject(NamedTuple):
    """One thing to compute for many states, in both libraries."""

    function: Callable[..., Any]
    arrays: tuple[Any, ...]
    options: dict[str, Any]
    pinocchio: Callable[..., Any]


def batch() -> Iterator[Table]:
    """Yield one table per robot."""
    for name in ROBOTS:
        yield Table(f"{name}: {STATES} states", COLUMNS, list(_rows(name)), NOTE)
        yield _sizes(name)


def _rows(name: str) -> Iterator[list[Any]]:
    model = mbs.Model.from_urdf(urdf(name))
    theirs = pin.buildModelFromUrdf(str(urdf(name)))
    data, frame = theirs.createData(), theirs.getFrameId(leaves(model)[0])
    rng = np.random.default_rng(0)
    q, qd, qdd = rng.normal(size=(3, STATES, model.n))
    states = [pin.randomConfiguration(theirs) for _ in range(STATES)]
    rates = list(rng.normal(size=(2, STATES, theirs.nv)))
    body = {"body": leaves(model)[0], "representation": "hybrid"}
    aligned = pin.LOCAL_WORLD_ALIGNED

    def jacobian(model: Any, data: Any, q: Any) -> Any:
        return pin.computeFrameJacobian(model, data, q, frame, aligned)

    for subject in (
        Subject(mbs.inverse_dynamics, (q, qd, qdd), {}, pin.rnea),
        Subject(mbs.forward_dynamics, (q, qd, qdd), {}, pin.aba),
        Subject(mbs.gravity_torques, (q,), {}, pin.computeGeneralizedGravity),
        Subject(mbs.mass_matrix, (q,), {}, pin.crba),
        Subject(mbs.jacobian, (q,), body, jacobian),
    ):
        yield _row(model, subject, theirs, data, (states, *rates))


def _sizes(name: str) -> Table:
    """Return how the time of a state follows from how many there are in a call."""
    columns = ("nanoseconds per state", "batch", "batch last")
    note = "Below 64 states, states are evaluated one after the other; from 64 on, as vectors."
    table = Table(f"{name}: forward dynamics of fewer states", columns, note=note)
    model = mbs.Model.from_urdf(urdf(name))
    kernel = mbs.compile(mbs.forward_dynamics, model, backend="llvm")
    for count in SIZES:
        arrays = tuple(np.random.default_rng(0).normal(size=(3, count, model.n)))
        last = tuple(_batch_last(x) for x in arrays)
        taken = interleaved(
            {
                "batch": Call(kernel, arrays, evaluations=count),
                "batch last": Call(kernel, last, evaluations=count),
            },
            ROUNDS,
        )
        table.rows.append([count, *(1e3 * median(samples) for samples in taken.values())])
    return table


def _row(model: Any, subject: Subject, theirs: Any, data: Any, states: Any) -> list[Any]:
    kernel = mbs.compile(subject.function, model, backend="llvm", **subject.options)
    arrays = subject.arrays
    out = np.empty_like(kernel(*arrays))
    last = [_batch_last(x) for x in arrays]
    given = states[: len(arrays)]
    kept = np.empty((STATES, *np.shape(subject.pinocchio(theirs, data, *[x[0] for x in given]))))

    def loop() -> None:
        for k, state in enumerate(zip(*arrays, strict=True)):
            out[k] = kernel(*state)

    def pinocchio() -> None:
        for k, state in enumerate(zip(*given, strict=True)):
            kept[k] = subject.pinocchio(theirs, data, *state)

    taken = interleaved(
        {
            "batch": Call(kernel, arrays, evaluations=STATES),
            "batch last": Call(kernel, tuple(last), evaluations=STATES),
            "loop": Call(loop, evaluations=STATES),
            "pinocchio": Call(pinocchio, evaluations=STATES),
        },
        ROUNDS,
    )
    times = [1e3 * median(samples) for samples in taken.values()]
    ways = ("batch", "batch last")
    ratios = [ratio(taken["pinocchio"], taken[way]) for way in ways]
    return [subject.function.__name__, kernel.operations.total, *times, *ratios]


def _batch_last(x: Any) -> Any:
    """Return a copy of states (N, ...) that holds each entry of all states side by side."""
    return np.moveaxis(np.ascontiguousarray(np.moveaxis(x, 0, -1)), -1, 0)
