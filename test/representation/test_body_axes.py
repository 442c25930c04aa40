# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The body-fixed moves of dynamics beside those of the paper: other accelerations, one motion."""

import numpy as np
from mechanisms import MECHANISMS, every_mechanism
from reference import assert_close

from mbs_dynamics.algorithms.newton_euler import NO_LOADS, Loads, recursion
from mbs_dynamics.lie.se3 import ad
from mbs_dynamics.representation import BodyAxes, BodyFixed
from mbs_dynamics.representation.tree import Tree


def motions(name, loads=NO_LOADS):
    """Return a model, the moves of both kinds, and what the recursion makes of each, as arrays."""
    model = Tree(MECHANISMS[name].model)
    q, qd, qdd = model.model.random_state(7)
    moves = BodyFixed(model, q), BodyAxes(model, q)
    found = [recursion(model, rep, qd, qdd, loads) for rep in moves]
    return model, moves, [[np.array(x, dtype=float) for x in each] for each in found]


@every_mechanism
def test_the_recursion_of_the_paper_transmits_the_same_wrenches(name):
    rng = np.random.default_rng(2)
    nb = MECHANISMS[name].nb
    moving = Loads(rng.normal(size=(nb, 6)), rng.normal(size=6), rng.normal(size=6))
    for loads in (NO_LOADS, moving):
        _, _, ((V, Vd, W), (V_axes, A, W_axes)) = motions(name, loads)
        assert_close(W_axes, W, 1e-12)
        assert_close(V_axes, V, 1e-12)
        of_origins = Vd + [[0.0, 0.0, 0.0, *np.cross(x[:3], x[3:])] for x in V]
        assert_close(A, of_origins, 1e-12)


@every_mechanism
def test_drift_and_bias_are_the_parts_of_acceleration_and_wrench(name):
    model, (_, rep), (_, (V, A, _)) = motions(name)
    _, qd, qdd = model.model.random_state(7)
    rate, acceleration = model.joint_rates(qd), model.joint_rates(qdd)
    for i, p in model.outward():
        assert_close(rep.inertia(i) @ A[i] + rep.bias(i, V[i]), rep.wrench(i, V[i], A[i]), 1e-12)
        joint = rep.screw(i) @ acceleration[i] + rep.velocity_product(i, V, rate[i])
        assert_close(rep.transform(i) @ A[p] + joint, A[i], 1e-12)


@every_mechanism
def test_rates_of_a_screw_are_brackets_with_twist_and_acceleration(name):
    model, (body_fixed, rep), ((V, Vd, _), (_, A, _)) = motions(name)
    for i, p in model.outward():
        S = np.random.default_rng(i).normal(size=(6, 2))
        V_p, Vd_p = (np.asarray(body_fixed.transform(i) @ x[p], dtype=float) for x in (V, Vd))
        Y, Z = rep.rates_on_parent(i, V, A, S)
        assert_close(Y, ad(V_p) @ S, 1e-12)
        assert_close(Z, ad(Vd_p) @ S + ad(V_p) @ ad(V_p) @ S, 1e-11)
