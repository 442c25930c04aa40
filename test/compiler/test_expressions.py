# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Random expressions: what the emitters write computes what was traced, to rounding."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from backends import BACKENDS
from hypothesis import assume, given
from hypothesis import strategies as st

from mbs_dynamics.compiler import Kernel, Program, atan2, cos, less, select, sin, sqrt, trace
from mbs_dynamics.compiler.frontend.graph import NUMBER

EPS = 2.0**-52

CONSTANTS = (0.0, 1.0, -1.0, 2.0, 0.5, -3.0, 0.1, 7.25, -1e-3, 40.0)
BINARY = ("+", "-", "*", "/", "atan2", "choose", "at_most")
UNARY = ("neg", "sin", "cos", "sqrt", "square", "shift", "scale")


def expressions() -> Any:
    """Trees over four inputs and constants; leaves are shared often enough to be common."""
    leaf = st.one_of(
        st.integers(0, 3).map(lambda k: ("input", k)),
        st.sampled_from(CONSTANTS).map(lambda c: ("constant", c)),
    )

    def grow(below: Any) -> Any:
        return st.one_of(
            st.tuples(st.sampled_from(BINARY), below, below),
            st.tuples(st.sampled_from(UNARY), below, st.sampled_from(CONSTANTS)),
        )

    return st.recursive(leaf, grow, max_leaves=25)


@dataclass
class Bounded:
    """A float with a bound on how far rounding in any order of evaluation may have moved it."""

    value: float
    error: float

    def __post_init__(self) -> None:
        assume(abs(self.value) + self.error < 1e12)  # also rejects NaN

    def near(self, other: Bounded) -> bool:
        return abs(self.value - other.value) <= 8.0 * (self.error + other.error)


def rounded(value: float, error: float) -> Bounded:
    return Bounded(value, error + 2.0 * EPS * abs(value) + 1e-300)


def bounded(tree: Any, inputs: Any) -> Bounded:
    """Evaluate a tree with floats, and bound its error to first order; reject what is ill-posed."""
    op = tree[0]
    if op == "input":
        return Bounded(inputs[tree[1]], 0.0)
    if op == "constant":
        return Bounded(tree[1], 0.0)
    a = bounded(tree[1], inputs)
    x, e = a.value, a.error
    if op in UNARY:
        c = tree[2]
        if op == "neg":
            return Bounded(-x, e)
        if op in ("sin", "cos"):
            return Bounded(getattr(math, op)(x), e + 3.0 * EPS)
        if op == "sqrt":
            assume(x > 16.0 * e)
            return rounded(math.sqrt(x), e / math.sqrt(x))
        if op == "square":
            return rounded(x * x, 2.0 * abs(x) * e)
        if op == "shift":
            return rounded(x + c, e + EPS * (abs(x) + abs(c)))
        return rounded(c * x, abs(c) * e)
    b = bounded(tree[2], inputs)
    y, f = b.value, b.error
    if op in "+-":
        return rounded(x + y if op == "+" else x - y, e + f + EPS * (abs(x) + abs(y)))
    if op == "*":
        return rounded(x * y, abs(x) * f + abs(y) * e)
    if op == "/":
        assume(abs(y) > 16.0 * f)
        return rounded(x / y, (e + abs(x / y) * f) / abs(y))
    if op == "atan2":
        square = x * x + y * y
        assume(square > 256.0 * (e + f) ** 2 and square > 1e-200)
        assume(y > 0.0 or abs(x) > 16.0 * (e + f))
        return rounded(math.atan2(x, y), (abs(x) * f + abs(y) * e) / square)
    assume(not a.near(b))
    if op == "choose":
        return a if x < y else b
    return b if x <= y else a


def symbolic(tree: Any, inputs: Any) -> Any:
    """The same with whatever the inputs are."""
    op = tree[0]
    if op == "input":
        return inputs[tree[1]]
    if op == "constant":
        return tree[1]
    x = symbolic(tree[1], inputs)
    if op in UNARY:
        c = tree[2]
        return {
            "neg": lambda: -x,
            "sin": lambda: sin(x),
            "cos": lambda: cos(x),
            "sqrt": lambda: sqrt(x),
            "square": lambda: x * x,
            "shift": lambda: x + c,
            "scale": lambda: c * x,
        }[op]()
    y = symbolic(tree[2], inputs)
    return {
        "+": lambda: x + y,
        "-": lambda: x - y,
        "*": lambda: x * y,
        "/": lambda: x / y,
        "atan2": lambda: atan2(x, y),
        "choose": lambda: select(less(x, y), x, y),
        "at_most": lambda: select((float(x) if isinstance(x, NUMBER) else x) <= y, y, x),
    }[op]()


POINTS = st.lists(st.floats(-50.0, 50.0).map(lambda x: round(x, 3)), min_size=4, max_size=4)
CASES = st.tuples(st.lists(expressions(), min_size=1, max_size=3), POINTS)


def case(trees: Any, point: Any) -> tuple[Program, Any, list[Bounded]]:
    expected = [bounded(tree, point) for tree in trees]
    program = trace(
        lambda x: [symbolic(tree, x) for tree in trees], {"x": (4,)}, name="expressions"
    )
    return program, np.array(point), expected


def check(found: Any, expected: list[Bounded]) -> None:
    assert len(found) == len(expected)
    for x, wanted in zip(found, expected, strict=True):
        assert abs(x - wanted.value) <= 8.0 * wanted.error, (x, wanted)


@pytest.mark.parametrize("backend", BACKENDS)
@given(CASES)
def test_random_expressions(backend, drawn):
    program, point, expected = case(*drawn)
    check(Kernel(program, backend=backend)(point), expected)
