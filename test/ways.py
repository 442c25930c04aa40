# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Ways to evaluate kernels, of which one is chosen for all tests by MBS_TEST_THROUGH."""

from __future__ import annotations

import os
import sys
import weakref
from collections.abc import Sequence
from typing import Any

import numpy as np

from mbs_dynamics.compiler.jit import machine_code
from mbs_dynamics.compiler.runtime import machine
from mbs_dynamics.compiler.runtime.machine import Code
from mbs_dynamics.compiler.runtime.native import layout, table

WAYS = ("native", "ctypes", "lanes1", "lanes2", "lanes4", "lanes8", "python")
"""Called through machine code; through ctypes; as a batch of states that are all equal, in vectors
of so many lanes; with the back end of that name."""


def evaluate_through(way: str) -> None:
    """Make every evaluation of a kernel of this process that names no back end go this way.

    What tests do in processes that they start goes the way that such processes go, with the same
    back end.
    """
    if way not in WAYS:
        raise ValueError(f"MBS_TEST_THROUGH must be one of {', '.join(WAYS)}; got {way!r}")
    os.environ["MBS_BACKEND"] = "python" if way == "python" else "llvm"
    if way == "native":
        if layout.unsupported_reason() is not None:
            raise RuntimeError("kernels cannot be called through machine code here")
    elif way == "ctypes":
        table.is_supported = lambda program: False
    elif way.startswith("lanes"):
        table.is_supported = lambda program: False
        _in_lanes(int(way.removeprefix("lanes")))


def _in_lanes(lanes: int) -> None:
    """Evaluate each state as several equal ones, of which all must get the same results."""
    evaluate = Code.evaluate
    several_at_once: dict[Code, Code] = weakref.WeakKeyDictionary()

    def as_several(code: Code, inputs: Sequence[Any], outputs: Sequence[Any]) -> int:
        several = [np.tile(x.reshape(-1), (lanes + 1, 1)) for x in inputs]
        several += [np.full((lanes + 1, x.size), np.nan) for x in outputs]
        if lanes > 1:
            if code not in several_at_once:
                several_at_once[code] = Code(code.program, lanes)
            code = several_at_once[code]
        status = evaluate(code, lanes + 1, several)
        if status:
            guards = len(code.program.guards)
            assert 0 < status <= guards, "the first state was not the first to fail"
            return status
        for array, found in zip(outputs, several[len(inputs) :], strict=True):
            np.testing.assert_array_equal(found, np.broadcast_to(found[0], found.shape))
            array.reshape(-1)[:] = found[0]
        return 0

    def one_after_the_other(code: Code, states: int, tables: Sequence[Any]) -> int:
        if code.lanes > 1:
            return evaluate(code, states, tables)
        inputs = len(code.program.inputs)
        for k in range(states):
            state = [table[k] for table in tables]
            status = as_several(code, state[:inputs], state[inputs:])
            if status:
                return k * len(code.program.guards) + status
        return 0

    Code.evaluate = one_after_the_other
    if lanes == 1:
        machine.LEAST_STATES = sys.maxsize
    else:
        machine_code.vector_lanes = lambda: lanes
