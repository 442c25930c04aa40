# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Random expressions: what the emitters write computes what was traced, exactly.

All numbers are multiples of 1/256 below 2^16, so that sums and products are exact in any order.
"""

from fractions import Fraction
from typing import Any

import pytest
from backends import BACKENDS
from hypothesis import assume, given
from hypothesis import strategies as st

from mbs_dynamics.compiler import Kernel, less, select, trace

CONSTANTS = (0.0, 1.0, -1.0, 2.0, 0.5, -3.0, 0.25, 7.25, 40.0)
POWERS = (2.0, 0.5, -4.0, 1.0)
BINARY = ("+", "-", "*", "choose", "at_most")
UNARY = ("neg", "square", "shift", "scale")


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
            st.tuples(st.just("divide"), below, st.sampled_from(POWERS)),
        )

    return st.recursive(leaf, grow, max_leaves=25)


def value(tree: Any, inputs: Any, number: Any) -> Any:
    """Return the value for symbols, floats or fractions, from ``number`` of the constants."""
    op, first, *rest = tree
    if op in ("input", "constant"):
        return inputs[first] if op == "input" else number(first)
    x = value(first, inputs, number)
    y = number(rest[0]) if isinstance(rest[0], float) else value(rest[0], inputs, number)
    exact = number is Fraction
    found = {
        "+": lambda: x + y,
        "-": lambda: x - y,
        "*": lambda: x * y,
        "divide": lambda: x / y,
        "choose": lambda: (x if x < y else y) if exact else select(less(x, y), x, y),
        "at_most": lambda: (y if x <= y else x) if exact else select(~less(y, x), y, x),
        "neg": lambda: -x,
        "square": lambda: x * x,
        "shift": lambda: x + y,
        "scale": lambda: y * x,
    }
    result = found[op]()
    if exact:
        assume(abs(result) < 2**16 and (256 * result).denominator == 1)
    return result


POINTS = st.lists(st.integers(-40, 40).map(lambda k: k / 8.0), min_size=4, max_size=4)


@pytest.mark.parametrize("backend", BACKENDS)
@given(st.lists(expressions(), min_size=1, max_size=3), POINTS)
def test_random_expressions(backend, trees, point):
    expected = [float(value(tree, [*map(Fraction, point)], Fraction)) for tree in trees]
    program = trace(
        lambda x: [value(tree, x, float) for tree in trees], {"x": (4,)}, name="expressions"
    )
    assert Kernel(program, backend=backend)(point).tolist() == expected
