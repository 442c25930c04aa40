# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Models under another gravity or with another load, without compiling again."""

import numpy as np
import pytest
from mechanisms import ARM_URDF, TREE, pose, random_mechanism
from reference import assert_close

import mbs_dynamics as mbs
from mbs_dynamics.model import Frame, Inertia, Model

MECHANISM = random_mechanism(21, TREE)
STATE = MECHANISM.model.random_state(3)
LOAD = {"mass": 2.5, "com": (0.1, -0.2, 0.3), "inertia_at_com": np.diag([0.03, 0.04, 0.05])}


def test_gravity_changes_without_compiling():
    model, g = Model.from_urdf(ARM_URDF), (1.0, -2.0, 3.0)
    q, qd, qdd = model.random_state(1)
    calls = [
        lambda m: mbs.gravity_torques(m, q),
        lambda m: mbs.inverse_dynamics(m, q, qd, qdd, representation="hybrid"),
        lambda m: mbs.forward_kinematics(m, q, bodies=["tool"]),
    ]
    before = [call(model) for call in calls]
    count = len(model.compiled.kernels)
    turned = model.with_gravity(g)
    found = [call(turned) for call in calls]
    assert turned.compiled.kernels is model.compiled.kernels
    assert len(model.compiled.kernels) == count
    fresh = Model.from_urdf(ARM_URDF, gravity=g)
    for call, result, old in zip(calls, found, before, strict=True):
        assert_close(result, call(fresh), 1e-14)
        np.testing.assert_array_equal(call(model), old)
    assert not np.allclose(found[0], before[0])
    np.testing.assert_array_equal(turned.gravity, g)


@pytest.mark.parametrize("turned", [False, True])
def test_a_payload_is_inertia_of_its_body(turned):
    """On a body, and on a link merged into it, whose frame is turned."""
    C = pose(np.random.default_rng(5)) if turned else np.eye(4)
    frames = {"link": Frame("link", 3, C)}
    model = Model("m", MECHANISM.model.bodies, MECHANISM.gravity, frames)
    with_load = model.with_payload("link", **LOAD)
    inertias = MECHANISM.inertias
    inertias[3] += Inertia.from_com(*LOAD.values()).transformed(C).matrix()
    given = model.screws()._replace(M_body=inertias)
    heavier = Model.from_screws(*given, frame="body_fixed", gravity=MECHANISM.gravity)
    for representation in ("body_fixed", "spatial", "hybrid", "mixed", "auto"):
        tau, expected = (
            mbs.inverse_dynamics(made, *STATE, representation=representation)
            for made in (with_load, heavier)
        )
        assert_close(tau, expected)
    assert_close(mbs.gravity_torques(with_load, STATE.q), mbs.gravity_torques(heavier, STATE.q))
    assert_close(with_load.loaded().screws().M_body, inertias, 1e-14)
    assert_close(with_load.screws().M_body, MECHANISM.inertias, 1e-14)


def test_one_payload_per_link():
    """A new one takes the place of the link's own; those of several links of one body add up."""
    model = Model.from_urdf(ARM_URDF)
    q = model.random_state(1).q
    empty = mbs.gravity_torques(model, q)
    tool, lower = model.with_payload("tool", **LOAD), model.with_payload("lower", 1.0)
    twice = tool.with_payload("tool", 5.0).with_payload("tool", **LOAD)
    assert twice == tool
    both = tool.with_payload("lower", 1.0)
    assert [load.link for load in both.payloads] == ["lower", "tool"]
    assert both == lower.with_payload("tool", **LOAD)
    assert both.payloads.bodies == tool.payloads.bodies
    each = [mbs.gravity_torques(one, q) - empty for one in (tool, lower)]
    assert_close(mbs.gravity_torques(both, q) - empty, each[0] + each[1], 1e-13)
    assert_close(mbs.gravity_torques(both.loaded(), q), mbs.gravity_torques(both, q), 1e-13)
    pair = model.with_payload("lower", **LOAD).with_payload("upper", 1.0)
    assert pair.payloads.bodies == (0, 1)
    assert pair == model.with_payload("upper", 1.0).with_payload("lower", **LOAD)
