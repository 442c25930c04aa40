# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Matrices do not depend on where pairs of bodies meet: in the bodies, or in the ground."""

from __future__ import annotations

import numpy as np
import pytest
from mechanisms import MECHANISMS

import mbs_dynamics as mbs
from mbs_dynamics.operation_counts import slender_chain
from mbs_dynamics.representation import formulas, pairs
from mbs_dynamics.representation.tree import Tree

pytestmark = pytest.mark.backend_independent

MATRICES = {
    mbs.mass_matrix: ("q",),
    mbs.coriolis_matrix: ("q", "qd"),
    mbs.inverse_dynamics_derivatives: ("q", "qd", "qdd"),
}


def matrices(function, model, state):
    """Return what the equations give, on floats and on this very model."""
    arrays = [getattr(state, name) for name in MATRICES[function]]
    options = {"representation": "body_fixed"} if function is mbs.mass_matrix else {}
    found = function(Tree(model), *arrays, **options)
    return found._asdict() if isinstance(found, tuple) else {"": found}


@pytest.mark.parametrize("function", MATRICES)
@pytest.mark.parametrize("name", MECHANISMS)
def test_pairs_may_meet_in_the_bodies_or_in_the_ground(name, function, monkeypatch):
    model = MECHANISMS[name].model
    state = model.random_state(3)
    monkeypatch.setattr(formulas, "PAIRS_IN_GROUND", np.inf)
    in_bodies = matrices(function, model, state)
    monkeypatch.setattr(formulas, "PAIRS_IN_GROUND", 0)
    in_ground = matrices(function, model, state)
    for key, expected in in_bodies.items():
        expected = expected.astype(float)
        scale = max(1.0, np.abs(expected).max())
        np.testing.assert_allclose(in_ground[key].astype(float), expected, atol=1e-12 * scale)


def test_deep_chains_meet_in_the_ground():
    found = [
        pairs.common_frame(mbs.representation.BodyFixed(m, np.zeros(m.n))) for m in chains(6, 14)
    ]
    assert [type(common_frame) for common_frame in found] == [
        pairs.CommonFrame,
        pairs.GroundFrame,
    ]
    deep = slender_chain(14)
    spatial = mbs.representation.Spatial(deep, np.zeros(14))
    assert type(pairs.common_frame(spatial)) is pairs.CommonFrame  # it has nothing to carry anyway


def chains(*sizes):
    return [slender_chain(n) for n in sizes]
