# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Loops over generic bodies: they give what the same equations give body by body."""

from __future__ import annotations

import gc
import weakref
from dataclasses import replace
from typing import Any

import numpy as np
import pinocchio as pin
import pytest
from cases import mostly_slow
from mechanisms import CHAIN, FOREST, TREE, Mechanism, pose, random_mechanism, with_mimics
from reference import assert_close
from robots import all_files, robot
from twins import floating

import mbs_dynamics as mbs
from mbs_dynamics.algorithms import algorithm_of
from mbs_dynamics.algorithms._algorithm import NAMED
from mbs_dynamics.compiler.frontend import loop_trace
from mbs_dynamics.compiler.frontend.containers import fields_of
from mbs_dynamics.compiler.frontend.domains import PARENT_ROW, ROW
from mbs_dynamics.compiler.ir.nodes import (
    SCRATCH,
    Buffer,
    For,
    Index,
    Let,
    Load,
    Store,
    constants,
    index,
)
from mbs_dynamics.compiler.passes import strategy
from mbs_dynamics.model.macro_joints import Connection, macro_joint

ALGORITHMS = (
    mbs.gravity_torques,
    mbs.bias_torques,
    mbs.coriolis_torques,
    mbs.inverse_dynamics,
    mbs.forward_dynamics,
    mbs.mass_matrix,
    mbs.inverse_mass_matrix,
    mbs.coriolis_matrix,
    mbs.generalized_momentum,
    mbs.inverse_dynamics_derivatives,
    mbs.forward_dynamics_derivatives,
    mbs.inverse_dynamics_regressor,
)
SEVERAL = (mbs.inverse_dynamics, mbs.mass_matrix, mbs.forward_dynamics_derivatives)
"""Algorithms with loops of every sort."""

MECHANISMS = {
    "one body": ((-1,), {}),
    "chain": (CHAIN, {}),
    "chain of 11": (range(-1, 10), {"kinds": ("revolute",)}),
    "tree in another order": (TREE, {}),
    "several roots": (FOREST, {}),
    "zeros and ones": ((-1, 0, 1, 2, 2, 1, -1, 6), {"aligned": True}),
}


def made(name: str) -> Mechanism:
    parents, options = MECHANISMS[name]
    return random_mechanism(7, parents, **options)


def kernel(function: Any, model: mbs.Model, looped: bool, **options: Any) -> Any:
    compiled = mbs.compile(function, model, **options)
    assert compiled.program.in_loops == looped
    return compiled


def arrays(function: Any, model: mbs.Model, *batch: int) -> list[Any]:
    rng = np.random.default_rng(3)
    count = len(algorithm_of(function).required)
    return [rng.uniform(-2.0, 2.0, (*batch, model.n)) for _ in range(count)]


def results(kernel: Any, arguments: list[Any]) -> tuple[Any, ...]:
    found = kernel(*arguments)
    return found if isinstance(found, tuple) else (found,)


@pytest.mark.parametrize("name", mostly_slow(MECHANISMS, ("several roots", "zeros and ones")))
def test_loops_give_what_straight_code_gives(name, loops):
    for function in ALGORITHMS if name == "tree in another order" else SEVERAL:
        loops(False)
        model = made(name).model
        arguments = arrays(function, model)
        expected = results(kernel(function, model, False, backend="python"), arguments)
        loops(True)
        found = results(kernel(function, made(name).model, True), arguments)
        for a, b in zip(found, expected, strict=True):
            assert_close(a, b, 1e-11 * max(1.0, np.abs(b).max(initial=0.0)), function.__name__)


@pytest.mark.parametrize(
    "name", mostly_slow(["tree in another order", "chain of 11"], ["chain of 11"])
)
def test_batches(name, loops):
    loops(True)
    for function in (mbs.coriolis_matrix, mbs.forward_dynamics_derivatives):
        model = made(name).model
        compiled = kernel(function, model, True)
        arguments = arrays(function, model, 260)
        found = results(compiled, arguments)
        for k in (0, 129, 259):
            one = results(compiled, [x[k] for x in arguments])
            for a, b in zip(found, one, strict=True):
                assert_close(a[k], b, 1e-11 * np.abs(b).max())


def test_wrenches_and_a_base_that_moves(loops):
    expected = []
    for on in (False, True):
        loops(on)
        model = made("tree in another order").model
        V, Vd = np.full((2, 6), 0.3)
        W = np.random.default_rng(6).uniform(-1.0, 1.0, (model.nb, 6))
        options = {"wrenches": True, "base_twist": True, "base_acceleration": True}
        inverse = kernel(mbs.inverse_dynamics, model, on, **options)
        forward = kernel(mbs.forward_dynamics, model, on, **options)
        q, qd, qdd = np.random.default_rng(7).uniform(-1.0, 1.0, (3, model.n))
        tau = inverse(q, qd, qdd, W, V, Vd)
        assert_close(forward(q, qd, tau, W, V, Vd), qdd, 1e-9)
        expected.append(tau)
    assert_close(expected[1], expected[0], 1e-11 * np.abs(expected[0]).max())


def rooted(kind: str, parents: Any = (-1, -1, 1, 2, 2, 1)) -> mbs.Model:
    """Return a tree whose second body, with others beyond it, has a joint of this kind."""
    rng = np.random.default_rng(5)
    axis, about = {"axis": (0.36, 0.48, 0.8)}, ("planar", "cylindrical", "schoenflies")
    joints = [macro_joint(("revolute", "prismatic")[i % 2], **axis) for i in range(len(parents))]
    joints[1] = macro_joint(kind, **axis if kind in about else {})
    links = [
        Connection(
            name=f"joint{i}",
            joint=joints[i],
            body=f"body{i}",
            parent=None if p < 0 else f"body{p}",
            S_parent=pose(rng),
            S_body=pose(rng),
            M_body=mbs.spatial_inertia(1.0 + i, rng.uniform(-0.2, 0.2, 3), np.diag([2, 3, 4.0])),
        )
        for i, p in enumerate(parents)
    ]
    return mbs.Model.from_joints(links)


GENERIC = [x for x in NAMED.values() if x.generic and "motion" not in x.required]


@pytest.mark.parametrize(
    "kind",
    mostly_slow(
        ["free", "planar", "spherical", "cylindrical", "translation", "schoenflies"],
        ["spherical", "cylindrical", "translation", "schoenflies"],
    ),
)
def test_a_root_with_several_columns_is_written_out_before_the_loops(kind, loops, monkeypatch):
    monkeypatch.setattr(strategy, "_stays_in_loops", lambda *_: True)
    every = kind == "free"
    rng = np.random.default_rng(1)
    for one in GENERIC if every else map(algorithm_of, SEVERAL):
        load = "body1", 0.5, (0.1, 0.2, 0.3)
        straight, looped = (rooted(kind).with_payload(*load) for _ in range(2))
        options = {"body": "body3"} if "body" in one.options else {}
        given = dict(zip(("q", "qd"), straight.random_state(1)[:2], strict=True))
        loops(False)
        compiled = kernel(one, straight, False, backend="python", **options)
        arguments = [
            given[x.name] if x.name in given else rng.uniform(-1.0, 1.0, x.shape)
            for x in compiled.inputs[: len(one.required)]
        ]
        expected = results(compiled, arguments)
        loops(True)
        backend = "llvm" if one.name == "mass_matrix" else "python"
        found = results(kernel(one, looped, True, backend=backend, **options), arguments)
        for a, b in zip(found, expected, strict=True):
            assert_close(a, b, 1e-11 * max(1.0, np.abs(b).max(initial=0.0)), one.name)


@pytest.mark.skipif(not all_files(), reason="no example-robot-data")
def test_floating_robots_in_loops_are_those_of_pinocchio(loops):
    loops(True)
    t = floating(robot("solo12.urdf"))
    m, T = t.model, t.T
    (q, v, a), (pq, pv, pa) = t.state(1)
    tau = T.T @ pin.rnea(t.pin, t.data, pq, pv, pa)
    many = [np.stack([x] * 70) for x in (q, v, a)]
    assert_close(kernel(mbs.inverse_dynamics, m, True)(*many)[69], tau, 1e-11)
    assert_close(kernel(mbs.forward_dynamics, m, True)(q, v, tau), a, 1e-9)
    pin.computeABADerivatives(t.pin, t.data, pq, pv, T @ tau)
    ours = kernel(mbs.forward_dynamics_derivatives, m, True)(q, v, tau)
    assert_close(ours.dqdd_dq, T.T @ t.data.ddq_dq @ T, 1e-8)
    assert_close(ours.dqdd_dqd, T.T @ t.data.ddq_dv @ T, 1e-8)
    q[3:7] = 0.0
    with pytest.raises(mbs.SingularError, match="floating_base"):
        kernel(mbs.mass_matrix, m, True)(q)


def test_a_joint_that_moves_nothing_is_named(loops):
    loops(True)
    model = random_mechanism(11, (-1, 0, 0, 1, -1, 4), massless=[5]).model
    for function in (mbs.inverse_mass_matrix, mbs.forward_dynamics):
        for batch in ((), (260,)):
            said = r"joint6.*(state \[0\]|it is 0)" if batch else "joint6"
            with pytest.raises(mbs.SingularError, match=said):
                kernel(function, model, True)(*arrays(function, model, *batch))


@pytest.mark.parametrize(
    "name", mostly_slow(["tree in another order", "several roots"], ["several roots"])
)
def test_payloads_are_inputs_of_loops(name, loops):
    def loaded() -> mbs.Model:
        model = made(name).model
        for mass, i in enumerate((model.nb - 1, 1, 4), 1):
            com, tensor = (0.1, -0.2, 0.3 * mass), 0.05 * np.eye(3)
            model = model.with_payload(model.bodies[i].name, mass, com, tensor)
        return model

    model = loaded()
    other = model.with_payload(model.bodies[1].name, 0.5, (0.3, 0.0, 0.1))
    for function in SEVERAL:
        loops(False)
        straight = kernel(function, loaded(), False)
        loops(True)
        looped = kernel(function, model, True)
        assert kernel(function, other, True).program is looped.program
        arguments = arrays(function, model, 40)
        for load in (model.payloads.parameters, other.payloads.parameters):
            named = {"payload": load}
            for rows in ([x[0] for x in arguments], arguments):
                expected, found = straight(*rows, **named), looped(*rows, **named)
                if not isinstance(found, tuple):
                    expected, found = (expected,), (found,)
                for a, b in zip(found, expected, strict=True):
                    assert_close(a, b, 1e-11 * np.abs(b).max(), function.__name__)
    looped = kernel(mbs.inverse_dynamics_regressor, model, True)  # which multiplies the inertias
    assert "payload" not in {port.name for port in looped.program.inputs}


@pytest.mark.backend_independent
def test_what_was_traced_is_freed(loops, young, monkeypatch):
    loops(True)
    traced = []

    class Watched(loop_trace.Loops):
        def __init__(self, *given: Any) -> None:
            super().__init__(*given)
            traced.append(weakref.ref(self))

    monkeypatch.setattr(loop_trace, "Loops", Watched)
    for function in SEVERAL:
        kernel(function, made("chain").model, True, backend="python")
    for _ in range(4):  # what an array holds is found when the array is gone
        gc.collect()
    assert len(traced) >= len(SEVERAL)
    assert not any(found() for found in traced)


@pytest.mark.parametrize("name", mostly_slow(["chain", "tree in another order"], ["chain"]))
def test_every_method_gives_the_same(name, loops):
    loops(True)
    model = made(name).model
    state = arrays(mbs.forward_dynamics, model)
    expected = kernel(mbs.forward_dynamics, model, True, method="articulated_body")(*state)
    for method, looped in (("mass_matrix", False), ("udut", True)):
        for representation in mbs.REPRESENTATIONS:
            options = {"method": method, "representation": representation}
            found = kernel(mbs.forward_dynamics, model, looped, **options)(*state)
            assert_close(found, expected, 1e-10 * np.abs(expected).max())


def test_models_whose_joints_share_coordinates_have_no_loops(loops):
    loops(True)
    mechanism = random_mechanism(5, (-1, 0, 0, 2, 1))  # the path to body 4: joints 1, 3, 4
    model = with_mimics(mechanism, (0, 1, 2, 3, 3), (1, 1, 1, 1, -0.5), np.zeros(5)).model
    q, qd, qdd = model.random_state(3)
    kernel(mbs.forward_dynamics, model, False)
    kernel(mbs.jacobian, model, True, body="body4")
    kernel(mbs.jacobian, model, False, body="body5")
    tau = mbs.inverse_dynamics(model, q, qd, qdd)
    assert_close(mbs.forward_dynamics(model, q, qd, tau), qdd, 1e-9)


def test_a_joint_that_goes_faster_than_its_coordinate(loops):
    """It may have the coordinate to itself; the recursions know of no ratio, and are not taken."""
    loops(True)
    model = random_mechanism(3, range(-1, 13)).model
    joint = replace(model.bodies[4].joint, ratio=-2.0, offset=0.4)
    bodies = [replace(b, joint=joint) if i == 4 else b for i, b in enumerate(model.bodies)]
    geared = replace(model, bodies=tuple(bodies))
    q, qd, qdd = arrays(mbs.inverse_dynamics, geared)
    tau = kernel(mbs.inverse_dynamics, geared, False)(q, qd, qdd)
    assert_close(mbs.forward_dynamics(geared, q, qd, tau), qdd, 1e-9)
    M, inverse = mbs.mass_matrix(geared, q), mbs.inverse_mass_matrix(geared, q)
    assert_close(M @ inverse, np.eye(geared.n), 1e-9)
    derivatives = mbs.forward_dynamics_derivatives(geared, q, qd, tau)
    assert_close(derivatives[2], inverse, 1e-9)


@pytest.mark.backend_independent
def test_neither_operations_of_a_loop_body_nor_code_grow_with_the_tree():
    sizes = []
    for n in (60, 120):
        model = random_mechanism(5, range(-1, n - 1), ("revolute",)).model
        program = mbs.compile(mbs.forward_dynamics_derivatives, model, backend="python").program
        checks = len(program.guards)  # of which each has its load, and is a comparison
        sizes.append(len(program.module.statements) - 2 * checks)
    assert sizes[0] == pytest.approx(sizes[1], rel=0.01)  # but for what is equal by accident


@pytest.mark.backend_independent
def test_columns_of_other_trees_are_left_out(loops):
    loops(True)
    counts = []
    for trees in (1, 3):
        parents = [i - 1 if i % 5 else -1 for i in range(5 * trees)]
        model = random_mechanism(5, parents, ("revolute",)).model
        compiled = mbs.compile(mbs.forward_dynamics_derivatives, model, backend="python")
        counts.append(compiled.operations.total)
    assert counts[1] == pytest.approx(3 * counts[0], rel=0.01)  # but for what is equal by accident


@pytest.mark.backend_independent
def test_which_models_have_loops():
    branched = [(i - 1) // 2 for i in range(40)]
    for parents, looped in ((range(-1, 19), False), (range(-1, 29), True), (branched, False)):
        model = random_mechanism(5, parents, ("revolute",)).model
        compiled = mbs.compile(mbs.mass_matrix, model, backend="python")
        assert compiled.program.in_loops == looped


@pytest.mark.backend_independent
def test_rows_are_taken_in_any_order_only_if_they_do_not_depend_on_each_other(loops):
    loops(True)
    model = random_mechanism(7, range(-1, 10), ("revolute",)).model
    program = mbs.compile(mbs.inverse_dynamics, model, backend="python").program
    parallel = [x for x in program.module.body if isinstance(x, For) and x.parallel]
    positions, sines, *_, torques = parallel  # coordinates plus offsets, their sines and cosines
    assert [type(x) for x in positions.body] == [Load, Load, Let, Store]
    assert [x.op for x in sines.body if isinstance(x, Let)] == ["sin", "cos"]
    assert [type(x) for x in torques.body] == [Load, Store]


@pytest.mark.backend_independent
def test_what_is_elementwise():
    i, p, v = index(ROW), index(PARENT_ROW), Buffer("v", SCRATCH, 9)
    other, fixed = Buffer("w", SCRATCH, 9), constants("c", [1.0])
    for body, expected in (
        ((Load(0, v, i), Store(other, i, 0)), True),
        ((Load(0, v, i * 2 + 1), Store(other, i, 0)), True),
        ((Load(0, v, p), Store(other, i, 0)), False),  # of another row
        ((Load(0, v, i + -1), Store(v, i, 0)), False),  # which the row before has written
        ((Load(0, fixed, Index()), Store(other, i, 0)), False),  # to be loaded once
        ((Load(0, v, i), Store(other, Index(), 0)), False),  # that all rows write
    ):
        assert loop_trace._is_elementwise(body) == expected


@pytest.mark.backend_independent
def test_every_trace_gives_the_same_loops(loops):
    """By which compiled objects are found again."""
    loops(True)
    for function in SEVERAL:
        first, second = (
            kernel(function, made("several roots").model, True, backend="python") for _ in range(2)
        )
        assert first.to_llvm() == second.to_llvm()
        assert first.program.module != second.program.module  # these have buffers of their own


@pytest.mark.backend_independent
def test_columns_take_no_more_memory_than_they_need():
    assert fields_of(range(-1, 9)) == ([1] * 10, 2)  # a chain uses the same again, beside zeros
    assert fields_of((-1, 0, 0, 0)) == ([1, 2, 2, 1], 3)
    assert fields_of((-1, -1)) == ([1, 1], 2)
