# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Who holds the arm, whatever happens to controllers: without ROS, against ros2_control's rules."""

import itertools

import numpy as np
import pytest

pytest.importorskip("rclpy")
from controllers_bench import Controllers, Manager, World
from gravity_bench import JOINTS, PERIOD, Bench, G
from hypothesis import given, settings
from hypothesis import strategies as st

from mbs_dynamics.control.faults import Fault
from mbs_dynamics.errors import ControllerError
from mbs_dynamics.ros.compensation.controller_list import ControllerList, Switch
from mbs_dynamics.ros.compensation.gravity_compensator import RELEASE
from mbs_dynamics.ros.compensation.handover import Handover

EFFORTS = tuple(f"{name}/effort" for name in JOINTS)
POSITIONS = tuple(f"{name}/position" for name in JOINTS)
REFERENCES = tuple(f"pid/{name}/position" for name in JOINTS)
LOOK_PERIOD = 0.1
EXAMPLES = 15
"""Number of random histories; 1,000 were tried."""

UNHELD = 0.2
"""Longest time in s without a holder while one could be activated."""


def pair(effort="inactive", position="active", **others):
    return Controllers(efforts=(effort, *EFFORTS), positions=(position, *POSITIONS), **others)


def chained(effort="inactive", position="active", pid="active"):
    two = {"efforts": (effort, *EFFORTS), "positions": (position, *REFERENCES)}
    return Controllers(**two, pid=(pid, *EFFORTS))


class Topic:
    """The command topic."""

    topic = "/efforts/commands"
    nodes = ("/efforts",)

    def other_publishers(self):
        return 0

    def subscribers(self):
        return self.nodes


class Scene:
    """A robot whose states arrive, a compensator, a controller manager, and what the node does."""

    def __init__(self, controllers=None, holder="positions", **values):
        given = {"command_topic": "efforts/commands", "position_controller": holder}
        self.bench = Bench(**(given | {"ramp_in_time": 0.05} | values))
        self.core = self.bench.core
        self.controllers = controllers or pair()
        self.world = World(self.bench.now)
        self.manager = Manager(self.controllers, self.world)
        self.topic = Topic()
        self.log = []
        given = self.core, self.manager, self.topic
        self.handover = Handover(*given, lambda: self.world.now, self.log.append)
        self.silent_until = 0.0
        self.released, self.given_up = [], []
        self.each_period = lambda: None
        self.world.start(self.robot())
        self.world.start(self.watching())
        self.run(0.05)

    def run(self, seconds):
        self.world.result(self.world.sleep(seconds))

    async def robot(self):
        while True:
            await self.world.sleep(PERIOD)
            self.bench.now = self.world.now
            if self.world.now >= self.silent_until:
                self.bench.send()
            self.bench.tick()
            if self.handover.gives_back and not (self.core.engaged or self.handover.busy):
                self.world.start(self.release())
            self.each_period()

    async def watching(self):
        while True:
            await self.world.sleep(LOOK_PERIOD)
            fault = await self.handover.watch()
            if fault is not None:
                self.core.arm.fail(fault, self.world.now)

    async def release(self):
        try:
            said = await self.handover.release()
            self.released += [said] if said else []
        except ControllerError as error:
            self.given_up.append(str(error))

    def enable(self):
        return self.world.result(self.handover.enable())

    def enabled(self):
        done, said = self.enable()
        assert done, said
        return self

    def disable(self):
        self.core.disable(self.world.now)

    def states(self, *names):
        return tuple(self.controllers.state(name) for name in names or ("efforts", "positions"))


# -- the list, and what it calls for ---------------------------------------------------------------

STATES = ("active", "inactive", "unconfigured", "finalized", "")


def in_states(effort, position, pid=None):
    made = pair() if pid is None else chained()
    for name, state in (("efforts", effort), ("positions", position), ("pid", pid)):
        if state == "":
            del made.all[name]
        elif state is not None:
            made.set(name, state)
    return made


def listed(made, manager="/controller_manager"):
    return ControllerList(made.listed(), "efforts", "positions", manager)


@pytest.mark.parametrize("pid", [None, *STATES])
def test_each_request_is_accepted_and_reaches_its_end_or_the_list_says_why_not(pid):
    for effort, position, wanted in itertools.product(STATES, STATES, ("torques", "position")):
        if position != "active" or pid in (None, "active"):  # the manager keeps no such chain
            check_request(effort, position, pid, wanted)


def check_request(effort, position, pid, wanted):
    made = in_states(effort, position, pid)
    seen = listed(made)
    needed = ["efforts"] if wanted == "torques" else ["positions"]
    needed += ["pid"] if wanted == "position" and pid is not None else []
    possible = all(name in made.all and made.state(name) in STATES[:2] for name in needed)
    if wanted == "torques" and position not in STATES[:2]:
        possible &= effort == "active" or pid != "active"  # of nobody knows which chain
    request = seen.to_torques if wanted == "torques" else seen.to_position
    if seen.state(needed[0]) == "" or (wanted == "position" and seen.unusable):
        with pytest.raises(ControllerError):
            request()
        assert not possible
        return
    step = request()
    refused = made.switch(*step) if any(step) else ""
    assert bool(refused) == (not possible)
    if possible:
        seen = listed(made)
        assert seen.torques_act == (wanted == "torques")
        assert seen.position_acts == (wanted == "position")
        assert not any(seen.to_torques() if wanted == "torques" else seen.to_position())


@pytest.mark.parametrize(
    ("effort", "position", "problem"),
    [
        ("inactive", "active", ""),
        ("active", "inactive", ""),
        ("active", "active", "`ros2 control set_controller_state efforts inactive`"),
        ("inactive", "inactive", "`ros2 control set_controller_state positions active`"),
        ("inactive", "unconfigured", "`ros2 control set_controller_state positions inactive`"),
        ("unconfigured", "active", "`ros2 control set_controller_state efforts inactive`"),
        ("finalized", "active", "`ros2 control unload_controller efforts`"),
        ("", "active", "'efforts' is not loaded; those loaded: positions"),
        ("active", "", "'positions' is not loaded; those loaded: efforts"),
    ],
)
def test_torques_are_enabled_only_where_one_controller_of_the_two_is_active(
    effort, position, problem
):
    made = in_states(effort, position)
    assert problem in listed(made).problem(JOINTS)
    assert bool(problem) == bool(listed(made).problem(JOINTS))
    done, said = Scene(made).enable()
    assert done == (not problem)
    assert problem in said


@pytest.mark.parametrize(
    ("interfaces", "problem"),
    [
        ((), "commands no joint"),
        (POSITIONS, "must be the interface effort"),
        (EFFORTS[::-1], "other order"),
        (tuple(f"left/{one}" for one in EFFORTS), "other joints"),
    ],
)
def test_the_effort_controller_must_take_these_joints_in_this_order(interfaces, problem):
    made = pair("active", "inactive")
    made.all["efforts"] = made.all["efforts"]._replace(command_interfaces=interfaces)
    for check in (ControllerList.problem, ControllerList.fault):
        assert problem in check(listed(made), JOINTS)


def test_a_third_controller_that_moves_the_joints_is_refused_and_is_a_fault():
    made = pair("active", "inactive", third=("active", "joint1/velocity"))
    for problem in (listed(made).problem(JOINTS), listed(made).fault(JOINTS)):
        assert "'third' and 'efforts' are both active" in problem
        assert "joint1/velocity" in problem
    made.set("third", "inactive")
    assert listed(made).problem(JOINTS) == ""
    made = pair("active", "inactive", third=("active", *POSITIONS))  # which holds the arm
    assert listed(made).to_position() == Switch((), ("efforts",))


JTC = "joint_trajectory_controller/JointTrajectoryController"
FORWARD = "forward_command_controller/ForwardCommandController"


@pytest.mark.parametrize(
    ("kind", "interfaces", "starts", "leaps"),
    [
        (JTC, POSITIONS, True, True),
        (JTC, POSITIONS, False, False),
        (JTC, POSITIONS, None, True),
        (JTC, EFFORTS, True, False),
        (JTC, REFERENCES, True, False),
        ("some/Scaled", POSITIONS, True, True),
        ("some/Unknown", POSITIONS, None, False),
        (FORWARD, POSITIONS, None, True),
    ],
)
def test_a_controller_that_starts_from_its_last_command_is_refused(kind, interfaces, starts, leaps):
    made = chained() if interfaces is REFERENCES else pair()
    made.all["positions"] = made.all["positions"]._replace(type=kind, command_interfaces=interfaces)
    leap = listed(made, "/left/controller_manager").leap(starts)
    assert bool(leap) == leaps
    assert ("`ros2 param set /left/positions set_last" in leap) == (leaps and kind != FORWARD)
    scene = Scene(made)
    scene.manager.starts = starts
    done, said = scene.enable()
    assert done != leaps
    assert ("the arm would leap" in said) == leaps
    assert bool(scene.controllers.requests) != leaps


# -- enabling --------------------------------------------------------------------------------------


def test_a_named_controller_without_a_manager_is_refused_and_discovery_is_mentioned_at_first():
    scene = Scene()
    scene.manager.here = False
    done, said = scene.enable()
    assert not done
    assert "no controller manager '/controller_manager' yet" in said
    scene.run(6.0)
    assert "'/controller_manager' yet" not in scene.enable()[1]


@pytest.mark.parametrize("nodes", [(), ("/left/efforts",)])
def test_enabling_is_refused_where_the_controller_does_not_receive_commands(nodes):
    scene = Scene()
    scene.topic.nodes = nodes
    done, said = scene.enable()
    assert not done
    assert "'efforts' does not subscribe to the command topic /efforts/commands" in said
    scene.topic.nodes = ("/_NODE_NAME_UNKNOWN_",)  # of which the middleware has lost the name
    assert scene.enable()[0]


LEFT = ("/left/controller_manager",)


@pytest.mark.parametrize(
    ("node", "elsewhere", "problem"),
    [
        (None, (), "no node subscribes to the command topic"),
        ("/simulator", (), ""),
        ("/left/efforts", LEFT, "/left/efforts receives the commands, beside /left/controller_man"),
        ("/_NODE_NAME_UNKNOWN_", LEFT, "receives the commands, beside /left/controller_manager"),
        ("/simulation/simulator", LEFT, ""),  # another robot's manager is no matter
    ],
)
def test_without_a_manager_a_node_beside_no_other_one_must_receive_commands(
    node, elsewhere, problem
):
    scene = Scene(holder="")
    scene.manager.here, scene.manager.elsewhere = False, elsewhere
    scene.topic.nodes = (node,) if node else ()
    done, said = scene.enable()
    assert done == (not problem)
    assert problem in said


@pytest.mark.parametrize(
    ("made", "requests"),
    [
        (pair, [(["efforts"], ["positions"]), (["positions"], ["efforts"])]),
        (chained, [(["efforts"], ["positions", "pid"]), (["positions", "pid"], ["efforts"])]),
        (lambda: pair("active", "inactive"), [(["positions"], ["efforts"])]),
    ],
    ids=["one", "chain", "torques act already"],
)
def test_one_request_takes_the_arm_over_once_torques_are_in_and_one_gives_it_back(made, requests):
    scene, seen = Scene(made()), []
    scene.manager.after_switch = lambda *_: seen.append(scene.bench.torques[-1])
    scene.enabled()
    *taken, given_back = requests
    assert scene.controllers.requests == taken
    assert scene.enable()[0]  # once more
    assert scene.controllers.requests == taken
    np.testing.assert_allclose(seen, [G] * len(taken), atol=1e-9)
    begun = scene.world.now
    scene.disable()
    while not scene.released:
        scene.run(0.001)
    assert scene.world.now - begun <= 0.03
    assert scene.controllers.requests == [*taken, given_back]
    scene.run(0.02)
    assert scene.states() == ("inactive", "active")
    assert scene.bench.state == "disabled"
    assert not scene.bench.torques[-1].any()  # the topic does not end on a torque
    count = len(scene.bench.commands)
    scene.run(0.5)
    assert len(scene.bench.commands) == count
    scene.enabled()


@pytest.mark.parametrize("end", ["inactive", "unconfigured", "finalized", "refused"])
def test_a_failed_switch_gives_the_arm_back_at_once(end):
    scene, problem = Scene(), "Unable to activate controllers: ['efforts']"
    if end == "refused":
        end, problem = "inactive", "the hardware does not want to"
        scene.controllers.refusal = lambda activate: problem
    else:
        scene.controllers.failing["efforts"] = end
    done, said = scene.enable()
    assert not done
    assert "the controllers were not switched: " in said
    assert problem in said
    assert "positions holds the arm" in said
    assert scene.states() == (end, "active")
    scene.run(0.03)
    assert scene.core.at_rest


def test_a_fault_before_the_torques_are_in_switches_nothing():
    scene = Scene(ramp_in_time=1.0, stale_timeout=0.2)
    scene.silent_until = scene.world.now + 0.5
    assert not scene.enable()[0]
    assert scene.controllers.requests == []


def test_a_manager_that_does_not_answer_stops_no_arm_and_enables_none():
    scene = Scene(pair("active", "inactive"), holder="")
    scene.manager.loses = 1
    done, said = scene.enable()
    assert not done
    assert "an empty controller_manager does without" in said
    assert Scene(pair("inactive", "inactive"), holder="", controller_manager="").enable()[0]
    scene.enabled()
    scene.manager.loses = 10**6
    scene.run(5.0)
    assert scene.bench.state == "enabled"
    assert "no answer" in scene.enable()[1]


# -- release and loss ------------------------------------------------------------------------------


def lose(scene, how):
    """Take the effort controller away."""
    made = scene.controllers
    if how == "unloaded":
        made.set("efforts", "unconfigured")
        del made.all["efforts"]
    elif how == "switched by somebody":
        assert made.switch(["positions"], ["efforts"]) == ""
    elif how == "both":
        made.set("positions", "active")
    else:
        made.set("efforts", how)


@pytest.mark.parametrize(
    "how", ["inactive", "unconfigured", "finalized", "unloaded", "switched by somebody", "both"]
)
def test_a_lost_effort_controller_is_a_fault_and_the_position_controller_holds(how):
    scene = Scene().enabled()
    scene.run(0.013)
    lose(scene, how)
    scene.run(UNHELD)
    assert scene.bench.fault == "controller"
    assert scene.controllers.state("positions") == "active"
    assert listed(scene.controllers).position_acts
    scene.run(0.03)
    assert scene.core.at_rest


def test_a_refused_release_is_tried_again_while_torques_hold():
    scene = Scene().enabled()
    scene.controllers.refusal = lambda activate: "not now"
    scene.disable()
    scene.run(2.0)
    np.testing.assert_allclose(scene.bench.torques[-1], G, rtol=0.02, atol=1e-12)
    assert any("not now" in said for said in scene.log)
    assert len(scene.controllers.requests) <= 4  # each attempt may drop the arm for a moment
    scene.controllers.refusal = lambda activate: ""
    scene.run(1.01)
    assert scene.states() == ("inactive", "active")


def test_a_release_that_cannot_be_given_back_ends_within_its_limit_and_says_so():
    scene = Scene().enabled()
    scene.controllers.refusal = lambda activate: "never"
    scene.disable()
    scene.run(RELEASE)
    assert not scene.given_up
    scene.run(2.0)  # ramp_time, and a retry
    assert scene.bench.state == "disabled"
    assert "no controller holds the arm: " in scene.given_up[0]
    count = len(scene.controllers.requests)
    scene.run(2.0)
    assert len(scene.controllers.requests) == count  # somebody may have taken the arm away


def test_without_states_the_torques_of_a_release_ramp_out_while_it_is_tried():
    scene = Scene(stale_timeout=0.2).enabled()
    scene.controllers.refusal = lambda activate: "not now"
    scene.silent_until = scene.world.now + 9.0
    scene.run(0.2 + 0.5)
    np.testing.assert_allclose(scene.bench.torques[-1], 0.5 * G, atol=0.1 * np.abs(G).max())
    scene.controllers.refusal = lambda activate: ""
    scene.run(0.05)
    assert scene.states() == ("inactive", "active")


def test_torques_hold_an_arm_that_has_lost_both_controllers():
    scene = Scene().enabled()
    scene.controllers.set("positions", "unconfigured")
    scene.run(0.5)
    assert scene.bench.state == "enabled"
    assert "'positions' is unconfigured" in scene.enable()[1]
    scene.controllers.set("efforts", "inactive")
    scene.run(UNHELD)
    assert scene.states() == ("active", "unconfigured")
    np.testing.assert_allclose(scene.bench.torques[-1], G, rtol=0.02, atol=1e-12)


def test_a_request_without_an_answer_that_takes_effect_late_does_not_drop_the_arm():
    scene = Scene()
    list_, lists = scene.manager.list, []

    async def answers_before_the_switch():
        scene.manager.busy_until = 0.0  # as if requests of different services overtook each other
        lists.append(scene.states())
        return await list_()

    scene.manager.list = answers_before_the_switch
    scene.manager.blocks = 2.4  # the switch to torques, which the client gives up after 2 s
    done, said = scene.enable()
    assert not done
    assert "no answer from switch_controller" in said
    assert ("active", "inactive") in lists  # it took effect after all
    assert scene.states() == ("inactive", "active")
    scene.run(0.03)
    assert scene.core.at_rest


@pytest.mark.parametrize("answered", [False, True])
def test_torques_go_on_while_nobody_knows_whether_a_switch_took_effect(answered):
    """The answer to the switch and two lists are lost, or the three lists that follow."""
    scene = Scene()
    switch, alone = scene.manager.switch, []

    async def falls_silent(activate, deactivate):
        lost = 3 if "efforts" in activate else 0
        scene.manager.loses = 0 if answered else lost
        await switch(activate, deactivate)
        scene.manager.loses = lost

    def look():
        if scene.states() == ("active", "inactive"):
            alone.append(scene.bench.torques[-1])

    scene.manager.switch, scene.each_period = falls_silent, look
    done, said = scene.enable()
    assert not done
    assert "no answer from" in said
    assert scene.states() == ("inactive", "active")
    scene.run(0.03)
    assert scene.core.at_rest
    assert len(alone) * PERIOD > 3.0
    np.testing.assert_allclose(alone, np.tile(G, (len(alone), 1)), rtol=0.02, atol=1e-12)


def test_a_fault_while_controllers_are_switched_is_said():
    scene = Scene()

    def trip(activate, deactivate):
        if activate == ["efforts"]:
            scene.core.arm.trip(scene.world.now, Fault("stale", "nothing came"))

    scene.manager.after_switch = trip
    done, said = scene.enable()
    assert not done
    assert "nothing came" in said
    assert scene.states() == ("inactive", "active")


def test_a_second_call_meanwhile_is_refused():
    scene = Scene(ramp_in_time=0.5)
    answers = []

    async def again():
        await scene.world.sleep(0.2)
        answers.append(await scene.handover.enable())

    scene.world.start(again())
    scene.enabled()
    assert not answers[0][0]
    assert "controllers are being switched" in answers[0][1]


# -- anything, in any order ------------------------------------------------------------------------

EVENTS = (
    "disable", "fault", "lose", "unload", "end chain", "switch", "both", "refuse", "block",
    "fail positions", "fail efforts", "stick", "lose answers", "silence", "away", "enable",
)  # fmt: skip


class Anything:
    """An enabled arm to which anything happens, and how long nobody holds it."""

    def __init__(self, chain):
        self.scene = scene = Scene(chained() if chain else pair(), stale_timeout=0.2).enabled()
        self.names = ("positions", "pid") if chain else ("positions",)
        self.unheld = self.longest = 0.0
        self.owed_before = True
        self.ends = {}
        """When each hindrance ends."""
        scene.each_period = self.look

    def happen(self, event, duration):
        scene, made, now = self.scene, self.scene.controllers, self.scene.world.now
        if event == "enable":
            scene.world.start(scene.handover.enable())
        elif event == "disable":
            scene.disable()
        elif event == "fault":
            scene.core.arm.fail(Fault("test", "a fault"), now)
        elif event == "lose" and "efforts" in made.all:
            made.end("efforts")
        elif event == "unload":
            made.all.pop("efforts", None)
        elif event == "end chain":
            for name in self.names:
                made.end(name)
        elif event == "switch":
            deactivate = ["efforts"] if "efforts" in made.all else []
            made.switch([*self.names], deactivate)
        elif event == "both" and len(self.names) == 1:
            made.switch(["positions"], [])
        elif event == "block":
            scene.manager.blocks = duration
        elif event == "silence":
            scene.silent_until = now + duration
        else:
            self.ends[event] = now + duration
            self.hinder()

    def hinder(self):
        scene, now = self.scene, self.scene.world.now
        on = {event for event, end in self.ends.items() if now < end}
        scene.controllers.refusal = lambda activate: "not now" if "refuse" in on else ""
        failing = [name for name in ("positions", "efforts") if f"fail {name}" in on]
        scene.controllers.failing = dict.fromkeys(failing, "inactive")
        scene.controllers.stuck = {"efforts"} if "stick" in on else set()
        scene.manager.loses = 1 if "lose answers" in on else 0
        scene.manager.here = "away" not in on
        return bool(on) or now < max(scene.manager.busy_until, scene.manager.answers_at)

    def look(self):
        scene, core = self.scene, self.scene.core
        hindered = self.hinder()
        seen = listed(scene.controllers)
        torques = seen.torques_act and (core.engaged or core.arm.holds_arm(scene.world.now))
        held = torques or seen.position_acts
        owed = scene.handover.gives_back
        if self.owed_before and not owed:
            assert held or scene.given_up
        self.owed_before = owed
        self.unheld = 0.0 if held or hindered or not owed else self.unheld + PERIOD
        self.longest = max(self.longest, self.unheld)


@pytest.mark.long
@pytest.mark.parametrize("chain", [False, True])
@settings(max_examples=EXAMPLES, deadline=None)
@given(
    events=st.lists(
        st.tuples(st.sampled_from(EVENTS), st.floats(0.01, 2.6), st.floats(0.0, 1.5)), max_size=8
    )
)
def test_the_arm_is_never_without_a_holder_for_long_if_one_can_be_activated(chain, events):
    anything = Anything(chain)
    for event, duration, pause in events:
        anything.happen(event, duration)
        anything.scene.run(pause)
    anything.scene.run(3.0)
    # a list and a request under way when the hindrance ends may wait for their answers
    assert anything.longest <= UNHELD + 1e-9, anything.scene.log
