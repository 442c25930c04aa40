# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The teaching node: what it records, writes, sends and refuses."""

from contextlib import ExitStack
from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("rclpy")

from backends import run_python
from geometry_msgs.msg import InertiaStamped
from gravity_node_bench import READY
from rclpy.parameter import Parameter
from ros_bench import NodeProcess, Probe
from sensor_msgs.msg import JointState
from simulator_bench import DAMPED, SimulatorProcess, Watcher
from std_srvs.srv import SetBool, Trigger

from mbs_dynamics.resources import robot_path
from mbs_dynamics.ros.teaching_node import TeachingNode
from mbs_dynamics.timeseries import TimeSeries

pytestmark = pytest.mark.usefixtures("ros")

TEXT = robot_path("arm7").read_text("utf-8")
JOINTS = [f"joint{k}" for k in range(1, 8)]
Q = np.array([0.3, 0.5, -0.2, 1.1, 0.1, 0.7, 0.1])


def test_without_scipy_it_refuses_to_start_and_names_the_package():
    """And does not end when a recording does."""
    program = "import sys; sys.modules['scipy'] = None; from mbs_dynamics.ros import teaching_node"
    ended = run_python(f"{program}; sys.exit(teaching_node.main())")
    assert ended.returncode == 1
    (line,) = (x for x in ended.stderr.splitlines() if "teaching_node" in x)  # not of middleware
    assert "cannot start" in line
    assert "python3-scipy" in line


class Taught:
    """A node in this process, whose joints are where the test says, and what it sends."""

    def __init__(self, path, text=TEXT, **values):
        given = {"file": str(path / "taught.npz")} | values
        overrides = [Parameter(name, value=value) for name, value in given.items()]
        self.node = TeachingNode(namespace="taught", parameter_overrides=overrides)
        self.sent, self.subscribers = {}, 1
        for name, (_, joints) in self.node._topics.items():
            self.node._topics[name] = self._publisher(name), joints
        self.node._describe(text)
        self.t = 100.0

    def _publisher(self, name):
        return SimpleNamespace(
            publish=lambda message: self.sent.__setitem__(name, message),
            get_subscription_count=lambda: self.subscribers,
        )

    def at(self, names, q):
        message = JointState(name=list(names), position=[float(x) for x in q])
        stamp = divmod(round(1e9 * self.t), 10**9)
        message.header.stamp.sec, message.header.stamp.nanosec = stamp
        self.node._on_joint_states(message)

    def wave(self, *parts, seconds=3.0):
        """Let joints wave for some seconds, each part in messages of its own."""
        for y in np.linspace(0.0, 1.0, round(100 * seconds)):
            self.t += 0.01
            for names in parts or (JOINTS,):
                rows = [JOINTS.index(name) if name in JOINTS else 0 for name in names]
                self.at(names, (Q + 0.2 * np.sin(np.pi * y) ** 2)[rows])

    def ask(self, service, data=None):
        """Return whether a service succeeds, and its answer."""
        (serve,) = (x for x in self.node.services if x.service_name.endswith(f"/{service}"))
        answer = serve.callback(SimpleNamespace(data=data), SimpleNamespace())
        return answer.success, answer.message

    def record(self, *parts, **how):
        assert self.ask("record", True)[0]
        self.wave(*parts, **how)
        return self.ask("record", False)


@pytest.fixture
def taught(tmp_path):
    made = []

    def make(**values):
        made.append(Taught(tmp_path, **values))
        return made[-1]

    yield make
    for one in made:
        one.node.destroy_node()


def points(message):
    """Return names, times, positions and velocities of a message."""
    due = [x.time_from_start.sec + 1e-9 * x.time_from_start.nanosec for x in message.points]
    rows = [[list(getattr(x, k)) for x in message.points] for k in ("positions", "velocities")]
    return message.joint_names, np.array(due), *map(np.array, rows)


def test_parts_in_messages_of_their_own_are_recorded_and_sent_to_topics_of_their_own(taught):
    topics = {"a/trajectory": JOINTS[:6], "gripper/joint_trajectory": ["joint7"]}
    one = taught(trajectory_topic="a/trajectory", other_topics=["gripper/joint_trajectory: joint7"])
    success, said = one.record(["wheel", *JOINTS[:3]], JOINTS[3:])
    assert success, said
    recording = TimeSeries.read(one.node._settings.file)
    assert (sorted(recording.joints), len(recording.t)) == (JOINTS, 300)
    one.at(JOINTS, Q - 0.3)
    success, said = one.ask("play")
    assert success, said
    for topic, names in topics.items():
        found, due, q, qd = points(one.sent[topic])
        assert found == names
        rows = [JOINTS.index(name) for name in names]
        assert due[0] == pytest.approx(1.875 * 0.3 / 0.3, abs=0.02)  # 0.3 rad at 0.3 rad/s
        assert due[-1] - due[0] == pytest.approx(2.99 + 0.4, abs=0.01)
        np.testing.assert_allclose(q[[0, -1]], [Q[rows]] * 2, atol=0.003)
        np.testing.assert_allclose(q.max(axis=0), Q[rows] + 0.2, atol=0.02)
        assert not qd[[0, -1]].any()


def test_the_speed_is_that_of_the_parameter_and_the_load_counts(taught):
    one = taught()
    assert one.record()[0]
    lengths = {}
    for speed in (1.0, 2.0, 0.0):
        one.node.set_parameters([Parameter("speed", value=speed)])
        assert one.ask("play")[0]
        _, due, *_ = points(one.sent["impedance_control_node/trajectory"])
        lengths[speed] = due[-1] - due[0]
    assert lengths[1.0] == pytest.approx(2.0 * lengths[2.0])
    assert lengths[0.0] < lengths[2.0]
    load = InertiaStamped()
    load.header.frame_id, load.inertia.m = "tool", 30.0
    one.node._on_payload(load)
    success, said = one.ask("play")
    assert (success, "joint" in said) == (False, True)


def test_a_wrapped_angle_is_sent_in_the_turn_of_the_joint(taught):
    one = taught(text=TEXT.replace('type="revolute"', 'type="continuous"'))
    assert one.record()[0]
    turns = np.array([2.0 * np.pi, 0, 0, 0, 0, 0, -2.0 * np.pi])
    one.at(JOINTS, Q + turns)
    assert one.ask("play")[0]
    _, _, q, _ = points(one.sent["impedance_control_node/trajectory"])
    np.testing.assert_allclose(q[0] - Q, turns, atol=0.003)


def test_what_cannot_be_played_is_refused_with_the_reason_and_nothing_is_sent(taught, tmp_path):
    one = taught()
    refused = {}
    refused["no recording"] = one.ask("play"), "there is no file"
    refused["none begun"] = one.ask("record", False), "no joint_states"
    refused["a joint never reported"] = one.record(JOINTS[:6]), "joint7"
    refused["too short"] = one.record(seconds=0.3), "at least 0.5 s"
    assert not (tmp_path / "taught.npz").exists()
    assert one.record()[0]
    one.ask("record", True)
    refused["while recording"] = one.ask("play"), "is going on"
    one.wave(seconds=0.1)
    refused["recorded for an instant"] = one.ask("record", False), "at least 0.5 s"
    one.subscribers = 0
    refused["no subscriber"] = one.ask("play"), "impedance_control_node/trajectory"
    one.subscribers = 1
    np.savez(tmp_path / "taught.npz", joints=["elbow"], t=np.arange(9.0), q=np.ones((9, 1)))
    refused["another robot"] = one.ask("play"), "elbow"
    one.node.set_parameters([Parameter("file", value=str(tmp_path / "no" / "taught.npz"))])
    refused["no folder"] = one.record(), "cannot be written"
    for case, ((success, said), why) in refused.items():
        assert (case, success) == (case, False)
        assert why in said, case
    assert not one.sent


@pytest.mark.slow  # recording and playing have quick tests of their own
def test_a_simulated_arm_floats_is_taught_and_plays_over_dds(ros, tmp_path):
    file = tmp_path / "pushed.npz"
    with (
        SimulatorProcess(rate=250.0, publish_clock=True, **DAMPED) as simulator,
        Watcher(simulator) as arm,
        ExitStack() as nodes,
    ):
        namespace = simulator.namespace
        # the clock of the simulation, so that load does not decide which stiffness is accepted
        given = READY | {"command_topic": simulator.topic, "mode": "floating", "use_sim_time": True}
        given |= {f"stiffness.{name}": 0.5 if name > "joint4" else 25.0 for name in JOINTS}
        arm.node.destroy_publisher(arm.commands)
        control, teaching = (
            nodes.enter_context(Probe(nodes.enter_context(one), beside=arm))
            for one in (
                NodeProcess("impedance_control_node", namespace=namespace, **given),
                NodeProcess("teaching_node", namespace=namespace, file=file, use_sim_time=True),
            )
        )
        on, off = (SetBool.Request(data=data) for data in (True, False))

        def near(q, within=0.05):
            return abs(arm.q - q)[:4].max() < within

        def pushed(force):
            q = arm.q
            arm.until(lambda: not near(q, 0.2), lambda: arm.push("link4", [0.0, force, force]))
            arm.rests()

        def taught():  # once no states are lost while this machine is busy
            teaching.processed()
            teaching.until(lambda: teaching.call(SetBool, "record", on, once=True).success)
            takes.append(arm.q)
            arm.lasts(0.3)
            pushed(8.0 if len(takes) % 2 else -8.0)  # back again, or it ends at its limits
            teaching.processed()
            return teaching.call(SetBool, "record", off, once=True).success

        takes = []
        """Postures at which recordings began."""
        control.until(lambda: control.call(SetBool, "enable", on, once=True).success)
        arm.until(lambda: "brakes are released" in simulator.log)
        arm.rests()
        teaching.until(taught)
        recording = TimeSeries.read(file)
        way = recording.q[:, [recording.joints.index(name) for name in JOINTS]]
        seen = np.array([state.position for state in arm.states])
        for q in way[[0, -1]]:  # an arm that floats drifts, and the node may lag behind
            assert np.abs(seen - q).max(axis=1).min() < 0.005
        assert np.abs(way[-1] - way[0])[:4].max() > 0.15
        pushed(-8.0 if len(takes) % 2 else 8.0)
        control.until(lambda: control.set(mode="joint") == "")
        said = teaching.call(Trigger, "play", Trigger.Request(), once=True)
        assert said.success, said.message
        control.until(lambda: control.call(SetBool, "pause", on, once=True).success)
        arm.rests()
        assert "the trajectory has ended" not in control.target.log
        assert not near(way[-1])
        assert control.call(SetBool, "pause", off, once=True).success
        control.until(lambda: "the trajectory has ended" in control.target.log)
        arm.until(lambda: near(way[-1]))
        arm.rests()
        assert near(way[-1])
        assert control.call(Trigger, "stop", Trigger.Request()).success
        assert not control.call(SetBool, "pause", on, once=True).success
