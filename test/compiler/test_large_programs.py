# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Code in chunks: it gives what straight-line code gives, for one state and for lanes."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest
from backends import LLVM, c_function, needs_compiler
from cases import mostly_slow
from mechanisms import random_mechanism, with_mimics

import mbs_dynamics as mbs
from mbs_dynamics.algorithms import algorithm_of
from mbs_dynamics.compiler import Kernel, Program
from mbs_dynamics.compiler.passes import pipeline

pytestmark = [*LLVM.marks]

llvm_emitter = pytest.importorskip("mbs_dynamics.compiler.codegen.llvm")
llvm = pytest.importorskip("mbs_dynamics.compiler.jit.machine_code")


@pytest.fixture
def large(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return a switch: whether programs are compiled in chunks, which are small."""
    monkeypatch.setattr(pipeline, "CHUNK", 60)

    def switch(on: bool) -> None:
        limits = dict.fromkeys(pipeline.LARGEST_BLOCK, 0 if on else sys.maxsize)
        monkeypatch.setattr(pipeline, "LARGEST_BLOCK", limits)

    return switch


def program_of(function: Any, model: mbs.Model, **options: Any) -> Program:
    made = algorithm_of(function)
    return made.program(model, made.required, {**made.options, **options})


def kernel_of(program: Program, model: mbs.Model, backend: str = "llvm") -> Kernel:
    defaults = {"gravity": model.gravity, "payload": model.payloads.parameters}
    return Kernel(program, backend=backend, defaults=defaults)


def arrays_of(program: Program, model: mbs.Model, states: int, seed: int = 0) -> list[Any]:
    """Return one random array of states for each input that is not a property of the model."""
    rng = np.random.default_rng(seed)
    return [
        rng.uniform(-1.0, 1.0, (states, *port.shape))
        for port in program.inputs
        if port.name not in ("gravity", "payload")
    ]


def flat(results: Any) -> Any:
    arrays = results if isinstance(results, tuple) else (results,)
    return np.concatenate([x.reshape(len(x), -1) for x in arrays], axis=1)


MECHANISMS = {
    "chain": random_mechanism(1, range(-1, 5)),
    "tree": random_mechanism(2, (-1, 0, 1, 1, 0, -1, 5, 5)),
    "breadth first": random_mechanism(3, (-1, 0, 0, 0, 1, 2, 3), ("revolute",)),
    "aligned": random_mechanism(4, (-1, 0, 1, 2, 2, 1, -1, 6), aligned=True),
    "mimics": with_mimics(
        random_mechanism(5, (-1, 0, 1, 2, 3, 3)),
        (0, 1, 2, 1, 3, 0),
        (1.0, 1.0, 1.0, -0.5, 1.0, 2.0),
        (0.0, 0.0, 0.0, 0.3, 0.0, -0.1),
    ),
}

ALGORITHMS = [
    (mbs.inverse_dynamics, {"representation": "body_fixed"}),
    (mbs.inverse_dynamics, {"representation": "mixed"}),
    (mbs.forward_dynamics, {"representation": "body_fixed"}),
    (mbs.forward_kinematics, {}),
    (mbs.mass_matrix, {"representation": "spatial"}),
    (mbs.inverse_dynamics_derivatives, {}),
]


@pytest.mark.long
@pytest.mark.parametrize("name", mostly_slow(MECHANISMS, ["tree", "mimics"]))
def test_chunks_give_what_straight_code_gives(name, large):
    model = MECHANISMS[name].model
    for function, options in ALGORITHMS:
        large(False)
        program = program_of(function, model, **options)
        defaults = {"gravity": model.gravity, "payload": model.payloads.parameters}
        plain = Kernel(program, backend="python", defaults=defaults)
        straight = flat(plain(*arrays_of(program, model, 5)))
        large(True)
        found = flat(kernel_of(program, model)(*arrays_of(program, model, 5)))
        scale = np.abs(straight).max(axis=1, keepdims=True)
        np.testing.assert_array_less(np.abs(found - straight) / scale, 2e-13)


@needs_compiler
@pytest.mark.parametrize("name", mostly_slow(["tree", "mimics"], ["mimics"]))
def test_chunks_in_c_give_what_straight_code_gives(name, large, tmp_path):
    model = MECHANISMS[name].model
    constants = {"gravity": model.gravity, "payload": model.payloads.parameters}
    for function, options in ALGORITHMS:
        program = program_of(function, model, **options)
        state = [x[0] for x in arrays_of(program, model, 1)]
        state += [constants[port.name] for port in program.inputs[len(state) :]]
        large(False)
        _, straight = c_function(program, tmp_path)(*state)
        large(True)
        status, found = c_function(program, tmp_path)(*state)
        assert status == 0
        for a, b in zip(found, straight, strict=True):
            np.testing.assert_array_less(np.abs(a - b), 2e-13 * np.abs(b).max() + 1e-300)


def test_a_large_memory_comes_from_the_heap(large, monkeypatch):
    large(True)
    model = MECHANISMS["tree"].model
    program = program_of(mbs.forward_dynamics, model)
    arrays = arrays_of(program, model, 3)
    expected = kernel_of(program, model)(*arrays)
    monkeypatch.setattr(llvm_emitter, "STACK", 0)
    assert "@malloc" in llvm_emitter.emit_llvm(pipeline.lower(program, "llvm"))
    np.testing.assert_array_equal(kernel_of(program, model)(*arrays), expected)
