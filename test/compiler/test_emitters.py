# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Special values and accuracy in all that the emitters write: Python, machine code and C."""

import math
from typing import Any

import exact
import numpy as np
import pytest
from backends import BACKENDS, EVALUATORS, c_function, compiled

from mbs_dynamics.compiler import Kernel, cos, less, select, sin, sqrt, trace

EPS = 2.0**-52


@pytest.fixture(params=EVALUATORS)
def evaluated(request, tmp_path):
    """Return a function that traces a function and evaluates it at arrays of these shapes."""

    def evaluate(function: Any, **inputs: Any) -> Any:
        arrays = {name: np.asarray(x, dtype=float) for name, x in inputs.items()}
        program = trace(function, {name: x.shape for name, x in arrays.items()}, name="traced")
        if request.param == "exported":
            status, found = c_function(program, tmp_path)(*arrays.values())
            assert status == 0
        else:
            kernel = Kernel(program, backend=request.param)
            found = kernel(**arrays)
            found = found if isinstance(found, tuple) else (found,)
        shaped = [x.reshape(port.shape) for x, port in zip(found, program.outputs, strict=True)]
        return shaped[0] if len(shaped) == 1 else shaped

    return evaluate


def test_the_branch_that_is_not_taken_does_no_harm(evaluated):
    def guarded(x):
        inverse = [select(less(0.0, a), 1.0 / a, 7.0) for a in x]
        root = [select(less(a, 0.0), -1.0, sqrt(a)) for a in x]
        return {"inverse": inverse, "root": root}

    inverse, root = evaluated(guarded, x=[0.0, -4.0, 4.0])
    np.testing.assert_array_equal(inverse, [7.0, 7.0, 0.25])
    np.testing.assert_array_equal(root, [0.0, -1.0, 2.0])


def test_constants_arrive_to_the_bit(evaluated):
    constants = [0.1, 1 / 3, 5e-324, 2.2250738585072014e-308, math.pi, 1.7976931348623157e308]
    constants += [-c for c in constants]
    np.testing.assert_array_equal(evaluated(lambda x: constants, x=[1.0]), constants)
    found = evaluated(lambda x: [x[0] * c for c in constants], x=[1.0])
    np.testing.assert_array_equal(found, constants)
    found = evaluated(lambda x: [x[0] + c for c in constants], x=[-0.1])
    np.testing.assert_array_equal(found, [c - 0.1 for c in constants])


def critical_angles() -> Any:
    """Up to 1e8: everywhere, and where the reduction cancels or the quadrant changes."""
    rng = np.random.default_rng(22)
    n = np.concatenate([np.arange(-300, 301), rng.integers(-63661976, 63661976, 1500)])
    multiples = np.concatenate([n * (math.pi / 2), (n + 0.5) * (math.pi / 2)])
    sizes = 10.0 ** rng.uniform(-320.0, 8.0, 1000)
    angles = np.concatenate([
        rng.uniform(-10.0, 10.0, 2000),
        rng.uniform(-1e8, 1e8, 1000),
        sizes * rng.choice([-1.0, 1.0], sizes.size),
        multiples,
        np.nextafter(multiples, 0.0),
        np.nextafter(multiples, np.copysign(np.inf, multiples)),
        [0.0, 1e8, -1e8, np.nextafter(1e8, 0.0)],
    ])  # fmt: skip
    return angles[np.abs(angles) <= 1e8]


def worst_error(backend: str, angles: Any) -> float:
    kernel = compiled(lambda x: {"s": sin(x), "c": cos(x)}, backend, {"x": ()})
    errors = []
    for x, s, c in zip(angles, *kernel(angles), strict=True):
        sine, cosine = exact.sine_and_cosine(x)
        errors += [float(abs(exact.Decimal(s) - sine)), float(abs(exact.Decimal(c) - cosine))]
    return max(errors)


@pytest.mark.long
@pytest.mark.parametrize("backend", BACKENDS)
def test_sine_and_cosine_are_accurate_up_to_1e8(backend):
    assert worst_error(backend, critical_angles()) <= 2.3e-16


@pytest.mark.parametrize("backend", BACKENDS)
def test_sine_and_cosine_are_accurate_beyond_1e8(backend):
    rng = np.random.default_rng(23)
    just, far = rng.uniform(1e8, 1e9, 300), 10.0 ** rng.uniform(8.0, 40.0, 300)
    angles = [np.nextafter(1e8, 1e9), -1e8 * (1 + EPS), 1e22, *just, *far]
    assert worst_error(backend, np.array(angles)) <= 2.3e-16
