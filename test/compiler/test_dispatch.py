# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Functions of this package find the kernels of earlier calls again, and only the right ones."""

import numpy as np
import pytest

import mbs_dynamics as mbs
from mbs_dynamics.compiler.runtime import dispatch
from mbs_dynamics.resources import robot_path


@pytest.fixture(scope="module")
def arm():
    return mbs.Model.from_urdf(robot_path("arm7"))


@pytest.fixture(scope="module")
def q(arm):
    return np.random.default_rng(3).uniform(-2.0, 2.0, arm.n)


def test_each_model_has_its_own_gravity_and_payloads(arm, q):
    models = [arm, arm.with_gravity((0.0, 0.0, 0.0)), arm.with_gravity((1.0, 2.0, 3.0))]
    models.append(arm.with_payload("tool", mass=2.0, com=(0.0, 0.0, 0.1)))
    for _ in range(3):
        for model in models:
            wanted = mbs.compile(mbs.gravity_torques, model)(q)
            assert np.array_equal(mbs.gravity_torques(model, q), wanted)


def test_a_model_that_is_gone_is_never_taken_for_a_new_one(arm, q):
    wanted = 2.0 * mbs.gravity_torques(arm, q)
    old = [arm.with_gravity(arm.gravity) for _ in range(2 * dispatch.ENTRIES)]
    for model in 2 * old[::2]:
        mbs.gravity_torques(model, q)
    addresses = {id(model) for model in old[::2]}
    del old[::2], model
    kept = []  # so that each is made somewhere else
    for _ in range(2_000):
        kept.append(arm.with_gravity(2.0 * arm.gravity))
        if id(kept[-1]) in addresses:
            break
    else:
        pytest.skip("no model was made where the old one stood")
    for _ in range(2):
        assert np.allclose(mbs.gravity_torques(kept[-1], q), wanted, rtol=1e-13, atol=0.0)
