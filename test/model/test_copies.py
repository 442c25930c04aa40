# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Models and kernels are copied, pickled and sent to other processes, and come back equal."""

import copy
import pickle
from dataclasses import replace

import numpy as np
import pytest
from mechanisms import random_mechanism, with_mimics

import mbs_dynamics as mbs
from mbs_dynamics.resources import robot_path


def pickled(x):
    return pickle.loads(pickle.dumps(x))


def models():
    arm = mbs.Model.from_urdf(robot_path("arm7"))
    mimics = random_mechanism(5, (-1, 0, 0, 2, 1))
    return {
        "arm": arm,
        "loaded": arm.with_gravity((0.0, 1.0, -9.0)).with_payload("tool", 2.0, (0.1, 0.0, 0.2)),
        "mimics": with_mimics(mimics, (0, 1, 2, 3, 3), (1, 1, 1, 1, -0.5), np.zeros(5)).model,
    }


@pytest.mark.parametrize("copied", [pickled, copy.deepcopy, copy.copy])
@pytest.mark.parametrize("name", models())
def test_copies_of_models_are_equal(name, copied):
    model = models()[name]
    mbs.gravity_torques(model, np.zeros(model.n))  # which is compiled
    other = copied(model)
    assert other == model
    assert hash(other) == hash(model)
    assert other is not model
    assert not other.compiled.kernels
    assert not other.compiled.with_defaults
    assert other.compiled.lock is not model.compiled.lock
    arrays = [x for body in other.bodies for x in (body.home_rel, body.joint.screw)]
    assert not any(array.flags.writeable for array in (other.gravity, *arrays))
    q = model.random_state(1).q
    np.testing.assert_array_equal(mbs.mass_matrix(other, q), mbs.mass_matrix(model, q))


def test_models_that_differ_are_not_equal():
    arm = models()["arm"]
    body = arm.bodies[3]
    moved = np.array(body.home_rel)
    moved[0, 3] += 1e-12
    others = [
        arm.with_gravity((0.0, 0.0, 1.0)),
        arm.with_payload("tool", 1.0),
        replace(arm, name="other"),
        replace(arm, bodies=(*arm.bodies[:3], replace(body, home_rel=moved), *arm.bodies[4:])),
        replace(arm, frames={}),
    ]
    assert all(other != arm and arm != other for other in others)
    assert arm != "arm7"
    assert arm == mbs.Model.from_urdf(robot_path("arm7"))
