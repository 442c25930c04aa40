# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Functions of CasADi, their values beside the kernels and their Jacobians beside complex steps."""

import casadi
import numpy as np
import pytest
from gradients import CASES, case_name, close, derivatives, model, prepared

import mbs_dynamics as mbs
import mbs_dynamics.compiler as mc
from mbs_dynamics.bridges import casadi as bridge
from mbs_dynamics.bridges._programs import evaluated
from mbs_dynamics.bridges.casadi import ON_SX, to_casadi


@pytest.mark.long
@pytest.mark.parametrize("case", CASES, ids=case_name)
def test_values_and_gradients_agree(case):
    of, kernel, values = prepared(case)
    _, function, options, wrt = case
    inputs = {name: True for name in ("gravity", "payload", "armature") if name in values}
    f = to_casadi(function, of, **options, **inputs)
    assert (f.name(), f.name_in()) == (function.__name__, list(values))
    columns = [x.reshape(-1, x.shape[-1]) if x.ndim > 1 else x for x in values.values()]
    expected = np.asarray(kernel(*values.values()))
    found = f(*columns).full().reshape(expected.shape)
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-11)
    w = np.random.default_rng(2).normal(size=f.size_out(0))
    symbols = dict(zip(values, f.sx_in(), strict=True))
    y = f(*symbols.values())
    gradients = [casadi.jtimes(y, symbols[name], w, True) for name in wrt]
    found = casadi.Function("gradients", [*symbols.values()], gradients).call(columns)
    for name, g in zip(wrt, found, strict=True):
        assert close(g.full().ravel(), w.ravel() @ derivatives(kernel, values, name))


def test_second_derivatives_are_those_of_the_mass_matrix():
    arm, (q, qd, _) = model("loaded"), model("loaded").random_state(seed=0)
    symbols = [casadi.SX.sym(name, arm.n) for name in ("q", "qd")]
    H, _ = casadi.hessian(to_casadi(mbs.kinetic_energy, arm)(*symbols), symbols[1])
    M = casadi.Function("M", symbols, [H])(q, qd).full()
    np.testing.assert_allclose(M, mbs.mass_matrix(arm, q), rtol=1e-12, atol=1e-13)


def test_what_is_too_large_is_refused_with_an_estimate(monkeypatch):
    monkeypatch.setattr(bridge, "MOST", 1000)
    with pytest.raises(mbs.ArgumentError, match=r"model.*\d operations.* s .*1000"):
        to_casadi(mbs.mass_matrix, model("chain"))


def test_minimum_and_tests_for_nan_mean_in_casadi_what_they_mean_in_kernels():
    def function(x):
        chosen = mc.select(~mc.less(x[0], x[1]) | mc.equal(x[0], 2.0), 1.0, 5.0)
        return [mc.min(*x), mc.max(*x), mc.abs(x[0]), mc.hypot(*x), mc.isnan(x[0]), chosen]

    program = mc.trace(function, {"x": (2,)}, name="f")
    x = casadi.SX.sym("x", 2)
    entries = evaluated(program, {"x": [x[0], x[1]]}, ON_SX)["f"]
    theirs = casadi.Function("f", [x], [casadi.vertcat(*entries)])
    for values in ([1.0, 2.0], [3.0, -2.0], [np.nan, 1.0], [1.0, np.nan], [np.inf, 1.0]):
        found, expected = np.array(theirs(values)).ravel(), mc.Kernel(program)(values)
        np.testing.assert_allclose(found, expected, rtol=4e-16)
