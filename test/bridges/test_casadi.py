# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Functions of CasADi, their values beside the kernels and their Jacobians beside complex steps."""

from __future__ import annotations

import casadi
import numpy as np
import pytest
from gradients import CASES, case_name, close, derivatives, model, prepared

import mbs_dynamics as mbs
from mbs_dynamics.bridges import casadi as bridge
from mbs_dynamics.bridges.casadi import to_casadi


@pytest.mark.parametrize("case", CASES, ids=case_name)
def test_values_and_jacobians_agree(case):
    of, kernel, values = prepared(case)
    _, function, options, wrt = case
    inputs = {name: True for name in ("gravity", "payload", "armature") if name in values}
    f = to_casadi(function, of, **options, **inputs)
    assert f.name() == function.__name__
    assert f.name_in() == list(values)
    columns = [x.reshape(-1, x.shape[-1]) if x.ndim > 1 else x for x in values.values()]
    expected = np.asarray(kernel(*values.values()))
    shape = (-1, expected.shape[-1]) if expected.ndim > 1 else (-1, 1)
    np.testing.assert_allclose(f(*columns), expected.reshape(shape), rtol=1e-12, atol=1e-11)
    jacobians = f.jacobian()(*columns, f(*columns))
    found = dict(zip(values, jacobians if len(values) > 1 else [jacobians], strict=True))
    for name in wrt:
        by_rows = np.arange(expected.size).reshape(shape).ravel(order="F")  # as CasADi has them
        entries = values[name].reshape(-1, *values[name].shape[-1:])
        by_columns = np.arange(entries.size)
        if values[name].ndim > 1:
            by_columns = by_columns.reshape(entries.shape).ravel(order="F")
        assert close(
            np.array(found[name]), derivatives(kernel, values, name)[by_rows][:, by_columns]
        )


def test_properties_of_the_model_are_constants_or_inputs():
    arm, (q, qd, qdd) = model("loaded"), model("loaded").random_state(seed=0)
    tau = mbs.inverse_dynamics(arm, q, qd, qdd)
    assert to_casadi("inverse_dynamics", arm).name_in() == ["q", "qd", "qdd"]
    np.testing.assert_allclose(to_casadi(mbs.inverse_dynamics, arm)(q, qd, qdd).full()[:, 0], tau)
    f = to_casadi(mbs.inverse_dynamics, arm, gravity=True, inertial_parameters=True)
    assert f.name_in() == ["q", "qd", "qdd", "inertial_parameters", "gravity"]
    found = f(q, qd, qdd, mbs.inertial_parameters(arm), arm.gravity).full()[:, 0]
    np.testing.assert_allclose(found, tau)


def test_second_derivatives_are_those_of_the_mass_matrix():
    arm, (q, qd, _) = model("loaded"), model("loaded").random_state(seed=0)
    symbols = [casadi.SX.sym(name, arm.n) for name in ("q", "qd")]
    H, _ = casadi.hessian(to_casadi(mbs.kinetic_energy, arm)(*symbols), symbols[1])
    M = casadi.Function("M", symbols, [H])(q, qd).full()
    np.testing.assert_allclose(M, mbs.mass_matrix(arm, q), rtol=1e-12, atol=1e-13)


def test_named_results_are_named_outputs():
    f = to_casadi(mbs.inverse_dynamics_derivatives, model("loaded"))
    assert f.name_out() == ["dtau_dq", "dtau_dqd", "dtau_dqdd"]


@pytest.mark.parametrize(
    ("function", "options", "error", "words"),
    [
        (mbs.mass_matrix, {"gravity": True}, mbs.ArgumentError, "mass_matrix .*gravity"),
        (mbs.inverse_dynamics, {"payload": True}, mbs.ArgumentError, "payload"),
        (mbs.inverse_dynamics, {"load": 1}, mbs.ArgumentError, "'load'"),
        (mbs.jacobian, {"body": "claw"}, mbs.UnknownBodyError, "claw"),
        (np.sin, {}, mbs.ArgumentError, "sin"),
    ],
)
def test_what_is_not_there_is_refused_by_name(function, options, error, words):
    with pytest.raises(error, match=words):
        to_casadi(function, model("panda"), **options)
    with pytest.raises(mbs.ArgumentError, match="model"):
        to_casadi(mbs.mass_matrix, "panda", inertial_parameters=True)


def test_what_is_too_large_is_refused_with_an_estimate(monkeypatch):
    monkeypatch.setattr(bridge, "MOST", 1000)
    with pytest.raises(mbs.ArgumentError, match=r"model.*\d operations.* s .*1000"):
        to_casadi(mbs.inverse_dynamics, model("chain"))
