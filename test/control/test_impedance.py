# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Impedance laws on a simulated arm: ratio, stiffness, energy, drift, switches, references."""

from functools import lru_cache

import numpy as np
import pytest
from cases import mostly_slow

import mbs_dynamics as mbs
from mbs_dynamics.control import JointTarget, PoseTarget, Trajectory, laws
from mbs_dynamics.control.laws.impedance import fastest_mode
from mbs_dynamics.control.period.following import period_of
from mbs_dynamics.errors import MbsError
from mbs_dynamics.lie import se3, so3
from simulated.guarded_bench import ARMATURE, EVENTS, Loop, Q, happen, table
from simulated.guarded_bench import MODEL as LINKS

pytestmark = pytest.mark.long

MODEL = LINKS.with_armature(dict.fromkeys(LINKS.joint_names, ARMATURE))
TOOL, NAMES = "tool", MODEL.joint_names
IDEAL = {"model": MODEL, "noise": (0.0,) * 3, "torque_step": 0.0, "friction": 0.0, "latency": 0.0}
AT_ONCE = {f"reference_{kind}velocity": 100.0 for kind in ("", "linear_", "angular_")}
AT_ONCE |= {f"reference_{kind}acceleration": 1e4 for kind in ("", "linear_", "angular_")}
"""Limits with which references jump."""


def joint(stiffness=30.0, ratio=1.0):
    return laws.JointImpedance(stiffness, ratio)


def cartesian(linear=500.0, ratio=1.0, **options):
    return laws.CartesianImpedance(TOOL, linear, 20.0, ratio, **options)


def pose_of(q):
    return mbs.forward_kinematics(MODEL, q, bodies=[TOOL])[0]


def moved(C, *offset):
    return se3.pose(C[:3, :3], C[:3, 3] + offset)


def recorded(loop, seconds, period, value):
    found = []
    for _ in range(round(seconds / period)):
        loop.run(period, period)
        found.append(value(loop))
    return np.array(found)


# -- stiffness and damping -------------------------------------------------------------------------


def mode_of(law, q):
    """The direction (k,) of a step that moves one mode of the arm on its springs, and its w."""
    inverse = mbs.inverse_mass_matrix(MODEL, q)
    J, K = np.eye(7), 200.0 * np.ones(7)
    if law is cartesian:
        J = mbs.jacobian(MODEL, q, TOOL, representation="hybrid")
        K = np.array([20.0] * 3 + [500.0] * 3)
    w2, modes = np.linalg.eig(J @ inverse @ J.T @ np.diag(K))
    order = w2.real.argsort()
    return modes[:, order[1]].real, np.sqrt(w2.real[order[1]])


QUICK = [(joint, 0.7), (cartesian, 0.3), (cartesian, 1.0)]
SLOW = [(joint, 0.3), (joint, 1.0), (cartesian, 0.7)]


@pytest.mark.parametrize(("law", "ratio"), mostly_slow(QUICK + SLOW, QUICK))
def test_a_step_of_1_cm_settles_with_the_damping_ratio_that_is_set(law, ratio):
    """The overshoot of a mode is exp(-pi zeta / sqrt(1 - zeta^2))."""
    made = joint(200.0, ratio) if law is joint else cartesian(500.0, ratio)
    loop = Loop(made, limits=AT_ONCE, **IDEAL)
    loop.arm.step(0.0, loop.bus.read())
    loop.arm.enable(0.0)
    # the arm sagged before the first command, and is damped for 1 s
    loop.run(max(1.0, 15.0 / mode_of(law, Q)[1]), 0.001)
    q, C = loop.bus.q, pose_of(loop.bus.q)
    mode, w = mode_of(law, q)
    if law is joint:
        mode *= 0.01 / abs(mode).max()
        loop.bus.place(q - mode)  # a reference that jumps is fed forward, until limits are reached
        q = q - mode
    else:
        mode *= 0.01 / np.linalg.norm(mode[3:])
        target = se3.pose(so3.exp(mode[:3]) @ C[:3, :3], C[:3, 3] + mode[3:])
        loop.arm.aim(loop.now, PoseTarget(target))

    def moved_by(loop):
        return loop.bus.q - q if law is joint else pose_of(loop.bus.q)[:3, 3] - C[:3, 3]

    way, along = recorded(loop, 15.0 / w, 0.001, moved_by), mode if law is joint else mode[3:]
    share = way @ along / (along @ along)
    expected = np.exp(-np.pi * ratio / np.sqrt(1.0 - ratio**2)) if ratio < 1.0 else 0.0
    assert share.max() - 1.0 == pytest.approx(expected, abs=0.03)
    assert share[-1] == pytest.approx(1.0, abs=0.01)


@pytest.mark.parametrize("depth", [0.01, 0.03])
def test_the_force_against_a_wall_is_that_of_the_spring(depth):
    wall = pose_of(Q)[:3, 3] - [0.0, 0.0, 0.03]
    loop = Loop(cartesian(800.0), wall=(TOOL, se3.pose(np.eye(3), wall)), **IDEAL).enabled()
    target = moved(pose_of(loop.bus.q), 0.0, 0.0, -0.01 - depth)
    loop.arm.aim(loop.now, PoseTarget(target))
    loop.run(4.0)
    e = target[:3, 3] - pose_of(loop.bus.q)[:3, 3]
    assert loop.bus.contact > 0.9 * 800.0 * depth
    assert loop.bus.contact == pytest.approx(-800.0 * e[2], rel=0.02)


def test_a_push_moves_a_joint_by_the_compliance_of_its_spring():
    loop = Loop(joint(30.0), **IDEAL).enabled(3.0)
    q, loop.bus.push[3] = loop.bus.q, 1.5
    loop.run(3.0)
    np.testing.assert_allclose(loop.bus.q - q, 0.05 * np.eye(7)[3], atol=1e-3)


@pytest.mark.parametrize("contacts", [16, pytest.param(1000, marks=pytest.mark.slow)])
def test_a_contact_gets_back_at_most_the_energy_that_it_has_put_in(contacts):
    """Plus one period's work. Pushes of the tool, from rest at the reference, without friction."""
    rng, worst, put_in = np.random.default_rng(contacts), 0.0, 0.0
    for posture in range(contacts // 8):
        q = MODEL.lower + (0.25 + 0.5 * rng.random(7)) * (MODEL.upper - MODEL.lower)
        law = cartesian(ratio=rng.uniform(0.4, 1.0)) if posture % 2 else joint()
        loop = Loop(law, q=q, **IDEAL).enabled()
        for _ in range(8):
            while abs(loop.bus.qd).max() > 2e-3:
                loop.run(0.05)
                assert loop.now < 100.0
            force, ends, begun = rng.normal(size=3) * 8.0, rng.uniform(0.03, 0.5), loop.now
            work = most = 0.0
            while loop.now < begun + ends:
                J = mbs.jacobian(MODEL, loop.bus.q, TOOL, representation="hybrid")[3:]
                loop.bus.push[:] = J.T @ force * np.sin(10.0 * (loop.now - begun))
                before = loop.bus.q
                loop.run(0.004)
                done = loop.bus.push @ (loop.bus.q - before)
                work, most = work + done, max(most, abs(done))
                worst, put_in = max(worst, -work - most), max(put_in, work)
            loop.bus.push[:] = 0.0
            assert loop.arm.state == "enabled"
    assert put_in > 0.05
    assert worst < 1e-5


# -- modes and references --------------------------------------------------------------------------

MODES = {"floating": None, "joint": joint(), "stiff": joint(35.0, 0.5), "cartesian": cartesian()}


def test_no_switch_is_a_jump_of_torque():
    """While the arm is pushed away from its reference, which the laws before pull back to."""
    loop = Loop(MODES["joint"], **IDEAL).enabled()
    for law in [*MODES.values(), MODES["joint"]]:
        loop.arm.switch(loop.now, law)  # which compiles what it needs
        loop.run(0.4)
    rng, names = np.random.default_rng(0), list(MODES)
    loop.bus.push[1], before = 4.0, "joint"
    loop.run(0.5)
    for _ in range(12):
        name = names[rng.integers(len(names))]
        first = np.array(loop.command.torques)
        loop.arm.switch(loop.now, MODES[name])
        torques = recorded(loop, 0.4, 0.004, lambda loop: loop.command.torques)
        steps = np.abs(np.diff(np.vstack([first, torques]), axis=0)).max()
        assert steps < 0.5, (before, name)
        before = name
        loop.bus.push[1] = rng.uniform(-6.0, 6.0) * (name != "floating")
        loop.run(0.3)
        assert loop.arm.state == "enabled"


def test_targets_of_joints_go_on_and_a_pose_of_the_tool_is_approached_slowly():
    loop = Loop(MODES["joint"], **IDEAL).enabled()
    loop.arm.aim(loop.now, JointTarget(["joint4"], [1.0]))
    loop.run(0.2)
    loop.arm.aim(loop.now, JointTarget(["joint2"], [1.0], [-0.2]))
    loop.run(2.5)
    assert loop.bus.q[3] == pytest.approx(1.0, abs=0.02)
    assert any("0.2 s old" in event for event in loop.events)
    assert loop.bus.q[1] == pytest.approx(0.96, abs=0.02)
    loop.arm.switch(loop.now, laws.CartesianImpedance())
    loop.run(0.5)
    C = pose_of(loop.bus.q)
    turned = se3.pose(so3.exp(np.array([0.0, 0.0, 0.3])) @ C[:3, :3], C[:3, 3] - [0.0, 0.0, 0.1])
    loop.arm.aim(loop.now, PoseTarget(turned))
    poses = recorded(loop, 3.0, 0.004, lambda loop: pose_of(loop.bus.q)[:3, 3])
    assert np.linalg.norm(np.diff(poses, axis=0), axis=1).max() < 0.3 * 0.004
    np.testing.assert_allclose(pose_of(loop.bus.q), turned, atol=2e-3)


@lru_cache
def enabled(mode):
    """The loop of tests that leave its arm enabled and where it is."""
    return Loop(MODES[mode], **IDEAL).enabled()


TWISTED = np.diag([1.0, 1.0, -1.0, 1.0])
POSE = pose_of(Q)


@pytest.mark.parametrize(
    ("mode", "target", "said"),
    [
        ("floating", JointTarget(["joint2"], [0.5]), "floats"),
        ("joint", JointTarget(["elbow"], [0.5]), "elbow"),
        ("joint", JointTarget(["joint2"], [9.0]), "joint2.* out of reach at 9"),
        ("joint", JointTarget(["joint2"], [np.nan]), "nan"),
        ("joint", JointTarget(["joint2"], [0.5], [9.0]), "joint2.* 9; its velocity limit"),
        ("joint", JointTarget(["joint2", "joint2"], [0.5, 0.5]), "joint2, joint2"),
        ("joint", PoseTarget(POSE), "PoseTarget.*mode 'joint'.*JointTarget"),
        ("joint", Trajectory(["a"], [0.0], [[0.0]]), "other joints.*lacks joint1.*has a"),
        ("cartesian", Trajectory(NAMES, [0.0], [Q]), "Trajectory"),
        ("cartesian", PoseTarget(TWISTED), "no rotation"),
        ("cartesian", PoseTarget(np.eye(3)), r"shape \(3, 3\)"),
        ("cartesian", PoseTarget(POSE, "camera"), "camera"),
        ("cartesian", PoseTarget(POSE, TOOL), TOOL),
        ("joint", joint(5000.0), "too stiff for a period of 0.004 s.* at most 0.0"),
        ("joint", cartesian(1e6), "too stiff for a period of 0.004 s"),
    ],
)
def test_what_an_arm_cannot_follow_is_refused_by_name_and_nothing_moves(mode, target, said):
    loop = enabled(mode)
    loop.bus.mark()
    # Without friction, an arm that floats goes on.
    drift = 0.3 * abs(loop.bus.qd).max() if mode == "floating" else 0.0
    is_law = isinstance(target, (laws.JointImpedance, laws.CartesianImpedance))
    ask = loop.arm.switch if is_law else loop.arm.aim
    with pytest.raises(MbsError, match=said):
        ask(loop.now, target)
    loop.run(0.3)
    assert loop.arm.state == "enabled"
    assert loop.bus.moved < 1e-3 + drift


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: joint(ratio=0.0), "damping_ratio is 0; must be 0.1 to 2"),
        (lambda: joint(-1.0), "-1.0"),
        (lambda: cartesian([1.0, 2.0]), r"linear stiffness has shape \(2,\)"),
        (lambda: cartesian(axes="tool"), "root, target"),
        (lambda: Loop(laws.CartesianImpedance("hand")), "hand"),
        (lambda: Loop(laws.JointImpedance({"elbow": 1.0})), "elbow"),
        (lambda: Loop(lambda model, state: state.q), "TypeError"),
        (lambda: Loop(joint()).arm.aim(0.0, JointTarget(["joint2"], [0.5])), "disabled"),
    ],
)
def test_laws_that_cannot_be_are_refused_by_name(make, said):
    with pytest.raises(MbsError, match=said):
        make()


def test_the_largest_stiffness_that_is_named_is_stable_and_twice_as_much_would_be_refused():
    loop = Loop(MODES["joint"], **IDEAL).enabled()
    share = fastest_mode(1.0) / period_of(loop.arm.state_record, loop.arm.running.given)
    inverse = mbs.inverse_mass_matrix(MODEL, loop.bus.q)
    most = 0.999 * share**2 / np.linalg.eigvalsh(inverse)[-1]
    loop.arm.switch(loop.now, joint(most))
    loop.bus.push[:] = 2.0
    loop.run(0.5)
    loop.bus.push[:] = 0.0
    rates = recorded(loop, 2.0, 0.004, lambda loop: abs(loop.bus.qd).max())
    assert loop.arm.state == "enabled"
    assert rates[-20:].max() < 0.01 * rates.max()
    with pytest.raises(MbsError, match="too stiff"):
        loop.arm.switch(loop.now, joint(2.0 * most))


def test_states_that_are_lost_make_the_period_of_a_loop_no_longer():
    arm, t = Loop(MODES["joint"], made=table(max_age=0.5), **IDEAL).arm, 0.0
    still = Loop(**IDEAL).bus.read()
    lost = np.random.default_rng(0).choice([0, 1, 3, 9], p=[0.4, 0.3, 0.2, 0.1], size=400)
    for step in [0.08, *0.004 * (1 + lost), *[0.004] * 5]:
        t += step
        arm.step(t, [frame._replace(stamp=t) for frame in still])
    assert period_of(arm.state_record, arm.running.given) == pytest.approx(0.004)
    for _ in range(100):
        t += 0.01
        arm.step(t, [frame._replace(stamp=t) for frame in still])
    assert period_of(arm.state_record, arm.running.given) == pytest.approx(0.01)


@pytest.mark.parametrize("late", [0.02, 0.05])
@pytest.mark.parametrize("mode", ["joint", "cartesian"])
def test_springs_of_an_arm_are_stable_when_states_come_in_bursts_after_pauses(mode, late):
    bare = {"model": LINKS, "armature": 0.0, "step": 0.001}
    loop = Loop(MODES[mode], made=table(max_age=0.1), **{**IDEAL, **bare}).enabled()
    loop.bus.push[:] = 1.0, 1.0, 1.0, 0.1, 0.1, 0.1, 0.02
    loop.run(0.3, 0.002)
    loop.bus.push[:] = 0.0
    fastest = 0.0
    while loop.now < 4.0:
        loop.run(late, late).run(0.005, 0.001)  # as on a loaded machine
        if loop.now > 3.5:
            fastest = max(fastest, abs(loop.bus.qd).max())
    assert loop.arm.state == "enabled", loop.arm.fault
    assert fastest < 0.1


SOME = ("NaN for good", "pause of the loop, 80 ms", "drive error", "disable", "one jump")


@pytest.mark.parametrize("name", mostly_slow(EVENTS, SOME))
@pytest.mark.parametrize("law", [MODES["joint"], MODES["cartesian"]], ids=["joint", "cartesian"])
def test_an_event_moves_an_arm_on_springs_by_as_little_as_one_that_floats(law, name):
    event = EVENTS[name]
    loop = happen(event, law=law)
    assert loop.bus.moved < event.most
    assert (loop.arm.fault.kind if loop.arm.fault else None) == event.kind
    assert loop.command.mode == event.mode


# -- references wait for the arm -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "stiffness"),
    [("target", [200.0] * 4 + [50.0, 30.0, 10.0]), ("trajectory", 30.0)],
    ids=["target", "trajectory"],
)
def test_a_joint_that_is_held_back_is_waited_for_named_and_not_thrown_when_it_comes_free(
    kind, stiffness
):
    loop = Loop(laws.JointImpedance(stiffness), **IDEAL).enabled()
    goal, blocked = loop.bus.q + np.array([0.8, 0.2, 0.0, -0.2, 0.0, 0.1, 0.0]), Q[0] + 0.05
    target = JointTarget(NAMES, goal)
    if kind == "trajectory":
        target = Trajectory(NAMES, [0.0, 2.0], [loop.bus.q, goal])
    loop.arm.aim(loop.now, target)
    for _ in range(1000):
        loop.bus.push[0] = -3000.0 * max(0.0, loop.bus.q[0] - blocked)  # a thing in its way
        loop.run(0.004)
        lead = loop.arm.reference.q[0] - loop.bus.q[0]
        assert lead < 0.201
    assert any("waits for the arm: joint1 is 0." in event for event in loop.events)
    assert (loop.arm.trajectory is not None) == (kind == "trajectory")
    loop.bus.push[:] = 0.0
    speeds = recorded(loop, 5.0, 0.004, lambda loop: abs(loop.bus.qd[0]))
    assert speeds.max() < 1.0
    np.testing.assert_allclose(loop.bus.q, goal, atol=0.02)
    assert loop.arm.trajectory is None


def test_a_trajectory_does_not_end_before_the_arm_has_arrived():
    """The springs carry what the masses of the model lack."""
    loop = Loop(laws.JointImpedance([50.0] * 4 + [20.0, 20.0, 10.0]), **IDEAL).enabled()
    loop.bus.load(TOOL, 1.0)
    loop.run(1.0)
    points = loop.bus.q + np.outer([0.0, 0.3], np.ones(7))
    loop.arm.aim(loop.now, Trajectory(NAMES, [0.0, 2.0], points))
    loop.run(5.0)
    off = points[1] - loop.bus.q
    assert abs(off).max() > 0.03
    said = next(event for event in loop.events if "away" in event)
    assert f"joint{abs(off).argmax() + 1}" in said
    assert loop.arm.trajectory is not None
    assert not any("ended" in event for event in loop.events)
    loop.bus.load(TOOL, 0.0)
    loop.run(2.0)
    assert loop.arm.trajectory is None
    assert any("ended" in event for event in loop.events)


def test_a_link_that_is_held_back_is_waited_for():
    loop = Loop(cartesian(800.0), **IDEAL).enabled()
    C = pose_of(loop.bus.q)
    loop.arm.aim(loop.now, PoseTarget(moved(C, 0.0, 0.3, 0.0)))
    for _ in range(1000):
        J = mbs.jacobian(MODEL, loop.bus.q, TOOL, representation="hybrid")[4]
        depth = max(0.0, pose_of(loop.bus.q)[1, 3] - C[1, 3] - 0.03)
        loop.bus.push[:] = -5000.0 * depth * J
        loop.run(0.004)
    reference = loop.arm.reference.pose
    assert np.linalg.norm((reference - pose_of(loop.bus.q))[:3, 3]) < 0.11
    assert any("the reference of 'tool' waits for the arm" in event for event in loop.events)
    loop.bus.push[:] = 0.0
    way = recorded(loop, 4.0, 0.004, lambda loop: pose_of(loop.bus.q)[:3, 3])
    assert np.linalg.norm(np.diff(way, axis=0), axis=1).max() < 0.004 * (0.4 + 0.25)
    np.testing.assert_allclose(way[-1], C[:3, 3] + [0.0, 0.3, 0.0], atol=5e-3)


def test_a_pose_that_is_accepted_drives_no_joint_past_its_limit():
    q = np.array([0.0037, 0.1254, -0.0407, 1.7461, 0.09, 1.258, 3.0456])
    x = np.array([0.929, -0.368, -0.007, -0.04])
    target = se3.pose(so3.from_quaternion(x / np.linalg.norm(x)), np.array([0.4364, 0.0052, 0.4]))
    for link in ("link7", TOOL):
        law = laws.CartesianImpedance(link, 300.0, 10.0)
        loop = Loop(law, q=q, model=MODEL, friction=0.0).enabled()
        loop.arm.aim(loop.now, PoseTarget(target))
        way = recorded(loop, 6.0, 0.004, lambda loop: loop.bus.q)
        assert loop.arm.state == "enabled"
        assert (way < MODEL.upper).all()
        assert (way > MODEL.lower).all()
        if link == TOOL:
            np.testing.assert_allclose(pose_of(loop.bus.q)[:3, 3], target[:3, 3], atol=5e-3)
            continue
        said = "the reference of 'link7' waits for the arm: at a position limit: joint7"
        assert said in loop.events


@pytest.mark.parametrize(("way", "turn"), [((3.0, 0.0, 0.0), 0.0), ((-0.5, 1.0, 1.5), 2.0)])
def test_a_pose_out_of_reach_is_approached_and_held_where_the_arm_can_go_no_further(way, turn):
    loop = enabled("cartesian")
    target = moved(POSE, *way)
    target[:3, :3] = target[:3, :3] @ so3.exp(np.array([0.0, turn, 0.0]))
    loop.arm.aim(loop.now, PoseTarget(target))
    loop.run(5.0)
    assert loop.arm.state == "enabled"
    assert any("the reference of 'tool' waits for the arm" in event for event in loop.events)
    assert abs(loop.bus.qd).max() < 0.05
    assert (loop.bus.q < MODEL.upper).all()
    assert (loop.bus.q > MODEL.lower).all()


def test_stop_lets_the_posture_come_to_rest_as_well():
    loop = Loop(cartesian(), **IDEAL).enabled()
    J = mbs.jacobian(MODEL, loop.bus.q, TOOL, representation="hybrid")
    null = np.linalg.svd(J)[2][-1]
    loop.arm.aim(loop.now, JointTarget(NAMES, loop.bus.q + 0.8 * null))
    loop.run(0.8)
    assert abs(loop.bus.qd).max() > 0.3
    loop.arm.aim(loop.now, None)
    stopped = loop.bus.q
    loop.run(0.6)
    at_rest = loop.bus.q
    assert abs(at_rest - stopped).max() < 0.15
    loop.run(3.0)
    assert abs(loop.bus.q - at_rest).max() < 0.01


@pytest.mark.parametrize("turn", [np.pi, 3.3])
def test_noise_does_not_turn_a_torque_around_at_half_a_turn(turn):
    """The wrist is led away from its reference, by hand."""
    rng, law, found = np.random.default_rng(0), laws.CartesianImpedance(TOOL, 0.0, 5.0), []
    start = Q - 0.5 * (np.arange(7) == 6)
    loop = Loop(law, model=MODEL, q=start).enabled()
    loop.run(0.4)  # until drives have let go for longer than the arm is watched
    for n in range(800):
        q = start.copy()
        q[6] += turn * min(1.0, n / 450)
        loop.bus.place(q + rng.normal(0.0, 1e-3, 7))
        loop.run(0.004)
        found.append(loop.command.torques[6])
    last = np.array(found[-250:])
    assert loop.arm.fault is None
    assert np.abs(np.diff(last)).max() < 1.0
    assert (np.sign(last) == np.sign(last[0])).all()
    assert abs(last).mean() == pytest.approx(5.0 * turn, rel=0.05)


def test_a_stiffness_is_accepted_by_the_period_and_late_states_soften_it_and_are_reported_once():
    loop = Loop(MODES["stiff"], **IDEAL)
    rng = np.random.default_rng(0)
    for _ in range(30):
        loop.run(0.004)
    assert period_of(loop.arm.state_record, loop.arm.running.given) == pytest.approx(0.004)
    loop.enabled()
    for _ in range(300):
        loop.run(rng.choice([0.004, 0.004, 0.016]), 0.004 if rng.random() < 0.7 else 0.016)
    loop.arm.switch(loop.now, joint(36.0))
    loop.run(1.0, 0.016)
    assert period_of(loop.arm.state_record, loop.arm.running.given) == pytest.approx(0.004)
    assert loop.arm.state == "enabled"
    assert sum("softer than set" in event for event in loop.events) == 1


def test_a_period_that_is_set_decides_what_stiffness_is_accepted():
    for period, accepted in ((0.001, True), (0.02, False)):
        loop = Loop(joint(200.0), limits={"period": period}, **IDEAL)
        loop.arm.step(0.0, loop.bus.read())
        problems = loop.arm.enable(0.0)
        assert (problems == []) == accepted


def test_a_trajectory_is_approached_played_when_due_paused_and_held():
    loop = Loop(MODES["joint"], **IDEAL).enabled()
    points = loop.bus.q + np.outer([0.1, 0.3, 0.2], np.ones(7))
    loop.arm.aim(loop.now, Trajectory(NAMES, [2.0, 3.0, 4.0], points))
    loop.run(1.9)
    assert loop.arm.elapsed is None
    assert loop.bus.q == pytest.approx(points[0], abs=0.02)
    while loop.arm.elapsed is None:
        loop.run(0.004)
        assert loop.now < 5.0
    begun = loop.now
    loop.run(1.0)
    loop.arm.pace(0.0)
    paused = loop.run(1.0).arm.elapsed
    np.testing.assert_allclose(loop.bus.q, points[1], atol=0.03)
    assert 1.0 < loop.run(0.2).arm.elapsed == paused < 1.3
    assert abs(loop.bus.qd).max() < 0.02
    loop.arm.pace(1.0)
    while loop.arm.trajectory is not None:
        loop.run(0.004)
        assert loop.now < 9.0
    assert 3.2 < loop.now - begun < 3.8
    loop.run(0.5)
    np.testing.assert_allclose(loop.bus.q, points[-1], atol=0.01)
    assert any("ended" in event for event in loop.events)
