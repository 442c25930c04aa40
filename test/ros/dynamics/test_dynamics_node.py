# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The dynamics node as a process of its own, over DDS: each of its paths, from start to end."""

import signal

import numpy as np
import pytest

pytest.importorskip("rclpy")

from diagnostic_msgs.msg import DiagnosticStatus
from robots import robot
from ros_bench import NodeProcess, Probe, jacobian_of, twist_of
from test_dynamics_node_input import JOINTS, MODEL, QD, Q

import mbs_dynamics as mbs
from mbs_dynamics.resources import robot_path

pytestmark = pytest.mark.usefixtures("ros")

ARM7 = robot_path("arm7").read_text(encoding="utf-8")
PANDA = robot("panda_description/urdf/panda.urdf").read_text(encoding="utf-8")
TORQUES = ["gravity_torques", "bias_torques"]
CLOSE = {"rtol": 1e-10, "atol": 1e-10}


@pytest.fixture
def own():
    """Start a node for one test alone."""
    with NodeProcess("dynamics_node") as process, Probe(process) as probe:
        yield probe


def shuffled(names, q, qd):
    """Return names, positions and velocities in another order, with joints of others among them."""
    names, q, qd = [*names, "wheel", "gripper"], [*q, np.nan, 5.0], [*qd, np.inf, np.nan]
    order = np.random.default_rng(3).permutation(len(names))
    return [names[k] for k in order], [q[k] for k in order], [qd[k] for k in order]


def test_outputs_are_those_of_the_library_in_all_representations(own):
    """With merged links, a mimic joint and joints without limits, until a signal ends the node."""
    model = mbs.Model.from_urdf(PANDA)
    links = ("panda_hand_tcp", "panda_link4")
    own.describe(PANDA)
    assert own.set(bodies=list(links)) == ""
    topics = [*TORQUES, *(f"{kind}/{link}" for kind in ("twist", "jacobian") for link in links)]
    own.hear(*topics)
    for seed, representation in enumerate(("hybrid", "spatial", "body_fixed")):
        assert own.set(representation=representation) == ""
        state = model.random_state(seed)
        gravity, bias, *_ = own.answer(topics, *shuffled(model.joint_names, state.q, state.qd))
        assert tuple(gravity.name) == tuple(bias.name) == model.joint_names
        np.testing.assert_allclose(gravity.effort, mbs.gravity_torques(model, state.q), **CLOSE)
        np.testing.assert_allclose(bias.effort, mbs.bias_torques(model, state.q, state.qd), **CLOSE)
        for link in links:
            J, names = jacobian_of(own.latest[f"jacobian/{link}"], link, representation)
            assert tuple(names) == model.joint_names
            expected = mbs.jacobian(model, state.q, link, representation=representation)
            expected = np.roll(expected, 3, axis=0)  # linear part first
            np.testing.assert_allclose(J, expected, **CLOSE)
            twist = own.latest[f"twist/{link}"]
            np.testing.assert_allclose(twist_of(twist), expected @ state.qd, **CLOSE)
            root = next(iter(model.frames))
            assert twist.header.frame_id == (link if representation == "body_fixed" else root)
    own.target.process.send_signal(signal.SIGTERM)  # while messages arrive
    own.until_end(lambda: own.send(model.joint_names, state.q, state.qd), every=0.001)
    assert own.target.wait() == 0
    assert "rror" not in own.target.log


def test_a_new_description_replaces_the_robot_and_a_bad_one_does_not(own):
    own.describe(ARM7)
    own.hear(*TORQUES, "twist/panda_hand_tcp")
    own.answer(TORQUES, JOINTS, Q, QD)
    own.describe("<robot name='broken'><link name='a'/>")
    own.until(lambda: "refused" in own.said("model"))
    assert own.level("model") == DiagnosticStatus.ERROR
    assert "robot_description refused" in own.target.log
    tau = own.answer(TORQUES, JOINTS, Q, QD)[1].effort
    np.testing.assert_allclose(tau, mbs.bias_torques(MODEL, Q, QD), **CLOSE)
    model = mbs.Model.from_urdf(PANDA)
    own.describe(PANDA)
    own.until(lambda: own.value_of("model", "model") == "panda")
    assert own.level("model") == DiagnosticStatus.OK
    state = model.random_state()
    topics = [*TORQUES, "twist/panda_hand_tcp"]
    tau = own.answer(topics, model.joint_names, state.q, state.qd)[1].effort
    np.testing.assert_allclose(tau, mbs.bias_torques(model, state.q, state.qd), **CLOSE)
    own.describe(PANDA)
    own.describe(ARM7)
    own.until(lambda: own.value_of("model", "model") == "arm7")
    assert own.target.log.count("model 'panda'") == 1


def test_lifecycle(ros):
    with NodeProcess("dynamics_node", autostart=False) as process, Probe(process) as probe:
        pass_through_lifecycle(probe)
        assert process.stop() == 0


def pass_through_lifecycle(own):
    assert own.lifecycle_state() == "unconfigured"
    own.hear("gravity_torques")
    own.describe(ARM7)
    for change, state in (("configure", "inactive"), ("activate", "active")) * 2:
        assert own.transition(change)
        assert own.lifecycle_state() == state
        if state == "active":
            own.answer(["gravity_torques"], JOINTS, Q)
            assert own.transition("deactivate")
        own.health.clear()
        before = own.latest_stamp
        own.until(
            lambda: own.value_of("input", "lifecycle state") == "inactive",
            again=lambda: own.send(JOINTS, Q),
        )
        own.known()
        assert own.answered_since(before) == set()
        if state == "active":
            assert own.transition("cleanup")
            assert own.lifecycle_state() == "unconfigured"
            own.until(lambda: own.said("model") == "no robot_description yet")
    assert own.transition("shutdown")
    assert own.lifecycle_state() == "finalized"
