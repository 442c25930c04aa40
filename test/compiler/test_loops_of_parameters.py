# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Sensitivities of large trees, as loops over pairs of joints and parameters."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from cases import mostly_slow
from mechanisms import random_mechanism
from reference import assert_close
from test_loops_of_paths import (
    compare,
    made,
    most_mechanisms_slow,
    most_representations_slow,
)

import mbs_dynamics as mbs
from mbs_dynamics.algorithms import algorithm_of
from mbs_dynamics.compiler.frontend.containers import Layout, _common
from mbs_dynamics.compiler.frontend.loop_program import LoopProgram
from mbs_dynamics.compiler.frontend.loops import Forest
from mbs_dynamics.compiler.frontend.spans import AFTER, UNTIL

REPRESENTATIONS = tuple(mbs.REPRESENTATIONS)
OF_A_BODY = (mbs.pose_sensitivity, mbs.jacobian_sensitivity)
LARGE = {
    "chain": range(-1, 59),
    "tree": [(i - 1) // 2 for i in range(90)],
    "forest": [-1 if i % 30 == 0 else i - 1 - i % 2 for i in range(75)],
}
most_large_slow = pytest.mark.parametrize("name", mostly_slow(LARGE, ("forest",)))


def arguments(function: Any, model: mbs.Model, joints: Any) -> list[Any]:
    """Return random arrays, of which the last ones are the screws."""
    rng = np.random.default_rng(3)
    shapes = {"screws": (len(joints), 6)}
    return [
        rng.uniform(-2.0, 2.0, shapes.get(x, (model.n,))) for x in algorithm_of(function).required
    ]


def orders(names: tuple[str, ...]) -> tuple[tuple[str, ...], ...]:
    """All joints; some twice and in another order; the last one, which moves the hand."""
    return names, (*names[::-1], *names[:2], names[-1]), names[-1:]


@most_mechanisms_slow
def test_of_a_body(name, loops):
    for joints in orders(made(name).joint_names)[: 2 if "tree" in name else 1]:
        for function in OF_A_BODY:
            for representation in REPRESENTATIONS[:: 1 if "tree" in name else 3]:
                options = {"body": "hand", "joints": joints, "representation": representation}
                given = arguments(function, made(name), joints)
                compare(function, lambda: made(name), loops, given, **options)


@most_mechanisms_slow
def test_torques(name, loops):
    for joints in orders(made(name).joint_names)[:: 1 if "tree" in name else 2]:
        given = arguments(mbs.torque_sensitivity, made(name), joints)
        compare(mbs.torque_sensitivity, lambda: made(name), loops, given, joints=joints)


@most_representations_slow
@most_large_slow
def test_the_screws_of_the_joints_themselves_act_as_their_coordinates(name, representation):
    """Also where most joints do not move the body."""
    model = random_mechanism(4, LARGE[name]).model
    q, U, options = model.random_state(3).q, model.screw_body, {"representation": representation}
    options["body"] = model.body_names[-1]
    for function, known in zip(OF_A_BODY, (mbs.jacobian, mbs.kinematic_hessian), strict=True):
        expected = known(model, q, **options)
        kernel = mbs.compile(function, model, joints=model.joint_names, **options)
        if function is mbs.jacobian_sensitivity and name == "chain":
            assert isinstance(kernel.program, LoopProgram)
        assert_close(kernel(q, U), expected, 1e-11 * np.abs(expected).max())


@most_large_slow
def test_torques_by_the_screws_of_the_joints_themselves(name):
    model = random_mechanism(4, LARGE[name]).model
    q, qd, qdd = model.random_state(3)
    expected, _, _ = mbs.inverse_dynamics_derivatives(model, q, qd, qdd)
    order = np.random.default_rng(5).permutation(model.n)
    for chosen in (order, order[:20]):
        joints = tuple(model.joint_names[k] for k in chosen)
        kernel = mbs.compile(mbs.torque_sensitivity, model, joints=joints)
        assert isinstance(kernel.program, LoopProgram)
        found = kernel(q, qd, qdd, model.screw_body[chosen])
        assert_close(found, expected[:, chosen], 1e-11 * np.abs(expected).max())


@most_large_slow
def test_batches(name):
    """Of states that fill the lanes, and of rows that do."""
    model = random_mechanism(4, LARGE[name]).model
    rng, joints = np.random.default_rng(6), model.joint_names[::2] * 2
    qs, U = rng.uniform(-1.0, 1.0, (3, 260, model.n)), rng.normal(size=(260, len(joints), 6))
    for function, options in (
        (mbs.pose_sensitivity, {"body": model.body_names[-1]}),
        (mbs.jacobian_sensitivity, {"body": model.body_names[-1], "representation": "hybrid"}),
        (mbs.torque_sensitivity, {}),
    ):
        given = [*(qs if function is mbs.torque_sensitivity else qs[:1]), U]
        each_as_one(mbs.compile(function, model, joints=joints, **options), given)


def test_batches_of_small_models(loops):
    """Several states at once in all loops, which are too small for two halves."""
    loops(True)
    model = made("tree in another order")
    rng, joints = np.random.default_rng(6), model.joint_names[::-1] * 2
    qs, U = rng.uniform(-1.0, 1.0, (3, 260, model.n)), rng.normal(size=(260, len(joints), 6))
    kernel = mbs.compile(mbs.torque_sensitivity, model, joints=joints)
    assert isinstance(kernel.program, LoopProgram)
    each_as_one(kernel, [*qs, U])


def each_as_one(kernel: Any, given: list[Any]) -> None:
    """Compare states of a batch with what they give one by one."""
    found = kernel(*given)
    for k in (0, 131, 259):
        one = kernel(*(x[k] for x in given))
        assert_close(found[k], one, 1e-12 * max(1.0, np.abs(one).max()))


def test_what_moves_nothing_has_no_loops(loops):
    loops(True)
    model = random_mechanism(5, (-1, 0, 0, 1)).model
    for function in OF_A_BODY:
        kernel = mbs.compile(function, model, body="body4", joints=("joint3",))
        assert not isinstance(kernel.program, LoopProgram)
        assert not kernel(*arguments(function, model, ("joint3",))).any()
    kernel = mbs.compile(mbs.torque_sensitivity, model, joints=())
    assert not isinstance(kernel.program, LoopProgram)
    assert kernel(*np.ones((3, 4)), np.zeros((0, 6))).shape == (4, 0)


@pytest.mark.backend_independent
def test_bad_joints_are_refused_by_large_models():
    model = random_mechanism(5, range(-1, 59)).model
    q = model.random_state(0).q
    for function, args in ((mbs.pose_sensitivity, (q,)), (mbs.torque_sensitivity, (q, q, q))):
        named = {} if function is mbs.torque_sensitivity else {"body": "body60"}
        with pytest.raises(mbs.UnknownJointError, match="no joint 'joint'"):
            function(model, *args, np.ones((1, 6)), joints=["joint"], **named)
        with pytest.raises(mbs.ArgumentError, match="sequence of names; got 'joint1'"):
            function(model, *args, np.ones((1, 6)), joints="joint1", **named)


@pytest.mark.backend_independent
def test_neither_operations_of_a_turn_nor_code_grow_with_parameters_or_the_tree():
    sizes: dict[Any, list[int]] = {}
    for n, times in ((60, 1), (120, 1), (60, 4)):
        model = random_mechanism(5, range(-1, n - 1), ("revolute",)).model
        for function in (mbs.jacobian_sensitivity, mbs.torque_sensitivity):
            options = {"joints": model.joint_names * times}
            if function is mbs.jacobian_sensitivity:
                options["body"] = f"body{n}"
            program = mbs.compile(function, model, backend="python", **options).program
            turns = [turn for step in program.steps for turn in step.turns.values()]
            sizes.setdefault(function, []).append(sum(len(turn.nodes) for turn in turns))
    for first, *others in sizes.values():
        assert others == pytest.approx([first] * 2, rel=0.01)  # but for what is equal by accident


@pytest.mark.backend_independent
def test_ranges_of_what_is_attached():
    """Rows 0 to 4 are two trees, 0 with 1, 2 and 3 with 4; rows 5 to 9 hang on 0, 1, 1, 2, 4."""
    forest = Forest((-1, 0, 0, -1, 3, 0, 1, 1, 2, 4), (0,) * 5 + (1,) * 5, 5)
    assert (forest.own, forest.is_chain) == (5, False)
    assert forest.ends[:5] == [3, 2, 3, 5, 5]
    rows = {span: forest.ranges(span)[:, :5].T.tolist() for span in (AFTER, UNTIL)}
    assert [[end - first for first, end in rows[span]] for span in rows] == [
        [3, 0, 0, 1, 0],
        [1, 3, 4, 0, 1],
    ]
    assert rows[AFTER][0] == [6, 9]  # of the rows 1 and 2
    assert rows[UNTIL][2] == [5, 9]  # with those of row 1, which row 2 is not beyond
    assert not forest.ranges(AFTER)[:, 5:].any()


@pytest.mark.parametrize(
    ("seed", "n", "kinds", "function", "options"),
    [
        (80, 5, ("prismatic",), mbs.inverse_dynamics_derivatives, {}),
        (105, 2, None, mbs.inverse_dynamics_derivatives, {}),
        (141, 2, None, mbs.twists, {"representation": "mixed"}),
        (196, 2, ("prismatic",), mbs.jacobian, {"representation": "hybrid", "body": "body2"}),
        (1112, 2, ("prismatic",), mbs.jacobian_sensitivity, {"representation": "spatial"}),
    ],
)
def test_what_is_a_number_in_some_rows_only(seed, n, kinds, function, options, loops):
    """Screws and poses of aligned joints, which were once taken for numbers in all rows."""

    def make() -> mbs.Model:
        chosen = {"kinds": kinds} if kinds else {}
        return random_mechanism(seed, range(-1, n - 1), aligned=True, **chosen).model

    joints = ("joint2", "joint1")
    if function is mbs.jacobian_sensitivity:
        options = {**options, "body": "body2", "joints": joints}
    compare(function, make, loops, arguments(function, make(), joints), **options)


@pytest.mark.backend_independent
def test_a_number_is_not_taken_for_a_variable():
    """As 1.0 on the diagonal of rotations about different axes, and the variable 1."""
    a, b = Layout((3,), (1.0, 0, 1)), Layout((3,), (1, 0, 1.0))
    assert _common(a, b).entries == (0, 1, 2)
    assert Layout((2,), (0.0, 1.0)).key != Layout((2,), (0, 1)).key
    assert [Layout((2,), entries).has_numbers for entries in ((0, 1), (0, 1.0))] == [False, True]
