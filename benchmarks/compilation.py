# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Seconds to trace and to compile every function of the public API: arms, and trees of 60 joints.

In a warm process without cached results of these models. The initialization of the process, such as
the import of LLVM, is not included; ``startup`` measures it.
"""

from __future__ import annotations

import gc
import inspect
import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from time import thread_time
from typing import Any
from unittest.mock import patch

import mbs_dynamics as mbs
from benchmarks.mechanisms import arms, chain
from benchmarks.report import Table
from mbs_dynamics.algorithms import algorithm_of
from mbs_dynamics.model.orders import leaves

JOINTS = 60

SLOWEST = 3
CUBIC = (mbs.christoffel_symbols, mbs.forward_dynamics_derivatives, mbs.linearize)
"""Functions that take O(n^3) operations, which are not for so many joints."""

ORDER = 3
"""Of the derivatives where an order is asked for."""


def compilation() -> Iterator[Table]:
    """Yield the sums over all functions of the arms, then each function of the large trees."""
    mbs.compile(mbs.gravity_torques, chain(2), backend="llvm")
    yield _arms()
    for name, made in LARGE.items():
        yield _large(name, made)


def _arms() -> Table:
    columns = ("robot", "functions", "seconds in all", "slowest")
    table = Table("All functions of the public API", columns)
    for name, model in arms():
        taken = {
            algorithm_of(function).name: _compiled(function, model)[1]
            for function in mbs.ALGORITHMS
        }
        slowest = sorted(taken, key=taken.__getitem__, reverse=True)[:SLOWEST]
        text = ", ".join(f"{key} {taken[key]:.2f}" for key in slowest)
        table.rows.append((name, len(taken), sum(taken.values()), text))
    table.note = _note()
    return table


def _large(name: str, made: Callable[[], mbs.Model]) -> Table:
    columns = ("seconds", "operations", "trace + compile")
    table = Table(name, columns)
    for function in mbs.ALGORITHMS:
        if function in CUBIC:
            continue
        kernel, seconds = _compiled(function, made())
        label = algorithm_of(function).name
        table.rows.append((label, kernel.operations.total, seconds))
    table.note = _note()
    return table


def _note() -> str:
    return (
        "Functions of one body or of two are those of the last leaf; sensitivities those of the "
        f"last joint, Jacobian derivatives those by one halfway and the last; orders are {ORDER}. "
        "Seconds of one thread."
    )


def tree(branches: int) -> mbs.Model:
    """Return a tree whose bodies have up to this many children, numbered by their distance."""
    model, parents = chain(JOINTS), [-1, *((i - 1) // branches for i in range(1, JOINTS))]
    pairs = zip(model.bodies, parents, strict=True)
    return replace(model, bodies=tuple(replace(body, parent=p) for body, p in pairs), frames={})


LARGE = {
    f"A chain of {JOINTS} generic joints": lambda: tree(1),
    f"A binary tree of {JOINTS} generic joints": lambda: tree(2),
}


def _compiled(function: Callable[..., Any], model: mbs.Model) -> tuple[mbs.Kernel, float]:
    options = _options(function, model)
    gc.collect()
    gc.freeze()  # what others have left is not searched again and again
    with patch.dict(os.environ, MBS_CACHE="0"):
        begin = thread_time()
        kernel = mbs.compile(function, model, backend="llvm", **options)
        taken = thread_time() - begin
    gc.unfreeze()
    return kernel, taken


def _options(function: Callable[..., Any], model: mbs.Model) -> dict[str, Any]:
    """Return values of the options that have to be given."""
    joints = model.joint_names
    if function is mbs.jacobian_derivative:
        joints = (joints[model.n // 2], joints[-1])
    elif algorithm_of(function).name.endswith("sensitivity"):
        joints = joints[-1:]
    values = {"body": leaves(model)[-1], "joints": joints, "order": ORDER}
    parameters = inspect.signature(function).parameters.values()
    return {x.name: values[x.name] for x in parameters if x.name in values and x.default is x.empty}
