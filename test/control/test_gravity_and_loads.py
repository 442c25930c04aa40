# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Gravity and loads of an arm on a bus: those of its model, and those set at any time."""

import numpy as np
import pytest

import mbs_dynamics as mbs
from mbs_dynamics.control import GuardedArm, Motors, laws
from mbs_dynamics.control.environment import LinkLoad, check_load
from simulated.bus import frames_of
from simulated.guarded_bench import MODEL, Q, table

MOTORS = Motors(table(), MODEL)
CEILING = (0.0, 0.0, 9.81)
LOAD = ("tool", 2.0, (0.0, 0.02, 0.05))
LOADED = MODEL.with_payload(*LOAD).with_payload("link5", 0.5)


def torques_of(arm, seconds=1.5, actions={}):  # noqa: B006
    """Return the torques of an arm that stays where it is; its motors exert what is commanded.

    ``actions`` by period are functions of the arm.
    """
    efforts = [0.0] * 7
    for n in range(round(seconds / 0.004)):
        t = 0.004 * n
        if n in actions:
            actions[n](arm)
        command = arm.step(t, frames_of(MOTORS, [t] * 7, Q, [0.0] * 7, efforts))
        efforts = command.torques
        if n == 5:
            assert arm.enable(t) == []
    assert arm.state == "enabled"
    return command.torques


@pytest.mark.parametrize(
    ("model", "stated", "true"),
    [
        (MODEL.with_gravity(CEILING), {}, MODEL.with_gravity(CEILING)),
        (MODEL, {"gravity": CEILING}, MODEL.with_gravity(CEILING)),
        (LOADED, {}, LOADED),
    ],
    ids=["gravity of the model", "stated gravity", "loads of the model"],
)
def test_an_arm_is_held_against_its_gravity_and_loads(model, stated, true):
    found = torques_of(GuardedArm(model, laws.Gravity(), MOTORS, **stated))
    np.testing.assert_allclose(found, mbs.gravity_torques(true, Q), atol=0.05)


def test_another_load_of_a_link_replaces_that_of_the_model_alone():
    arm = GuardedArm(LOADED, laws.Gravity(), MOTORS)
    found = torques_of(arm, 3.0, {200: lambda arm: arm.load("tool", 0.0)})
    expected = mbs.gravity_torques(MODEL.with_payload("link5", 0.5), Q)
    np.testing.assert_allclose(found, expected, atol=0.05)


@pytest.mark.parametrize(
    "reads",
    [
        {},
        {3: lambda arm: arm.problems(1.0)},
        {3: lambda arm: arm.running.model_in_force(arm.state_record)},
    ],
)
def test_a_load_set_before_enabling_acts_whoever_has_read_it(reads):
    arm = GuardedArm(MODEL, laws.Gravity(), MOTORS)
    found = torques_of(arm, actions={2: lambda arm: arm.load(*LOAD)} | reads)
    np.testing.assert_allclose(found, mbs.gravity_torques(MODEL.with_payload(*LOAD), Q), atol=0.05)


@pytest.mark.parametrize(
    ("law", "follows"),
    [
        (laws.Gravity(), True),
        (lambda model, state, reference: state.gravity, True),
        (lambda model, state, reference: mbs.gravity_torques(model, state.q), True),
        (lambda model, state, reference: mbs.gravity_torques(MODEL, state.q), False),
    ],
    ids=["gravity compensation", "gravity of the state", "gravity of the model", "other gravity"],
)
def test_torques_of_any_law_follow_another_load_by_a_ramp(law, follows):
    """A law that knows nothing of the load goes on as before."""
    arm, found = GuardedArm(MODEL, law, MOTORS), []

    def record(arm):
        found.append(arm.running.state.command)

    def load(arm):
        record(arm)
        arm.load("tool", 0.5)

    torques_of(arm, 2.8, dict.fromkeys(range(399, 700), record) | {400: load})
    steps = abs(np.diff(found, axis=0)).max(axis=1)
    change = mbs.gravity_torques(MODEL.with_payload("tool", 0.5), Q) - mbs.gravity_torques(MODEL, Q)
    assert abs(change).max() > 1.0
    assert steps.max() < 0.02 * abs(change).max()
    np.testing.assert_allclose(found[-1] - found[0], follows * change, atol=0.05)


@pytest.mark.parametrize(
    ("com", "moment", "said"),
    [((50.0, 0.0, 0.0), 0.0, "50 m from the link"), ((0.0, 0.0, 0.0), 1e3, "38.7 m from its")],
)
def test_loads_in_millimetres_are_refused(com, moment, said):
    tensor = tuple(map(tuple, (moment * np.eye(3)).tolist()))
    with pytest.raises(mbs.ModelError, match=said):
        check_load(LinkLoad("tool", 1.0, com, tensor))
    check_load(LinkLoad("tool", 0.0, com, ((0.0,) * 3,) * 3))  # removes it
