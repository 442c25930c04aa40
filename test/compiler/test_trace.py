# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Traced functions: their inputs and outputs, what they may not do, and threads."""

import math

import numpy as np
import pytest

from mbs_dynamics.compiler import Graph, atan2, less, select, trace
from mbs_dynamics.errors import TraceError


def test_outputs_may_be_scalars_constants_mappings_and_empty():
    scalar = trace(lambda x: x[0] * x[1], {"x": (2,)}, name="f")
    assert scalar.outputs == (("f", ()),)
    constant = trace(lambda x: np.array([[1, 2.5]]), {"x": (2,)}, name="f")
    assert constant.outputs == (("f", (1, 2)),)
    assert [store.value for store in constant.module.body] == [1.0, 2.5]
    several = trace(
        lambda x: {"a": x, "b": [[x[0]], [3]], "c": np.zeros((0, 6))}, {"x": (2,)}, name="f"
    )
    assert several.outputs == (("a", (2,)), ("b", (2, 1)), ("c", (0, 6)))
    assert [port.size for port in several.outputs] == [2, 2, 0]


def branch(x):
    return x[0] if x[0] < x[1] else x[1]


def piecewise(x):
    return np.where(less(x, 1.0), x, 0.0)


REFUSED = [
    branch,
    lambda x: max(x[0], x[1]),
    lambda x: x if np.any(x) else 0.0,
    piecewise,
    lambda x: x[0] < x,
    lambda x: float(x[0]),
    lambda x: math.sin(x[0]),
    lambda x: x[0] // 2,
    lambda x: np.linalg.inv(np.outer(x, x)),
    lambda x: x[0] / 0.0,
    lambda x: x[0] ** 0.5,
    lambda x: select(x[0], x[1], x[2]),
    lambda x: None,
]


@pytest.mark.parametrize("function", REFUSED)
def test_what_only_numbers_can_do_is_refused(function):
    with pytest.raises(TraceError):
        trace(function, {"x": (3,)}, name="f")


@pytest.mark.parametrize(
    "mix",
    [
        lambda x, y: x + y,
        lambda x, y: x * y,
        lambda x, y: x < y,
        lambda x, y: atan2(x, y),
        lambda x, y: select(x < 1.0, x, y),
    ],
)
def test_symbols_of_two_traces_do_not_mix(mix):
    x, y = Graph().input("x", ()).item(), Graph().input("x", ()).item()
    with pytest.raises(TraceError):
        mix(x, y)
