# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Stribeck's effect and load-dependent friction: found where they are, and only there."""

from __future__ import annotations

import numpy as np
import pytest
from mechanisms import random_mechanism

import mbs_dynamics as mbs
from mbs_dynamics.identification.friction_terms import columns_of, friction_terms
from mbs_dynamics.identification.recording import Recording
from mbs_dynamics.identification.signals import filtered
from mbs_dynamics.identification.torque_model import TorqueModel
from mbs_dynamics.integrate import JointForces, simulate
from mbs_dynamics.model.friction import friction_bound

pytestmark = pytest.mark.backend_independent
COULOMB = 0.8
CUTOFF = 20.0


ARM = random_mechanism(7, [-1, 0, 1], ["revolute"]).model.with_gravity((0.0, 3.0, -9.0))


def motion(seed):
    """Return a function of times (...) to positions, rates and accelerations (..., 3)."""
    rng = np.random.default_rng(seed)
    centre, swing = rng.uniform(-0.5, 0.5, 3), np.array([[0.7], [0.3]]) * rng.uniform(0.4, 0.9, 3)
    rate, phase = rng.uniform(0.5, 2.5, (2, 3)), rng.uniform(0, 6, (2, 3))

    def desired(t):
        angle = rate * np.asarray(t)[..., None, None] + phase
        return (
            centre + (swing * np.sin(angle)).sum(axis=-2),
            (swing * rate * np.cos(angle)).sum(axis=-2),
            -(swing * rate**2 * np.sin(angle)).sum(axis=-2),
        )

    return desired


def terms_of(seed, t, q, qd, tau):
    """Return the terms that a recording with noise of 2 % in its torques shows."""
    noise = np.random.default_rng(seed).normal(size=tau.shape)
    tau = tau + 0.02 * tau.std(axis=0) * noise
    names = ARM.joint_names
    signals = filtered(Recording("run", names, t, q, tau, qd).of(ARM), CUTOFF)
    torque_model = TorqueModel(ARM, names, 0.02)
    columns = columns_of(torque_model, signals, CUTOFF, torque_model.described())
    equations = torque_model.equations(signals, CUTOFF)
    return friction_terms(torque_model, [equations], [columns.A], np.full(3, COULOMB))


def prescribed(seed, stribeck=0.0, load=0.0):
    """Return the terms for a motion that is followed exactly."""
    t = np.arange(0.0, 30.0, 4e-3)
    q, qd, qdd = motion(seed)(t)
    torque = np.abs(mbs.gravity_torques(ARM, q))
    bound = friction_bound(COULOMB, stribeck, 0.1, load, qd, torque)
    return terms_of(
        seed, t, q, qd, mbs.inverse_dynamics(ARM, q, qd, qdd) + 0.3 * qd + bound * np.sign(qd)
    )


def simulated(seed, **law):
    """Return the terms for an arm that a controller moves against set-valued friction."""

    def follow(t, q, qd):
        q_d, qd_d, qdd_d = motion(seed)(t)
        return mbs.inverse_dynamics(ARM, q, qd, qdd_d + 900 * (q_d - q) + 60 * (qd_d - qd))

    forces = JointForces.of(ARM, damping=0.3, friction=COULOMB, **law)
    given = {"duration": 15.0, "step": 1e-3, "every": 4, "method": "semi_implicit_euler"}
    run = simulate(ARM, *motion(seed)(0.0)[:2], control=follow, forces=forces, **given)
    return terms_of(seed, run.t, run.q, run.qd, run.tau)


@pytest.mark.parametrize("seed", range(3))
def test_known_terms_are_found(seed):
    """Each with its size, and nothing of the other; not in joints that data hardly show."""
    terms = prescribed(seed, stribeck=0.8)
    shown = terms.stribeck != 0.0
    assert shown.sum() >= 2
    assert np.abs(terms.stribeck[shown] / (0.8 * COULOMB) - 1.0).max() < 0.35
    assert terms.stribeck_speed == 0.1
    terms = prescribed(seed, load=0.1)
    shown = terms.load != 0.0
    assert shown.sum() >= 2
    assert np.abs(terms.load[shown] - 0.1).max() < 0.01
    assert not terms.stribeck.any()
    assert any("load-dependent friction predicts" in note for note in terms.notes)


def test_terms_of_a_simulation_are_found():
    terms = simulated(0, stribeck=0.8, stribeck_speed=0.1, load_friction=0.1)
    assert (terms.load > 0.08).sum() >= 2
    assert (terms.stribeck > 0.4).sum() >= 1
    assert terms.of_joint(0, COULOMB)["load"] == terms.load[0]


@pytest.mark.parametrize(
    "seeds", [range(300, 304), pytest.param(range(304, 344), marks=pytest.mark.slow)]
)
def test_terms_that_are_not_there_are_not_found(seeds):
    """Below 5 % of arms with Coulomb and viscous friction only; the comparison is stated."""
    results = [prescribed(seed) for seed in seeds]
    assert sum(terms.any for terms in results) <= 0.05 * len(seeds)
    assert all("left out" in terms.notes[0] for terms in results if not terms.any)
