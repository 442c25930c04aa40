# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The dynamics node as a process of its own, over DDS: what it publishes, beside Pinocchio."""

from __future__ import annotations

import sys

import numpy as np
import pytest

pytest.importorskip("rclpy")
pytest.importorskip("pinocchio")

from diagnostic_msgs.msg import DiagnosticStatus
from geometry_msgs.msg import TwistStamped
from rcl_interfaces.srv import ListParameters
from robots import robot
from ros_bench import NodeProcess, Probe, about, jacobian_of, twist_of
from ros_reference import Reference

import mbs_dynamics as mbs
from mbs_dynamics.model.orders import tools
from mbs_dynamics.resources import robot_path

pytestmark = pytest.mark.usefixtures("ros")

ARM7 = robot_path("arm7").read_text(encoding="utf-8")
PANDA = robot("panda_description/urdf/panda.urdf").read_text(encoding="utf-8")
JOINTS = mbs.Model.from_urdf(ARM7).joint_names
TORQUES = ["gravity_torques", "bias_torques"]
ALL = [*TORQUES, "twist/tool", "jacobian/tool"]
Q = np.array([0.3, -0.5, 0.7, -1.1, 0.2, 0.9, -0.4])
QD = np.array([0.5, -0.2, 0.8, -1.0, 1.5, -0.7, 0.3])
CLOSE = {"rtol": 1e-10, "atol": 1e-10}


def shuffled(names, q, qd):
    """Return names, positions and velocities in another order, with joints of others among them."""
    names, q, qd = [*names, "wheel", "gripper"], [*q, np.nan, 5.0], [*qd, np.inf, np.nan]
    order = np.random.default_rng(3).permutation(len(names))
    return [names[k] for k in order], [q[k] for k in order], [qd[k] for k in order]


@pytest.fixture
def own(request):
    """Start a node for one test alone, with the parameters that the test asks for."""
    with NodeProcess(**getattr(request, "param", {})) as process, Probe(process) as probe:
        yield probe


class Again(NodeProcess):
    """The node in a namespace that another one was in."""

    def __init__(self, namespace, *arguments):
        self._again = namespace
        super().__init__(*arguments)
        self.namespace, self.name = namespace, f"{namespace}/dynamics_node"

    def command(self, *arguments):
        module = ["-m", "mbs_dynamics.ros.dynamics_node", "--ros-args"]
        return [sys.executable, *module, "-r", f"__ns:={self._again}", *arguments]


def started_with(**parameters):
    return pytest.mark.parametrize("own", [parameters], indirect=True, ids=[""])


@pytest.mark.parametrize(
    ("name", "bodies"),
    [
        # merged links and a mimic joint; a tree; joints without limits
        ("panda_description/urdf/panda.urdf", ("panda_hand_tcp", "panda_link4")),
        ("baxter_description/urdf/baxter.urdf", ()),
        ("kinova_description/robots/kinova.urdf", ()),
    ],
)
def test_all_outputs_equal_pinocchio(own, name, bodies):
    text = robot(name).read_text(encoding="utf-8")
    model = mbs.Model.from_urdf(text)
    reference = Reference(text, model.joint_names)
    own.describe(text)
    if bodies:
        assert own.set(bodies=list(bodies)) == ""
    links = bodies or tools(model)
    topics = [*TORQUES, *(f"twist/{link}" for link in links), *(f"jacobian/{k}" for k in links)]
    own.hear(*topics)
    for seed, representation in enumerate(("hybrid", "spatial", "body_fixed", "auto")):
        assert own.set(representation=representation) == ""
        own.quiet()  # answers to the state before
        state = model.random_state(seed)
        gravity, bias, *_ = own.answer(topics, *shuffled(model.joint_names, state.q, state.qd))
        assert tuple(gravity.name) == tuple(bias.name) == model.joint_names
        np.testing.assert_allclose(gravity.effort, reference.gravity_torques(state.q), **CLOSE)
        np.testing.assert_allclose(bias.effort, reference.bias_torques(state.q, state.qd), **CLOSE)
        rep = "body_fixed" if representation == "auto" else representation
        for link in links:
            J, names = jacobian_of(own.latest[f"jacobian/{link}"])
            assert tuple(names) == model.joint_names
            expected = reference.jacobian(state.q, link, rep)
            np.testing.assert_allclose(J, expected, **CLOSE)
            twist = own.latest[f"twist/{link}"]
            np.testing.assert_allclose(twist_of(twist), expected @ state.qd, **CLOSE)
            root = next(iter(model.frames))
            assert twist.header.frame_id == (link if rep == "body_fixed" else root)


@started_with(
    **{"frame_prefix": "left/", "publish_velocities": True, "publish_center_of_mass": True},
    **{"bodies": "[tool]", "loads.tool": "[1.5, 0.0, 0.02, 0.05]"},
)
def test_messages_say_what_they_are(own):
    """Frames of TF with their prefix, stamps, and a load that is always there."""
    topics = ["velocity/tool", "center_of_mass", "twist/tool", "jacobian/tool", "gravity_torques"]
    own.describe(ARM7)
    own.hear(*topics)
    model = mbs.Model.from_urdf(ARM7).with_payload("tool", 1.5, (0.0, 0.02, 0.05))
    frames = {"hybrid": "left/tool", "body_fixed": "left/tool", "spatial": "left/base_link"}
    for representation, frame in frames.items():
        assert own.set(representation=representation) == ""
        velocity, com, twist, jacobian, gravity = own.answer(topics, JOINTS, Q, QD)
        assert velocity.header.frame_id == frame
        assert velocity.body_frame_id == "left/tool"
        assert velocity.reference_frame_id == "left/base_link"
        measured = "spatial" if representation == "spatial" else "body_fixed"
        V = mbs.jacobian(model, Q, "tool", representation=measured) @ QD
        found = TwistStamped(twist=velocity.velocity)
        np.testing.assert_allclose(twist_of(found), [*V[3:], *V[:3]], **CLOSE)
        assert com.header.frame_id == "left/base_link"
        point = [com.point.x, com.point.y, com.point.z]
        np.testing.assert_allclose(point, mbs.center_of_mass(model, Q), **CLOSE)
        resolved = "left/tool" if representation == "body_fixed" else "left/base_link"
        assert twist.header.frame_id == resolved
        what, keys = about(jacobian)
        assert what == "linear_xyz_angular_xyz"
        assert (keys["body"], keys["representation"]) == ("tool", representation)
        stamp = own.latest["twist/tool"].header.stamp
        assert keys["stamp"] == f"{stamp.sec}.{stamp.nanosec:09d}"
        np.testing.assert_allclose(gravity.effort, mbs.gravity_torques(model, Q), **CLOSE)
        assert gravity.header.frame_id == "left/base_link"  # for the Effort display of RViz
    # a payload comes on top, by the frame of TF or by the link
    for frame in ("left/tool", "tool"):
        own.payload(frame, 0.5)
        heavier = mbs.gravity_torques(model.loaded().with_payload("tool", 0.5), Q)
        own.until(
            lambda expected=heavier: np.allclose(
                own.answer(["gravity_torques"], JOINTS, Q)[0].effort, expected, atol=1e-9
            )
        )
        own.payload(frame, 0.0)


@started_with(**{"loads.tool": "[1.5, 0.0]"})
def test_a_load_with_too_few_numbers_ends_the_node(own):
    assert own.target.wait() == 1
    assert "loads.tool has 2 number(s); valid are 4" in own.target.log


def test_the_quality_of_service_is_overridden_by_parameters():
    """rclpy writes into the profile that it is given: other topics must not change with it."""
    with NodeProcess() as process:
        prefix = f"qos_overrides.{process.namespace}"
    overrides = {
        f"{prefix}/dynamics_node/gravity_torques.publisher.reliability": "best_effort",
        f"{prefix}/joint_states.subscription.depth": 50,
    }
    command = [f"{name}:={value}" for name, value in overrides.items()]
    arguments = [word for one in command for word in ("-p", one)]
    with Again(process.namespace, *arguments) as process, Probe(process) as probe:
        probe.describe(ARM7)
        topics = [f"{process.name}/{name}_torques" for name in ("gravity", "bias")]
        publishers = probe.node.get_publishers_info_by_topic
        probe.until(lambda: all(map(publishers, topics)))  # each is discovered by itself
        (info,), (other,) = map(publishers, topics)
        assert info.qos_profile.reliability.name == "BEST_EFFORT"
        assert other.qos_profile.reliability.name == "RELIABLE"
        assert probe.get(f"{prefix}/joint_states.subscription.depth").integer_value == 50
        request = ListParameters.Request(prefixes=["qos_overrides"])
        declared = probe.call(ListParameters, "list_parameters", request).result.names
        assert {name.rpartition(".")[0] for name in declared} == {
            name.rpartition(".")[0] for name in overrides
        }
        assert "no parameter" not in process.log


def test_every_algorithm_publishes_the_same_torques(own):
    """Changed at run time, beside Pinocchio; what is published for bodies does not change."""
    own.describe(ARM7)
    topics = [*TORQUES, "mass_matrix", "twist/tool"]
    assert own.set(publish_mass_matrix=True) == ""
    own.hear(*topics)
    reference = Reference(ARM7, JOINTS)
    operations = set()
    for algorithm in ("auto", "body_fixed", "spatial", "hybrid", "mixed"):
        assert own.set(algorithm=algorithm) == ""
        gravity, bias, mass, twist = own.answer(topics, JOINTS, Q, QD)
        np.testing.assert_allclose(gravity.effort, reference.gravity_torques(Q), **CLOSE)
        np.testing.assert_allclose(bias.effort, reference.bias_torques(Q, QD), **CLOSE)
        M = np.reshape(mass.data, (7, 7))
        np.testing.assert_allclose(M, mbs.mass_matrix(mbs.Model.from_urdf(ARM7), Q), **CLOSE)
        expected = reference.jacobian(Q, "tool", "hybrid") @ QD
        np.testing.assert_allclose(twist_of(twist), expected, **CLOSE)
        own.until(lambda shown=algorithm: own.model_value("algorithm") == shown)
        own.until(lambda: own.model_value("operations"))  # not before the first answer
        operations.add(own.model_value("operations"))
        assert float(own.model_value("evaluation time [us]")) > 0.0
    assert len(operations) == 4, operations  # auto is body_fixed
    refused = own.set(algorithm="bodyfixed")
    assert "'bodyfixed'" in refused
    assert "auto, body_fixed, spatial, hybrid, mixed" in refused


def test_answers_bear_the_stamp_of_the_question(own):
    own.describe(ARM7)
    own.hear(*ALL)
    own.answer(ALL, JOINTS, Q, QD)
    own.latest.clear()
    sent = own.send(JOINTS, Q, QD)
    own.until(lambda: all(topic in own.latest for topic in ALL))
    for topic in ALL[:3]:
        assert own.latest[topic].header.stamp == sent.header.stamp


@started_with(representation="mixed", publish_twists=False, bodies="[tool]")
def test_jacobian_in_mixed_representation(own):
    own.describe(ARM7)
    own.hear("jacobian/tool")
    (message,) = own.answer(["jacobian/tool"], JOINTS, Q)
    expected = Reference(ARM7, JOINTS).jacobian(Q, "tool", "mixed")
    np.testing.assert_allclose(jacobian_of(message)[0], expected, **CLOSE)
    assert "one frame" in own.set(publish_twists=True)
    assert own.set(publish_twists=True, representation="hybrid") == ""


@started_with(robot_description_file=str(robot_path("arm7")), root="link1", tip="link5")
def test_part_of_a_robot_from_a_file(own):
    joints = ("joint2", "joint3", "joint4", "joint5")
    own.hear(*TORQUES, "twist/link5")
    topics = [*TORQUES, "twist/link5"]
    gravity, bias, twist = own.answer(topics, JOINTS, Q, QD)
    with pytest.warns(mbs.ModelWarning, match="dropped"):
        model = mbs.Model.from_urdf(ARM7, root="link1", tip="link5")
    assert tuple(gravity.name) == joints
    np.testing.assert_allclose(gravity.effort, mbs.gravity_torques(model, Q[1:5]), **CLOSE)
    np.testing.assert_allclose(bias.effort, mbs.bias_torques(model, Q[1:5], QD[1:5]), **CLOSE)
    assert twist.header.frame_id == "link1"


def test_a_new_description_replaces_the_robot_and_a_bad_one_does_not(own):
    own.describe(ARM7)
    own.hear(*TORQUES, "twist/panda_hand_tcp")
    own.answer(TORQUES, JOINTS, Q, QD)
    own.describe("<robot name='broken'><link name='a'/>")
    own.until(lambda: "refused" in own.said("model"))
    assert own.level("model") == DiagnosticStatus.ERROR
    assert "the model before it stays in force" in own.said("model")
    assert "robot_description refused" in own.target.log
    tau = own.answer(TORQUES, JOINTS, Q, QD)[1].effort
    np.testing.assert_allclose(tau, Reference(ARM7, JOINTS).bias_torques(Q, QD), **CLOSE)
    model = mbs.Model.from_urdf(PANDA)
    own.describe(PANDA)
    own.until(lambda: own.model_value("model") == "panda")
    assert own.level("model") == DiagnosticStatus.OK
    state = model.random_state()
    topics = [*TORQUES, "twist/panda_hand_tcp"]
    tau = own.answer(topics, model.joint_names, state.q, state.qd)[1].effort
    expected = Reference(PANDA, model.joint_names).bias_torques(state.q, state.qd)
    np.testing.assert_allclose(tau, expected, **CLOSE)
    own.describe(PANDA)
    own.spin(0.3)
    assert own.target.log.count("model 'panda'") == 1


def test_gravity(own):
    reference = Reference(ARM7, JOINTS, (1.0, 2.0, -3.0))
    own.describe(ARM7)
    own.hear(*TORQUES)
    own.answer(TORQUES, JOINTS, Q, QD)
    own.until(
        lambda: own.model_value("gravity [m/s^2]") == "1, 2, -3",
        again=lambda: own.gravity((1, 2, -3)),
    )
    gravity, bias = own.answer(TORQUES, JOINTS, Q, QD)
    np.testing.assert_allclose(gravity.effort, reference.gravity_torques(Q), **CLOSE)
    np.testing.assert_allclose(bias.effort, reference.bias_torques(Q, QD), **CLOSE)
    for vector, frame in (((0, 0, np.nan), ""), ((0, 0, -9810), ""), ((0, 0, -9.81), "link3")):
        own.gravity(vector, frame)
    own.until(lambda: "gravity refused: gravity must be finite" in own.target.log)
    (gravity,) = own.answer(TORQUES[:1], JOINTS, Q, QD)
    np.testing.assert_allclose(gravity.effort, reference.gravity_torques(Q), **CLOSE)
    own.gravity((0, 0, 5), "base_link")
    own.until(lambda: own.model_value("gravity [m/s^2]") == "0, 0, 5")
    assert own.set(gravity=[0.0, 0.0, -9.81]) == ""
    (gravity,) = own.answer(TORQUES[:1], JOINTS, Q, QD)
    expected = Reference(ARM7, JOINTS).gravity_torques(Q)
    np.testing.assert_allclose(gravity.effort, expected, **CLOSE)


def test_payload(own):
    own.describe(ARM7)
    own.hear(*TORQUES)
    own.answer(TORQUES, JOINTS, Q, QD)
    diagonal = (0.01, 0.02, 0.025)
    for mass in (0.5, 2.0):
        reference = Reference(ARM7, JOINTS)
        reference.add_load("tool", mass, (0.01, 0.02, 0.1), np.diag(diagonal))
        said = f"{mass:g} kg at tool"
        own.until(
            lambda said=said: own.model_value("payloads") == said,
            again=lambda mass=mass: own.payload("tool", mass, (0.01, 0.02, 0.1), diagonal),
        )
        gravity, bias = own.answer(TORQUES, JOINTS, Q, QD)
        np.testing.assert_allclose(gravity.effort, reference.gravity_torques(Q), **CLOSE)
        np.testing.assert_allclose(bias.effort, reference.bias_torques(Q, QD), **CLOSE)
    own.payload("rope", 1.0)
    own.until(lambda: "payload refused: no body 'rope'" in own.target.log)
    assert own.model_value("payloads") == "2 kg at tool"
    own.payload("tool", 0.0)
    own.until(lambda: own.model_value("payloads") == "none")
    (gravity,) = own.answer(TORQUES[:1], JOINTS, Q, QD)
    expected = Reference(ARM7, JOINTS).gravity_torques(Q)
    np.testing.assert_allclose(gravity.effort, expected, **CLOSE)


def test_link_names_that_are_no_topic_names(own):
    own.describe(ARM7.replace('"tool"', '"7th tool-of/arm"'))
    own.hear("twist/link_7th_tool_of_arm")
    (twist,) = own.answer(["twist/link_7th_tool_of_arm"], JOINTS, Q, QD)
    expected = Reference(ARM7, JOINTS).jacobian(Q, "tool", "hybrid") @ QD
    np.testing.assert_allclose(twist_of(twist), expected, **CLOSE)
