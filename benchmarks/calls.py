# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Time of one evaluation by every way to call it, and of several algorithms in one kernel."""

from collections.abc import Iterator
from typing import Any

import mbs_dynamics as mbs
from benchmarks.mechanisms import ARMS, robot
from benchmarks.report import Table
from benchmarks.suite import Subject, subjects
from benchmarks.timing import Call, interleaved, kernel_alone, median, ratio
from mbs_dynamics.model.orders import leaves

COLUMNS = ("microseconds", "operations", "kernel", "Kernel", "function", "plain Python")


def calls() -> Iterator[Table]:
    """Yield one table per arm, and one of several algorithms in one kernel."""
    for name in ARMS:
        model = robot(name)
        title = f"{name}: {model.n} coordinates, {model.nb} bodies"
        yield Table(title, COLUMNS, [_row(model, x) for x in subjects(leaves(model)[0])])
    yield _together(robot("Panda"))


def _row(model: mbs.Model, subject: Subject) -> list[Any]:
    function, options = subject.function, subject.options
    arrays = model.random_state(1)[: subject.arrays]
    kernel = mbs.compile(function, model, backend="llvm", **options)
    plain = mbs.compile(function, model, backend="python", **options)
    taken = interleaved(
        {
            "kernel": kernel_alone(kernel, arrays),
            "Kernel": Call(kernel, arrays),
            "function": Call(function, (model, *arrays), options),
            "plain Python": Call(plain, arrays),
        }
    )
    return [subject.label, kernel.operations.total, *(median(taken[way]) for way in COLUMNS[2:])]


def _together(model: mbs.Model) -> Table:
    """Return the times of one kernel for several algorithms, and of one kernel for each."""
    q, qd, _ = model.random_state(1)
    hybrid: dict[str, Any] = {"representation": "hybrid"}
    body = leaves(model)[0]
    gravity, bias, mass = (mbs.gravity_torques, {}), (mbs.bias_torques, {}), (mbs.mass_matrix, {})
    motion = (mbs.twists, {"bodies": (body,), **hybrid}), (mbs.jacobian, {"body": body, **hybrid})
    choices: dict[str, list[tuple[Any, dict[str, Any]]]] = {
        "gravity_torques, bias_torques": [gravity, bias],
        "bias_torques, mass_matrix": [bias, mass],
        "the same, gravity_torques, twists, jacobian": [gravity, bias, mass, *motion],
    }
    columns = ("algorithms", "operations", "one by one", "microseconds", "one by one", "ratio")
    table = Table("Panda: several algorithms in one kernel, called from Python", columns)
    for label, parts in choices.items():
        kernels = [mbs.compile(function, model, **options) for function, options in parts]
        fused = mbs.compile_together(parts, model)

        def each(q: Any, qd: Any, kernels: Any = kernels) -> None:
            for kernel in kernels:
                kernel(*(q, qd)[: kernel.required])

        taken = interleaved({"fused": Call(fused, (q, qd)), "each": Call(each, (q, qd))})
        counts = [fused.operations.total, sum(kernel.operations.total for kernel in kernels)]
        times = [median(samples) for samples in taken.values()]
        table.rows.append([label, *counts, *times, ratio(taken["fused"], taken["each"])])
    return table
