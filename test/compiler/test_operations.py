# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The operations that programs consist of: the same values in every back end, and gradients."""

import ctypes
import itertools
import math
import subprocess
from typing import Any

import numpy as np
import pytest
from backends import BACKENDS, COMPILER, EVALUATORS, STRICT, c_function, needs_compiler
from interpreted import evaluate

import mbs_dynamics.compiler as mc
from mbs_dynamics.compiler import Kernel, Program, trace
from mbs_dynamics.compiler.codegen.c import emit_c
from mbs_dynamics.compiler.frontend.reverse import pullback
from mbs_dynamics.compiler.passes.pipeline import lower
from mbs_dynamics.errors import TraceError

VALUES = [0.0, -0.0, 0.5, -0.5, 1.5, 2.5, -2.5, 3.0, 1e300, -1e-300, math.inf, -math.inf, math.nan]
PAIRS = np.array(list(itertools.product(VALUES, VALUES))).T
"""More of them than states from which on vector code runs."""
OPERATIONS = {
    "abs": (lambda a, b: mc.abs(a), lambda a, b: np.abs(a)),
    "round": (lambda a, b: mc.round(a), lambda a, b: np.rint(a)),
    "isnan": (lambda a, b: mc.isnan(a), lambda a, b: np.isnan(a)),
    "built-in abs": (lambda a, b: abs(a), lambda a, b: np.abs(a)),
    "np.abs": (lambda a, b: np.abs(a), lambda a, b: np.abs(a)),
    "np.rint": (lambda a, b: np.rint(a), lambda a, b: np.rint(a)),
    "min": (mc.min, np.minimum),
    "max": (mc.max, np.maximum),
    "hypot": (mc.hypot, np.hypot),
    "np.hypot": (np.hypot, np.hypot),
    "less": (mc.less, np.less),
    "less_equal": (mc.less_equal, np.less_equal),
    "equal": (mc.equal, np.equal),
    "and": (lambda a, b: mc.less(a, 1.0) & mc.less(0.0, b), lambda a, b: (a < 1.0) & (b > 0.0)),
    "or": (lambda a, b: mc.less(a, 1.0) | mc.less(0.0, b), lambda a, b: (a < 1.0) | (b > 0.0)),
    "not": (lambda a, b: ~mc.less(a, b), lambda a, b: ~(a < b)),
    "arithmetic": (
        lambda a, b: 1.0 - mc.less(a, b) + 2.0 * mc.less(b, a) * mc.equal(a, a),
        lambda a, b: 1.0 - (a < b) + 2.0 * (b < a) * (a == a),
    ),
    "select": (
        lambda a, b: mc.select(mc.less(a, b) & mc.less(a, 1.0), a, b),
        lambda a, b: np.where((a < b) & (a < 1.0), a, b),
    ),
}
"""Operations of this package, and what NumPy has for them."""


def function_of(evaluator: str, program: Program, folder: Any) -> Any:
    """Return the program as a function of numbers, by a back end or by exported C."""
    if evaluator != "exported":
        return Kernel(program, backend=evaluator)
    function = c_function(program, folder)
    return lambda *numbers: function(*numbers)[1]


@pytest.mark.parametrize("evaluator", EVALUATORS)
def test_values_are_those_of_numpy_in_every_back_end(evaluator, tmp_path):
    def all_of_them(x: Any, y: Any) -> Any:
        return {f"result{k}": each(x, y) for k, (each, _) in enumerate(OPERATIONS.values())}

    program = trace(lambda x, y: all_of_them(x[()], y[()]), dict.fromkeys("xy", ()), name="f")
    function = function_of(evaluator, program, tmp_path)
    with np.errstate(all="ignore"):
        wanted = [of_numbers(*PAIRS) for _, of_numbers in OPERATIONS.values()]
        results = [[*all_of_them(*PAIRS).values()]]
    interpreted = [evaluate(program.module, {"x": x, "y": y})[0].values() for x, y in PAIRS.T]
    for found in (interpreted, [function(x, y) for x, y in PAIRS.T]):
        results.append(np.array([np.ravel([*each]) for each in found]).T)
    if evaluator != "exported":
        results.append(function(*PAIRS))  # in lanes, if there are any
    for found in results:
        for name, value, expected in zip(OPERATIONS, found, wanted, strict=True):
            value, expected = (np.asarray(x, dtype=float) for x in (value, expected))
            np.testing.assert_allclose(value, expected, rtol=4e-16, atol=0.0, err_msg=name)


@needs_compiler
def test_single_precision_uses_functions_of_floats_alone(tmp_path):
    def function(x: Any) -> Any:
        a, b = x
        return [mc.abs(a), mc.round(a), mc.hypot(a, b), mc.min(a, b), mc.isnan(b) * a, mc.sin(a)]

    text = emit_c(lower(trace(function, {"x": (2,)}, name="f"), "c"), precision="single")
    source, library = tmp_path / "f.c", tmp_path / "f.so"
    source.write_text("#include <math.h>\n\n" + text.definition)
    strict = (*STRICT, "-Wdouble-promotion", "-Wconversion")
    subprocess.run([COMPILER, *strict, source, "-o", library, "-lm"], check=True)
    x, out = np.array([-2.5, 3.0], dtype=np.float32), np.zeros(6, dtype=np.float32)
    pointers = [ctypes.c_void_p(a.ctypes.data) for a in (x, out)]
    assert ctypes.CDLL(str(library)).f(*pointers) == 0
    np.testing.assert_allclose(out, [2.5, -2.0, np.hypot(2.5, 3), -2.5, 0.0, np.sin(-2.5)], 1e-6)


@pytest.mark.parametrize("backend", BACKENDS)
def test_gradients_of_abs_hypot_min_and_max(backend):
    def function(x: Any) -> Any:
        a, b = x
        return [3.0 * mc.abs(a) + mc.hypot(a, b) + 5.0 * mc.min(a, b) + 7.0 * mc.max(a, b)]

    gradient = Kernel(pullback(trace(function, {"x": (2,)}, name="f"), ["x"]), backend=backend)
    for x in ([-1.0, 2.0], [1.0, -2.0], [3.0, 4.0]):
        a, b = x
        r = math.hypot(a, b)
        expected = [
            3.0 * np.sign(a) + a / r + (5.0 if a < b else 7.0),
            b / r + (7.0 if a < b else 5.0),
        ]
        np.testing.assert_allclose(gradient(x, [1.0]), expected, rtol=1e-15)


def test_an_operation_without_a_derivative_raises():
    rounded = trace(lambda x: mc.round(x) * x, {"x": (2,)}, name="rounded")
    with pytest.raises(TraceError, match="round"):
        pullback(rounded, ["x"])
    with pytest.raises(TraceError, match="hypot"):
        mc.hypot(mc.series_of([np.ones(2), np.ones(2)]), 1.0)


def test_every_operation_is_counted_or_free():
    x = mc.Graph().input("x", (2,))
    assert trace(lambda x: mc.hypot(x[0], x[1]), {"x": (2,)}, name="f").operations.square_roots == 1
    assert trace(lambda x: mc.abs(x[0]), {"x": (2,)}, name="f").operations.additions == 1
    assert trace(lambda x: x[0] < x[1], {"x": (2,)}, name="f").operations.selections == 1
    assert abs(-x[0]) is abs(x[0])
    assert ~~(x[0] < x[1]) is (x[0] < x[1])
