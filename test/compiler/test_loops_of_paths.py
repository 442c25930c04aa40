# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Loops along the path to a named body, and over series: what straight code gives, and more."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from cases import mostly_slow
from interpreted import interpreted
from mechanisms import CHAIN, FOREST, TREE, pose, random_mechanism
from reference import assert_close

import mbs_dynamics as mbs
from mbs_dynamics.algorithms import algorithm_of
from mbs_dynamics.compiler.frontend.containers import Layout, Number
from mbs_dynamics.model.body import Frame

REPRESENTATIONS = tuple(mbs.REPRESENTATIONS)
most_representations_slow = pytest.mark.parametrize(
    "representation", mostly_slow(REPRESENTATIONS, ("spatial", "mixed"))
)
OF_A_BODY = (mbs.jacobian, mbs.jacobian_rate, mbs.jacobian_second_rate, mbs.kinematic_hessian)
OF_ALL_BODIES = (
    mbs.twists,
    mbs.accelerations,
    mbs.joint_wrenches,
    mbs.jerks,
    mbs.joint_reactions,
    mbs.inverse_dynamics_rates,
)

MECHANISMS: dict[str, tuple[Any, dict[str, Any]]] = {
    "one body": ((-1,), {}),
    "chain": (CHAIN, {}),
    "tree in another order": (TREE, {}),
    "several roots": (FOREST, {}),
    "planar": (CHAIN, {"aligned": True, "kinds": ("revolute",)}),
    "sliding": (CHAIN, {"kinds": ("prismatic",)}),
    "zeros and ones": ((-1, 0, 1, 2, 2, 1, -1, 6), {"aligned": True}),
}
most_mechanisms_slow = pytest.mark.parametrize(
    "name", mostly_slow(MECHANISMS, ("several roots", "zeros and ones"))
)


def made(name: str) -> mbs.Model:
    """Return a model whose last body carries a frame, "hand", that is turned and moved."""
    parents, options = MECHANISMS[name]
    model = random_mechanism(7, parents, **options).model
    placement = pose(np.random.default_rng(5))
    return replace(model, frames={"hand": Frame("hand", model.nb - 1, placement)})


def arrays(function: Any, n: int, *batch: int) -> list[Any]:
    rng = np.random.default_rng(3)
    return [rng.uniform(-2.0, 2.0, (*batch, n)) for _ in algorithm_of(function).required]


def results(kernel: Any, arguments: list[Any]) -> tuple[Any, ...]:
    found = kernel(*arguments)
    return found if isinstance(found, tuple) else (found,)


def compare(function: Any, make: Any, loops: Any, arguments: list[Any], **options: Any) -> Any:
    """Evaluate with loops and without, one state and several; return the kernel with loops."""
    loops(False)
    straight = mbs.compile(function, make(), backend="python", **options)
    loops(True)
    looped = mbs.compile(function, make(), **options)
    assert looped.program.in_loops
    assert not straight.program.in_loops
    several = results(looped, [np.array([x] * 9) for x in arguments])
    found = results(looped, arguments), several, interpreted(looped, *arguments)
    for a, b, c, d in zip(results(straight, arguments), *found, strict=True):
        tolerance = 1e-12 * max(1.0, np.abs(a).max(initial=0.0))
        assert_close(b, a, tolerance, (function.__name__, options))
        assert_close(d, a, tolerance, (function.__name__, options))
        assert_close(c, np.array([a] * 9), tolerance, (function.__name__, options))
    return looped


@most_representations_slow
@most_mechanisms_slow
def test_of_a_body(name, representation, loops):
    for function in OF_A_BODY if "tree" in name else OF_A_BODY[1:4:2]:
        for body in ("hand", made(name).body_names[-1])[: 2 if "tree" in name else 1]:
            n = made(name).n
            options = {"body": body, "representation": representation}
            compare(function, lambda: made(name), loops, arrays(function, n), **options)


@most_mechanisms_slow
def test_of_all_bodies(name, loops):
    """Twists, wrenches and torques, and their derivatives by time."""
    for function in OF_ALL_BODIES if "tree" in name else OF_ALL_BODIES[1::3]:
        for representation in REPRESENTATIONS[:: 1 if "tree" in name else 3]:
            arguments = arrays(function, made(name).n)
            compare(function, lambda: made(name), loops, arguments, representation=representation)


@pytest.mark.parametrize("order", [0, 3])
def test_of_any_order(order, loops):
    make = lambda: made("tree in another order")  # noqa: E731
    motion = np.random.default_rng(4).uniform(-1.0, 1.0, (order + 2, make().n))
    for representation in ("spatial", "mixed"):
        options = {"order": order, "representation": representation}
        compare(mbs.twist_derivatives, make, loops, [motion], **options)


@pytest.mark.parametrize("name", ["one body", "tree in another order", "zeros and ones"])
def test_results_that_are_put_together(name, loops):
    arguments = arrays(mbs.linearize, made(name).n)
    compare(mbs.linearize, lambda: made(name), loops, arguments)


@most_representations_slow
@pytest.mark.parametrize("parents", [range(-1, 59), [(i - 1) // 2 for i in range(40)]])
def test_the_hessian_of_large_trees_is_a_derivative(parents, representation):
    model = random_mechanism(4, parents).model
    options = {"body": model.body_names[-1], "representation": representation}
    hessian = mbs.compile(mbs.kinematic_hessian, model, **options)
    assert hessian.program.in_loops == (parents[-1] == len(parents) - 2)  # a long path
    q, step = model.random_state(3).q, 1e-5
    H = hessian(q)
    moved = [k for k in range(model.n) if np.abs(H[:, :, k]).max() > 0.0]
    for k in {moved[0], moved[len(moved) // 2], moved[-1]}:
        d = step * np.eye(model.n)[k]
        J = [mbs.jacobian(model, q + x * d, **options) for x in (-2, -1, 1, 2)]
        derivative = (J[0] - 8.0 * J[1] + 8.0 * J[2] - J[3]) / (12.0 * step)
        assert_close(H[:, :, k], derivative, 1e-9 * np.abs(H).max())
    rate = mbs.jacobian_rate(model, q, qd := model.random_state(3).qd, **options)
    assert_close(H @ qd, rate, 1e-11 * np.abs(rate).max())


@pytest.mark.backend_independent
def test_what_has_no_loops(loops):
    loops(True)
    fixed = replace(made("chain"), frames={"base": Frame("base", -1, np.eye(4))})
    for model, function, options in (
        (fixed, mbs.kinematic_hessian, {"body": "base"}),  # nothing moves it
        (made("chain"), mbs.twists, {"bodies": ("hand", "body1")}),
    ):
        kernel = mbs.compile(function, model, backend="python", **options)
        assert not kernel.program.in_loops
    assert not mbs.kinematic_hessian(fixed, np.zeros(fixed.n), "base").any()


@pytest.mark.backend_independent
@most_representations_slow
def test_neither_operations_of_a_loop_body_nor_code_grow_with_the_path(representation):
    sizes = []
    for n in (60, 120):
        model = random_mechanism(5, range(-1, n - 1), ("revolute",)).model
        options = {"body": f"body{n}", "representation": representation}
        program = mbs.compile(mbs.kinematic_hessian, model, backend="python", **options).program
        sizes.append(len(program.module.statements))
    assert sizes[0] == pytest.approx(sizes[1], rel=0.01)  # but for what is equal by accident


@pytest.mark.parametrize("n", [40, pytest.param(120, marks=pytest.mark.slow)])
def test_straight_code_fills_large_results_with_zeros(n):
    model = random_mechanism(5, [(i - 1) // 2 for i in range(n)]).model
    kernel = mbs.compile(mbs.kinematic_hessian, model, body=f"body{n}")
    expected = mbs.compile(mbs.kinematic_hessian, model, backend="python", body=f"body{n}")
    assert not kernel.program.in_loops
    q = model.random_state(2).q
    before = kernel(q)
    before[...] = np.nan  # what the kernel recycles once nothing refers to it
    del before
    assert_close(kernel(q), H := expected(q), 1e-13)
    assert (H == 0.0).mean() > 0.9
    assert_close(kernel(np.array([q] * 9)), np.array([H] * 9), 1e-13)


@pytest.mark.parametrize(
    ("seed", "n", "kinds", "function", "options"),
    [
        (80, 5, ("prismatic",), mbs.inverse_dynamics_derivatives, {}),
        (105, 2, None, mbs.inverse_dynamics_derivatives, {}),
        (141, 2, None, mbs.twists, {"representation": "mixed"}),
        (196, 2, ("prismatic",), mbs.jacobian, {"representation": "hybrid", "body": "body2"}),
    ],
)
def test_what_is_a_number_in_some_rows_only(seed, n, kinds, function, options, loops):
    """Screws and poses of aligned joints, which were once taken for numbers in all rows."""

    def make() -> mbs.Model:
        chosen = {"kinds": kinds} if kinds else {}
        return random_mechanism(seed, range(-1, n - 1), aligned=True, **chosen).model

    compare(function, make, loops, arrays(function, make().n), **options)


@pytest.mark.backend_independent
def test_a_number_is_not_taken_for_a_variable():
    """As 1.0 on the diagonal of rotations about different axes, and the variable 1."""
    form, one = ((3,), 0), Number(1.0)
    assert Layout(form, (one, 0, 1)).joined(Layout(form, (1, 0, one))).entries == (0, 1, 2)
    assert Layout(form, (0, one)) != Layout(form, (0, 1))
