# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The moves of each representation, against moving_bodies.py and the definition of the twists."""

import numpy as np
import pytest
from mechanisms import MECHANISMS, every_mechanism
from moving_bodies import Scene, vee
from reference import Reference, assert_close, twist

import mbs_dynamics as mbs

every_representation = pytest.mark.parametrize("representation", mbs.REPRESENTATIONS)


def twist_rate(C, Cd, Cdd, representation):
    """Return the rate (6,) of the components of the twist of a pose, from its two rates."""
    back = np.linalg.inv(C)
    body_fixed = vee(back @ Cdd - back @ Cd @ back @ Cd)
    spatial = vee(Cdd @ back - Cd @ back @ Cd @ back)
    if representation in ("body_fixed", "spatial"):
        return body_fixed if representation == "body_fixed" else spatial
    angular = {"hybrid": spatial, "mixed": body_fixed}[representation][:3]
    return np.concatenate([angular, Cdd[:3, 3]])


@every_mechanism
@every_representation
def test_twists_and_accelerations_follow_from_those_of_the_parent(representation, name):
    """D (66), (70), (75): carried from the parent, with the joint, and for accelerations drift."""
    mechanism = MECHANISMS[name]
    model = mechanism.model
    rng = np.random.default_rng(1)
    q = rng.uniform(-3.0, 3.0, model.n)
    qd, qdd = rng.uniform(-2.0, 2.0, (2, model.n))
    reference = Reference(mechanism, q)
    Cd = np.einsum("iklm,k->ilm", reference.dC, qd)
    Cdd = np.einsum("ijklm,j,k->ilm", reference.ddC, qd, qd)
    Cdd = Cdd + np.einsum("iklm,k->ilm", reference.dC, qdd)
    rep = mbs.REPRESENTATIONS[representation](model, q)
    rate, rate2 = rep.model.joint_rates(qd), rep.model.joint_rates(qdd)
    V, Vd = [np.zeros((model.nb + 1, 6)) for _ in range(2)]  # the last one is the ground
    for i, p in rep.model.outward():
        motion = reference.C[i], Cd[i], Cdd[i]
        V[i] = rep.transform(i) @ V[p] + rep.screw(i) @ rate[i]
        assert_close(V[i], twist(*motion[:2], representation))
        Vd[i] = rep.acceleration(i, V, Vd, rate[i], rate2[i])
        assert_close(Vd[i], twist_rate(*motion, representation))


@pytest.mark.parametrize("seed", range(4))
@every_representation
def test_inertia_and_bias_give_the_wrench_of_a_body(representation, seed):
    """D (38), (41), (53), (56), (57), with the inertias of (34), (40), (51)."""
    scene = Scene(seed)
    joint = [[0, 0, 1, 0, 0, 0]]
    model = mbs.Model.from_screws([-1], [scene.C], joint, [scene.M_b], frame="body_fixed")
    rep = mbs.REPRESENTATIONS[representation](model, np.zeros(1))
    M = np.stack([rep.inertia(0) @ e for e in np.eye(6)], axis=1)
    V, Vd = scene.twist(representation)
    if representation != "mixed":
        expected = {"body_fixed": scene.M_b, "spatial": scene.M_s, "hybrid": scene.M_h}
        assert_close(M, expected[representation], 1e-13)
    assert_close(M @ Vd + rep.bias(0, V), scene.wrench(representation), 1e-13)
    assert_close(rep.wrench(0, V, Vd), scene.wrench(representation), 1e-13)
