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
"""Matrices do not depend on the twists that pairs of bodies take: body-fixed, or spatial."""

from __future__ import annotations

import numpy as np
import pytest
from mechanisms import MECHANISMS

import mbs_dynamics as mbs
from mbs_dynamics.operation_counts import slender_chain
from mbs_dynamics.representation import BodyAxes, Spatial, body_axes, moves_for_pairs

pytestmark = pytest.mark.backend_independent

MATRICES = {
    mbs.mass_matrix: ("q",),
    mbs.coriolis_matrix: ("q", "qd"),
    mbs.inverse_dynamics_derivatives: ("q", "qd", "qdd"),
}


def matrices(function, model, state):
    """Return what the equations give, on floats and on this very model."""
    arrays = [getattr(state, name) for name in MATRICES[function]]
    options = {"representation": "auto"} if function is mbs.mass_matrix else {}
    found = function.algorithm.equations(model, *arrays, **options)
    return found if isinstance(found, dict) else {"": found}


@pytest.mark.parametrize("function", MATRICES)
@pytest.mark.parametrize("name", MECHANISMS)
def test_pairs_may_be_body_fixed_or_spatial(name, function, monkeypatch):
    model = MECHANISMS[name].model
    state = model.random_state(3)
    monkeypatch.setattr(body_axes, "DEEP", np.inf)
    body_fixed = matrices(function, model, state)
    monkeypatch.setattr(body_axes, "DEEP", 0.0)
    spatial = matrices(function, model, state)
    for key, expected in body_fixed.items():
        expected = expected.astype(float)
        scale = max(1.0, np.abs(expected).max())
        np.testing.assert_allclose(spatial[key].astype(float), expected, atol=1e-12 * scale)


def test_deep_chains_are_spatial():
    chains = [slender_chain(n) for n in (6, 30)]
    found = [moves_for_pairs(chain, np.zeros(chain.n)) for chain in chains]
    assert [type(rep) for rep in found] == [BodyAxes, Spatial]
