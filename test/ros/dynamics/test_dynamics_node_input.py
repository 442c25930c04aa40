# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Messages that the dynamics node answers, rejects, counts or warns of.

Its time, publishers and subscriptions are replaced; no message is sent.
"""

import re

import pytest

pytest.importorskip("rclpy")

from types import SimpleNamespace

import numpy as np
import yaml
from builtin_interfaces.msg import Duration
from diagnostic_msgs.msg import DiagnosticStatus
from geometry_msgs.msg import InertiaStamped
from rclpy.parameter import Parameter
from ros_bench import wrench_of
from sensor_msgs.msg import Imu, JointState
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

import mbs_dynamics as mbs
from mbs_dynamics.compiler import BACKENDS
from mbs_dynamics.control import PositionArm
from mbs_dynamics.control.joint_states import Rejection
from mbs_dynamics.errors import ArgumentError, MbsError
from mbs_dynamics.resources import robot_path
from mbs_dynamics.ros.dynamics.feed_forward import desired_points, desired_state
from mbs_dynamics.ros.dynamics.interface import DynamicsSettings
from mbs_dynamics.ros.dynamics.robot import Robot
from mbs_dynamics.ros.dynamics_node import DynamicsNode
from mbs_dynamics.ros.messages import stamp_of, time_of
from mbs_dynamics.ros.performance import InputStatistics

pytestmark = pytest.mark.usefixtures("ros")

OK, WARN, ERROR = DiagnosticStatus.OK, DiagnosticStatus.WARN, DiagnosticStatus.ERROR
MODEL = mbs.Model.from_urdf(robot_path("arm7"))
JOINTS = MODEL.joint_names
Q = np.array([0.3, -0.5, 0.7, -1.1, 0.2, 0.9, -0.4])
QD = np.array([0.5, -0.2, 0.8, -1.0, 1.5, -0.7, 0.3])
SECOND = 10**9


class IsolatedNode(DynamicsNode):
    """The node with a function in place of publishers, and a clock that the test advances."""

    def __init__(self, write, **options):
        self.now, self.write = 100 * SECOND, write
        super().__init__(**options)

    def steady_time(self):
        return 1e-9 * self.now

    def stamp_now(self):
        return time_of(self.now)

    def advertise(self, declared, name=""):
        topic = name or declared
        return SimpleNamespace(
            publish=lambda one: self.write(self.resolve_topic_name(topic), one),
            get_subscription_count=lambda: 1,
        )

    def destroy_publisher(self, publisher):
        return isinstance(publisher, SimpleNamespace) or super().destroy_publisher(publisher)


class Bench:
    """The node, what it publishes, and a clock that a message advances by 10 ms."""

    def __init__(self, **values):
        self.published = {}
        given = {"robot_description": str(robot_path("arm7"))} | values
        overrides = [Parameter(name, value=value) for name, value in given.items()]
        self.node = IsolatedNode(self.write, namespace="input", parameter_overrides=overrides)
        assert self.node.start()

    def write(self, topic, message):
        short = topic.removeprefix("/input/").removeprefix("dynamics_node/")
        self.published.setdefault(short, []).append(message)

    def receive(self, topic, message):
        full = f"/input/{topic}"
        (subscription,) = (x for x in self.node.subscriptions if x.topic_name == full)
        subscription.callback(message)

    def send(self, q=Q, qd=QD, names=JOINTS, stamp=None, pause=SECOND // 100, efforts=()):
        """Send a state; return the topics on which it was answered."""
        self.node.now += pause
        self.published.clear()
        message = JointState(name=list(names), position=list(q), velocity=list(qd))
        message.effort = list(efforts)
        message.header.stamp = time_of(self.node.now if stamp is None else stamp)
        self.receive("joint_states", message)
        return set(self.published)

    def set(self, **values):
        given = [Parameter(name, value=value) for name, value in values.items()]
        assert self.node.set_parameters_atomically(given).successful

    def status(self, part):
        """Return level, message and values of the diagnostics."""
        self.node._publish_diagnostics()
        (latest,) = self.published.pop("/diagnostics")
        (one,) = (one for one in latest.status if one.name.endswith(f": {part}"))
        return one.level, one.message, {pair.key: pair.value for pair in one.values}

    def torques(self, name="gravity_torques"):
        return self.published[name][-1].effort


@pytest.fixture
def asked(ros):
    """Return a function that makes nodes with these parameters."""
    made = []

    def make(**values):
        made.append(Bench(**values))
        return made[-1]

    yield make
    for one in made:
        one.node.destroy_node()


ALL = {"gravity_torques", "bias_torques", "twist/tool", "jacobian/tool"}


def test_a_state_is_answered_with_its_stamp_and_the_diagnostics_say_by_what(asked):
    bench = asked()
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
    level, _, values = bench.status("input")
    assert (level, values["lifecycle state"], values["answered"]) == (OK, "active", "2")


NAN_AT_4 = np.where(np.arange(7) == 3, np.nan, Q)


@pytest.mark.parametrize(
    ("kind", "change", "named"),
    [
        ("not_finite", {"q": NAN_AT_4}, "joint4 = nan"),
        ("time_backwards", {"stamp": SECOND}, "99.01"),
    ],
)
def test_bad_states_are_rejected_and_named(asked, capfd, kind, change, named):
    bench = asked()
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


def test_repeated_silent_and_partial_states_are_not_answered(asked):
    bench = asked()
    bench.send()
    assert bench.send(2.0 * Q, stamp=bench.node.now) == set()
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
def test_absent_velocities_are_not_taken_for_zero(asked, velocities):
    bench = asked()
    assert bench.send(qd=velocities) == {"gravity_torques", "jacobian/tool"}
    level, message, _ = bench.status("input")
    assert level == WARN
    assert "bias torques and twists" in message
    bench.set(velocity_from_position=True)
    bench.send(qd=velocities)
    assert bench.send(Q + 0.01 * QD, velocities) == ALL
    expected = mbs.bias_torques(MODEL, Q + 0.01 * QD, QD)
    np.testing.assert_allclose(bench.torques("bias_torques"), expected, rtol=1e-9)


def test_the_rate_of_answers_is_limited(asked):
    bench = asked(max_rate=20.0)
    answered = sum(bool(bench.send()) for _ in range(100))  # a second
    assert answered == pytest.approx(20, abs=1)
    assert bench.status("input")[2]["answered"] == str(answered)
    bench.set(max_rate=0.0)
    assert all(bench.send() >= ALL for _ in range(100))


def test_frames_have_their_prefix_and_follow_the_representation(asked):
    """And a payload, by the frame of TF or by the link, adds to a load that is always there.

    Gravity and outputs change at run time as well.
    """
    publish = ["gravity_torques", "twists", "center_of_mass"]
    given = {"loads.tool": [1.5, 0.0, 0.02, 0.05], "bodies": ["tool"], "publish": publish}
    bench = asked(frame_prefix="left/", **given)
    for representation in ("hybrid", "body_fixed", "spatial"):
        bench.set(representation=representation)
        bench.send()
        resolved = "left/tool" if representation == "body_fixed" else "left/base_link"
        frames = {x: bench.published[x][0].header.frame_id for x in bench.published}
        assert frames["twist/tool"] == resolved
        assert frames["center_of_mass"] == "left/base_link"
        assert frames["gravity_torques"] == "left/base_link"  # for the Effort display of RViz
    model = MODEL.with_payload("tool", 1.5, (0.0, 0.02, 0.05)).loaded()
    for frame, mass in (("left/tool", 0.5), ("tool", 0.7)):
        message = InertiaStamped()
        message.header.frame_id, message.inertia.m = frame, mass
        bench.receive("dynamics_node/payload", message)
        bench.send()
        heavier = model.with_payload("tool", mass)
        np.testing.assert_allclose(bench.torques(), mbs.gravity_torques(heavier, Q), rtol=1e-11)
    message.inertia.m = -1.0  # refused, and the one before stays
    bench.receive("dynamics_node/payload", message)
    bench.set(gravity=[1.0, 2.0, -3.0], publish=["gravity_torques", "twists"], bodies=["link7"])
    assert bench.send() == {"gravity_torques", "twist/link7"}
    expected = mbs.gravity_torques(heavier.with_gravity((1.0, 2.0, -3.0)), Q)
    np.testing.assert_allclose(bench.torques(), expected, rtol=1e-11)


def test_a_push_shows_and_joints_without_effort_are_said(asked):
    wanted = {"publish": ["external_torques", "tool_wrench"], "bodies": ["tool"]}
    bench, push = asked(observer_gain=100.0, **wanted), np.array([0.3, -0.2, 0.5, 10.0, -6.0, 4.0])
    external = mbs.jacobian(MODEL, Q, "tool", representation="body_fixed").T @ push
    held = mbs.gravity_torques(MODEL, Q) - external  # what the drives exert in equilibrium
    for _ in range(50):
        bench.send(qd=np.zeros(7), efforts=held)
    (torques,), (wrench,) = (bench.published[x] for x in ("external_torques", "tool_wrench"))
    assert tuple(torques.name) == JOINTS
    np.testing.assert_allclose(torques.effort, external, atol=1e-6)
    assert wrench.header.frame_id == "tool"
    np.testing.assert_allclose(wrench_of(wrench), np.roll(push, 3), atol=1e-3)
    assert bench.status("effort")[0] == OK
    bench.send(qd=np.zeros(7), efforts=np.where(np.arange(7) == 4, np.nan, held))
    assert tuple(bench.published["external_torques"][0].name) == (*JOINTS[:4], *JOINTS[5:])
    assert "joint5" in bench.status("effort")[1]


def test_desired_points_and_trajectories_are_answered_and_malformed_ones_refused(asked):
    bench, qdd = asked(publish=["desired_torques"]), np.linspace(1.0, -1.0, 7)

    def point(q=Q, qd=QD, qdd=qdd):
        values = {"positions": q, "velocities": qd, "accelerations": qdd}
        return JointTrajectoryPoint(**{k: list(map(float, x)) for k, x in values.items()})

    def torques():
        return bench.published.pop("desired_torques", [None])[0]

    bench.receive("dynamics_node/desired", point())
    tau = mbs.inverse_dynamics(MODEL, Q, QD, qdd)
    np.testing.assert_allclose(torques().effort, tau, rtol=1e-12)
    order = [6, *range(6)]
    planned = [point((s * Q)[order], QD[order], ()) for s in (1.0, 0.5)]
    trajectory = JointTrajectory(joint_names=[JOINTS[k] for k in order], points=planned)
    bench.receive("dynamics_node/desired_trajectory", trajectory)
    (answer,) = bench.published["desired_trajectory_torques"]
    for one, s in zip(answer.points, (1.0, 0.5), strict=True):
        expected = mbs.bias_torques(MODEL, s * Q, QD)[order]
        np.testing.assert_allclose(one.effort, expected, rtol=1e-12)
    bench.receive("dynamics_node/desired", point(q=Q[:-1]))
    assert torques() is None
    level, message, _ = bench.status("model")
    assert level == WARN
    assert "desired refused: point 0: 7 desired joints but 6 position value(s)" in message
    bench.receive("dynamics_node/desired", point())
    assert bench.status("model")[0] == OK


def servos_of(names, tmp_path):
    """Return the path of servos of 50 N m/rad, as mbs-dynamics identify writes them."""
    servo = {"stiffness": 50.0, "damping": 0.5, "friction": 0.2, "offset": 0.001}
    path = tmp_path / "servos.yaml"
    path.write_text(yaml.safe_dump({"servos": {name: dict(servo) for name in names}}))
    return str(path)


def test_servo_goals_lead_a_trajectory_more_and_more_and_are_limited_and_reported(
    asked, tmp_path, capfd
):
    file = servos_of(JOINTS, tmp_path)
    bench = asked(publish=[""], servos_file=file, **{"loads.link7": [1.0, 0.0, 0.0, 0.0]})
    arm = PositionArm.read(file, MODEL.with_payload("link7", 1.0))
    q, qd = np.linspace(-0.4, 0.5, 7), np.full(7, 0.3)
    state = {"positions": q, "velocities": qd, "accelerations": 0.0 * q}
    points = [JointTrajectoryPoint(**state, time_from_start=Duration(sec=k)) for k in range(3)]
    trajectory = JointTrajectory(joint_names=JOINTS, points=points)
    bench.receive("dynamics_node/desired_trajectory", trajectory)
    (answer,) = bench.published["servo_trajectory"]
    assert tuple(answer.joint_names) == JOINTS
    for point, share in zip(answer.points, (0.0, 1.0, 1.0), strict=True):
        np.testing.assert_allclose(point.positions, arm.goals(q, qd, share=share), atol=1e-12)
        assert list(point.velocities) == qd.tolist()
        assert len(point.effort) == 0
    for _ in range(2):
        bench.node.now += 2 * SECOND
        outstretched = [0.0, 1.5, 0.0, 0.0, 0.0, 0.0, 0.0]
        bench.receive("dynamics_node/desired", JointTrajectoryPoint(positions=outstretched))
    assert bench.published["servo_goals"][-1].data[1] == pytest.approx(1.2)
    assert "the servos of joint2" in capfd.readouterr().err


def test_servo_goals_need_the_servos_of_all_joints(tmp_path):
    with pytest.raises(ArgumentError, match="servos_file"):
        DynamicsSettings(servos_file="servos.yaml", floating_base=True)
    with pytest.raises(ArgumentError, match=r"servos_file.*joint7"):
        Robot(MODEL, DynamicsSettings(servos_file=servos_of(["joint1"], tmp_path)))


def test_a_floating_base_comes_from_an_inertial_sensor_and_from_odometry(asked):
    Odometry = pytest.importorskip("nav_msgs.msg").Odometry
    bench = asked(floating_base=True)
    model = mbs.Model.from_urdf(robot_path("arm7"), floating_base=True)
    x = np.array([0.1, -0.7, 0.3, 0.5]) / np.linalg.norm([0.1, -0.7, 0.3, 0.5])
    p, V = np.array([1.0, -2.0, 0.5]), np.array([0.3, -0.1, 0.2, 0.5, -0.4, 0.6])

    def put(numbers, message):
        for name, number in zip("xyzw", numbers, strict=False):
            setattr(message, name, float(number))

    imu, odometry = Imu(), Odometry(child_frame_id=model.body_names[0])
    put(x, imu.orientation)
    put(V[:3], imu.angular_velocity)
    odometry.header.frame_id = "odom"
    put(p, odometry.pose.pose.position)
    put(x, odometry.pose.pose.orientation)
    put(V[:3], odometry.twist.twist.angular)
    put(V[3:], odometry.twist.twist.linear)
    for topic, message, v in (("imu", imu, [*V[:3], 0.0, 0.0, 0.0]), ("odom", odometry, V)):
        bench.receive(topic, message)
        bench.send()
        (wrench,), (torques,) = (bench.published[x] for x in ("base_wrench", "bias_torques"))
        found = [*np.roll(wrench_of(wrench), 3), *torques.effort]
        expected = mbs.bias_torques(model, [*p, *x, *Q], [*v, *QD])
        np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-11)
    assert tuple(torques.name) == JOINTS
    assert wrench.header.frame_id == model.body_names[0]


BOTH = ("a", "b"), ("a", "b")
SOME = ("c", "a"), ("a", "b", "c")
MEASURED = np.array([7.0, 8.0, 9.0])


def point_of(positions, velocities=(), accelerations=(), effort=()):
    given = {"positions": positions, "velocities": velocities, "accelerations": accelerations}
    return JointTrajectoryPoint(**{k: list(x) for k, x in given.items()}, effort=list(effort))


def test_other_joints_stand_where_they_were_measured():
    point = point_of([1.0, 2.0], [3.0, 4.0], [5.0, 6.0])
    state = desired_state(point, *SOME, MEASURED)
    assert state.tolist() == [[2.0, 8.0, 1.0], [4.0, 0.0, 3.0], [6.0, 0.0, 5.0]]
    assert MEASURED.tolist() == [7.0, 8.0, 9.0]
    with pytest.raises(ArgumentError, match="no fresh joint_states of the other joints: b"):
        desired_state(point_of([1.0, 2.0]), *SOME, None)


@pytest.mark.parametrize(
    ("point", "said"),
    [
        (([],), "2 desired joints but 0 position value(s)"),
        (([1.0, 2.0], [1.0]), "but 1 velocity value(s)"),
        (([1.0, 2.0], [], [1.0, 2.0]), "accelerations but no velocities"),
        (([1.0, 2.0], [1.0, 2.0], [3.0]), "but 1 acceleration value"),
        (([1.0, 2.0], [1.0, 2.0], [np.inf, 0.0]), "desired acceleration is not finite"),
        (([1e10, 0.0],), "desired position is too large to be true: a ="),
        (([1.0, 2.0], [], [], [1.0, 2.0]), "the point has efforts"),
    ],
)
def test_malformed_points_are_refused(point, said):
    with pytest.raises(ArgumentError, match=re.escape(said)):
        desired_state(point_of(*point), *BOTH, None)


@pytest.mark.parametrize(
    ("names", "points", "said"),
    [
        (("elbow",), [[0.1]], "no joint 'elbow'"),
        (("joint2",) * 2, [[0.1, 0.2]], "twice: joint2"),
        (("joint2",), [], "no points"),
        (("joint2",), [[0.1], [np.nan]], "point 1: desired position is not finite"),
    ],
)
def test_bad_trajectories_are_refused_as_a_whole(names, points, said):
    robot = Robot(MODEL, DynamicsSettings(publish=("desired_torques",)))
    with pytest.raises(MbsError, match=said):
        desired_points(robot, names, [point_of(q) for q in points], np.zeros(7))


def test_counts_and_rates():
    counts = InputStatistics(now=100.0)
    empty = counts.report(101.0)
    assert (empty.rate, empty.rejected) == (0.0, 0)
    for k, took in enumerate((0.1, 0.3, 0.2)):
        begin = 101.0 + 0.5 * k
        counts.answered(begin, begin + took)
    counts.rejected(Rejection("not_finite", "elbow = nan"))
    counts.rejected(Rejection("incomplete_joints", "elbow"))
    counts.skipped(102.5)
    report = counts.report(103.0)
    assert report.rate == pytest.approx(1.5)
    assert report.rejected == 2
    assert report.values == {
        "rate [Hz]": "1.5",
        "answered": 3,
        "rejected": 2,
        "last rejection": "elbow",
        "rejected: incomplete_joints": 1,
        "rejected: not_finite": 1,
        "latency max [ms]": "300.0000",
    }
    after = counts.report(104.0)
    assert (after.rate, after.rejected) == (0.0, 0)
    assert (after.values["answered"], after.values["rejected"]) == (3, 2)
    assert after.values["latency max [ms]"] == "0.0000"


def test_stale_only_while_messages_are_expected():
    counts = InputStatistics(now=0.0)
    assert counts.stale_for(100.0, 0.5) is None
    counts.wait(100.0)
    assert counts.stale_for(100.5, 0.5) is None
    assert counts.stale_for(101.0, 0.5) == pytest.approx(1.0)
    counts.answered(101.0, 101.0)
    assert counts.stale_for(101.4, 0.5) is None
    counts.skipped(101.8)
    assert counts.stale_for(102.2, 0.5) is None
    assert counts.stale_for(102.8, 0.5) == pytest.approx(1.0)
    counts.wait(103.0)
    assert counts.stale_for(103.2, 0.5) is None
    counts.wait(None)
    assert counts.stale_for(200.0, 0.5) is None
