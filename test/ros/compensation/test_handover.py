# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""How an arm passes from one controller to another, without ROS: stand-ins for the manager."""

from __future__ import annotations

import asyncio

import numpy as np
import pytest

pytest.importorskip("rclpy")
from gravity_bench import JOINTS, Bench, G

from mbs_dynamics.errors import ControllerError
from mbs_dynamics.ros.compensation.command_policy import Fault
from mbs_dynamics.ros.compensation.controllers import Controller, Handover

EFFORTS = tuple(f"{name}/effort" for name in JOINTS)
POSITIONS = tuple(f"{name}/position" for name in JOINTS)


class Manager:
    """Lists and switches two controllers at once."""

    def __init__(self, effort="inactive", position="active", interfaces=EFFORTS):
        self.states = {"efforts": effort, "positions": position}
        self.interfaces = {"efforts": interfaces, "positions": POSITIONS}
        self.switches = []
        self.refusal = None
        self.here = True

    def present(self):
        return self.here

    async def list(self):
        return [
            Controller(name, state, "some/Controller", self.interfaces[name])
            for name, state in self.states.items()
        ]

    async def switch(self, activate, deactivate):
        self.switches.append((activate, deactivate))
        await asyncio.sleep(0)
        if self.refusal:
            raise ControllerError(self.refusal)
        self.states |= dict.fromkeys(activate, "active") | dict.fromkeys(deactivate, "inactive")


class Scene:
    """A compensator, its handover, and the torques that the arm gets."""

    def __init__(self, manager, torques_come=True, **values):
        given = {"command_topic": "/efforts/commands", "ramp_in_time": 0.05}
        self.bench = Bench(**(given | values))
        self.manager = manager
        self.handover = Handover(self.bench.core.settings, manager)
        self.torques_come = torques_come
        self.bench.run(0.1)

    def now(self):
        return self.bench.now

    async def torques_are_in(self):
        if self.torques_come:
            self.bench.run(0.1)
        return self.bench.state == "enabled"

    def enable(self):
        core = self.bench.core
        return asyncio.run(self.handover.enable(core, self.now, 0, self.torques_are_in))

    def give_back(self):
        return asyncio.run(self.handover.give_back(self.bench.core))

    def watch(self):
        return asyncio.run(self.handover.watch(self.bench.core))


def test_without_a_manager_the_answer_says_that_the_arm_must_be_supported():
    manager = Manager()
    manager.here = False
    done, said = Scene(manager).enable()
    assert done
    assert said.startswith("ramping in; nothing is known to hold the arm: it must be supported")


def test_the_answer_does_not_say_so_where_measured_efforts_hold_the_arm():
    scene = Scene(Manager("active", "inactive"))
    scene.bench.now += 0.01
    scene.bench.send(efforts=G.tolist())
    assert scene.enable() == (True, "ramping in")


def test_an_arm_that_is_enabled_is_not_enabled_again():
    scene = Scene(Manager(), position_controller="positions")
    assert scene.enable()[0]
    scene.manager.interfaces["efforts"] = POSITIONS  # would be refused
    assert scene.enable() == (True, "enabled")
    assert len(scene.manager.switches) == 1


def test_torques_come_in_before_one_call_switches_the_controllers():
    scene = Scene(Manager(), position_controller="positions")
    seen = []
    switch = scene.manager.switch

    async def watched(activate, deactivate):
        seen.append(scene.bench.torques[-1])
        await switch(activate, deactivate)

    scene.manager.switch = watched
    done, said = scene.enable()
    assert done
    assert said == "enabled; efforts has taken over"
    assert scene.manager.switches == [(["efforts"], ["positions"])]
    np.testing.assert_allclose(seen[0], G, atol=1e-9)


def test_a_release_gives_the_arm_back_and_ends_at_once():
    scene = Scene(Manager(), position_controller="positions")
    scene.enable()
    scene.bench.core.disable(scene.bench.now)
    assert scene.handover.switched
    assert scene.give_back() == "positions holds the arm again"
    assert scene.manager.states == {"efforts": "inactive", "positions": "active"}
    assert scene.bench.core.policy.at_rest
    count = len(scene.bench.commands)
    scene.bench.run(0.5)
    assert len(scene.bench.commands) == count
    assert scene.give_back() == ""  # only once
    assert scene.enable()[0]


def test_a_fault_gives_the_arm_back_and_stays_latched():
    scene = Scene(Manager(), position_controller="positions")
    scene.enable()
    scene.bench.silence(0.3)
    assert scene.bench.fault == "stale"
    scene.give_back()
    assert scene.bench.core.policy.at_rest
    assert scene.bench.state == "fault"


def test_an_arm_that_cannot_be_given_back_ramps_out():
    scene = Scene(Manager(), position_controller="positions")
    scene.enable()
    scene.manager.refusal = "not now"
    scene.bench.core.disable(scene.bench.now)
    with pytest.raises(ControllerError, match="not now"):
        scene.give_back()
    scene.bench.run(0.5)
    np.testing.assert_allclose(scene.bench.torques[-1], 0.5 * G, atol=1e-6)
    scene.bench.run(0.6)
    assert scene.bench.state == "disabled"


def test_an_arm_that_something_else_holds_already_is_not_switched_again():
    scene = Scene(Manager(), position_controller="positions")
    scene.enable()
    scene.manager.states = {"efforts": "inactive", "positions": "active"}  # a person did
    count = len(scene.manager.switches)
    scene.bench.core.disable(scene.bench.now)
    assert scene.give_back() == "positions holds the arm again"
    assert len(scene.manager.switches) == count
    assert scene.bench.core.policy.at_rest


def test_a_fault_while_controllers_are_switched_is_said():
    scene = Scene(Manager(), position_controller="positions")
    switch = scene.manager.switch

    async def slow(activate, deactivate):
        await switch(activate, deactivate)
        scene.bench.core.policy.trip(scene.now(), Fault("stale", "nothing came"))

    scene.manager.switch = slow
    done, said = scene.enable()
    assert not done
    assert said.startswith("efforts has taken over, but by then: ")
    assert "nothing came" in said


def test_a_refused_switch_ramps_out_and_is_said():
    scene = Scene(Manager(), position_controller="positions")
    scene.manager.refusal = "resource conflict"
    done, said = scene.enable()
    assert not done
    assert said == "the controllers were not switched: resource conflict"
    assert scene.bench.state == "ramping out"


def test_a_fault_before_the_torques_are_in_switches_nothing():
    scene = Scene(Manager(), torques_come=False, position_controller="positions")

    async def stale():
        scene.bench.silence(0.3)
        return False

    scene.torques_are_in = stale
    done, said = scene.enable()
    assert not done
    assert "no valid joint_states" in said
    assert scene.manager.switches == []


@pytest.mark.parametrize(
    ("manager", "values", "said"),
    [
        (Manager("inactive", "inactive"), {}, "controller 'efforts' is inactive; valid is active"),
        (Manager("active", interfaces=POSITIONS), {}, "valid is the interface effort"),
        (Manager("active", interfaces=EFFORTS[::-1]), {}, "controller 'efforts' has other order"),
        (Manager("active", interfaces=EFFORTS[:5]), {}, "controller 'efforts' has other joints"),
        (Manager("active"), {"command_topic": "/else/commands"}, "'else' is not loaded"),
        (Manager("active"), {"effort_controller": "other"}, "'other' is not loaded"),
        (
            Manager(),
            {"position_controller": "arm"},
            "position_controller 'arm' is not loaded; loaded",
        ),
    ],
)
def test_enabling_is_refused_with_the_wrong_controller(manager, values, said):
    scene = Scene(manager, **values)
    done, reason = scene.enable()
    assert not done
    assert said in reason
    assert scene.bench.state == "disabled"
    assert scene.handover.trouble in reason
    assert manager.switches == []


def test_enabling_is_refused_where_a_controller_is_named_but_there_is_no_manager():
    manager = Manager()
    manager.here = False
    done, said = Scene(manager, position_controller="positions").enable()
    assert not done
    assert "there is no controller manager 'controller_manager'" in said


def test_check_controller_false_does_without():
    assert Scene(Manager("inactive", "inactive"), check_controller=False).enable()[0]


def test_a_controller_that_is_deactivated_is_a_fault():
    scene = Scene(Manager("active", "inactive"))
    scene.enable()
    assert scene.watch() is None
    scene.manager.states["efforts"] = "inactive"
    assert scene.watch().kind == "controller"
    assert "is inactive" in scene.watch().reason


def test_the_wrong_controller_is_known_before_it_is_enabled():
    scene = Scene(Manager("inactive", "inactive"))
    assert scene.watch() is None
    assert scene.handover.trouble == "controller 'efforts' is inactive; valid is active"


def test_a_manager_that_does_not_answer_stops_no_arm_and_enables_none():
    scene = Scene(Manager("active", "inactive"))

    async def silent():
        raise ControllerError("no answer")

    scene.manager.list = silent
    assert scene.enable() == (False, "no answer; check_controller false does without")
    scene = Scene(Manager("active", "inactive"))
    scene.enable()
    scene.manager.list = silent
    assert scene.watch() is None
    assert scene.handover.trouble == "no answer"


def test_a_node_that_is_deactivated_meanwhile_is_not_enabled():
    scene = Scene(Manager("active", "inactive"))
    listed = scene.manager.list

    async def deactivated():
        scene.bench.core.forbidden = "the lifecycle state is 'inactive'"
        return await listed()

    scene.manager.list = deactivated
    assert scene.enable() == (False, "the lifecycle state is 'inactive'")
    assert scene.bench.state == "disabled"


def test_a_second_call_meanwhile_is_refused():
    scene = Scene(Manager(), position_controller="positions")
    core, handover = scene.bench.core, scene.handover

    async def both():
        again = []

        async def torques_are_in():
            core.disable(scene.bench.now)
            again.append(await handover.enable(core, scene.now, 0, scene.torques_are_in))
            return False

        await handover.enable(core, scene.now, 0, torques_are_in)
        return again

    assert asyncio.run(both()) == [(False, "another call is about to enable it")]


def test_an_arm_that_is_handed_over_and_back_does_not_move():
    pytest.importorskip("mujoco")
    from benchmarks.mujoco_arm import POSTURES, MujocoArm, bare
    from mbs_dynamics.resources import robot_path

    arm = MujocoArm(bare(robot_path("arm7")))
    arm.place(POSTURES["arm7"])
    arm.hold()
    scene = Scene(Manager(), position_controller="positions")
    bench = scene.bench
    switch = scene.manager.switch

    async def watched(activate, deactivate):
        await switch(activate, deactivate)
        if activate == ["efforts"]:
            arm.loop = None
        else:
            arm.hold()

    scene.manager.switch = watched

    def run(seconds):
        farthest = 0.0
        for _ in range(round(seconds / 0.002)):
            bench.now += 0.002
            answer = bench.send(arm.q, arm.qd)
            if answer.command is not None:
                arm.command = np.array(answer.command)
            arm.advance(0.002)
            farthest = max(farthest, np.abs(arm.q - POSTURES["arm7"]).max())
        return farthest

    async def torques_are_in():
        run(0.1)
        return bench.state == "enabled"

    scene.torques_are_in = torques_are_in
    run(0.1)
    assert scene.enable()[0]
    assert run(2.0) <= 0.02
    bench.core.disable(bench.now)
    assert run(0.05) <= 0.02  # until the manager answers
    scene.give_back()
    assert run(2.0) <= 0.02
