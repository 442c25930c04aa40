# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Loops over the columns of a matrix give what is written out, in all code and for all results."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from backends import BACKENDS, LLVM, c_function, needs_compiler

import mbs_dynamics as mbs
from mbs_dynamics.compiler import Kernel, Program, columnwise, positive, sin, sqrt, trace
from mbs_dynamics.compiler.frontend import columns
from mbs_dynamics.compiler.ir.interpreter import evaluate
from mbs_dynamics.compiler.passes import strategy
from mbs_dynamics.compiler.runtime import machine

pytestmark = pytest.mark.backend_independent

ROWS, COLUMNS = 3, columns.LEAST + 3
SHAPES = {"A": (ROWS, ROWS), "B": (ROWS, COLUMNS)}


def solved(b: Any, A: Any, scale: Any) -> Any:
    """Return a column whose operations depend on zeros of A, and one that is a number."""
    return np.array([*(A @ (scale * b))[:2], 1.5])


def sparse(A: Any, B: Any) -> tuple[Any, Any]:
    """Return the matrices with zeros and another number."""
    A, B = np.array(A), np.array(B)
    A[0, 1:] = 0.0
    B[1, ::2] = 0.0
    B[2, 4] = -2.0
    return A, B


def plain(A: Any, B: Any) -> Any:
    A, B = sparse(A, B)
    return columnwise(solved, B, A, np.array([2.0, A[2, 2], 1.0], dtype=object))


def changed(A: Any, B: Any) -> Any:
    """Return results of which one is changed, and two copies of another entry."""
    X = plain(A, B)
    X[0, 0] = X[0, 0] - X[1, 1] * A[0, 0]
    X[2, 0] = X[0, 2] = X[1, 3]
    return X


def exchanged(A: Any, B: Any) -> Any:
    """Return results of which two have changed places: neither may be overwritten first."""
    X = plain(A, B)
    X[0, 0], X[1, 1] = X[1, 1], X[0, 0]
    return X


def guarded(A: Any, B: Any) -> dict[str, Any]:
    """Return results that sines, checks and another loop depend on, twice."""
    X = plain(A, B)
    positive(X[0, 0], "X[0, 0]")
    Y = columnwise(
        lambda b, S: S @ b, X * 0.5, np.array([[sin(X[1, 2]), A[0, 0]], [0.0, 1.0]]) @ A[:2]
    )
    X[0, 0] = sqrt(X[0, 0])
    return {"X": X, "Y": Y, "again": X[:, ::-1]}


FUNCTIONS = (plain, changed, exchanged, guarded)


def traced(function: Any, monkeypatch: pytest.MonkeyPatch) -> tuple[Program, Program]:
    """Return a function traced with loops, and with operations written out."""
    looped = trace(function, SHAPES, name=function.__name__)
    monkeypatch.setattr(columns, "LEAST", COLUMNS + 1)
    written_out = trace(function, SHAPES, name=function.__name__)
    monkeypatch.undo()
    assert looped.has_columns
    assert not written_out.has_columns
    return looped, written_out


def arrays() -> dict[str, Any]:
    rng = np.random.default_rng(3)
    return {name: rng.uniform(0.5, 2.0, shape) for name, shape in SHAPES.items()}


def flat(results: Any) -> Any:
    return np.concatenate(
        [np.ravel(x) for x in (results if isinstance(results, tuple) else [results])]
    )


@pytest.mark.parametrize("function", FUNCTIONS)
def test_loops_have_the_operations_and_results_of_code_written_out(function, monkeypatch):
    looped, written_out = traced(function, monkeypatch)
    assert looped.operations == written_out.operations
    results = function(**arrays())
    expected = flat(tuple(results.values()) if isinstance(results, dict) else results)
    for program in (looped, looped.straight, written_out):
        outputs, status = evaluate(program.module, arrays())
        assert not status
        np.testing.assert_allclose(np.concatenate([*outputs.values()]), expected, rtol=1e-14)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("function", FUNCTIONS)
def test_kernels_for_one_state_and_many(function, backend, monkeypatch):
    looped, written_out = traced(function, monkeypatch)
    kernel, expected = (Kernel(x, backend=backend) for x in (looped, written_out))
    A, B = arrays().values()
    np.testing.assert_allclose(flat(kernel(A, B)), flat(expected(A, B)), rtol=1e-13)
    many = np.linspace(0.5, 1.0, 70)[:, None, None] * A
    np.testing.assert_allclose(flat(kernel(many, B)), flat(expected(many, B)), rtol=1e-13)


@needs_compiler
def test_c_has_them_written_out(tmp_path, monkeypatch):
    looped, written_out = traced(changed, monkeypatch)
    (_, (found,)), (_, (expected,)) = (
        c_function(x, tmp_path)(*arrays().values()) for x in (looped, written_out)
    )
    np.testing.assert_allclose(found, expected, rtol=1e-13)


@pytest.mark.parametrize("backend", [pytest.param("llvm", marks=LLVM.marks)])
def test_processors_with_narrow_vectors_run_code_written_out(backend, monkeypatch):
    emitted: list[Program] = []
    emit = machine.emit_llvm

    def recorded(program: Program, *lanes: int) -> str:
        emitted.append(program)
        return emit(program, *lanes)

    monkeypatch.setattr(machine, "emit_llvm", recorded)
    monkeypatch.setattr(strategy, "LEAST_LANES", 16)
    program = trace(plain, SHAPES, name="plain")
    kernel = Kernel(program, backend=backend)
    assert emitted == [program.straight]
    np.testing.assert_allclose(kernel(*arrays().values()), plain(**arrays()), rtol=1e-13)


@pytest.mark.parametrize("backend", [pytest.param("llvm", marks=LLVM.marks)])
def test_a_check_of_a_result_fails(backend):
    kernel = Kernel(trace(guarded, SHAPES, name="guarded"), backend=backend)
    A, B = arrays().values()
    with pytest.raises(mbs.SingularError, match="X\\[0, 0\\]"):
        kernel(-A, B)


def test_a_column_of_another_trace_is_refused():
    def mixed(A: Any, B: Any) -> Any:
        return columnwise(lambda b: A @ b, B)

    with pytest.raises(mbs.TraceError):
        trace(mixed, SHAPES, name="mixed")


def test_few_columns_and_numbers_are_no_loops():
    few = trace(lambda A, B: plain(A, B[:, :5]), SHAPES, name="few")
    assert not few.has_columns
    A, B = arrays().values()
    np.testing.assert_allclose(columnwise(lambda b, A: A @ b, B, A), A @ B, rtol=1e-15)


def floating(limbs: int, joints: int) -> mbs.Model:
    """Return limbs of some joints each on a floating base."""
    inertia = '<inertia ixx="0.1" iyy="0.2" izz="0.3" ixy="0.01" ixz="0" iyz="0"/>'
    inertial = f'<inertial><origin xyz="0.1 0 0.2"/><mass value="2"/>{inertia}</inertial>'
    parts = [f'<link name="base">{inertial}</link>']
    for limb in range(limbs):
        for k in range(joints):
            name, parent = f"limb{limb}_{k}", f"limb{limb}_{k - 1}" if k else "base"
            axis = ("0 0 1", "0 1 0", "1 0 0")[(k + limb) % 3]
            parts.append(
                f'<link name="{name}">{inertial}</link><joint name="to_{name}" type="continuous">'
                f'<parent link="{parent}"/><child link="{name}"/><origin xyz="0.1 {limb} 0.3"/>'
                f'<axis xyz="{axis}"/></joint>'
            )
    return mbs.Model.from_urdf(f'<robot name="r">{"".join(parts)}</robot>', floating_base=True)


@pytest.mark.parametrize("backend", BACKENDS)
def test_matrices_of_limbs_on_a_floating_base(backend):
    model = floating(4, 3)
    q, qd, tau = model.random_state(3)
    inverse = mbs.compile(mbs.inverse_mass_matrix, model, backend=backend)
    derivatives = mbs.compile(mbs.forward_dynamics_derivatives, model, backend=backend)
    assert inverse.program.has_columns
    assert derivatives.program.has_columns
    found = inverse(q)
    assert np.array_equal(found, found.T)
    np.testing.assert_allclose(found @ mbs.mass_matrix(model, q), np.eye(model.n), atol=1e-11)
    by_q, by_qd, by_tau = derivatives(q, qd, tau)
    qdd = mbs.forward_dynamics(model, q, qd, tau)
    partial = mbs.inverse_dynamics_derivatives(model, q, qd, qdd)
    for x, expected in ((by_q, partial.dtau_dq), (by_qd, partial.dtau_dqd), (by_tau, -np.eye(18))):
        np.testing.assert_allclose(x, -found @ expected, rtol=1e-9, atol=1e-9 * np.abs(x).max())
