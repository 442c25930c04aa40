# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The core of the simulator: its world against physics, its commands and its pace. No ROS here."""

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from robots import robot

import mbs_dynamics as mbs
from mbs_dynamics.control.environment import LinkLoad, link_loads
from mbs_dynamics.errors import ArgumentError, MbsError, ModelError, SingularError
from mbs_dynamics.model.orders import tools
from mbs_dynamics.resources import robot_path
from mbs_dynamics.ros.simulator.interface import SimulatorSettings
from mbs_dynamics.ros.simulator.world import (
    LONGEST_LAG,
    Pacer,
    World,
)

TEXT = robot_path("arm7").read_text(encoding="utf-8")
ARM = mbs.Model.from_urdf(re.sub(r'friction="[^"]*"', 'friction="0"', TEXT))
N = ARM.n
START = (0.3, -0.5, 0.7, -1.1, 0.2, 0.9, -0.4)
FREE = {"joint_damping": (0.0,)}
NO_INERTIA = ((0.0,) * 3,) * 3
PENDULUM = """<robot name="pendulum"><link name="ceiling"/>
  <link name="rod"><inertial><origin xyz="0 0 -0.5"/><mass value="2"/>
    <inertia ixx="0.1" iyy="0.1" izz="0.1" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <link name="tip"/>
  <joint name="hinge" type="revolute"><parent link="ceiling"/><child link="rod"/>
    <axis xyz="0 1 0"/><limit lower="-1" upper="0.5" effort="3" velocity="9"/>
    <dynamics damping="0.4" friction="0.3"/></joint>
  <joint name="end" type="fixed"><parent link="rod"/><child link="tip"/>
    <origin xyz="0 0 -1" rpy="0 0 1.5707963267948966"/></joint></robot>"""


def settings(**changes):
    given = {"brakes": False} | changes
    return SimulatorSettings(robot_description="<robot/>", **given)


def world(model=ARM, **changes):
    return World(model, settings(**changes))


def run(simulated, seconds, commands=None):
    for _ in range(round(seconds / simulated.period)):
        simulated.commands = None if commands is None else commands(simulated.state)
        assert simulated.advance(), simulated.halted
    return simulated.state


def test_it_starts_where_it_is_told_and_bent_within_the_limits_otherwise():
    model = mbs.Model.from_urdf(PENDULUM.replace('lower="-1" upper="0.5"', 'lower="1" upper="2"'))
    assert world(model).state.tolist() == [[1.75], [0.0]]
    endless = mbs.Model.from_urdf(PENDULUM.replace('"revolute"', '"continuous"'))
    assert world(endless).state.tolist() == [[0.5], [0.0]]
    assert world(model, initial_positions=(0.3,)).state.tolist() == [[0.3], [0.0]]


@pytest.mark.parametrize("name", ["arm7", "ur5_robot.urdf", "panda.urdf"])
def test_brakes_hold_a_robot_until_commands_carry_it(name):
    """It neither falls before gravity compensation begins nor as it takes over."""
    model = ARM if name == "arm7" else mbs.Model.from_urdf(robot(name))
    simulated = World(model, SimulatorSettings(robot_description="<robot/>"))
    start = simulated.state[0].copy()
    g = mbs.gravity_torques(model, start)
    assert np.abs(g).max() > 5.0
    assert (np.abs(g) < 0.6 * model.effort_limits).all()
    assert simulated.braked
    for share in (0.0, 0.5, 0.85):
        run(simulated, 0.1, lambda _, share=share: share * g)
        assert not simulated.carried
        np.testing.assert_array_equal(simulated.state, [start, np.zeros(model.n)])
        np.testing.assert_array_equal(simulated.efforts, share * g)
    for share in (0.95, 1.0, 1.05, -1.0):
        simulated.commands = share * g
        assert simulated.carried == (share > 0.0)
    simulated.brake(False)
    q, _ = run(simulated, 0.5, lambda state: mbs.gravity_torques(model, state[0]))
    np.testing.assert_allclose(q, start, atol=1e-9)
    # a load that the commands do not know of
    simulated.hang(LinkLoad(tools(model)[0], 2.0, (0.0, 0.0, 0.1), NO_INERTIA))
    simulated.commands = mbs.gravity_torques(model, q)
    assert not simulated.carried
    simulated.brake(True)
    np.testing.assert_array_equal(simulated.state[1], 0.0)
    simulated.brake(False)
    simulated.reset()
    assert simulated.braked
    np.testing.assert_array_equal(simulated.state[0], start)


@pytest.mark.long
def test_joints_that_nobody_commands_are_held():
    model = mbs.Model.from_urdf(robot("tiago_no_hand.urdf"))
    joints = tuple(name for name in model.joint_names if name.startswith("arm_"))
    simulated = world(model, joints=joints)
    start = simulated.state[0].copy()
    rows = [model.joint_names.index(name) for name in joints]
    others = [k for k in range(model.n) if k not in rows]
    tau = np.zeros(model.n)
    tau[rows] = mbs.gravity_torques(model, start)[rows]
    assert np.abs(mbs.gravity_torques(model, start)[others]).max() > 50.0  # the torso would fall
    simulated.commands = np.zeros(model.n)
    assert not simulated.carried
    simulated.command(tau[rows])
    assert simulated.carried
    tau[rows[0]] += 5.0
    q, _ = run(simulated, 0.3, lambda _: tau)
    assert abs(q[rows[0]] - start[rows[0]]) > 0.05
    np.testing.assert_allclose(q[others], start[others], atol=1e-6)


def test_drives_have_damping_where_the_description_states_less():
    ur5 = mbs.Model.from_urdf(robot("ur5_robot.urdf"))
    found = world(ur5).forces.damping
    assert found[ur5.joint_names.index("wrist_1_joint")] == pytest.approx(0.2 * 28.0 / 3.2)
    assert np.all(found > ur5.damping)
    # what the description states counts where it is more
    for stated, damping in (("0.2", 0.2), ("0.01", 0.2 * 3.0 / 9.0)):
        pendulum = mbs.Model.from_urdf(PENDULUM.replace('damping="0.4"', f'damping="{stated}"'))
        assert world(pendulum).forces.damping == pytest.approx(damping)
    endless = mbs.Model.from_urdf(PENDULUM.replace('effort="3"', 'effort="0"'))
    assert world(endless).forces.damping == pytest.approx(0.4)


def test_a_push_acts_in_the_frame_of_its_link_for_its_duration():
    model = mbs.Model.from_urdf(PENDULUM.replace('friction="0.3"', ""))
    simulated = World(model.with_gravity((0.0, 0.0, 0.0)), settings(**FREE))
    # the tip's axes are turned by 90 degrees about z, 1 m below the hinge: its y is the rod's -x
    force = 1.0
    simulated.push("tip", np.array([0.0, 0.0, 0.0, 0.0, force, 0.0]))
    simulated.state[0] = -0.1  # away from the stops
    run(simulated, 0.2)
    inertia = 0.1 + 2.0 * 0.25
    speed = simulated.state[1, 0]
    assert speed == pytest.approx(force * 1.0 * 0.2 / inertia, rel=0.01)
    run(simulated, 0.1)
    assert simulated.state[1, 0] == pytest.approx(speed, rel=1e-9)


@pytest.mark.parametrize(
    ("link", "W", "error", "said"),
    [
        ("", np.ones(6), ModelError, "must name the link"),
        ("ceiling", np.ones(6), ModelError, "does not move"),
        ("rod", np.full(6, np.nan), ArgumentError, "finite"),
        ("rod", np.array([0.0, 0.0, 0.0, 0.0, -1e7, 0.0]), ArgumentError, "at most 1e\\+06"),
    ],
)
def test_a_push_that_cannot_be_is_refused(link, W, error, said):
    simulated = world(mbs.Model.from_urdf(PENDULUM))
    with pytest.raises(error, match=said):
        simulated.push(link, W)
    assert not simulated._wrenches.any()


def test_a_load_weighs_until_it_is_taken_off():
    simulated = world(**FREE, initial_positions=START)
    before = simulated._stepper.kernel

    def held(model):
        q, _ = run(simulated, 0.5, lambda state: mbs.gravity_torques(model, state[0]))
        np.testing.assert_allclose(q, START, atol=1e-9)

    for mass in (2.0, 3.0):
        simulated.hang(LinkLoad("tool", mass, (0.0, 0.0, 0.05), NO_INERTIA))
        assert [load.mass for load in link_loads(simulated.model)] == [mass]
        held(ARM.with_payload("tool", mass, (0.0, 0.0, 0.05)))
    simulated.hang(LinkLoad("tool", 0.0, (0.0, 0.0, 0.0), NO_INERTIA))
    assert link_loads(simulated.model) == []
    held(ARM)
    assert (simulated.time, simulated.periods) == (pytest.approx(1.5), 750)
    assert simulated._stepper.kernel is before  # at the last link nothing is compiled
    simulated.hang(LinkLoad("link3", 1.0, (0.0, 0.0, 0.1), NO_INERTIA))
    held(ARM.with_payload("link3", 1.0, (0.0, 0.0, 0.1)))
    with pytest.raises(MbsError, match="no body 'rope'"):
        simulated.hang(LinkLoad("rope", 1.0, (0.0, 0.0, 0.0), NO_INERTIA))


def test_reset_goes_back_but_time_does_not():
    simulated = world(initial_positions=START)
    simulated.push("link7", np.ones(6))
    run(simulated, 0.1)
    simulated.reset()
    np.testing.assert_array_equal(simulated.state, [START, np.zeros(N)])
    assert simulated.time == pytest.approx(0.1)
    assert not simulated._wrenches.any()
    simulated.push("link5", np.zeros(6))  # those before the reset do not come back with another
    run(simulated, simulated.period)
    assert not simulated._wrenches.any()


def test_a_simulation_gone_wrong_halts_where_it_is_until_it_is_reset(monkeypatch):
    simulated = world(mbs.Model.from_urdf(PENDULUM.replace('effort="3"', 'effort="0"')))
    simulated.commands = np.array([1e9])
    for _ in range(1000):
        if not simulated.advance():
            break
    assert "hinge" in simulated.halted
    assert np.isfinite(simulated.state).all()
    assert not simulated.advance()
    simulated.reset()
    assert simulated.advance()
    state = simulated.state

    def fails(*_):
        raise SingularError("the mass matrix is singular")

    monkeypatch.setattr(simulated._stepper, "step", fails)
    assert not simulated.advance()
    assert simulated.halted.endswith("the mass matrix is singular")
    np.testing.assert_array_equal(simulated.state, state)


def test_gravity_changes_while_it_runs_with_loads_and_algorithms():
    """At the wall, under the torques of that gravity, the arm stays; a load comes meanwhile."""
    given = FREE | {"initial_positions": START}
    simulated, at_wall = world(**given), ARM.with_gravity((9.81, 0.0, 0.0))
    kernel = simulated._stepper.kernel
    simulated.change(settings(**given, gravity=(9.81, 0.0, 0.0)))
    assert simulated._stepper.kernel is kernel
    run(simulated, 0.5, lambda state: mbs.gravity_torques(at_wall, state[0]))
    simulated.hang(LinkLoad("tool", 2.0, (0.0, 0.0, 0.1), NO_INERTIA))
    simulated.change(settings(**given, gravity=(9.81, 0.0, 0.0), algorithm="spatial"))
    loaded = at_wall.with_payload("tool", 2.0, (0.0, 0.0, 0.1))
    q, _ = run(simulated, 0.5, lambda state: mbs.gravity_torques(loaded, state[0]))
    np.testing.assert_allclose(q, START, atol=1e-9)


def test_commands_stand_in_the_order_of_joints():
    simulated = world(joints=("joint3", "joint1"))
    assert simulated.commands is None
    assert simulated.command([1.0, 2.0]) is None
    assert simulated.commands.tolist() == [2.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0]
    simulated.reset()
    assert simulated.commands is None


@pytest.mark.parametrize(
    ("efforts", "kind", "said"),
    [
        ([1.0], "length", "1 efforts for 2 joints: joint1, joint2"),
        ([], "length", "0 efforts for 2 joints"),
        ([1.0, np.nan], "not_finite", "joint2 = nan"),
        ([-np.inf, 0.0], "not_finite", "joint1 = -inf"),
        ([1e10, 0.0], "too_large", "joint1 = 1e+10"),
    ],
)
def test_bad_commands_are_refused_as_a_whole(efforts, kind, said):
    simulated = world(joints=("joint1", "joint2"))
    simulated.command([7.0, 8.0])
    rejection = simulated.command(efforts)
    assert rejection.kind == kind
    assert said in rejection.reason
    assert simulated.commands[:2].tolist() == [7.0, 8.0]


@given(st.lists(st.floats(0.0, 0.05), max_size=50), st.sampled_from([0.25, 1.0, 3.0]))
def test_jitter_is_caught_up(pauses, factor):
    pacer, now, done = Pacer(0.002 / factor, 100.0), 100.0, 0
    for pause in pauses:
        now += pause
        due = pacer.due(now)
        pacer.did(due)
        done += due
        assert abs(0.002 * done - factor * (now - 100.0)) <= 0.5 * 0.002 + 1e-9
    assert pacer.skipped == 0


def test_a_long_pause_is_given_up_and_said():
    pacer, due = Pacer(0.002, 0.0), round(LONGEST_LAG / 0.002)
    assert pacer.due(3.0 * LONGEST_LAG) == due
    pacer.did(due)
    assert 0.002 * pacer.skipped == pytest.approx(2.0 * LONGEST_LAG)
    assert pacer.due(3.0 * LONGEST_LAG + 0.002) == 1
