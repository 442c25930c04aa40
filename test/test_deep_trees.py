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
"""Deep trees: spatial twists and articulated bodies give what other trees are computed with."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from mechanisms import random_mechanism

import mbs_dynamics as mbs
from mbs_dynamics.representation import body_axes, is_deep

TREES = {
    "chain": (-1, 0, 1, 2),
    "branches": (-1, 0, 0, 1, -1, 4),
}


def model_of(name: str, **options: Any) -> mbs.Model:
    return random_mechanism(11, TREES[name], **options).model


def computed(model: mbs.Model) -> list[Any]:
    q, qd, qdd = model.random_state(3)
    return [
        mbs.mass_matrix(model, q),
        mbs.coriolis_matrix(model, q, qd),
        mbs.inverse_mass_matrix(model, q),
        *mbs.inverse_dynamics_derivatives(model, q, qd, qdd),
        *mbs.forward_dynamics_derivatives(model, q, qd, qdd),
    ]


@pytest.mark.parametrize("name", TREES)
def test_deep_trees_are_computed_otherwise_with_the_same_result(name, monkeypatch):
    monkeypatch.setattr(body_axes, "DEEP", math.inf)
    expected = computed(model_of(name))
    monkeypatch.setattr(body_axes, "DEEP", 0.0)
    model = model_of(name)
    found = computed(model)
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=0.0, atol=1e-11 * np.abs(b).max())
    inverse = mbs.inverse_mass_matrix(model, model.random_state(3).q, representation="body_fixed")
    np.testing.assert_allclose(inverse, found[2], rtol=0.0, atol=1e-11 * np.abs(inverse).max())
    assert np.array_equal(found[2], found[2].T)


def test_a_joint_that_moves_nothing_is_named_in_deep_trees(monkeypatch):
    monkeypatch.setattr(body_axes, "DEEP", 0.0)
    model = model_of("branches", massless=[5])
    with pytest.raises(mbs.SingularError, match="joint6"):
        mbs.inverse_mass_matrix(model, np.zeros(model.n))


def test_which_trees_are_deep():
    for n, deep in ((20, False), (30, True)):
        assert is_deep(random_mechanism(0, range(-1, n - 1)).model) == deep
    assert not is_deep(random_mechanism(0, [-1] + [0] * 40).model)
    assert not is_deep(mbs.Model("none", ()))
