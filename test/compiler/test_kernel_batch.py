# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Large batches: vector code against single states, in every layout and number of lanes."""

import math
from typing import Any

import exact
import numpy as np
import pytest
from test_emitters import critical_angles

from mbs_dynamics.compiler import Kernel, atan2, cos, less, positive, select, sin, sqrt, trace
from mbs_dynamics.compiler.runtime.arguments import table_of
from mbs_dynamics.compiler.runtime.machine import Code

pytest.importorskip("llvmlite")
SHAPES = {"x": (7,), "A": (3, 8), "s": (), "e": (0, 2), "g": (2,)}
"""Rows shorter than a vector, of several vectors, of several and a rest, and empty ones."""


def everything(x: Any, A: Any, s: Any, e: Any, g: Any) -> Any:
    """Every operation there is."""
    turned = [cos(sin(3.0 * x[k]) + x[k + 1]) - 2.0 * sin(x[k] * 5.0) for k in range(6)]
    chosen = [select(less(x[k], s[()]), x[k] / (A[0, k] + 4.0), -x[k]) for k in range(7)]
    size = sqrt(positive(x[0] * x[0] + g[0], "the size is not positive"))
    angle = atan2(positive(A[1, 1] + 9.0, "A is too small"), x[1])
    return {"y": [*turned, *chosen, size, angle], "B": A.T * s[()], "s": s * g[1], "c": e + 1.0}


PROGRAM = trace(everything, SHAPES, name="f")
DEFAULTS = {"g": np.array([0.5, -2.0])}


@pytest.fixture(scope="module")
def kernel():
    return Kernel(PROGRAM, backend="llvm", defaults=DEFAULTS)


def states(batch: tuple[int, ...], seed: int = 50) -> list[Any]:
    rng = np.random.default_rng(seed)
    return [rng.normal(size=(*batch, *shape)) for shape in list(SHAPES.values())[:4]]


def one_by_one(kernel: Kernel, arrays: Any, batch: tuple[int, ...]) -> list[Any]:
    found = [kernel(*[x[k] for x in arrays]) for k in np.ndindex(batch)]
    return [
        np.array(values).reshape(*batch, *port.shape)
        for values, port in zip(zip(*found, strict=True), kernel.outputs, strict=True)
    ]


def close(found: Any, wanted: Any) -> None:
    assert len(found) == len(wanted)
    for a, b in zip(found, wanted, strict=True):
        assert a.shape == b.shape
        np.testing.assert_allclose(a, b, rtol=1e-13, atol=1e-14)


def evaluated(vector: Code, arrays: Any) -> tuple[int, list[Any]]:
    """Evaluate states with leading axes (N,)."""
    batch = arrays[0].shape[:1]
    everything = [*arrays, DEFAULTS["g"]]
    outputs = [np.full((*batch, *port.shape), np.nan) for port in PROGRAM.outputs]
    return vector.evaluate(batch[0], tables(everything, outputs, batch)), outputs


def tables(inputs: Any, outputs: Any, batch: tuple[int]) -> list[Any]:
    """Return the tables of inputs and outputs; outputs have leading axes (N,)."""
    given = zip(inputs, PROGRAM.inputs, strict=True)
    written = [
        x.reshape(*batch, port.size) for x, port in zip(outputs, PROGRAM.outputs, strict=True)
    ]
    assert all(np.shares_memory(x, y) or not x.size for x, y in zip(written, outputs, strict=True))
    return [table_of(x, port, batch) for x, port in given] + written


@pytest.fixture(params=[2, 4, 8], scope="module")
def vector(request):
    """Code for this number of lanes, whatever the processor has: LLVM splits what is too wide."""
    return Code(PROGRAM, request.param)


@pytest.mark.parametrize("extra", [0, 1, 3, 7, 8, 23])
def test_any_number_of_lanes_and_of_states(kernel, vector, extra):
    count = vector.lanes + extra
    arrays = states((count,), extra)
    status, found = evaluated(vector, arrays)
    assert status == 0
    close(found, one_by_one(kernel, arrays, (count,)))


def test_lanes_that_need_the_library(kernel, vector):
    """Some angles too large for the package's own sine, in other lanes than others."""
    arrays = states((64,))
    rng = np.random.default_rng(51)
    x = arrays[0]
    x[rng.random(x.shape) < 0.05] *= 1e9
    x[rng.random(x.shape) < 0.02] = np.inf
    x[rng.random(x.shape) < 0.02] = np.nan
    x[np.isnan(x[:, 0]), 0] = 0.5  # which has to be a number
    status, found = evaluated(vector, arrays)
    assert status == 0
    close(found, one_by_one(kernel, arrays, (64,)))


def test_nothing_is_written_beyond_the_states(vector):
    arrays = states((21,))
    everything = [*arrays, DEFAULTS["g"]]
    whole = [np.full((23, *port.shape), 7.0) for port in PROGRAM.outputs]
    inside = [x[1:-1] for x in whole]
    assert vector.evaluate(21, tables(everything, inside, (21,))) == 0
    for x in whole:
        assert (x[[0, -1]] == 7.0).all()
        assert not (x[1:-1] == 7.0).all() or x.size == 0


def test_the_first_state_whose_guard_fails_is_said(vector):
    for bad, guard in (([17], 2), ([30, 29], 1), ([40], 1), ([0], 2), ([3, 4, 5, 11], 2)):
        arrays = states((41,))
        for k in bad:
            if guard == 2:
                arrays[1][k, 1, 1] = -9.5
            else:
                arrays[0][k, 0] = np.nan
        status, _ = evaluated(vector, arrays)
        assert divmod(status - 1, 2) == (min(bad), guard - 1)


def test_sines_and_cosines_are_accurate_in_each_number_of_lanes(vector):
    angles = critical_angles()[::5].copy()
    program = trace(lambda x: {"s": sin(x), "c": cos(x)}, {"x": ()}, name="f")
    found = [np.empty(angles.size) for _ in range(2)]
    rows = [x[:, None] for x in (angles, *found)]
    assert Code(program, vector.lanes).evaluate(angles.size, rows) == 0
    worst = 0.0
    for x, s, c in zip(angles, *found, strict=True):
        sine, cosine = exact.sine_and_cosine(x)
        worst = max(worst, abs(exact.Decimal(s) - sine), abs(exact.Decimal(c) - cosine))
    assert worst <= 2.3e-16
    tiny = np.array(
        [5e-324, -1e-310, 2.3e-308, 1e-8, 0.0, -0.0, math.inf, -math.inf, math.nan, 2e8]
    )
    rows = [x[:, None] for x in (tiny, found[0], found[1])]
    assert Code(program, vector.lanes).evaluate(tiny.size, rows) == 0
    with np.errstate(invalid="ignore"):
        np.testing.assert_array_equal(found[0][:10], np.sin(tiny))
        np.testing.assert_array_equal(found[1][:10], np.cos(tiny))
