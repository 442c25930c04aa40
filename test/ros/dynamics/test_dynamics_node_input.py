# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The dynamics node over DDS: bad input never becomes a torque, and is said by name."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("rclpy")

from diagnostic_msgs.msg import DiagnosticStatus
from ros_bench import NodeProcess, Probe

import mbs_dynamics as mbs
from mbs_dynamics.compiler import BACKENDS, way_of_calling
from mbs_dynamics.resources import robot_path

pytestmark = pytest.mark.usefixtures("ros")

MODEL = mbs.Model.from_urdf(robot_path("arm7"))
JOINTS = MODEL.joint_names
TORQUES = ["gravity_torques", "bias_torques"]
Q = np.array([0.3, -0.5, 0.7, -1.1, 0.2, 0.9, -0.4])
QD = np.array([0.5, -0.2, 0.8, -1.0, 1.5, -0.7, 0.3])
NAN_AT_4 = np.where(np.arange(7) == 3, np.nan, Q)
INF_AT_1 = np.where(np.arange(7) == 0, np.inf, QD)


@pytest.fixture(scope="module")
def arm(ros):
    """Start a node with the arm in force, for tests that leave it as they find it."""
    with NodeProcess(robot_description_file=robot_path("arm7")) as process, Probe(process) as probe:
        probe.hear(*TORQUES, "twist/tool", "jacobian/tool")
        probe.answer(TORQUES, JOINTS, Q, QD)
        yield probe


@pytest.mark.parametrize(
    ("kind", "names", "positions", "velocities", "said"),
    [
        ("duplicate_joints", (*JOINTS, "joint2"), (*Q, 1.0), (*QD, 0.0), "more than once: joint2"),
        ("position_length", JOINTS, Q[:-1], QD, "7 joint names but 6 position value(s)"),
        ("velocity_length", JOINTS, Q, QD[:-1], "7 joint names but 6 velocity value(s)"),
        ("not_finite", JOINTS, NAN_AT_4, QD, "position is not finite: joint4 = nan"),
        ("not_finite", JOINTS, Q, INF_AT_1, "velocity is not finite: joint1 = inf"),
        ("no_joints", ("wheel",), (1.0,), (), "none of the robot's joints is in the message"),
        ("no_joints", (), (), (), "it holds no names at all"),
        ("too_large", JOINTS, Q, 1e200 * QD, "too large to be true: joint5 = 1.5e+200"),
    ],
)
def test_bad_input_is_rejected(arm, kind, names, positions, velocities, said):
    arm.quiet()
    before = arm.rejected(kind)
    arm.until(
        lambda: arm.rejected(kind) > before and said in (arm.input_value("last rejection") or ""),
        again=lambda: arm.send(names, positions, velocities),
    )
    assert arm.latest == {}
    assert "joint_states rejected: " in arm.target.log
    assert arm.level("input") != DiagnosticStatus.OK
    (tau,) = arm.answer(TORQUES[:1], JOINTS, Q, QD)
    np.testing.assert_allclose(tau.effort, mbs.gravity_torques(MODEL, Q), rtol=1e-12, atol=1e-12)


def test_each_reason_is_logged_and_the_latest_refused_payload_stands_until_one_is_accepted(arm):
    refused = {"rope": "no body 'rope'", "tool": "mass", "": "a payload must name the link"}
    for link, why in refused.items():
        arm.payload(link, -1.0 if link == "tool" else 1.0)
        arm.until(lambda why=why: why in (arm.model_value("refused payload") or ""))
        arm.until(lambda why=why: why in arm.target.log.split("payload refused")[-1])
        assert (arm.level("model"), why in arm.said("model")) == (DiagnosticStatus.WARN, True)
    arm.payload("tool", 0.0)
    arm.until(lambda: arm.level("model") == DiagnosticStatus.OK)
    assert arm.model_value("refused payload") is None


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
        own.hear(*TORQUES)
        own.answer(TORQUES, JOINTS, Q, QD)
        own.until(lambda: "input" in own.health)
        assert 0 < len(process.log) < 200_000
        sizes = [len(str(status)) for status in own.health.values()]
        assert max(sizes) < 20_000


def test_joints_in_several_messages_are_one_robot(arm):
    arm.quiet()
    arm.spin(0.01)
    expected = mbs.bias_torques(MODEL, Q, QD)
    count, before = 0, arm.rejected("time_backwards")

    def split():
        nonlocal count
        count += 1
        first = arm.send(JOINTS[2::-1], Q[2::-1], QD[2::-1]).header.stamp
        late = 10**9 * first.sec + first.nanosec - 3_000_000  # behind the others' stamps
        arm.send(("wheel", *JOINTS[3:6]), (9.0, *Q[3:6]), (9.0, *QD[3:6]), stamp=late)
        if count % 4 == 1:
            arm.send(JOINTS[6:], Q[6:], QD[6:])

    arm.until(lambda: count >= 10 and TORQUES[1] in arm.latest, again=split)
    np.testing.assert_allclose(arm.latest[TORQUES[1]].effort, expected, rtol=1e-12, atol=1e-12)
    arm.until(lambda: arm.level("input") == DiagnosticStatus.OK, again=split)
    assert arm.input_value("joints not fresh") == "none"
    assert arm.rejected("time_backwards") == before


def test_a_driver_that_stops_is_named(arm):
    arm.answer(TORQUES[:1], JOINTS, Q, QD)
    arm.until(
        lambda: "joint6 for" in arm.said("input"),
        again=lambda: arm.send(JOINTS[:5], Q[:5] + 0.1, QD[:5]),
    )
    assert arm.level("input") != DiagnosticStatus.OK
    assert arm.rejected("incomplete_joints") > 0
    assert arm.input_value("last rejection").startswith("joints without fresh measurement: joint6")
    fresh = arm.input_value("joints not fresh")
    assert fresh.startswith("joint6 for")
    assert "joint7 for" in fresh
    assert "joint5" not in fresh
    assert "joint_states rejected: joints without fresh measurement: " in arm.target.log
    arm.latest.clear()
    arm.send(JOINTS[5:], Q[5:], QD[5:])  # one message of the others is enough
    arm.until(
        lambda: TORQUES[0] in arm.latest,
        again=lambda: arm.send(JOINTS[5:], Q[5:], QD[5:]),
    )
    there = np.where(np.arange(7) < 5, Q + 0.1, Q)
    np.testing.assert_allclose(
        arm.latest[TORQUES[0]].effort, mbs.gravity_torques(MODEL, there), rtol=1e-12, atol=1e-12
    )


def test_joints_that_nobody_reports_are_fixed(ros):
    there = np.where(np.arange(7) < 5, Q, (0.0, 0.0, 0.0, 0.0, 0.0, 0.4, -0.2))
    fixed = {"fixed_joints": "[joint7, joint6]", "fixed_positions": "[-0.2, 0.4]"}
    with (
        NodeProcess(robot_description_file=robot_path("arm7"), **fixed) as process,
        Probe(process) as probe,
    ):
        probe.hear(*TORQUES)
        (tau,) = probe.answer(TORQUES[:1], JOINTS[:5], Q[:5], QD[:5])
    expected = mbs.gravity_torques(MODEL, there)
    np.testing.assert_allclose(tau.effort, expected, rtol=1e-12, atol=1e-12)


def test_the_same_measurement_again_is_not_answered(arm):
    def twice():
        arm.send(JOINTS, Q, QD)
        arm.send(JOINTS, 2.0 * Q, QD, stamp=arm.latest_stamp)

    arm.until(lambda: int(arm.input_value("repeated stamps") or 0) > 10, again=twice)
    expected = mbs.gravity_torques(MODEL, Q)
    np.testing.assert_allclose(arm.latest[TORQUES[0]].effort, expected, rtol=1e-12, atol=1e-12)
    stamp = arm.latest_stamp
    arm.quiet()
    arm.until(
        lambda: "the time stamp of this message did not advance" in arm.said("input"),
        again=lambda: arm.send(JOINTS, Q, QD, stamp=stamp),
    )
    assert arm.said("input").startswith("stale: ")
    assert arm.latest == {}
    arm.answer(TORQUES[:1], JOINTS, Q, QD)


def test_log_lines_about_bad_input_are_throttled(arm):
    arm.quiet()
    before, total = arm.target.log.count("not finite"), arm.rejected("not_finite")
    arm.until(
        lambda: arm.rejected("not_finite") >= total + 20,
        again=lambda: arm.send(JOINTS, NAN_AT_4, QD),
        every=0.01,
    )
    assert arm.target.log.count("not finite") - before < 10


def test_time_that_goes_backwards_is_rejected(arm):
    arm.quiet()
    assert arm.set(stale_timeout=60.0) == ""
    before = arm.rejected("time_backwards")

    def alternate():
        sent = arm.send(JOINTS, Q, QD)
        late = 10**9 * sent.header.stamp.sec + sent.header.stamp.nanosec - 10**7
        arm.send(JOINTS, 2.0 * Q, QD, stamp=late)

    arm.until(lambda: arm.rejected("time_backwards") > before, again=alternate)
    np.testing.assert_allclose(
        arm.latest["gravity_torques"].effort, mbs.gravity_torques(MODEL, Q), rtol=1e-12, atol=1e-12
    )
    assert arm.set(stale_timeout=0.5) == ""


def test_time_starts_anew_after_a_pause(arm):
    for start in (10**18, 10**17):
        arm.spin(0.6)  # longer than stale_timeout, without a message
        arm.latest.clear()
        arm.send(JOINTS, Q, QD, stamp=start)
        arm.until(lambda: "gravity_torques" in arm.latest)
        assert arm.latest["gravity_torques"].header.stamp.sec == start // 10**9
    arm.spin(0.6)


def test_messages_without_stamp_get_the_time_of_reception(arm):
    arm.quiet()
    before = arm.node.get_clock().now().nanoseconds
    (tau,) = arm.answer(TORQUES[:1], JOINTS, Q, QD, stamp=0)
    after = arm.node.get_clock().now().nanoseconds
    stamp = 10**9 * tau.header.stamp.sec + tau.header.stamp.nanosec
    assert before <= stamp <= after


def test_silence_is_stale(arm):
    arm.until(lambda: arm.said("input").startswith("stale: no valid joint_states for"))
    assert arm.level("input") == DiagnosticStatus.ERROR
    arm.until(lambda: "stale: no valid joint_states" in arm.target.log)
    arm.until(
        lambda: arm.level("input") == DiagnosticStatus.OK,
        again=lambda: arm.send(JOINTS, Q, QD),
    )
    assert "valid joint_states arrive again" in arm.target.log


@pytest.mark.parametrize("velocities", [(), np.full(7, np.nan)], ids=["none", "nan"])
def test_absent_velocities_are_not_taken_for_zero(arm, velocities):
    arm.quiet()
    arm.until(
        lambda: arm.said("input").startswith("no bias torques and twists"),
        again=lambda: arm.send(JOINTS, Q, velocities),
    )
    assert arm.level("input") == DiagnosticStatus.WARN
    assert set(arm.latest) == {"gravity_torques", "jacobian/tool"}
    assert "no bias torques and twists" in arm.target.log


def test_velocities_from_positions(arm):
    assert arm.set(velocity_from_position=True) == ""
    arm.quiet()
    step = 5_000_000
    time = [arm._stamp + 10**9]

    def advance():
        time[0] += step
        arm.send(JOINTS, Q + 1e-9 * (time[0] % 10**11) * QD, stamp=time[0])

    arm.until(lambda: "bias_torques" in arm.latest, again=advance)
    arm.spin(0.3)
    bias, twist = arm.latest["bias_torques"], arm.latest["twist/tool"]
    stamp = 10**9 * bias.header.stamp.sec + bias.header.stamp.nanosec
    q = Q + 1e-9 * (stamp % 10**11) * QD
    expected = mbs.bias_torques(MODEL, q, QD)
    np.testing.assert_allclose(bias.effort, expected, rtol=1e-6, atol=1e-6)
    V = mbs.twists(MODEL, q, QD, bodies=("tool",), representation="hybrid")[0]
    v = twist.twist.linear
    np.testing.assert_allclose([v.x, v.y, v.z], V[3:], rtol=1e-6, atol=1e-6)
    assert arm.set(velocity_from_position=False) == ""
    arm.spin(0.6)


def test_max_rate_skips_messages(arm):
    arm.quiet()
    assert arm.set(max_rate=2.0) == ""
    try:
        arm.until(
            lambda: (
                int(arm.input_value("skipped by max_rate") or 0) >= 10
                and arm.level("input") == DiagnosticStatus.OK
            ),
            again=lambda: arm.send(JOINTS, Q, QD),
        )
    finally:
        assert arm.set(max_rate=0.0) == ""


def test_diagnostics_say_what_runs(arm):
    arm.answer(TORQUES, JOINTS, Q, QD)
    arm.until(
        lambda: arm.input_value("latency computed median [ms]") is not None,
        again=lambda: arm.send(JOINTS, Q, QD),
    )
    assert arm.model_value("model") == "arm7"
    assert arm.model_value("joints") == "7"
    assert arm.model_value("backend") in BACKENDS
    way = way_of_calling(arm.model_value("backend"))
    assert arm.model_value("kernels called through") == way
    assert arm.input_value("lifecycle state") == "active"
    assert float(arm.input_value("rate [Hz]")) > 0.0
    median = float(arm.input_value("latency computed median [ms]"))
    assert 0.0 < median <= float(arm.input_value("latency published max [ms]"))
    assert arm.health["model"].name == f"{arm.target.name[1:]}: model"
    assert arm.health["model"].hardware_id == "arm7"
