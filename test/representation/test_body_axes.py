# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The body-fixed moves of dynamics beside those of the paper: other accelerations, one motion."""

import numpy as np
from mechanisms import MECHANISMS, every_mechanism

from mbs_dynamics.algorithms.newton_euler import NO_LOADS, Loads, recursion
from mbs_dynamics.lie.se3 import ad
from mbs_dynamics.representation import BodyAxes, BodyFixed
from mbs_dynamics.representation.tree import Tree


def motions(name, loads=NO_LOADS):
    """Return a model, the moves of both kinds, and what the recursion makes of each."""
    model = Tree(MECHANISMS[name].model)
    q, qd, qdd = model.model.random_state(7)
    moves = BodyFixed(model, q), BodyAxes(model, q)
    return model, moves, [recursion(model, rep, qd, qdd, loads) for rep in moves]


def of_origins(V, Vd):
    """Return the accelerations of origins from the rates of body-fixed twists."""
    return Vd + np.array([[0.0, 0.0, 0.0, *np.cross(x[:3], x[3:])] for x in V])


@every_mechanism
def test_the_recursion_of_the_paper_transmits_the_same_wrenches(name):
    rng = np.random.default_rng(2)
    nb = MECHANISMS[name].nb
    moving = Loads(rng.normal(size=(nb, 6)), rng.normal(size=6), rng.normal(size=6))
    for loads in (NO_LOADS, moving):
        _, _, ((V, Vd, W), (V_axes, A, W_axes)) = motions(name, loads)
        found, expected = (np.array(x, dtype=float) for x in (W_axes, W))
        scale = np.abs(expected).max()
        np.testing.assert_allclose(found, expected, atol=1e-12 * scale)
        np.testing.assert_allclose(np.array(V_axes, dtype=float), np.array(V, dtype=float))
        expected = of_origins(*(np.array(x, dtype=float) for x in (V, Vd)))
        np.testing.assert_allclose(
            np.array(A, dtype=float), expected, atol=1e-12 * np.abs(expected).max()
        )


@every_mechanism
def test_drift_and_bias_are_the_parts_of_acceleration_and_wrench(name):
    model, (_, rep), (_, (V, A, _)) = motions(name)
    rate = model.joint_rates(model.model.random_state(7).qd)
    acceleration = model.joint_rates(model.model.random_state(7).qdd)
    for i, p in model.outward():
        M = rep.inertia(i)
        np.testing.assert_allclose(
            (M @ A[i] + rep.bias(i, V[i])).astype(float),
            rep.wrench(i, V[i], A[i]).astype(float),
            atol=1e-11,
        )
        carried = (
            rep.transform(i) @ A[p]
            + rep.screw(i) @ acceleration[i]
            + rep.velocity_product(i, V, rate[i])
        )
        np.testing.assert_allclose(carried.astype(float), A[i].astype(float), atol=1e-11)


@every_mechanism
def test_rates_of_a_screw_are_brackets_with_twist_and_acceleration(name):
    model, (body_fixed, rep), ((V, Vd, _), (_, A, _)) = motions(name)
    for i, p in model.outward():
        S = np.random.default_rng(i).normal(size=(6, 2))
        V_p, Vd_p = (np.asarray(body_fixed.transform(i) @ x[p], dtype=float) for x in (V, Vd))
        Y, Z = rep.rates_on_parent(i, V, A, S)
        np.testing.assert_allclose(np.asarray(Y, float), ad(V_p) @ S, atol=1e-11)
        expected = ad(Vd_p) @ S + ad(V_p) @ ad(V_p) @ S
        np.testing.assert_allclose(np.asarray(Z, float), expected, atol=1e-10)
