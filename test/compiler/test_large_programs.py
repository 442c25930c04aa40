# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Code in chunks: it gives what straight-line code gives, for one state and for lanes, and in C."""

from typing import Any

import numpy as np
import pytest
from backends import LLVM, WITHOUT_COMPILER, c_function
from twins import tree

import mbs_dynamics as mbs
from mbs_dynamics.algorithms import algorithm_of
from mbs_dynamics.compiler import Kernel, Program, less, select, sqrt, trace
from mbs_dynamics.compiler.passes import branches, pipeline
from mbs_dynamics.compiler.passes.spilling import spilled

pytestmark = [*LLVM.marks]

llvm_emitter = pytest.importorskip("mbs_dynamics.compiler.codegen.llvm")
MODEL = tree("mimics")
ALGORITHMS = (mbs.forward_dynamics, mbs.inverse_dynamics_derivatives, mbs.forward_kinematics)
STATES = 70
"""So many are evaluated in lanes."""


@pytest.fixture(autouse=True)
def _chunks(monkeypatch):
    """Compile everything in chunks, which are small."""
    monkeypatch.setattr(pipeline, "CHUNK", 60)
    monkeypatch.setattr(pipeline, "LARGEST_BLOCK", dict.fromkeys(pipeline.LARGEST_BLOCK, 0))


def program_of(function: Any) -> tuple[Program, list[Any]]:
    """Return the program of an algorithm, and random arrays of states for its inputs."""
    algorithm, rng = algorithm_of(function), np.random.default_rng(0)
    program = algorithm.program(MODEL, algorithm.required, algorithm.complete({}))
    shapes = [port.shape for port in program.inputs]
    return program, [rng.uniform(-1.0, 1.0, (STATES, *shape)) for shape in shapes]


def flat(results: Any) -> Any:
    arrays = results if isinstance(results, tuple) else (results,)
    return np.concatenate([x.reshape(len(x), -1) for x in arrays], axis=1)


@pytest.mark.parametrize("function", ALGORITHMS, ids=lambda f: f.__name__)
@pytest.mark.parametrize(
    "target", ["llvm", pytest.param("c", marks=(WITHOUT_COMPILER, pytest.mark.process))]
)
def test_chunks_give_what_straight_code_gives(function, target, tmp_path):
    program, arrays = program_of(function)
    assert pipeline.lower(program, target).procedures
    straight = flat(Kernel(program, backend="python")(*arrays))
    if target == "llvm":
        kernel = Kernel(program, backend="llvm")
        found = [flat(kernel(*[x[:5] for x in arrays])), flat(kernel(*arrays))]
    else:
        status, results = c_function(program, tmp_path)(*[x[0] for x in arrays])
        assert status == 0
        found = [np.concatenate(results)[None]]
    scale = np.abs(straight).max(axis=1, keepdims=True)
    for some in found:
        error = np.abs(some - straight[: len(some)]) / scale[: len(some)]
        np.testing.assert_array_less(error, 2e-13)


def test_a_large_memory_comes_from_the_heap(monkeypatch):
    program, arrays = program_of(mbs.forward_dynamics)
    expected = Kernel(program, backend="llvm")(*arrays)
    monkeypatch.setattr(llvm_emitter, "STACK", 0)
    assert "@malloc" in llvm_emitter.emit_llvm(pipeline.lower(program, "llvm"))
    np.testing.assert_array_equal(Kernel(program, backend="llvm")(*arrays), expected)


@pytest.mark.parametrize(
    "target", ["llvm", pytest.param("c", marks=(WITHOUT_COMPILER, pytest.mark.process))]
)
def test_a_branch_that_is_not_taken_leaves_no_trace(target, tmp_path, monkeypatch):
    def function(x: Any) -> Any:
        series = x[1]
        for k in range(1, 100):
            series = sqrt(1.0 + series * series) / k
        return [select(less(0.0, x[0]), series, x[1]), x[0] + x[1]]

    monkeypatch.setattr(branches, "LEAST", 50)
    passes = (lambda module, _: spilled(module, 100, 60, branches=True),)
    monkeypatch.setitem(pipeline.PASSES, "llvm", passes)
    program = trace(function, {"x": (2,)}, name="f")
    assert any(x.condition is not None for x in pipeline.lower(program, target).procedures)
    for x in ([1.0, 2.0], [-1.0, 2.0], [np.nan, 3.0]):
        expected = Kernel(program, backend="python")(np.array(x))
        if target == "llvm":
            found = Kernel(program, backend="llvm")(np.array(x))
        else:
            _, (found,) = c_function(program, tmp_path)(x)
        np.testing.assert_allclose(found, expected, rtol=1e-15)
