# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The system matrices of the papers, against definitions and against the recursive algorithms."""

from functools import lru_cache

import bracket_sums as sums
import numpy as np
import pytest
from mechanisms import MECHANISMS, POSITIONS, every_mechanism
from reference import Reference, assert_close

import mbs_dynamics as mbs
from mbs_dynamics.closed_form import MovingSystem, System
from mbs_dynamics.lie.se3 import Ad, inverse
from mbs_dynamics.model.orders import leaves, path

LETTERS = {"body_fixed": "b", "spatial": "s", "hybrid": "h", "mixed": "m"}
INVERSES = {A: f"{A}_inverse" for A in ("A_b", "A_s", "A_sb", "A_sh", "A_h", "A_m")}

every_position = pytest.mark.parametrize("where", POSITIONS)
every_representation = pytest.mark.parametrize("representation", LETTERS)


@lru_cache
def state(name, where="generic"):
    """A mechanism, its system matrices in motion, and the reference at the same q."""
    mechanism = MECHANISMS[name]
    rng = np.random.default_rng(len(name))
    q = POSITIONS[where](rng, mechanism.n)
    motion = rng.uniform(-2.0, 2.0, (3, mechanism.n))
    return mechanism, MovingSystem(mechanism.model, q, *motion), q, motion, Reference(mechanism, q)


def of_form(system, what, representation):
    """Return the matrix or column of this name in a representation, such as J_b."""
    return getattr(system, f"{what}_{LETTERS[representation]}")


def blocks_of(matrix, i, j):
    return matrix[6 * i : 6 * i + 6, 6 * j : 6 * j + 6]


@every_position
@every_mechanism
def test_poses_are_products_of_exponentials(name, where):
    _, system, *_, reference = state(name, where)
    assert_close(system.C, reference.C[:-1])
    assert_close(system.R, reference.C[:-1, :3, :3])
    assert_close(system.r, reference.C[:-1, :3, 3])


@every_position
@every_representation
@every_mechanism
def test_system_jacobians(name, representation, where):
    """A X N, and the axes as lines in space, are the derivatives of the poses."""
    mechanism, system, *_, reference = state(name, where)
    J = [reference.jacobian(i, representation) for i in range(mechanism.nb)]
    assert_close(of_form(system, "J", representation), np.concatenate(J))
    assert_close(system.geometric_jacobian(representation), np.concatenate(J))


@every_mechanism
def test_inverses_are_inverses(name):
    _, system, *_ = state(name)
    identity = np.eye(6 * system.model.nb)
    for matrix, inverted in INVERSES.items():
        product = getattr(system, matrix) @ getattr(system, inverted)
        assert_close(product, identity, 1e-12, matrix)


@every_mechanism
def test_power_series_end(name):
    """(I - D)^-1 = I + D + D^2 + ..., and D^k = 0 from the length of the longest path on."""
    mechanism, system, *_ = state(name)
    longest = max(len(path(mechanism.model, i)) for i in range(mechanism.nb))
    for D, A, series in (
        (system.D_b, system.A_b, system.A_b_series),
        (system.T_h, system.A_h, system.A_h_series),
    ):
        assert_close(series, A)
        assert not np.linalg.matrix_power(D, longest).any()
        assert np.linalg.matrix_power(D, longest - 1).any()


@every_mechanism
def test_recursions_in_matrix_form(name):
    """V^b = D^b V^b + X^b N qd, and the same with T^h and X^h: (21), (42)."""
    _, system, *_ = state(name)
    assert_close(system.D_b @ system.V_b + system.X_b @ system.rate, system.V_b)
    assert_close(system.T_h @ system.V_h + system.X_h @ system.rate, system.V_h)


@every_mechanism
def test_factorizations(name):
    """J^s = A^s Y^s = A^sb X^b = A^sh X^h of (32), and what (34) and (53) start from."""
    _, system, *_ = state(name)
    for A, X in ((system.A_s, system.Y), (system.A_sb, system.X_b), (system.A_sh, system.X_h)):
        assert_close(A @ X @ system.N, system.J_s)
    assert_close(system.diagonal([Ad(C) for C in system.C]) @ system.A_b, system.A_sb)
    assert_close(system.to_mixed @ system.A_h, system.A_m)


def test_blocks_of_a_tree():
    """Where the blocks stand, and the two that (33) and (34) print wrongly."""
    mechanism, system, *_ = state("forest")
    for i in range(mechanism.nb):
        to_body = path(mechanism.model, i)
        for j in range(mechanism.nb):
            on_path, parent = j in to_body, j == mechanism.parents[i]
            for matrix in INVERSES:
                assert blocks_of(getattr(system, matrix), i, j).any() == on_path
            for matrix in INVERSES.values():
                assert blocks_of(getattr(system, matrix), i, j).any() == (parent or i == j)
            for matrix in (system.D_b, system.T_h):
                assert blocks_of(matrix, i, j).any() == parent
            if on_path:
                assert_close(blocks_of(system.A_sb, i, j), Ad(system.C[j]))
            if parent:
                assert_close(blocks_of(system.A_sb_inverse, i, j), -Ad(inverse(system.C[i])))


@every_representation
@every_mechanism
def test_joint_rates_come_back(name, representation):
    """(26), Remark 14, and their likes."""
    _, system, _, (qd, *_), _ = state(name)
    V = of_form(system, "V", representation)
    assert_close(system.rates_from_twists(V, representation), qd)


@every_representation
@every_mechanism
def test_what_the_rates_minimise(name, representation):
    """Of twists that do not fit, (26) minimises the squares of A^-1 V - X N qd, not of V - J qd."""
    _, system, *_ = state(name)
    V = np.random.default_rng(1).normal(size=6 * system.model.nb)
    X = (system.X_b if representation in ("body_fixed", "spatial") else system.X_h) @ system.N
    inverse = INVERSES["A_sb" if representation == "spatial" else f"A_{LETTERS[representation]}"]
    qd = system.rates_from_twists(V, representation)
    assert_close(X.T @ (getattr(system, inverse) @ V - X @ qd), np.zeros(system.model.n))
    if system.model.nb > 1:
        J = of_form(system, "J", representation)
        assert np.abs(J.T @ (V - J @ qd)).max() > 0.1


@every_representation
@every_mechanism
def test_twists_and_accelerations_are_those_of_the_recursions(name, representation):
    mechanism, system, q, (qd, qdd, _), _ = state(name)
    rows = mechanism.nb, 6
    V = mbs.twists(mechanism.model, q, qd, representation=representation)
    Vd = mbs.accelerations(mechanism.model, q, qd, qdd, representation=representation)
    assert_close(of_form(system, "V", representation).reshape(rows), V)
    assert_close(of_form(system, "Vd", representation).reshape(rows), Vd)


@every_representation
@every_mechanism
def test_jacobians_and_their_rates_are_those_of_the_recursions(name, representation):
    mechanism, system, q, (qd, *_), _ = state(name)
    J, Jd = of_form(system, "J", representation), of_form(system, "Jd", representation)
    same = {"representation": representation}
    for i, body in enumerate(mechanism.model.body_names):
        rows = slice(6 * i, 6 * i + 6)
        assert_close(J[rows], mbs.jacobian(mechanism.model, q, body, **same))
        assert_close(Jd[rows], mbs.jacobian_rate(mechanism.model, q, qd, body, **same))


@every_mechanism
def test_joint_accelerations_come_back(name):
    """(11)."""
    _, system, _, (_, qdd, _), _ = state(name)
    assert_close(system.accelerations_from_twists(system.Vd_b), qdd)


@every_mechanism
def test_sums_of_brackets_are_products_of_system_matrices(name):
    _, system, *_ = state(name)
    assert_close(sums.body_fixed_acceleration(system), system.Vd_b)
    assert_close(sums.spatial_acceleration(system), system.Vd_s)
    assert_close(sums.hybrid_acceleration(system), system.Vd_h)
    assert_close(sums.hybrid_jacobian_rate(system), system.Jd_h)


@pytest.mark.long
@every_mechanism
def test_jerks(name):
    """The sums of the paper against Taylor series."""
    mechanism, system, q, (qd, qdd, qddd), _ = state(name)
    for total, representation in (
        (sums.body_fixed_jerk, "body_fixed"),
        (sums.spatial_jerk, "spatial"),
        (sums.spatial_jerk_nested, "spatial"),
        (sums.hybrid_jerk, "hybrid"),
        (sums.mixed_jerk, "mixed"),
    ):
        same = {"representation": representation}
        jerks = mbs.jerks(mechanism.model, q, qd, qdd, qddd, **same)
        assert_close(total(system).reshape(jerks.shape), jerks, what=total.__name__)


@every_mechanism
def test_second_rate_of_the_hybrid_jacobian(name):
    """(30), and J qddd + 2 Jd qdd + Jdd qd, which is (31), (32)."""
    mechanism, system, q, (qd, qdd, qddd), _ = state(name)
    Jdd = sums.hybrid_jacobian_second_rate(system)
    for body in leaves(mechanism.model):
        i = mechanism.model.body_names.index(body)
        expected = mbs.jacobian_second_rate(
            mechanism.model, q, qd, qdd, body, representation="hybrid"
        )
        assert_close(Jdd[6 * i : 6 * i + 6], expected)
    jerk = system.J_h @ qddd + 2.0 * system.Jd_h @ qdd + Jdd @ qd
    assert_close(sums.hybrid_jerk(system), jerk)


def test_an_unknown_representation_is_refused():
    system = System(MECHANISMS["tree"].model, np.zeros(7))
    for function in (
        system.geometric_jacobian,
        lambda name: system.rates_from_twists(np.zeros(42), name),
    ):
        with pytest.raises(mbs.UnknownRepresentationError, match="local"):
            function("local")
