# Copyright 2026 The mbs_dynamics authors
#
# Licensed under the Apache License, Version 2.0 (the "License");
# you may not use this file except in compliance with the License.
# You may obtain a copy of the License at
#
#     http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS,
# WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
# See the License for the specific language governing permissions and
# limitations under the License.
"""The core of the simulator: its world against physics, its commands, its pace. No ROS here."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import mbs_dynamics as mbs
from mbs_dynamics.errors import ArgumentError, MbsError, ModelError, UnknownJointError
from mbs_dynamics.integrate import JointForces
from mbs_dynamics.resources import robot_path
from mbs_dynamics.ros.joint_friction import JointFriction
from mbs_dynamics.ros.momentum_observer import MomentumObserver
from mbs_dynamics.ros.robot import Load
from mbs_dynamics.ros.simulator_commands import EffortCommands
from mbs_dynamics.ros.simulator_pacing import LONGEST_LAG, Pacer
from mbs_dynamics.ros.simulator_settings import SimulatorSettings, for_each
from mbs_dynamics.ros.simulator_world import World

ARM = mbs.Model.from_urdf(robot_path("arm7"))
N = ARM.n
START = (0.3, -0.5, 0.7, -1.1, 0.2, 0.9, -0.4)
FREE = {"joint_damping": (0.0,), "joint_friction": (0.0,), "joint_stops": False}
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
    return SimulatorSettings(robot_description="<robot/>", **changes)


def world(model=ARM, **changes):
    return World(model, settings(**changes))


def run(simulated, seconds, commands=None):
    for _ in range(round(seconds / simulated.period)):
        torques = np.zeros(simulated.model.n) if commands is None else commands(simulated.state)
        assert simulated.advance(torques), simulated.halted
    return simulated.state


# -- the world -------------------------------------------------------------------------------------


def test_without_friction_and_torques_energy_stays():
    simulated = world(**FREE, initial_positions=START, integrator="rk4", step=0.001)

    def energy(q, qd):
        return mbs.kinetic_energy(ARM, q, qd) + mbs.potential_energy(ARM, q)

    before = energy(*simulated.state)
    q, qd = run(simulated, 1.0)
    assert mbs.kinetic_energy(ARM, q, qd) > 10.0
    assert energy(q, qd) == pytest.approx(before, abs=1e-4)


def test_gravity_torques_hold_the_robot_where_it_is():
    simulated = world(**FREE, initial_positions=START)
    q, qd = run(simulated, 2.0, lambda state: mbs.gravity_torques(ARM, state[0]))
    np.testing.assert_allclose(q, START, atol=1e-9)
    np.testing.assert_allclose(qd, 0.0, atol=1e-9)
    assert simulated.time == pytest.approx(2.0)
    assert simulated.periods == 1000


@pytest.mark.parametrize("integrator", ["explicit_euler", "semi_implicit_euler", "rk4"])
def test_it_comes_to_rest_on_its_stops(integrator):
    simulated = world(integrator=integrator)
    q, qd = run(simulated, 8.0)
    upper = np.array([joint.limits.upper for joint in ARM.joints])
    lower = np.array([joint.limits.lower for joint in ARM.joints])
    assert (q < upper + 0.05).all()
    assert (q > lower - 0.05).all()
    np.testing.assert_allclose(qd, 0.0, atol=0.1)


def test_the_step_divides_the_period_between_joint_states():
    assert world(rate=500.0, step=0.001).steps == 2
    assert world(rate=400.0, step=0.001).steps == 3
    assert world(rate=1000.0, step=0.01).steps == 1


def test_it_starts_where_it_is_told_and_within_the_limits_otherwise():
    model = mbs.Model.from_urdf(PENDULUM.replace('lower="-1" upper="0.5"', 'lower="1" upper="2"'))
    assert world(model).state.tolist() == [[1.0], [0.0]]
    told = world(model, initial_positions=(0.3,), initial_velocities=(-2.0,))
    assert told.state.tolist() == [[0.3], [-2.0]]


def test_motors_exert_no_more_than_their_limit_and_say_so():
    model = mbs.Model.from_urdf(PENDULUM)
    limited = world(model)
    limited.advance(np.array([50.0]))
    assert limited.efforts.tolist() == [3.0]
    assert limited.saturated() == ["hinge"]
    unlimited = world(model, limit_efforts=False)
    unlimited.advance(np.array([50.0]))
    assert unlimited.efforts.tolist() == [50.0]
    assert unlimited.saturated() == []
    assert unlimited.state[1, 0] > 5.0 * limited.state[1, 0]


def test_damping_and_friction_are_those_of_the_description_or_of_the_parameters():
    model = mbs.Model.from_urdf(PENDULUM)
    assert world(model).forces.damping.tolist() == [0.4]
    assert world(model).forces.friction.tolist() == [0.3]
    told = world(model, joint_damping=(2.0,), joint_friction=(0.0,)).forces
    assert (told.damping.tolist(), told.friction.tolist()) == ([2.0], [0.0])


def test_its_friction_is_that_of_the_momentum_observer():
    rates = np.linspace(-0.05, 0.05, N)
    forces = JointForces.of(ARM, friction_speed=0.02)
    expected = -forces.damping * rates - forces.friction * np.tanh(rates / 0.02)
    np.testing.assert_allclose(JointFriction(ARM, 0.02).torques(rates), expected, rtol=1e-12)


def test_a_push_acts_in_the_frame_of_its_link_for_its_duration():
    model = mbs.Model.from_urdf(PENDULUM).with_gravity((0.0, 0.0, 0.0))
    simulated = World(model, settings(**FREE, disturbance_duration=0.1))
    # the tip's axes are turned by 90 degrees about z, 1 m below the hinge: its y is the rod's -x
    force = 1.0
    simulated.push("tip", np.array([0.0, 0.0, 0.0, 0.0, force, 0.0]))
    run(simulated, 0.1)
    inertia = 0.1 + 2.0 * 0.25
    speed = simulated.state[1, 0]
    assert speed == pytest.approx(force * 1.0 * 0.1 / inertia, rel=0.01)
    run(simulated, 0.1)
    assert simulated.state[1, 0] == pytest.approx(speed, rel=1e-9)


def test_a_push_replaces_the_one_on_the_same_link_and_adds_to_others():
    model = mbs.Model.from_urdf(PENDULUM).with_gravity((0.0, 0.0, 0.0))
    simulated = World(model, settings(**FREE))
    about_y = np.array([0.0, 1.0, 0.0, 0.0, 0.0, 0.0])
    simulated.push("rod", 5.0 * about_y)
    simulated.push("rod", about_y)
    simulated.push("tip", np.array([1.0, 0.0, 0.0, 0.0, 0.0, 0.0]))  # its x is the rod's y
    simulated.advance(np.zeros(1))
    assert simulated.state[1, 0] == pytest.approx(2.0 * simulated.period / 0.6)
    simulated.push("rod", np.zeros(6))
    simulated.push("tip", np.zeros(6))
    speed = simulated.state[1, 0]
    simulated.advance(np.zeros(1))
    assert simulated.state[1, 0] == speed


@pytest.mark.parametrize(
    ("link", "W", "error", "said"),
    [
        ("", np.ones(6), ModelError, "must name the link"),
        ("wing", np.ones(6), MbsError, "no body 'wing'"),
        ("ceiling", np.ones(6), ModelError, "does not move"),
        ("rod", np.full(6, np.nan), ArgumentError, "finite"),
        ("rod", np.full(6, 1e7), ArgumentError, "at most 1e\\+06"),
    ],
)
def test_a_push_that_cannot_be_is_refused(link, W, error, said):
    simulated = world(mbs.Model.from_urdf(PENDULUM))
    with pytest.raises(error, match=said):
        simulated.push(link, W)
    assert not simulated._wrenches.any()


def hang(simulated, load):
    simulated.hang(load, simulated.loaded(load))


def test_a_load_weighs_until_it_is_taken_off():
    no_inertia = ((0.0,) * 3,) * 3
    simulated = world(**FREE, initial_positions=START)
    for mass in (2.0, 3.0):
        hang(simulated, Load("tool", mass, (0.0, 0.0, 0.05), no_inertia))
        heavy = ARM.with_payload("tool", mass, (0.0, 0.0, 0.05))
        assert [load.mass for load in simulated.loads] == [mass]
        q = simulated.state[0].copy()
        run(simulated, 0.5, lambda state, heavy=heavy: mbs.gravity_torques(heavy, state[0]))
        np.testing.assert_allclose(simulated.state[0], q, atol=1e-9)
    hang(simulated, Load("tool", 0.0, (0.0, 0.0, 0.0), no_inertia))
    assert simulated.loads == []
    run(simulated, 0.5, lambda state: mbs.gravity_torques(ARM, state[0]))
    np.testing.assert_allclose(simulated.state[0], START, atol=1e-9)
    with pytest.raises(MbsError, match="no body 'rope'"):
        simulated.loaded(Load("rope", 1.0, (0.0, 0.0, 0.0), no_inertia))


def test_reset_goes_back_but_time_does_not():
    simulated = world(initial_positions=START)
    simulated.push("link7", np.ones(6))
    run(simulated, 0.1)
    simulated.reset()
    np.testing.assert_array_equal(simulated.state, [START, np.zeros(N)])
    assert simulated.time == pytest.approx(0.1)
    assert not simulated._wrenches.any()


def test_a_simulation_gone_wrong_halts_until_it_is_reset():
    simulated = world(mbs.Model.from_urdf(PENDULUM), limit_efforts=False, joint_stops=False)
    for _ in range(1000):
        if not simulated.advance(np.array([1e9])):
            break
    assert "hinge" in simulated.halted
    assert np.isfinite(simulated.state).all()
    assert not simulated.advance(np.zeros(1))
    simulated.reset()
    assert simulated.advance(np.zeros(1))


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"initial_positions": (1.0, 2.0)}, "initial_positions has shape (2,); valid is (7,)"),
        ({"joint_damping": (1.0, 2.0)}, "joint_damping has shape (2,)"),
    ],
)
def test_settings_that_do_not_fit_the_robot_are_refused(changes, said):
    with pytest.raises(ArgumentError) as caught:
        world(**changes)
    assert said in str(caught.value)


def test_a_robot_without_joints_is_refused():
    with (
        pytest.warns(mbs.ModelWarning, match="no joint"),
        pytest.raises(ModelError, match="no joint that moves"),
    ):
        world(mbs.Model.from_urdf("<robot name='r'><link name='l'/></robot>"))


def test_the_momentum_observer_sees_a_push_on_the_simulated_arm_and_nothing_else():
    simulated = world(initial_positions=START, friction_speed=0.05, disturbance_duration=10.0)
    observer = MomentumObserver(ARM, gain=20.0, longest=1.0, friction=JointFriction(ARM, 0.05))
    push = np.array([0.0, 0.0, 0.0, 15.0, 0.0, 5.0])

    def watch(seconds):
        for _ in range(round(seconds / simulated.period)):
            q, qd = simulated.state
            hold = 300.0 * (START - q) - 5.0 * qd  # else the push moves the wrist into its stop
            simulated.advance(mbs.gravity_torques(ARM, q) + hold)
            q, qd = simulated.state
            observer.hear(1 + round(1e9 * simulated.time), q, qd, simulated.efforts)

    watch(0.5)
    assert np.abs(observer.residual).max() < 0.01
    simulated.push("tool", push)
    watch(0.5)
    J = mbs.jacobian(ARM, simulated.state[0], "tool", representation="body_fixed")
    expected = J.T @ push
    np.testing.assert_allclose(observer.residual, expected, atol=0.05 * np.abs(expected).max())


# -- commands --------------------------------------------------------------------------------------


def test_commands_hold_for_ever_as_those_of_a_forward_command_controller():
    commands = EffortCommands(("a", "b"))
    assert commands.at(5.0).tolist() == [0.0, 0.0]
    assert commands.hear([1.0, 2.0], 6.0) is None
    assert commands.at(1e6).tolist() == [1.0, 2.0]
    assert not commands.expired(1e6)


def test_commands_lapse_after_the_timeout_if_there_is_one():
    commands = EffortCommands(("a", "b"), timeout=0.5)
    commands.hear([1.0, 2.0], 6.0)
    assert commands.at(6.5).tolist() == [1.0, 2.0]
    assert commands.at(6.6).tolist() == [0.0, 0.0]
    commands.hear_named(["b"], [3.0], 7.0)  # what lapsed does not come back
    assert commands.at(7.0).tolist() == [0.0, 3.0]


def test_commands_stand_in_the_order_of_joints_or_have_names():
    commands = EffortCommands(("a", "b", "c"), joints=("c", "a"))
    commands.hear([1.0, 2.0], 0.0)
    assert commands.at(0.0).tolist() == [2.0, 0.0, 1.0]
    commands.hear_named(["b", "c"], [5.0, 6.0], 0.0)
    assert commands.at(0.0).tolist() == [2.0, 5.0, 6.0]
    commands.reset()
    assert commands.at(0.0).tolist() == [0.0, 0.0, 0.0]
    assert commands.latest is None


@pytest.mark.parametrize(
    ("names", "efforts", "kind", "said"),
    [
        (None, [1.0], "length", "1 efforts for 2 joints: a, b"),
        (None, [1.0, 2.0, 3.0], "length", "3 efforts for 2 joints"),
        (None, [1.0, np.nan], "not_finite", "b = nan"),
        (None, [-np.inf, 0.0], "not_finite", "a = -inf"),
        (None, [1e10, 0.0], "too_large", "a = 1e+10"),
        (["a"], [1.0, 2.0], "length", "1 joint names but 2 efforts"),
        ([], [], "length", "0 joint names"),
        (["a", "x"], [1.0, 2.0], "unknown_joints", "no joints x; the joints are: a, b"),
        (["a", "a"], [1.0, 2.0], "duplicate_joints", "named more than once: a"),
        (["b"], [np.nan], "not_finite", "b = nan"),
    ],
)
def test_bad_commands_are_refused_as_a_whole(names, efforts, kind, said):
    commands = EffortCommands(("a", "b"))
    commands.hear([7.0, 8.0], 0.0)
    if names is None:
        rejection = commands.hear(efforts, 1.0)
    else:
        rejection = commands.hear_named(names, efforts, 1.0)
    assert rejection.kind == kind
    assert said in rejection.reason
    assert commands.at(1.0).tolist() == [7.0, 8.0]
    assert (commands.accepted, commands.rejected, commands.latest) == (1, 1, 0.0)


def test_an_order_of_unknown_joints_is_refused():
    with pytest.raises(UnknownJointError, match="no joint 'c'"):
        EffortCommands(("a", "b"), joints=("c",))


# -- pace ------------------------------------------------------------------------------------------


@given(st.lists(st.floats(0.0, 0.05), max_size=50), st.sampled_from([0.25, 1.0, 3.0]))
def test_jitter_is_caught_up(pauses, factor):
    pacer, now, done = Pacer(0.002, factor, 100.0), 100.0, 0
    for pause in pauses:
        now += pause
        due = pacer.due(now)
        pacer.did(due, 0.0)
        done += due
        assert abs(0.002 * done - factor * (now - 100.0)) <= 0.5 * 0.002 + 1e-9
    assert pacer.report(now + 1.0).lost == 0.0


def test_a_long_pause_is_given_up_and_said():
    pacer = Pacer(0.002, 1.0, 0.0)
    due = pacer.due(1.0)
    assert due == round(LONGEST_LAG / 0.002)
    pacer.did(due, 0.3)
    pace = pacer.report(1.0)
    assert pace.lost == pytest.approx(1.0 - LONGEST_LAG)
    assert pace.too_slow
    assert pace.load == pytest.approx(0.3)
    assert pacer.due(1.002) == 1


def test_a_steady_pace_is_not_too_slow():
    pacer, now = Pacer(0.002, 2.0, 0.0), 0.0
    assert pacer.interval == 0.001
    for _ in range(1000):
        now += 0.001
        pacer.did(pacer.due(now), 0.0002)
    pace = pacer.report(now)
    assert pace.rate == pytest.approx(1000.0)
    assert pace.wanted == pytest.approx(1000.0)
    assert pace.load == pytest.approx(0.2)
    assert not pace.too_slow


def test_another_pace_begins_at_once():
    pacer = Pacer(0.002, 1.0, 0.0)
    pacer.did(pacer.due(0.05), 0.0)
    pacer.change(0.5, 0.05)
    assert pacer.due(0.05) == 0
    assert pacer.due(0.09) == 10


# -- settings --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"robot_description": ""}, "neither is given"),
        ({"robot_description_file": "a.urdf"}, "both are given"),
        ({"integrator": "verlet"}, "valid is one of explicit_euler, semi_implicit_euler, rk4"),
        ({"joints": ("a", "a")}, "got twice: a"),
        ({"gravity": (0.0, 0.0, 981.0)}, "length of 981"),
        ({"joint_damping": (-1.0,)}, "joint_damping must not be negative"),
        ({"joint_friction": (np.nan,)}, "joint_friction must be finite"),
        ({"rate": 0.0}, "rate is 0; valid is 1 to 10000"),
        ({"realtime_factor": 0.0}, "realtime_factor is 0; valid is 0.01 to 100"),
    ],
)
def test_settings_are_refused_with_a_reason(changes, said):
    with pytest.raises(ArgumentError) as caught:
        SimulatorSettings(**{"robot_description": "<robot/>", **changes})
    assert said in str(caught.value)


def test_one_number_is_for_all_joints():
    assert for_each("x", (), 3) is None
    assert for_each("x", (2.0,), 3).tolist() == [2.0, 2.0, 2.0]
    assert for_each("x", (1.0, 2.0), 2).tolist() == [1.0, 2.0]
