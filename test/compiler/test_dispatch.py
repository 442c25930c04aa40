# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Functions of this package find the kernels of earlier calls again, and only the right ones."""

import numpy as np
import pytest

import mbs_dynamics as mbs
from mbs_dynamics.compiler.runtime import dispatch
from mbs_dynamics.resources import robot_path

ARM = mbs.Model.from_urdf(robot_path("arm7"))
Q = np.random.default_rng(3).uniform(-2.0, 2.0, ARM.n)


def test_each_model_has_its_own_gravity_and_payloads():
    models = [ARM, ARM.with_gravity((0.0, 0.0, 0.0)), ARM.with_gravity((1.0, 2.0, 3.0))]
    models.append(ARM.with_payload("tool", mass=2.0, com=(0.0, 0.0, 0.1)))
    for _ in range(3):
        for model in models:
            wanted = mbs.compile(mbs.gravity_torques, model)(Q)
            assert np.array_equal(mbs.gravity_torques(model, Q), wanted)


def test_a_model_that_is_gone_is_never_taken_for_a_new_one():
    wanted = 2.0 * mbs.gravity_torques(ARM, Q)
    old = [ARM.with_gravity(ARM.gravity) for _ in range(2 * dispatch.ENTRIES)]
    for model in 2 * old[::2]:
        mbs.gravity_torques(model, Q)
    addresses = {id(model) for model in old[::2]}
    del old[::2], model
    kept = []  # so that each is made somewhere else
    for _ in range(2_000):
        kept.append(ARM.with_gravity(2.0 * ARM.gravity))
        if id(kept[-1]) in addresses:
            break
    else:
        pytest.skip("no model was made where the old one stood")
    for _ in range(2):
        assert np.allclose(mbs.gravity_torques(kept[-1], Q), wanted, rtol=1e-13, atol=0.0)
