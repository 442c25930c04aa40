# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The order of operations: nothing is used before it is there, and fewer values wait."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from mbs_dynamics.compiler import sin, trace
from mbs_dynamics.compiler.frontend.graph import INPUT
from mbs_dynamics.compiler.frontend.program import Program
from mbs_dynamics.compiler.passes.scheduling import MANY, in_good_order

pytestmark = pytest.mark.backend_independent


def there_and_back(size: int) -> Program:
    """Return a program that computes so many values and then a result of each."""

    def function(x: Any) -> Any:
        angle = sin(x[0])
        there = [x[k] * angle for k in range(size)]
        return np.array([y + y * y * 2.0 for y in there])

    return trace(function, {"x": (size,)}, name="there_and_back")


def test_results_come_one_after_the_other_where_many_values_wait():
    program = there_and_back(2 * MANY)
    ordered = in_good_order(program)
    assert ordered is not program
    assert sorted(x.id for x in ordered.nodes) == [x.id for x in program.nodes]
    known: set[int] = set()
    for node in ordered.nodes:
        operands = () if node.op == INPUT else node.args
        assert all(isinstance(x, float) or x.id in known for x in operands)
        known.add(node.id)
    assert in_good_order(ordered) is ordered


def test_few_values_that_wait_stay_where_they_are():
    program = there_and_back(MANY // 2)
    assert in_good_order(program) is program
