# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Publishers of gravity compensation: commands, torques by name, collisions, and diagnostics."""

import pytest

pytest.importorskip("rclpy")

from functools import partial

import numpy as np
import rclpy
from diagnostic_msgs.msg import DiagnosticStatus
from geometry_msgs.msg import WrenchStamped
from gravity_bench import Bench
from rclpy.publisher import Publisher
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray
from waiting import wait_until

from mbs_dynamics.control.collision import Collision
from mbs_dynamics.control.faults import Fault
from mbs_dynamics.control.guard import Guard
from mbs_dynamics.ros import messages
from mbs_dynamics.ros.compensation import outputs
from mbs_dynamics.ros.compensation.interface import GRAVITY_COMPENSATION_NODE
from mbs_dynamics.ros.compensation.outputs import CommandOutputs, Traffic
from mbs_dynamics.ros.node_base import BaseNode


class Commander(BaseNode):
    interface = GRAVITY_COMPENSATION_NODE._replace(node="commander")


@pytest.fixture
def node(ros):
    node = Commander(namespace="outputs")
    yield node
    node.destroy_node()


def spin_until(node, condition):
    wait_until(condition, lambda: rclpy.spin_once(node, timeout_sec=0.01))


def matched(node, name):
    """Return how many subscriptions the publisher of a topic of the node knows."""
    (one,) = (one for one in node.publishers if one.topic_name.endswith(f"/commander/{name}"))
    return one.get_subscription_count()


def test_publishers_are_there_from_open_until_the_last_command_has_arrived(node, monkeypatch):
    """A subscriber discards what it has not received from a publisher that is gone."""
    outputs = CommandOutputs(node, "effort", ("a", "b"))
    topic = "/outputs/effort"
    assert outputs.traffic() == (topic, 0, 0)
    outputs.send([1.0, 2.0])  # nothing is published before it is open
    outputs.open()
    wait_until(lambda: node.count_publishers(topic) == 1)
    assert outputs.other_publishers() == 0
    other = node.create_publisher(Float64MultiArray, topic, 1)
    wait_until(lambda: outputs.other_publishers() == 1)
    there, before = [], len([*node.publishers])
    monkeypatch.setattr(
        Publisher,
        "wait_for_all_acked",
        lambda publisher, timeout: there.append((publisher.topic_name, len([*node.publishers]))),
    )
    outputs.close()
    assert there == [(topic, before)]
    wait_until(lambda: node.count_publishers(topic) == 1)
    assert outputs.other_publishers() == 1
    node.destroy_publisher(other)
    wait_until(lambda: node.count_publishers(topic) == 0)
    outputs.close()  # once more


def test_commands_arrive_on_both_topics(node):
    outputs = CommandOutputs(node, "effort", ("a", "b"))
    outputs.open()
    commands, torques = [], []
    node.create_subscription(Float64MultiArray, "effort", commands.append, 10)
    node.create_subscription(JointState, "~/commanded_torques", torques.append, 10)
    wait_until(lambda: outputs.traffic().subscribers == 1)
    wait_until(lambda: matched(node, "commanded_torques") == 1)
    outputs.send(None)
    outputs.send([1.5, -2.0])
    spin_until(node, lambda: commands and torques)
    outputs.send([0.5, 1.0])
    outputs.send([0.5, 2.0])
    outputs.flush()
    spin_until(node, lambda: list(commands[-1].data) == [0.5, 2.0] and len(torques) == 3)
    assert list(commands[0].data) == [1.5, -2.0]
    assert list(torques[0].name) == ["a", "b"]
    np.testing.assert_array_equal(torques[0].effort, [1.5, -2.0])
    assert len(commands) == 3
    outputs.close()


def test_a_collision_is_published_with_its_joint_first_its_time_and_the_wrench(node):
    outputs = CommandOutputs(node, "effort", ("a", "b", "c"), collisions=True)
    outputs.open()
    received = {}
    for kind, name in ((JointState, "collision"), (WrenchStamped, "contact_wrench")):
        topic = f"/outputs/commander/{name}"
        node.create_subscription(kind, topic, partial(received.__setitem__, name), 1)
        wait_until(lambda: matched(node, name) == 1)  # noqa: B023
    W = np.array([0.1, 0.2, 0.3, 4.0, 5.0, 6.0])
    stamp, torques = 1_795_653_655_832_072_713, np.array([0.5, -3.0, 0.0])
    found = Collision("b", stamp, torques, "tool", W)
    outputs.collided(found, ("a", "b", "c"), "left_")
    spin_until(node, lambda: len(received) == 2)
    torques, wrench = received["collision"], received["contact_wrench"]
    assert (torques.name, [*torques.effort]) == (["b", "a"], [-3.0, 0.5])
    assert messages.stamp_of(torques.header.stamp) == found.stamp
    assert (wrench.header.stamp, wrench.header.frame_id) == (torques.header.stamp, "left_tool")
    np.testing.assert_array_equal(messages.wrench_of(wrench), W)
    outputs.close()


# -- diagnostics -----------------------------------------------------------------------------------

OK, WARN, ERROR = DiagnosticStatus.OK, DiagnosticStatus.WARN, DiagnosticStatus.ERROR
TRAFFIC = Traffic("/commands", 1, 0)


def parts(status):
    """Return level, message and values of a status."""
    return status.level, status.message, {pair.key: pair.value for pair in status.values}


def command(bench, controller="", **traffic):
    problems = bench.core.problems(bench.now, traffic.get("rivals", 0))
    problems += [controller] if controller else []
    return parts(outputs.command_status(bench.core, problems, TRAFFIC._replace(**traffic)))


def test_command_while_disabled_says_why_it_cannot_be_enabled():
    bench, key = Bench(), "would be refused because"
    level, message, values = command(bench)
    assert level == WARN
    assert values[key] in message
    bench.send()
    level, message, values = command(bench)
    assert (level, message, values[key], values["fault"]) == (OK, "disabled", "nothing", "none")
    for given in ({"controller": "it holds positions"}, {"rivals": 2}):
        level, message, values = command(bench, **given)
        assert level == WARN
        assert values[key] in message


@pytest.mark.parametrize(
    ("limited", "words"),
    [
        ({"behind": 1.0}, "rate limit"),
        ({"saturated_since": np.where(np.arange(7) == 1, 0.0, np.inf)}, "limit of joint2"),
    ],
)
def test_limits_that_clip_torques_are_warnings(limited, words, monkeypatch):
    bench = Bench().enabled()
    record = bench.core.arm.state_record._replace(**limited)
    monkeypatch.setattr(Guard, "state_record", record)
    level, message, _ = command(bench)
    assert level == WARN
    assert words in message


def test_a_problem_with_the_controllers_is_an_error_while_torques_act():
    bench, said = Bench(), "'positions' is unconfigured"
    assert parts(outputs.command_status(bench.core, [said], TRAFFIC, said))[0] == WARN
    bench.enabled()
    level, message, _ = parts(outputs.command_status(bench.core, [], TRAFFIC, said))
    assert (level, message) == (ERROR, f"enabled; {said}")


@pytest.mark.parametrize("on_fault", ["ramp_down", "hold"])
def test_a_fault_is_an_error_that_says_whether_torques_are_held(on_fault):
    bench = Bench(on_fault=on_fault).enabled()
    bench.core.arm.fail(Fault("test", "it was tried"), bench.now)
    bench.silence(3.0)
    level, message, values = command(bench, subscribers=0)
    assert level == ERROR
    assert "it was tried" in message
    assert ("holds the last torques" in message) == (on_fault == "hold")
    assert (values["fault"], values["fault reason"]) == ("test", "it was tried")
