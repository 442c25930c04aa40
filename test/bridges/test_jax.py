# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Functions of JAX, which `make test-bridges` installs: values, gradients, batches and refusals."""

import numpy as np
import pytest
from gradients import CASES, case_name, close, derivatives, model, prepared

import mbs_dynamics as mbs

jax = pytest.importorskip("jax")
bridge = pytest.importorskip("mbs_dynamics.bridges.jax")


@pytest.fixture(autouse=True)
def _double_precision():
    before = jax.config.jax_enable_x64
    jax.config.update("jax_enable_x64", True)
    yield
    jax.config.update("jax_enable_x64", before)


@pytest.mark.parametrize("case", CASES, ids=case_name)
def test_values_and_gradients_agree(case):
    of, kernel, values = prepared(case)
    _, function, options, wrt = case
    f, expected = bridge.function(function, of, **options), kernel(*values.values())
    np.testing.assert_array_equal(jax.jit(f)(*values.values()), expected)
    w = np.random.default_rng(2).normal(size=np.shape(expected))
    numbers = [list(values).index(name) for name in wrt]
    gradients = jax.grad(lambda *x: (w * f(*x)).sum(), numbers)(*values.values())
    for name, g in zip(wrt, gradients, strict=True):
        assert close(np.ravel(g), w.ravel() @ derivatives(kernel, values, name))


def test_batches_jacobians_and_named_results_agree():
    arm, rng = model("loaded"), np.random.default_rng(0)
    f, (q, qd, qdd) = bridge.function(mbs.inverse_dynamics, arm), rng.normal(size=(3, 4, arm.n))
    expected = mbs.inverse_dynamics_derivatives(arm, q, qd[0], qdd)
    found = jax.jit(jax.vmap(jax.jacrev(f, (0, 1)), (0, None, 0)))(q, qd[0], qdd)
    assert close(found[0], expected.dtau_dq)
    assert close(found[1], expected.dtau_dqd)
    np.testing.assert_array_equal(jax.vmap(f, (1, None, 0))(q.T, qd[0], qdd), f(q, qd[0], qdd))
    assert jax.vmap(f, (0, None, None))(q[:3], qd, qdd[0]).shape == (3, 4, arm.n)
    summed = jax.grad(lambda qd: f(q, qd, qdd).sum())(qd[0])
    assert close(summed, expected.dtau_dqd.sum((0, 1)))
    named = bridge.function(mbs.inverse_dynamics_derivatives, arm)(q, qd[0], qdd=qdd)
    assert close(named.dtau_dq, expected.dtau_dq)


def test_what_there_is_not_is_refused_by_name():
    f, (q, qd, qdd) = bridge.function(mbs.inverse_dynamics, model("loaded")), np.zeros((3, 7))
    for derivative in (jax.hessian, lambda f: jax.grad(lambda q: jax.grad(f)(q).sum())):
        with pytest.raises(mbs.BackendError, match="inverse_dynamics: second"):
            derivative(lambda q: f(q, qd, qdd).sum())(q)
    for wrong, words in (
        (q.astype(np.float32), "q .*float32"),
        (q[:6], r"q has shape \(6,\)"),
        (np.zeros((2, 3, 7)), "do not broadcast"),
    ):
        with pytest.raises(mbs.ArgumentError, match=words):
            f(wrong, np.zeros((2, 7)), qdd)
