# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Functions of PyTorch, which `make test-bridges` installs: values, gradients, and refusals."""

import numpy as np
import pytest
from gradients import CASES, case_name, close, derivatives, model, prepared

import mbs_dynamics as mbs

torch = pytest.importorskip("torch")
bridge = pytest.importorskip("mbs_dynamics.bridges.torch")
SAME = {"rtol": 1e-12, "atol": 1e-11}


def arm_and_batch(*shape):
    """Return an arm, its inverse dynamics, and q, qd and qdd as tensors that require gradients."""
    arm, rng = model("loaded"), np.random.default_rng(0)
    state = [torch.tensor(rng.normal(size=(*shape, arm.n)), requires_grad=True) for _ in range(3)]
    return arm, bridge.function(mbs.inverse_dynamics, arm), state


@pytest.mark.parametrize("case", CASES, ids=case_name)
def test_values_and_gradients_agree(case):
    of, kernel, values = prepared(case)
    _, function, options, wrt = case
    tensors = {k: torch.tensor(x, requires_grad=k in wrt) for k, x in values.items()}
    found = bridge.function(function, of, **options)(**tensors)
    np.testing.assert_array_equal(found.detach(), kernel(*values.values()))
    w = torch.tensor(np.random.default_rng(2).normal(size=found.shape))
    gradients = torch.autograd.grad(found, [tensors[name] for name in wrt], w)
    for name, g in zip(wrt, gradients, strict=True):
        assert close(g.ravel().numpy(), w.numpy().ravel() @ derivatives(kernel, values, name))


@pytest.mark.parametrize("function", [mbs.forward_dynamics, mbs.forward_dynamics_derivatives])
def test_gradcheck_passes_with_axes_that_broadcast(function):
    arm, _, (q, qd, x) = arm_and_batch(2, 3)
    qd, x = qd[:, :1].detach().requires_grad_(), x[0, 0].detach().requires_grad_()
    assert torch.autograd.gradcheck(bridge.function(function, arm), (q, qd, x))


def test_transforms_of_torch_func_apply():
    arm, f, (q, qd, qdd) = arm_and_batch(4)
    expected = mbs.inverse_dynamics_derivatives(arm, *[x.detach().numpy() for x in (q, qd, qdd)])
    found = torch.vmap(torch.func.jacrev(f))(q, qd, qdd).detach()
    np.testing.assert_allclose(found, expected.dtau_dq, **SAME)
    torch.testing.assert_close(torch.vmap(f, (1, None, 0))(q.T, qd[0], qdd), f(q, qd[0], qdd))
    assert torch.vmap(f, (0, None, None))(q[:3], qd, qdd[0]).shape == (3, 4, arm.n)


def test_derivatives_are_those_of_the_regressor_and_of_the_group():
    arm, _, state = arm_and_batch()
    f = bridge.function(mbs.inverse_dynamics, arm, inertial_parameters=True)
    Y = torch.func.jacrev(lambda pi: f(*state, pi))(torch.tensor(mbs.inertial_parameters(arm)))
    expected = mbs.inverse_dynamics_regressor(arm, *[x.detach().numpy() for x in state])
    np.testing.assert_allclose(Y.detach(), expected, **SAME)
    base, (q, *_) = model("floating"), model("floating").random_state(seed=1)
    moved, energy = (bridge.function(x, base) for x in (mbs.displaced, mbs.potential_energy))
    by_v = torch.func.grad(lambda v: energy(moved(torch.tensor(q), v)))
    zero = torch.zeros(base.n, dtype=torch.float64)
    np.testing.assert_allclose(by_v(zero), mbs.gravity_torques(base, q), **SAME)


def test_results_keep_their_memory_and_any_strides_are_taken():
    _, f, (q, qd, qdd) = arm_and_batch()
    first = f(q, qd, qdd)
    kept = first.clone()
    for _ in range(5):
        f(-q, qd, qdd)
    assert torch.equal(first, kept)
    assert torch.equal(f(torch.stack([q, -q], 1)[:, 0], qd, qdd), kept)


def test_second_and_forward_derivatives_are_refused_by_name():
    _, f, (q, qd, qdd) = arm_and_batch()
    (g,) = torch.autograd.grad(f(q, qd, qdd).sum(), q, create_graph=True)

    def forward():
        with torch.autograd.forward_ad.dual_level():
            f(torch.autograd.forward_ad.make_dual(q.detach(), qd.detach()), qd, qdd)

    hessian = torch.func.hessian(lambda q: f(q, qd, qdd).sum())
    for derivative in (g.sum().backward, forward, lambda: hessian(q)):
        with pytest.raises(mbs.BackendError, match="inverse_dynamics: second"):
            derivative()


@pytest.mark.parametrize(
    ("q", "words"),
    [
        (torch.zeros(7), "q .*torch.float32 on cpu"),
        (torch.zeros(7, dtype=torch.float64, device="meta"), "q .*torch.float64 on meta"),
        (np.zeros(7), "q .*ndarray"),
        (torch.zeros(6, dtype=torch.float64), r"q has shape \(6,\)"),
        (torch.zeros(2, 7, dtype=torch.float64), "do not broadcast"),
    ],
)
def test_wrong_tensors_are_refused_by_name(q, words):
    _, f, (_, qd, qdd) = arm_and_batch(3)
    with pytest.raises(mbs.ArgumentError, match=words):
        f(q, qd, qdd)


def test_a_state_without_a_solution_raises_the_error_of_the_kernel():
    base = model("floating")
    q = torch.zeros(base.nq, dtype=torch.float64)
    with pytest.raises(mbs.SingularError, match="quaternion"):
        bridge.function(mbs.mass_matrix, base)(q)
