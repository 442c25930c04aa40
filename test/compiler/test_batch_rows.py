# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Rows of results of every length, wherever they begin: written whole, and nothing beside them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from mbs_dynamics.compiler import trace
from mbs_dynamics.compiler.runtime.machine import Code

pytest.importorskip("llvmlite")

LANES = (2, 4, 8)


def lengths(lanes: int) -> list[int]:
    """Return lengths of rows: shorter than a vector, of one, and of several with a rest."""
    return [lanes - 1, lanes, lanes + 1, 4 * lanes - 1, 4 * lanes, 16 * lanes + 5]


def repetitive(size: int, several: int) -> Any:
    """Return a program of which the output has each of so many values again and again, and zeros
    of both signs.
    """

    def entries(x: Any) -> Any:
        values = [x[()], 0.0, -0.0, *(x[()] * (k + 2.0) for k in range(several))]
        return np.array([values[k % len(values)] for k in range(size)])

    return trace(entries, {"x": ()}, name=f"repetitive{size}")


@pytest.mark.parametrize("lanes", LANES)
def test_rows_of_every_length(lanes):
    states = np.random.default_rng(14).normal(size=3 * lanes + 1)
    for size in lengths(lanes):
        found = repetitive(size, 5)
        vector = Code(found, lanes)
        several = states[:, None] * [1.0, 1.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0]
        several[:, 1:3] = 0.0, -0.0
        expected = several[:, np.arange(size) % 8]
        result = np.full((len(states), size), np.nan)
        assert vector.evaluate(len(states), [states[:, None], result]) == 0
        np.testing.assert_array_equal(result, expected)
        np.testing.assert_array_equal(np.signbit(result), np.signbit(expected))
