# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Gradients of programs by reverse-mode differentiation, against complex steps."""

import importlib
import sys

import numpy as np
import pytest
from gradients import CASES, case_name, close, derivatives, model, prepared

import mbs_dynamics as mbs
from mbs_dynamics.compiler import Program, atan2, cos, positive, select, sin, sqrt, trace
from mbs_dynamics.compiler.frontend.reverse import pullback


@pytest.mark.long
@pytest.mark.parametrize("case", CASES, ids=case_name)
def test_gradients_agree_with_complex_steps(case):
    _, kernel, values = prepared(case)
    gradients = mbs.Kernel(pullback(kernel.program, case[-1]))
    w = np.random.default_rng(2).normal(size=kernel.outputs[0].shape)
    found = gradients(*values.values(), w)
    for name, g in zip(case[-1], found if len(case[-1]) > 1 else [found], strict=True):
        assert close(g.ravel(), w.ravel() @ derivatives(kernel, values, name))


def test_all_operations_and_several_outputs_have_gradients():
    def function(x):
        a, b = x
        y = np.array([sin(a) * b, sqrt(a) / b, atan2(a, b) - cos(b), select(a < b, a, -a), 5.0, a])
        return {"y": y, "z": y[:3] + 2.0 * a}

    program: Program = trace(function, {"x": (2,)}, name="f")
    together = trace(lambda x: np.concatenate([*function(x).values()]), {"x": (2,)}, name="g")
    x, gradient = {"x": np.array([0.7, 0.4])}, mbs.Kernel(pullback(program, ["x"]))
    found = [gradient(x["x"], *np.split(w, [6])) for w in np.eye(9)]
    assert close(np.array(found), derivatives(mbs.Kernel(together), x, "x"))


def test_what_must_be_positive_must_be_for_the_gradient():
    program = trace(lambda x: np.array([1.0 / positive(x[0], "x is not")]), {"x": (1,)}, name="f")
    with pytest.raises(mbs.SingularError, match="x"):
        mbs.Kernel(pullback(program, ["x"]))([-1.0], [1.0])


@pytest.mark.parametrize("quaternion", [(0, 0, 0, 1), (0, 0, 1e-9, 1), (0, 0, 1, 0)])
def test_rotations_by_no_angle_and_by_half_a_turn_have_gradients(quaternion):
    base = model("floating")
    q = base.neutral()
    values = {"q": q, "q2": np.array([*q[:3], *quaternion, *q[7:]])}
    kernel = mbs.compile(mbs.difference, base)
    gradient = mbs.Kernel(pullback(kernel.program, ["q2"]))(*values.values(), np.eye(base.n)[2])
    assert close(gradient, derivatives(kernel, values, "q2")[2])


@pytest.mark.parametrize("package", ["casadi", "jax", "sympy", "torch"])
def test_a_missing_package_is_named_with_what_installs_it(package, monkeypatch):
    monkeypatch.setitem(sys.modules, package, None)
    monkeypatch.delitem(sys.modules, f"mbs_dynamics.bridges.{package}", raising=False)
    with pytest.raises(mbs.BackendError, match=rf'pip install "mbs_dynamics\[{package}\]"'):
        importlib.import_module(f"mbs_dynamics.bridges.{package}")
