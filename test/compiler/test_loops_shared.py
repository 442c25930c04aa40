# Copyright 2026 The mbs_dynamics authors
#
# Licensed under the Apache License, Version 2.0 (the "License");
# you may not use this file except in compliance with the License.
# You may obtain a copy of the License at
#
#     http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS,
# WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
# See the License for the specific language governing permissions and
# limitations under the License.
"""Loops over bodies whose joints share coordinates, and the systems of equations within loops."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from mechanisms import CHAIN, MECHANISMS, TREE, random_mechanism, with_mimics
from reference import assert_close

import mbs_dynamics as mbs
from mbs_dynamics.algorithms import algorithm_of
from mbs_dynamics.model.generic_factors import elimination
from mbs_dynamics.tracing.loop_program import LoopProgram

OF_JOINTS = (
    mbs.mass_matrix,
    mbs.inverse_mass_matrix,
    mbs.forward_dynamics,
    mbs.forward_dynamics_derivatives,
    mbs.inverse_dynamics_derivatives,
    mbs.christoffel_symbols,
    mbs.inverse_dynamics_regressor,
    mbs.linearize,
)
"""One of each way in which results of joints become results of coordinates."""
OF_A_BODY = (mbs.jacobian, mbs.jacobian_rate, mbs.kinematic_hessian)


def shared() -> mbs.Model:
    """A tree in which joints of several branches follow others, numbered in another order."""
    return MECHANISMS["mimics"].model


def states(function: Any, n: int, *batch: int) -> list[Any]:
    rng = np.random.default_rng(4)
    return [rng.uniform(-2.0, 2.0, (*batch, n)) for _ in algorithm_of(function).required]


def results(found: Any) -> tuple[Any, ...]:
    return found if isinstance(found, tuple) else (found,)


def looped(function: Any, model: mbs.Model, loops: Any, **options: Any) -> Any:
    loops(True)
    model.kernels.clear()
    kernel = mbs.compile(function, model, **options)
    assert isinstance(kernel.program, LoopProgram)
    return kernel


def straight(function: Any, model: mbs.Model, loops: Any, **options: Any) -> Any:
    loops(False)
    model.kernels.clear()
    kernel = mbs.compile(function, model, backend="python", **options)
    assert not isinstance(kernel.program, LoopProgram)
    return kernel


@pytest.mark.parametrize(
    ("function", "options"),
    [(function, {}) for function in OF_JOINTS]
    + [(function, {"body": "body7"}) for function in OF_A_BODY]
    + [
        (mbs.forward_dynamics, {"representation": "spatial"}),
        (mbs.inverse_dynamics, {"representation": "hybrid"}),
    ],
)
def test_loops_give_what_straight_code_gives(function, options, loops):
    known = straight(function, shared(), loops, **options)
    kernel = looped(function, shared(), loops, **options)
    several = states(function, shared().n, 70)  # in vector code
    for arrays in ([x[0] for x in several], several):
        for a, b in zip(results(kernel(*arrays)), results(known(*arrays)), strict=True):
            assert_close(a, b, 1e-11, (function, options))


@pytest.mark.backend_independent
def test_loops_in_plain_python_take_ratios_as_straight_code_does(loops):
    for function in (mbs.inverse_dynamics, mbs.mass_matrix, mbs.forward_dynamics):
        known = straight(function, shared(), loops)
        kernel = looped(function, shared(), loops, backend="python")
        arrays = states(function, shared().n)
        assert_close(kernel(*arrays), known(*arrays), 1e-11, function)


def test_symmetric_matrices_are_exactly_so(loops):
    model = shared()
    for function in (mbs.mass_matrix, mbs.inverse_mass_matrix):
        kernel = looped(function, model, loops)
        for q in (model.random_state(3).q, np.random.default_rng(0).uniform(-3, 3, (70, model.n))):
            M = kernel(q)
            np.testing.assert_array_equal(M, np.swapaxes(M, -1, -2))


def test_payloads_and_wrenches(loops):
    model = shared().with_payload("body6", 2.0, (0.1, 0.2, 0.3))
    q, qd, tau = states(mbs.forward_dynamics, model.n)
    W = np.random.default_rng(2).uniform(-1.0, 1.0, (model.nb, 6))
    known = straight(mbs.forward_dynamics, model, loops, wrenches=True)
    kernel = looped(mbs.forward_dynamics, model, loops, wrenches=True)
    for load in (model.payload_parameters, 2.0 * model.payload_parameters):
        assert_close(kernel(q, qd, tau, W, payload=load), known(q, qd, tau, W, payload=load))


@pytest.mark.parametrize("massless", [[4], [5], [4, 5]])
def test_what_moves_nothing_is_named(massless, loops):
    """The coordinate that has no inertia, of several the one that is found first from the tips."""
    mechanism = random_mechanism(11, (-1, 0, 0, 1, 2, 1), massless=massless)
    shares = with_mimics(mechanism, (0, 1, 1, 2, 4, 3), np.ones(6), np.zeros(6)).model
    last = f"joint{massless[-1] + 1}" if massless != [4, 5] else "joint5"
    for batch, said in (((), last), ((70,), rf"{last}.*(state \[0\]|it is 0)")):
        given = states(mbs.inverse_mass_matrix, shares.n, *batch)
        with pytest.raises(mbs.SingularError, match=said):  # by straight code while it is traced
            looped(mbs.inverse_mass_matrix, shares, loops)(*given)


def test_coordinates_are_eliminated_in_the_order_in_which_they_last_come():
    assert elimination([0, 2, 1, 2, 0, 3]) == [1, 2, 0, 3]


@pytest.mark.parametrize("parents", [TREE, CHAIN])
def test_the_mass_matrix_is_factorized_within_loops(parents, loops):
    """Where the method asks, and joints have coordinates of their own."""
    model = random_mechanism(7, parents).model
    by_recursion = looped(mbs.forward_dynamics, model, loops, method="articulated_body")
    by_matrix = looped(mbs.forward_dynamics, model, loops, method="mass_matrix")
    for batch in ((), (70,)):
        arrays = states(mbs.forward_dynamics, model.n, *batch)
        assert_close(by_matrix(*arrays), by_recursion(*arrays), 1e-10)


@pytest.mark.parametrize("on", [False, True])
def test_a_joint_that_goes_faster_than_its_coordinate(on, loops):
    """It may have the coordinate to itself; the recursions know of no ratio, and are not taken."""
    loops(on)
    model = random_mechanism(3, range(-1, 13)).model
    joint = replace(model.bodies[4].joint, ratio=-2.0, offset=0.4)
    bodies = [replace(b, joint=joint) if i == 4 else b for i, b in enumerate(model.bodies)]
    geared = replace(model, bodies=tuple(bodies))
    q, qd, qdd = states(mbs.inverse_dynamics, geared.n)
    tau = mbs.inverse_dynamics(geared, q, qd, qdd)
    assert_close(mbs.forward_dynamics(geared, q, qd, tau), qdd, 1e-9)
    M, inverse = mbs.mass_matrix(geared, q), mbs.inverse_mass_matrix(geared, q)
    assert_close(M @ inverse, np.eye(geared.n), 1e-9)
    derivatives = mbs.forward_dynamics_derivatives(geared, q, qd, tau)
    assert_close(derivatives[2], inverse, 1e-9)


@pytest.mark.backend_independent
def test_operations_of_systems_are_counted(loops):
    counts = []
    for method in ("mass_matrix", "articulated_body"):
        model = random_mechanism(7, range(-1, 59)).model
        loops(True)
        kernel = mbs.compile(mbs.forward_dynamics, model, backend="python", method=method)
        counts.append(kernel.operations)
    n = 60
    assert counts[0].multiplications - n**3 / 6 > counts[1].multiplications / 2
    assert counts[0].divisions == 2 * n
