# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Iteration of kernels: against a loop of calls, in each back end."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from backends import BACKENDS

from mbs_dynamics.compiler import Kernel, positive, sin, trace
from mbs_dynamics.errors import ArgumentError, SingularError

pytestmark = pytest.mark.backend_independent  # the back ends are named here

SHAPES = {"x": (2, 2), "u": (2,), "h": ()}


def step(x: Any, u: Any, h: Any) -> Any:
    """A pendulum, semi-implicit: angle and rate of two, in the rows."""
    rate = x[1] + h[()] * (u - sin(x[0]))
    return np.array([x[0] + h[()] * rate, rate])


@pytest.fixture(params=BACKENDS, scope="module")
def kernel(request):
    program = trace(step, SHAPES, name="f")
    return Kernel(program, backend=request.param, defaults={"h": np.array(0.01)})


def one_by_one(kernel: Any, x: Any, u: Any, h: Any, steps: int) -> Any:
    """The trajectory by calls; u and h are functions of the step."""
    states = [np.asarray(x, dtype=float)]
    for k in range(steps):
        states.append(kernel(states[-1], u(k), h(k)))
    return np.array(np.broadcast_arrays(*states))


X = np.array([[0.3, -1.0], [0.2, 0.0]])
U = np.random.default_rng(40).normal(size=(25, 2))
H = np.linspace(0.01, 0.02, 25)


def test_iteration_is_a_loop_of_calls(kernel):
    every = [
        (kernel.iterate(X, U, H, steps=25), U.__getitem__, H.__getitem__),
        (kernel.iterate(X, U, H[0], steps=25), U.__getitem__, lambda k: H[0]),
        (kernel.iterate(X, U[0], h=H, steps=25), lambda k: U[0], H.__getitem__),
        (kernel.iterate(X, u=U[:1], steps=25), lambda k: U[0], lambda k: 0.01),
        (kernel.iterate(X.tolist(), U.tolist(), steps=25), U.__getitem__, lambda k: 0.01),
        (kernel.iterate(X, U[::-1], steps=25), U[::-1].__getitem__, lambda k: 0.01),
    ]
    for found, u, h in every:
        assert found.shape == (26, 2, 2)
        np.testing.assert_array_equal(found, one_by_one(kernel, X, u, h, 25))


@pytest.mark.parametrize(
    ("state", "u", "h"),
    [
        ((4,), (), ()),
        ((4,), (25,), ()),
        ((4,), (25, 4), (25,)),
        ((4,), (1, 4), ()),
        ((), (25, 4), (1,)),
        ((3, 1), (25, 4), (1, 3, 4)),
        ((1, 4), (25, 3, 1), ()),
        ((0,), (25,), ()),
    ],
)
def test_batches(kernel, state, u, h):
    rng = np.random.default_rng(41)
    x = rng.normal(size=(*state, 2, 2))
    forces, periods = rng.normal(size=(*u, 2)), np.asarray(rng.uniform(0.01, 0.02, h))
    found = kernel.iterate(x, forces, periods, steps=25)
    at = [lambda k, y=y, n=n: y[k % len(y)] if n else y for y, n in ((forces, u), (periods, h))]
    np.testing.assert_allclose(found, one_by_one(kernel, x, *at, 25), rtol=1e-13, atol=1e-13)
    assert found.flags.c_contiguous


@pytest.fixture(params=BACKENDS, scope="module")
def falling(request):
    """Each step takes 1 off x, which has to stay positive, and then y off y."""

    def fall(x: Any, y: Any) -> Any:
        return np.array([positive(x[0], "x is not positive") - 1.0, positive(x[1], "z") - y[()]])

    return Kernel(trace(fall, {"x": (2,), "y": ()}, name="f"), backend=request.param)


def test_a_guard_that_fails_keeps_the_states_so_far(falling):
    with pytest.raises(SingularError, match=r"x.* 3$") as raised:
        falling.iterate([3.0, 5.0], 0.0, steps=9)
    expected = [[3.0, 5.0], [2.0, 5.0], [1.0, 5.0], [0.0, 5.0]]
    np.testing.assert_array_equal(raised.value.trajectory, expected)
    with pytest.raises(SingularError, match=r"z.* 0.*finite") as raised:
        falling.iterate([3.0, np.nan], 0.0, steps=9)
    assert raised.value.trajectory.shape == (1, 2)
    assert falling.iterate([3.0, 5.0], 0.0, steps=3).shape == (4, 2)


def test_wrong_arguments(kernel):
    with pytest.raises(ArgumentError, match=r"u.*25"):
        kernel.iterate(X, U, steps=24)
    with pytest.raises(ArgumentError, match="'u'"):
        kernel.iterate(X, steps=3)
    with pytest.raises(ArgumentError, match=r"x.*\(2,\).*\(2, 2\)"):
        kernel.iterate(X[0], U[0], steps=3)
    with pytest.raises(ArgumentError, match=r"x \(3, 2, 2\), u \(1, 4"):
        kernel.iterate(np.zeros((3, 2, 2)), np.zeros((1, 4, 2)), steps=3)
