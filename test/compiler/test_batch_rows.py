# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Rows of results of every length, wherever they begin: written whole, and nothing beside them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from mbs_dynamics.compiler import trace
from mbs_dynamics.compiler.runtime.machine import Vector
from mbs_dynamics.compiler.runtime.states import View, address

pytest.importorskip("llvmlite")
pytestmark = pytest.mark.backend_independent  # the back end is llvm

ENTRIES = 8
"""Doubles in a line of the cache."""

LANES = (2, 4, 8)
MARGIN = 3
"""Entries before, between and after rows that nothing may touch."""


def program(size: int) -> Any:
    """Return a program with one number as its input and so many entries as its output."""
    return trace(
        lambda x: np.array([x[()] * (k + 1.0) for k in range(size)]), {"x": ()}, name=f"rows{size}"
    )


def placed(entries: int, first: int) -> Any:
    """Return NaN in so many entries, of which the first is that entry of a line of the cache."""
    room = np.full(entries + 2 * ENTRIES, np.nan)
    start = (first - address(room) // 8) % ENTRIES
    return room[start : start + entries]


def lengths(lanes: int) -> list[int]:
    """Return lengths of rows: shorter than a vector, of one, and of several with a rest."""
    return [lanes - 1, lanes, lanes + 1, 4 * lanes - 1, 4 * lanes, 16 * lanes + 5]


@pytest.mark.parametrize("lanes", LANES)
def test_rows_that_begin_anywhere_in_a_line(lanes):
    states = np.random.default_rng(12).normal(size=3 * lanes + 1)
    for size in lengths(lanes):
        vector = Vector(program(size), lanes)
        expected = states[:, None] * np.arange(1.0, size + 1.0)
        step = size + MARGIN
        for first in range(ENTRIES):
            room = placed(MARGIN + step * len(states), first)
            table = room[MARGIN:].reshape(-1, step)
            rows = [View(states, 8), View(table, 8 * step)]
            assert vector.evaluate(len(states), rows) == 0
            np.testing.assert_array_equal(table[:, :size], expected)
            assert np.isnan(table[:, size:]).all()
            assert np.isnan(room[:MARGIN]).all()
