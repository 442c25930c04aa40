# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Messages that the dynamics node answers, rejects or warns of.

Its time, publishers and subscriptions are replaced, as for a recorded bag; no message is sent.
"""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("rclpy")

from diagnostic_msgs.msg import DiagnosticStatus
from rclpy.parameter import Parameter
from rclpy.serialization import serialize_message
from ros_bench import NodeProcess, Probe
from sensor_msgs.msg import JointState

import mbs_dynamics as mbs
from mbs_dynamics.compiler import BACKENDS, call_mechanism
from mbs_dynamics.resources import robot_path
from mbs_dynamics.ros.messages import stamp_of, time_of
from mbs_dynamics.ros.replay import ReplayNode

pytestmark = pytest.mark.usefixtures("ros")

OK, WARN, ERROR = DiagnosticStatus.OK, DiagnosticStatus.WARN, DiagnosticStatus.ERROR
MODEL = mbs.Model.from_urdf(robot_path("arm7"))
JOINTS = MODEL.joint_names
Q = np.array([0.3, -0.5, 0.7, -1.1, 0.2, 0.9, -0.4])
QD = np.array([0.5, -0.2, 0.8, -1.0, 1.5, -0.7, 0.3])
SECOND = 10**9


class Bench:
    """The node, what it publishes, and a clock that a message advances by 10 ms."""

    def __init__(self, **values):
        self.published = {}
        given = {"robot_description_file": str(robot_path("arm7"))} | values
        overrides = [Parameter(name, value=value) for name, value in given.items()]
        self.node = ReplayNode(self.write, namespace="input", parameter_overrides=overrides)
        self.node.now = 100 * SECOND
        assert self.node.start()

    def write(self, topic, kind, message, when):
        short = topic.removeprefix("/input/").removeprefix("dynamics_node/")
        self.published.setdefault(short, []).append(message)

    def receive(self, topic, message):
        self.node.callbacks[f"/input/{topic}"](serialize_message(message))

    def send(self, q=Q, qd=QD, names=JOINTS, stamp=None, pause=SECOND // 100):
        """Send a state; return the topics on which it was answered."""
        self.node.now += pause
        self.published.clear()
        message = JointState(name=list(names), position=list(q), velocity=list(qd))
        message.header.stamp = time_of(self.node.now if stamp is None else stamp)
        self.receive("joint_states", message)
        return set(self.published)

    def status(self, part):
        """Return level, message and values of the diagnostics."""
        self.node._publish_diagnostics()
        (latest,) = self.published.pop("/diagnostics")
        (one,) = (one for one in latest.status if one.name.endswith(f": {part}"))
        return one.level, one.message, {pair.key: pair.value for pair in one.values}

    def torques(self, name="gravity_torques"):
        return self.published[name][-1].effort


@pytest.fixture
def bench(ros):
    made = Bench()
    yield made
    made.node.destroy_node()


ALL = {"gravity_torques", "bias_torques", "twist/tool", "jacobian/tool"}


def test_a_state_is_answered_with_its_stamp_and_the_diagnostics_say_by_what(bench):
    assert bench.send() == ALL
    np.testing.assert_allclose(bench.torques(), mbs.gravity_torques(MODEL, Q), rtol=1e-12)
    for topic in ALL - {"jacobian/tool"}:
        assert stamp_of(bench.published[topic][0].header.stamp) == bench.node.now
    assert bench.send(stamp=0) == ALL  # unstamped: the time of reception
    assert stamp_of(bench.published["bias_torques"][0].header.stamp) == bench.node.now
    level, _, values = bench.status("model")
    assert level == OK
    assert (values["model"], values["joints"]) == ("arm7", "7")
    assert values["backend"] in BACKENDS
    assert values["kernels called through"] == call_mechanism(values["backend"])
    level, _, values = bench.status("input")
    assert (level, values["lifecycle state"], values["answered"]) == (OK, "active", "2")


NAN_AT_4 = np.where(np.arange(7) == 3, np.nan, Q)


@pytest.mark.parametrize(
    ("kind", "change", "named"),
    [
        ("duplicate_joints", {"names": (*JOINTS, "joint2"), "q": [*Q, 1.0], "qd": ()}, "joint2"),
        ("position_length", {"q": Q[:-1]}, "6 position"),
        ("not_finite", {"q": NAN_AT_4}, "joint4 = nan"),
        ("no_joints", {"names": ("wheel",), "q": [1.0], "qd": ()}, "joint1"),
        ("time_backwards", {"stamp": SECOND}, "99.01"),
    ],
)
def test_bad_states_are_rejected_and_named(bench, capfd, kind, change, named):
    bench.send()
    bench.status("input")
    assert bench.send(**change) == set()
    level, message, values = bench.status("input")
    assert (level, values[f"rejected: {kind}"]) == (WARN, "1")
    assert named in message
    assert named in values["last rejection"]
    assert bench.send() == ALL
    for _ in range(20):
        bench.send(**change)
    assert capfd.readouterr().err.count("joint_states rejected") == 1  # throttled


def test_repeated_silent_and_partial_states_are_not_answered(bench):
    bench.send()
    assert bench.send(2.0 * Q, stamp=bench.node.now) == set()
    assert bench.status("input")[2]["repeated stamps"] == "1"
    bench.node.now += SECOND
    level, message, _ = bench.status("input")
    assert (level, message[:6]) == (ERROR, "stale:")
    assert bench.send(names=JOINTS[:5], q=Q[:5], qd=QD[:5]) == set()
    level, _, values = bench.status("input")
    assert level == ERROR
    assert values["joints not fresh"].startswith("joint6 for")
    assert bench.send(names=JOINTS[5:], q=Q[5:], qd=QD[5:]) == ALL  # the others are enough
    assert bench.send(stamp=SECOND, pause=SECOND) == ALL  # time starts anew after a pause


@pytest.mark.parametrize("velocities", [(), np.full(7, np.nan)])
def test_absent_velocities_are_not_taken_for_zero(bench, velocities):
    assert bench.send(qd=velocities) == {"gravity_torques", "jacobian/tool"}
    level, message, _ = bench.status("input")
    assert level == WARN
    assert "bias torques and twists" in message
    changed = Parameter("velocity_from_position", value=True)
    assert bench.node.set_parameters_atomically([changed]).successful
    bench.send(qd=velocities)
    assert bench.send(Q + 0.01 * QD, velocities) == ALL
    expected = mbs.bias_torques(MODEL, Q + 0.01 * QD, QD)
    np.testing.assert_allclose(bench.torques("bias_torques"), expected, rtol=1e-9)


def test_rates_of_answers_and_of_markers_are_limited(ros):
    bench = Bench(max_rate=20.0, publish_markers=True)
    answered, drawn = 0, 0
    for _ in range(100):  # a second
        bench.send()
        answered, drawn = answered + bool(bench.published), drawn + ("markers" in bench.published)
    assert answered == pytest.approx(20, abs=1)
    assert drawn == pytest.approx(20, abs=1)
    assert bench.status("input")[2]["skipped by max_rate"] == str(100 - answered)
    bench.node.set_parameters_atomically([Parameter("max_rate", value=0.0)])
    drawn = 0
    for _ in range(100):
        assert bench.send() >= ALL
        drawn += "markers" in bench.published
    assert drawn == pytest.approx(30, abs=1)
    bench.node.destroy_node()


MEGABYTE = "x" * 2**20


def test_logs_and_diagnostics_stay_short_whatever_is_received():
    """Each of these is refused with a text or name of a megabyte, hundreds of times."""
    with NodeProcess() as process, Probe(process) as own:
        description = robot_path("arm7").read_text(encoding="utf-8")
        for k in range(100):
            odd = f"{k}{MEGABYTE}"
            own.describe(description.replace('mass value="', f'mass value="{odd}', 1))
            own.describe(description.replace('link="link3"', f'link="{odd}"'))
            own.describe(f"{odd}")
            own.payload(odd, 1.0)
            own.gravity((0.0, 0.0, -9.81), odd)
            own.send([odd], [0.0])
            own.spin(0.02)
        own.describe(description)
        own.hear("gravity_torques")
        own.answer(["gravity_torques"], JOINTS, Q, QD)
        own.until(lambda: "input" in own.health)
        assert 0 < len(process.log) < 200_000
        assert max(len(str(status)) for status in own.health.values()) < 20_000
