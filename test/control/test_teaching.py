# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Taught motions: what is refused, smoothness, limits, files, and how well an arm repeats them."""

import io
import re

import numpy as np
import pytest
from scipy.interpolate import CubicSpline

import mbs_dynamics as mbs
from mbs_dynamics import identification
from mbs_dynamics.cli import main
from mbs_dynamics.control import laws
from mbs_dynamics.control.teaching import Demonstration, Rig
from mbs_dynamics.control.trajectory import Trajectory
from mbs_dynamics.errors import MbsError
from mbs_dynamics.resources import robot_path
from mbs_dynamics.timeseries import TimeSeries
from simulated.guarded_bench import ARMATURE, MODEL, PERIOD, Loop, Q

NAMES = MODEL.joint_names
RIG = Rig(MODEL)


def hand(seed=0, seconds=8.0, rate=125.0, noise=1e-4):
    """Return times and positions of a hand that waits in the middle, and does not end at rest."""
    rng = np.random.default_rng(seed)
    way = Q + rng.uniform(-0.6, 0.6, (6, 7))
    way[3] = way[2]
    spline = CubicSpline(np.array([0.0, 0.25, 0.45, 0.55, 0.75, 1.0]) * seconds, way)
    t = np.arange(0.0, seconds, 1.0 / rate)
    return t, np.clip(spline(t), MODEL.lower, MODEL.upper) + noise * rng.normal(size=(len(t), 7))


def recorded(t, q):
    """Return a recording of all joints."""
    return TimeSeries(t, NAMES, q)


def sampled(trajectory, count=5000):
    """Return positions, velocities and accelerations (N, m) of a trajectory."""
    times = np.linspace(*trajectory.times[[0, -1]], count + 2)[1:-1]
    return np.swapaxes([trajectory.at(t) for t in times], 0, 1)


def changed(row, column, value):
    t, q = hand()
    whole = np.column_stack([t, q])
    whole[row, column] = value
    return NAMES, whole[:, 0], whole[:, 1:]


T, H = hand()
REFUSED = {
    "of another robot": ((*NAMES[:6], "elbow"), T, H, "elbow"),
    "of fewer joints": (NAMES[:6], T, H[:, :6], "joint7"),
    "a jump": (*changed(50, 3, H[50, 2] + 0.4), "'joint3' jumps"),
    "beyond the limits": (NAMES, T, H + 2.0 * np.eye(7)[1], "'joint2' is"),
    "a gap": (NAMES, T + np.where(T > 2.0, 1.0, 0.0), H, "jumps in time: it moves"),
    "too short": (NAMES, T[:40], H[:40], "40 samples"),
    "nothing taught": (NAMES, T, np.tile(Q, (len(T), 1)), "moves by"),
    "empty": (NAMES, [], np.zeros((0, 7)), "0 samples"),
    "noise": (NAMES, T, H + 0.01 * np.random.default_rng(0).normal(size=H.shape), "tolerance"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_recording_that_cannot_be_played_is_refused_by_name(case):
    names, t, q, said = REFUSED[case]
    with pytest.raises(MbsError, match=re.escape(said)):
        Demonstration(RIG, TimeSeries(t, tuple(names), q))


@pytest.mark.parametrize("seed", range(3))
def test_a_smooth_motion_is_near_the_samples_at_rest_at_its_ends_and_within_limits(seed):
    t, q = hand(seed)
    order = np.random.default_rng(seed).permutation(7)
    taught = Demonstration(RIG, TimeSeries(t, tuple(NAMES[k] for k in order), q[:, order]))
    assert taught.deviation < 0.002
    assert len(taught.knots) < len(t) / 5  # it is thinned
    ways = taught.spline(np.linspace(0.0, taught.knots[-1], 20000))
    assert max(np.abs(ways - x).max(axis=1).min() for x in q[::20]) < 0.002  # along the path
    trajectory = taught.as_taught()
    trajectory.check(MODEL)
    own = np.array([trajectory.at(x).positions for x in taught.instants[1:-1]])
    np.testing.assert_allclose(own, taught.spline(taught.instants[1:-1]), atol=1e-9)
    assert not np.any([trajectory.velocities[k] for k in (0, -1)])
    assert trajectory.duration == pytest.approx(t[-1] + 0.4)


def test_wrapped_angles_and_joints_that_stay_are_played():
    text = robot_path("arm7").read_text("utf-8")
    free = mbs.Model.from_urdf(text.replace('type="revolute"', 'type="continuous"'))
    t, q = hand()
    rig = Rig(free, ["joint1", "joint2"], fixed={"joint4": 1.0})
    q[:, 0] = 3.0 + t / 8.0
    wrapped = np.column_stack([np.remainder(q[:, 0] + np.pi, 2.0 * np.pi) - np.pi, q[:, 1:]])
    taught = Demonstration(rig, recorded(t, wrapped))
    assert np.ptp(taught.spline(taught.instants)[:, 0]) == pytest.approx(1.0, abs=0.01)
    posture = np.array([*q[0, :2], 0.0, 1.0, 0.0, 0.0, 0.0])
    held = mbs.gravity_torques(free, posture)[:2]
    np.testing.assert_allclose(rig.torques(q[:1, :2])[0], held, atol=1e-9)


def shares(rig, trajectory):
    """Return the largest shares of limits that a trajectory takes, by MuJoCo-checked dynamics."""
    q, qd, qdd = sampled(trajectory)
    tau = mbs.inverse_dynamics(rig.model, q, qd, qdd)
    tau = tau + rig.friction * np.sign(qd) + rig.damping * qd
    used = np.abs(qd) / rig.velocity, np.abs(qdd) / rig.acceleration, np.abs(tau) / rig.effort
    return np.max(used, axis=(0, 2))


WEAK = Rig(MODEL.with_payload("tool", 2.0, (0.0, 0.0, 0.1)), torque=0.45, acceleration=40.0)


@pytest.mark.parametrize("rig", [RIG, WEAK, Rig(MODEL, velocity=0.2)], ids=["arm", "load", "slow"])
@pytest.mark.parametrize("seed", range(2))
def test_the_fastest_timing_reaches_a_limit_and_a_faster_one_is_refused(rig, seed):
    taught = Demonstration(rig, recorded(*hand(seed)))
    largest, what = taught.largest_speed
    assert shares(rig, taught.as_taught(largest)).max() == pytest.approx(1.0, abs=0.01)
    with pytest.raises(MbsError, match=f"speed is .*{largest:.3g}.*{what}"):
        taught.as_taught(1.01 * largest)
    fastest = taught.fastest()
    fastest.check(rig.model)
    assert fastest.duration == pytest.approx(taught.knots[-1] / largest)


def test_postures_that_motors_cannot_hold_are_refused():
    heavy = Rig(MODEL.with_payload("tool", 30.0, (0.0, 0.0, 0.1)))
    taught = Demonstration(heavy, recorded(*hand()))
    for timing in (taught.as_taught, taught.fastest):
        with pytest.raises(MbsError, match="joint"):
            timing()


@pytest.mark.parametrize("kind", [".csv", ".npz", ".yaml"])
def test_files_hold_the_trajectory(kind, tmp_path):
    t, q = hand()
    trajectory = Demonstration(RIG, recorded(t, q)).as_taught()
    recorded(t, q).write(tmp_path / "recorded.npz")
    path = tmp_path / f"taught{kind}"
    words = ["retime", "arm7", str(tmp_path / "recorded.npz"), "--out", str(path), "--lead", "3"]
    assert main(words) == 0
    again = TimeSeries.read(path)
    Demonstration(RIG, again)
    again = Trajectory.of(again)
    assert again.names == NAMES
    for x in np.linspace(0.01, trajectory.duration - 0.01, 50):
        found = again.at(again.times[0] + x).positions
        np.testing.assert_allclose(found, trajectory.at(x).positions, atol=1e-4)


# -- how well an arm repeats what it was taught ----------------------------------------------------

FRICTION = np.array([3.0, 3.0, 2.0, 2.0, 1.0, 0.6, 0.5])
DAMPING = np.array([4.0, 4.0, 2.0, 2.0, 1.0, 0.5, 0.4])
STIFFNESS = (1200.0, 1200.0, 900.0, 900.0, 450.0, 300.0, 240.0)
FAST = 0.001
"""Period in s at which this stiffness is stable if the inertia of the rotors is known."""
ROTORS = MODEL.with_armature(dict.fromkeys(NAMES, ARMATURE))


def arm(model, q, law, log=None, **limits):
    resistance = {"friction": FRICTION, "damping": DAMPING}
    loop = Loop(law, model=model, q=q, limits={"log": log} | limits, **resistance)
    loop = loop.enabled(period=FAST)
    assert loop.arm.state_record.stiffness_share == 1.0, loop.events
    return loop


def played(loop, trajectory):
    """Return true positions (N, m) from the first point of a trajectory to rest after the last."""
    loop.arm.aim(loop.now, trajectory)
    found, end = [], loop.now + trajectory.duration + 10.0
    while loop.arm.trajectory is not None:
        loop.run(PERIOD, FAST)
        if loop.arm.elapsed is not None:
            found.append(loop.bus.q)
        assert loop.arm.state == "enabled", loop.events
        assert loop.now < end, loop.events
    return np.array([*found, loop.run(0.5, FAST).bus.q])


@pytest.fixture(scope="module")
def identified(tmp_path_factory):
    """The model of the arm with inertias and friction from a log of its motors."""
    t = np.linspace(0.0, 20.0, 2001)
    w = 2.0 * np.pi * np.array([0.1, 0.25, 0.4])
    phase = np.random.default_rng(3).uniform(0.0, 2.0 * np.pi, (3, 7))
    swing = np.sin(np.pi * t / 20.0)[:, None] ** 2
    wave = np.sin(t[:, None, None] * w[:, None] + phase).sum(axis=1)
    q = Q + swing * wave * np.array([0.3, 0.2, 0.3, 0.2, 0.3, 0.3, 0.3])
    log, path = io.StringIO(), tmp_path_factory.mktemp("identified") / "motion.csv"
    played(
        arm(ROTORS, q[0], laws.JointImpedance(STIFFNESS), log=log),
        Trajectory(NAMES, t, np.clip(q, MODEL.lower, MODEL.upper)),
    )
    path.write_text(log.getvalue(), encoding="utf-8")
    return identification.identify(MODEL, [TimeSeries.read(path)]).model


def guided(model, seed):
    """Return times and measured positions of a floating arm that a hand leads along a spline."""
    loop, rng = arm(model, Q, laws.Gravity(damping=0.5)), np.random.default_rng(seed)
    ways = np.clip(0.5 * rng.normal(size=(5, 7)), -0.8, 0.8)
    ways = np.clip(Q + np.vstack([0.0 * Q, ways]), MODEL.lower + 0.1, MODEL.upper - 0.1)
    hand = CubicSpline(np.linspace(0.0, 14.0, 6), ways, bc_type="clamped")
    begin, times, positions = loop.now, [], []
    while (t := loop.now - begin) < 14.0:
        e, rate = hand(t) - loop.bus.q, hand(t, 1)
        led = loop.inertias * (100.0 * e + 20.0 * (rate - loop.bus.qd))
        loop.bus.push[:] = led + FRICTION * np.tanh(rate / 0.05) + DAMPING * rate
        loop.run(PERIOD, FAST)
        times.append(loop.now)
        positions.append(loop.arm.state_record.q.tolist())
    assert loop.arm.state == "enabled", loop.events
    return times, positions


def tool_distance(q, path):
    """Return the distances (N,) in m of the tool at q (N, m) from its path at positions (K, m)."""
    poses = (mbs.forward_kinematics(MODEL, x, bodies=["tool"]) for x in (q, np.array(path)))
    p, way = (C[:, 0, :3, 3] for C in poses)
    a, d = way[:-1], np.diff(way, axis=0)
    share = np.einsum("nkx,kx->nk", p[:, None] - a, d) / np.maximum((d * d).sum(axis=1), 1e-18)
    nearest = a + np.clip(share, 0.0, 1.0)[..., None] * d
    return np.linalg.norm(nearest - p[:, None], axis=2).min(axis=1)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_a_taught_motion_is_repeated_within_5_mm(identified, seed):
    t, q = guided(identified, seed)
    taught = Demonstration(Rig(identified), recorded(t, q))
    for speed in (1.0, 2.0):
        motion, law = taught.as_taught(speed), laws.JointImpedance(STIFFNESS)
        loop = arm(identified, motion.positions[0] + 0.05, law, friction_scale=0.9)
        assert tool_distance(played(loop, motion), q).max() < 0.005
