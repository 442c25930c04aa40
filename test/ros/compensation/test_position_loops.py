# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Gravity torques that are added to a position loop, which goes on holding the arm."""

import numpy as np
import pytest

pytest.importorskip("rclpy")

from diagnostic_msgs.msg import DiagnosticStatus
from gravity_bench import JOINTS, MODEL, PERIOD, Bench, G, Q, settings
from test_command_outputs import TRAFFIC
from test_handover import EFFORTS, POSITIONS, Scene, pair

import mbs_dynamics as mbs
from mbs_dynamics.control.settings import ON_FAULT
from mbs_dynamics.errors import ArgumentError
from mbs_dynamics.ros.compensation.controller_list import ControllerList
from mbs_dynamics.ros.compensation.outputs import command_status

VELOCITIES = tuple(f"{name}/velocity" for name in JOINTS)


def beside(controllers=None, **values):
    made = controllers or pair("active", "active")
    return Scene(made, adds_to_position_control=True, **values)


# -- what is added ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("damping", (0.0, 0.3, 0.0, 0.0, 0.0, 0.0, 0.0), "damping.joint2 is 0.3"),
        ("friction_scale", 0.5, "friction_scale is 0.5"),
        ("effort_check", "tracking", "effort_check is tracking"),
    ],
)
def test_what_would_add_other_torques_is_refused_by_name(name, value, said):
    assert settings(**{name: value})
    with pytest.raises(ArgumentError, match=said):
        settings(adds_to_position_control=True).changed({name: value})


@pytest.mark.parametrize("adds", [True, False])
def test_scaled_gravity_alone_is_commanded_with_all_defaults(adds):
    scale = np.linspace(0.4, 1.0, 7)
    bench = Bench(adds_to_position_control=adds, gravity_scale=tuple(scale))
    q = Q.copy()
    q[3] = bench.core.arm.model.upper[3] - 0.3
    bench.enabled(q=q)
    bench.move(q, q + 0.25 * np.eye(7)[3], speed=0.5)  # settles, and ends on a spring
    needed = scale * mbs.gravity_torques(MODEL, bench.core.arm.state_record.q)
    assert np.allclose(bench.torques[-1], needed, rtol=0, atol=1e-12) == adds


@pytest.mark.parametrize("on_fault", ON_FAULT)
def test_a_fault_ends_the_torques_without_damping_and_without_waiting_for_a_successor(on_fault):
    given = {"position_controller": "positions", "on_fault": on_fault}
    bench = Bench(adds_to_position_control=True, **given).enabled()
    while bench.fault is None:  # one bad message counts as missing
        bench.commands.clear()
        bench.now += PERIOD
        bench.send(np.full(7, np.nan))
        bench.tick()
    begin = bench.now
    bench.run(1.2, qd=0.1 * np.ones(7))
    assert bench.fault == "not_finite"
    if on_fault == "hold":
        assert not bench.commands or np.allclose(bench.torques, G, atol=1e-12)
        return
    left = np.maximum(0.0, 1.0 - (bench.times - begin) / bench.core.settings.ramp_time)
    if on_fault == "ramp_down":
        assert np.allclose(bench.torques, left[:, None] * G, atol=1e-12)
    ended = bench.times[~bench.torques.any(axis=1)][0] - begin
    assert ended <= (1.0 if on_fault == "ramp_down" else 0.03) + PERIOD


@pytest.mark.parametrize(
    ("efforts", "enabled"), [(G, True), (0.0 * G, False), (2.0 * G, False), ((), True)]
)
def test_measured_efforts_must_show_that_a_loop_holds_the_arm(efforts, enabled):
    bench = Bench(adds_to_position_control=True)
    bench.send(efforts=list(efforts))
    said = bench.core.enable(bench.now)
    assert (said == "") == enabled
    assert enabled or "do not agree with gravity" in said
    if enabled:  # what they show then is the sum
        for _ in range(103):
            bench.now += PERIOD
            bench.send(efforts=[0.0] * 7)
        assert bench.state == "enabled"
        assert np.allclose(bench.torques[-1], G)


# -- the controllers -------------------------------------------------------------------------------


def found(made, **names):
    given = {"effort": "efforts", "position": "positions"} | names
    return ControllerList(made.listed(), **given, adds=True)


@pytest.mark.parametrize(
    ("effort", "position", "interfaces", "problem"),
    [
        ("active", "active", POSITIONS, ""),
        ("active", "active", VELOCITIES, ""),
        ("active", "active", POSITIONS[:5], "neither position nor velocity of joint6, joint7"),
        ("active", "active", EFFORTS, "itself: send efforts in its trajectories"),
        ("inactive", "active", (*POSITIONS, *EFFORTS), "itself: send efforts in its trajectories"),
        ("active", "inactive", POSITIONS, "`ros2 control set_controller_state positions active`"),
        ("inactive", "active", POSITIONS, "`ros2 control set_controller_state efforts active`"),
        ("active", "unconfigured", POSITIONS, "'positions' is unconfigured"),
        ("unconfigured", "active", POSITIONS, "'efforts' is unconfigured"),
        ("active", "", POSITIONS, "'positions' is not loaded"),
    ],
)
def test_both_controllers_must_be_active_on_the_same_joints(effort, position, interfaces, problem):
    made = pair(effort, position)
    made.all["positions"] = made.all["positions"]._replace(command_interfaces=interfaces)
    if position == "":
        del made.all["positions"]
    said = found(made).problem(JOINTS)
    assert problem in said
    assert bool(problem) == bool(said)
    done, answer = beside(made).enable()
    assert done == (not problem)
    assert problem in answer
    assert made.requests == []


@pytest.mark.parametrize(
    ("position", "third", "problem", "fault"),
    [
        ("active", ("active", "joint1/velocity"), True, True),
        ("active", ("inactive", "joint1/velocity"), False, False),
        ("inactive", ("active", "joint1/velocity"), True, False),  # joints 2 to 7 have the torques
        ("inactive", ("active", *VELOCITIES), True, True),
    ],
)
def test_a_third_controller_is_a_fault_unless_torques_alone_hold_some_joint(
    position, third, problem, fault
):
    made = pair("active", position, third=third)
    assert bool(found(made).problem(JOINTS)) == problem
    assert ("'third' moves joints of 'efforts'" in found(made).fault(JOINTS)) == fault


def test_where_the_drives_hold_a_controller_of_these_joints_must_be_named():
    said = found(pair("active", "active"), position="").problem(JOINTS)
    assert "'positions' moves joints of 'efforts' as well" in said
    assert "name it as position_controller" in said
    assert found(pair("active", "inactive"), position="").problem(JOINTS) == ""


@pytest.mark.parametrize("holder", ["positions", ""])
def test_the_answer_says_what_is_checked_and_nobody_is_switched(holder):
    scene = beside(pair("active", "active" if holder else "inactive"), holder=holder)
    scene.manager.starts = True  # it would leap if it were activated
    done, said = scene.enable()
    assert done
    scene.run(0.5)  # more than ramp_in_time
    assert np.allclose(scene.bench.torques[-1], 0.5 * G, atol=0.1 * abs(G).max())
    assert ("positions is checked" if holder else "none is checked") in said
    assert said.endswith("nothing is switched off")
    scene.run(0.6)
    scene.disable()
    scene.run(1.5)
    assert scene.core.at_rest
    scene.enabled().run(1.1)
    scene.silent_until = scene.world.now + 1.5
    scene.run(1.5)
    assert scene.bench.fault == "stale"
    assert scene.core.at_rest
    assert scene.controllers.requests == []
    assert not scene.handover.gives_back


@pytest.mark.parametrize("lost", ["inactive", "unconfigured", "unloaded"])
def test_torques_stay_where_the_position_controller_is_lost(lost):
    scene = beside().enabled()
    scene.run(1.1)
    entry = scene.controllers.all["positions"]
    if lost == "unloaded":
        del scene.controllers.all["positions"]
    else:
        scene.controllers.set("positions", lost)
    scene.run(1.0)
    assert scene.bench.state == "enabled"
    assert np.allclose(scene.bench.torques[-1], G)
    assert any("the torques alone hold the arm" in line for line in scene.log)

    def status():
        handover = scene.handover
        return command_status(scene.core, [], TRAFFIC, handover.trouble)

    assert status().level == DiagnosticStatus.ERROR
    assert "the torques alone hold the arm" in status().message
    scene.controllers.all["positions"] = entry
    scene.run(0.3)
    assert status().level == DiagnosticStatus.OK
    assert scene.controllers.requests == []
