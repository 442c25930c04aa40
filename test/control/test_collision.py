# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Collisions: thresholds from free motion, what they detect, and what the arm does then."""

from types import SimpleNamespace

import numpy as np
import pytest
from cases import mostly_slow
from made_once import made_once

import mbs_dynamics as mbs
from mbs_dynamics.cli import main
from mbs_dynamics.control.collision import external_torques, tune
from mbs_dynamics.control.environment import in_force
from mbs_dynamics.control.period.collisions import SETTLING, with_contact
from mbs_dynamics.control.period.records import State
from mbs_dynamics.errors import MbsError
from mbs_dynamics.integrate import JointForces
from mbs_dynamics.model.orders import tools
from mbs_dynamics.timeseries import TimeSeries
from simulated.guarded_bench import MODEL, Loop, Q

SECONDS = 10.0
FAST = 0.001
"""Period of the loop in s."""
WIDTHS = np.array([0.5, 0.2, 0.5, 0.4, 0.5, 0.3, 0.5])
RATES = np.array([1.0, 1.3, 0.7, 1.1, 1.6, 0.9, 1.4])
FRICTION = JointForces.of(MODEL)
STIFFNESS = np.array([150.0, 150.0, 100.0, 100.0, 30.0, 20.0, 20.0])
DOWN = np.array([0.0, 0.0, -10.0])


def swing(model, state, reference):
    """Torques that move all joints to and fro, at up to 0.8 rad/s."""
    t = RATES * state.time
    goal, speed = Q + WIDTHS * (np.cos(t) - 1.0), -WIDTHS * RATES * np.sin(t)
    ahead = mbs.inverse_dynamics(model, goal, speed, -WIDTHS * RATES**2 * np.cos(t))
    return ahead + STIFFNESS * (goal - state.q) + 0.05 * STIFFNESS * (speed - state.qd)


def sustained(model, t, q, qd, tau):
    """Return the sustained external torques (N, 7) after settling, of measurements (N, 7)."""
    part = SimpleNamespace(joints=model.joint_names, t=t, q=q, qd=qd, tau=tau)
    return external_torques(model, part)[:, 1]


def moving(limits=None, **options):
    """Return a loop that swings, with masses that are wrong by a fifth each."""
    limits = {"damping": 0.5, "frozen_timeout": 0.0} | (limits or {})
    loop = Loop(swing, limits=limits, **options)
    for k in range(1, loop.bus.mujoco.nbody):
        factor = 0.8 if k % 4 < 2 else 1.2
        loop.bus.mujoco.body_mass[k] *= factor
        loop.bus.mujoco.body_inertia[k] *= factor
    return loop.enabled()


def touch(loop, force, link="tool"):
    """Let a force (3,) act on a link, until ``push`` is set anew."""
    J = mbs.jacobian(MODEL, loop.bus.q, link, representation="hybrid")
    loop.bus.push[:] = J[3:].T @ force


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """A recording of free motion, and thresholds that the command line finds."""
    folder = made_once(tmp_path_factory, "collision", record_and_tune)
    return folder / "free.csv", folder / "thresholds.yaml"


def record_and_tune(folder):
    recording, thresholds = folder / "free.csv", folder / "thresholds.yaml"
    with recording.open("w") as log:
        moving({"log": log}).run(SECONDS, 2.0 * FAST)
    assert main(["tune-collision", "arm7", str(recording), "--out", str(thresholds)]) == 0


@pytest.mark.long
@pytest.mark.parametrize("how", mostly_slow(["stop", "float", "yield"], ["stop", "yield"]))
def test_a_contact_of_10_newton_is_detected_in_20_ms_and_free_motion_is_not(files, how):
    loop = moving({"collision_file": str(files[1]), "on_collision": how}, seed=5).run(2.0, FAST)
    assert loop.arm.collision is None
    begun = loop.now
    touch(loop, DOWN)
    loop.run(0.02, FAST)
    found = loop.arm.collision
    assert begun < 1e-9 * found.stamp <= begun + 0.02
    assert found.joint in loop.events[-1]
    assert "beyond its threshold" in loop.events[-1]
    assert found.torques[MODEL.joint_names.index(found.joint)] != 0.0
    loop.run(0.03, FAST)
    loop.bus.push[:] = 0.0
    at = loop.bus.q
    loop.run(0.5, FAST)
    if how == "stop":
        assert loop.arm.fault.kind == "collision"
        assert loop.command.mode == "hold"
        np.testing.assert_allclose(loop.bus.q, at, atol=0.05)
        assert any("fault is latched" in one for one in loop.arm.enable(loop.now))
        loop.arm.clear(loop.now)
    else:
        assert loop.arm.state == "enabled"
        assert loop.arm.law is None
        q, speed = loop.bus.q, np.abs(loop.bus.qd).max()
        assert speed < 0.4  # it swings no more
        np.testing.assert_allclose(loop.command.torques, mbs.gravity_torques(MODEL, q), atol=1.0)
        loop.arm.disable(loop.now)
    loop.run(0.2, FAST)
    assert loop.arm.enable(loop.now) == []
    assert loop.arm.collision is None
    assert loop.arm.law is swing


@pytest.mark.long
def test_an_arm_that_yields_gives_way_further_than_one_that_floats(files):
    fallen = {}
    for how in ("float", "yield"):
        loop = moving({"collision_file": str(files[1]), "on_collision": how}).run(0.5, FAST)
        before = loop.bus.q
        touch(loop, 3.0 * DOWN, MODEL.body_names[4])
        loop.run(0.2, FAST)
        assert loop.arm.state == "enabled"
        fallen[how] = abs(loop.bus.q - before).max()
    assert fallen["yield"] > 1.1 * fallen["float"]


@pytest.mark.long
def test_the_wrench_of_a_contact_is_estimated_once_filters_have_followed(files):
    """On an arm that drives hold exactly: torques of a contact are those of its wrench."""
    W = np.array([0.0, 0.0, 0.0, 3.0, -8.0, 5.0])
    J = mbs.jacobian(MODEL, Q, "tool", representation="body_fixed")
    t = FAST * np.arange(800)
    pushed = t >= SETTLING + 0.1
    tau = mbs.gravity_torques(MODEL, Q) - pushed[:, None] * (J.T @ W)
    rest = np.zeros((len(t), 7))
    torques = sustained(MODEL, t, rest + Q, rest, tau)
    np.testing.assert_allclose(torques[-1], J.T @ W, atol=0.02 * abs(J.T @ W).max())
    loop = moving({"collision_file": str(files[1]), "on_collision": "float"}).run(1.0, FAST)
    force = np.array([10.0, -25.0, 15.0])
    touch(loop, force)
    loop.run(0.02, FAST)
    found = loop.arm.collision
    R = mbs.forward_kinematics(MODEL, loop.bus.q, bodies=["tool"])[0][:3, :3]
    assert found.wrench[3:] @ (R.T @ force) > 0.0
    assert found.link == tools(MODEL)[0]


def test_external_torques_start_anew_after_a_pause_and_without_an_effort():
    t = FAST * np.arange(1000)
    t[400:] += 0.2
    rest = np.zeros((len(t), 7))
    tau = mbs.gravity_torques(MODEL, Q) + rest
    tau[700, 3] = np.nan
    p, rate = mbs.generalized_momentum(MODEL, rest + Q, rest)

    def times(watched):
        s = State(*[np.full(7, np.nan)] * len(State._fields))
        s, found = s._replace(contact_time=0.0), []
        for k, elapsed in enumerate(np.diff(t, prepend=np.nan)):
            s = with_contact(s, watched, elapsed, p[k], rate[k] + tau[k])
            found.append(s.contact_time)
        return np.array(found)

    known = times(np.full(7, True))
    np.testing.assert_allclose(known[[1, 399, 400, 402, 699]], [0.0, 0.398, 0.0, 0.001, 0.298])
    assert not known[[400, 401, 700, 701]].any()
    assert times(np.arange(7) < 2)[-1] == pytest.approx(0.598)


def test_rotors_gravity_and_loads_in_force_cause_no_external_torques():
    """In a motion by exact torques; without them there are."""
    arm = MODEL.with_armature(dict.fromkeys(MODEL.joint_names, 0.2))
    t = 1e-3 * np.arange(700)
    sine, cosine = (np.outer(wave(4.0 * t), np.ones(7)) for wave in (np.sin, np.cos))
    q, qd, qdd = Q + 0.3 * sine, 1.2 * cosine, -4.8 * sine
    loads = np.zeros((7, 10))
    loads[6] = 1.5, 0.0, 0.0, 0.15, 0.02, 0.0, 0.0, 0.02, 0.0, 0.01
    true = in_force(arm, np.array([3.0, 0.0, -9.3]), loads)
    tau = mbs.inverse_dynamics(true, q, qd, qdd) - FRICTION.resistance(qd)
    largest = [abs(sustained(known, t, q, qd, tau)).max() for known in (true, arm)]
    assert largest[0] < 0.02
    assert largest[1] > 1.0


@pytest.mark.long
def test_a_load_that_is_announced_is_no_collision(files):
    loop = moving({"collision_file": str(files[1])}).run(1.0, FAST)
    loop.bus.load("tool", 1.0)
    loop.arm.load("tool", 1.0, time=0.05)
    loop.run(1.0, FAST)
    assert loop.arm.collision is None


@pytest.mark.long
@pytest.mark.parametrize(
    ("changed", "said"),
    [
        (lambda one: {"q": one.q[0] + 0.0 * one.q}, "joint1"),
        (lambda one: {"tau": one.tau[:, ::-1]}, "%"),
        (lambda one: {x: getattr(one, x)[:2125] for x in ("t", "q", "qd", "tau")}, "4.75 s"),
        (lambda one: {"qd": np.where(np.arange(7) == 3, np.nan, one.qd)}, "joint4"),
    ],
    ids=["still", "of other joints", "short", "without a velocity"],
)
def test_recordings_that_cannot_be_used_are_refused_by_name(files, changed, said):
    one = TimeSeries.read(files[0])
    kept = {name: getattr(one, name) for name in ("t", "q", "qd", "tau", "joints")}
    with pytest.raises(MbsError, match=said):
        tune(MODEL, [SimpleNamespace(**kept | changed(one))])


ROW = "{impact: %s, sustained: 1}"


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ("joint9: {}", "joint9"),
        ("joint1: {impact: 1.0}", "sustained"),
        ("joint1: " + ROW % -1.0, "-1"),
        ("joint1: " + ROW % "x", "impact"),
    ],
)
def test_files_of_thresholds_that_are_wrong_name_what_is(tmp_path, rows, said):
    path = tmp_path / "thresholds.yaml"
    path.write_text(f"joints:\n  {rows}\n")
    with pytest.raises(MbsError, match=said):
        Loop(limits={"collision_file": str(path)})
