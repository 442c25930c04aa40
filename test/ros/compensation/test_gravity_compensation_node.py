# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The gravity compensation node over DDS: what stops it, what it refuses, and how it ends."""

import pytest

pytest.importorskip("rclpy")

import os
import signal

import numpy as np
import yaml
from cases import mostly_slow
from controller_manager_bench import StandIn
from diagnostic_msgs.msg import DiagnosticStatus
from gravity_bench import MODEL
from gravity_node_bench import ARM7, JOINTS, READY, Driver, G, GravityProcess, Q
from launch_bench import Launched
from rclpy.node import Node
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray
from std_srvs.srv import Trigger

import mbs_dynamics as mbs

pytestmark = pytest.mark.usefixtures("ros")


@pytest.fixture(scope="module")
def arm(ros):
    """Start a node that can be enabled, for tests that leave it able to be enabled.

    Its clock stands still, which must not stop what watches the arm.
    """
    with GravityProcess(use_sim_time="true") as process, Driver(process) as driver:
        yield driver


def test_silence_stops_it_and_lifecycle_activation_is_the_same_as_the_service(arm):
    """The node is active exactly as long as torques act."""
    reason = "no valid state of joint1 for"
    arm.enable()
    assert arm.lifecycle_state() == "active"
    before = len(arm.faults())
    assert arm.set(stale_timeout=0.2) == ""
    arm.until(lambda: len(arm.faults()) > before, every=0.01)
    assert arm.set(stale_timeout=READY["stale_timeout"]) == ""
    assert reason in arm.faults()[-1]
    arm.zero()
    torques = np.array([command for _, command in arm.commands])
    assert np.isfinite(torques).all()
    assert (np.abs(torques) <= MODEL.effort_limits).all()
    assert arm.silent()
    arm.waits(lambda: reason in (arm.value("fault reason") or ""))
    assert arm.value("state") == "fault"
    assert arm.level("command") == DiagnosticStatus.ERROR
    arm.waits(lambda: arm.enabled[-1:] == [False])
    arm.waits(lambda: arm.lifecycle_state() == "inactive")
    assert not arm.transition("activate")  # before the fault is cleared
    arm.waits(lambda: arm.call(Trigger, "clear", Trigger.Request(), once=True).success)
    # longer than a busy machine takes for the two calls that are refused
    arm.waits(lambda: arm.set(ramp_time=3.0) == "")
    arm.waits(lambda: arm.transition("activate"))
    arm.waits(lambda: arm.enabled[-1:] == [True])
    arm.waits(lambda: arm.value("state") == "enabled")
    assert not arm.transition("deactivate")  # torques ramp out
    assert not arm.transition("cleanup")
    arm.waits(lambda: arm.lifecycle_state() == "inactive")
    arm.waits(lambda: arm.set(ramp_time=READY["ramp_time"]) == "")
    arm.waits(lambda: arm.enabled[-1:] == [False])
    assert arm.set(compensates_itself=True) == ""
    assert not arm.transition("activate")
    assert "compensates_itself is true" in arm.target.log
    assert arm.set(compensates_itself=False) == ""


def test_payload_gravity_and_parameters_take_effect_and_some_wait_for_rest(arm):
    loaded = MODEL.with_payload("tool", 2.0, (0.0, 0.02, 0.05)).with_gravity((0.0, 1.0, -9.7))
    goal = mbs.gravity_torques(loaded, Q)  # compiles
    goal[1] *= 0.5
    arm.enable()
    arm.payload("tool", 2.0, (0.0, 0.02, 0.05))
    arm.gravity((0.0, 1.0, -9.7))
    assert arm.set(**{"gravity_scale.joint2": 0.5}) == ""
    assert "effort_limits" in arm.set(**{"effort_limits.joint2": 5.0})
    arm.payload("tool", np.nan)
    arm.waits(lambda: "payload refused" in arm.target.log)
    arm.waits(lambda: np.allclose(arm.commands[-1][1], goal, atol=1e-9))
    arm.payload("tool", 0.0)
    arm.gravity((0.0, 0.0, -9.81))
    assert arm.set(**{"gravity_scale.joint2": 1.0}) == ""
    arm.waits(lambda: np.allclose(arm.commands[-1][1], G, atol=1e-9))


def test_joint_state_publisher_beside_the_driver_is_named_and_leaves_the_arm_where_it_is(arm):
    arm.enable()
    before, count = len(arm.faults()), len(arm.commands)
    other = Node("joint_state_publisher", namespace=arm.target.namespace)
    foreign = other.create_publisher(JointState, "joint_states", 10)

    def both():
        message = arm.state(JOINTS, np.zeros(7))
        foreign.publish(message)
        arm.well()

    arm.waits(lambda: "two sources in turn" in arm.target.log, again=both)
    arm.waits(lambda: other.get_fully_qualified_name() in arm.target.log, again=both)
    other.destroy_node()
    assert arm.enabled[-1] is True
    assert len(arm.faults()) == before
    torques = np.array([command for _, command in arm.commands[count:]])
    np.testing.assert_allclose(torques, np.tile(G, (len(torques), 1)), atol=0.1)


def test_a_second_publisher_of_commands_stops_it(arm):
    arm.enable()
    before, topic = len(arm.faults()), f"{arm.target.namespace}/commands"
    rival = arm.node.create_publisher(Float64MultiArray, topic, 1)
    arm.waits(lambda: len(arm.faults()) > before)
    said = arm.faults()[-1]
    assert topic in said
    assert arm.node.get_fully_qualified_name() in said or "not known yet" in said
    arm.zero()
    arm.waits(lambda: "other publisher" in arm.ask(True).message)
    arm.node.destroy_publisher(rival)


# -- nodes of their own ----------------------------------------------------------------------------


def check_ramp_out(arm, process, *, moving=False):
    """Wait for the end of the process; check that its last commands are a ramp to zero."""
    arm.commands.clear()
    arm.until_end(arm.well if moving else lambda: None)
    arm.drain()
    assert process.wait() == 0
    torques = np.array([command for _, command in arm.commands])
    assert not torques[-1].any()
    assert len(torques) > 5  # a ramp, not a leap
    assert (np.diff(np.abs(torques), axis=0) <= 1e-9).all()


MOVING = [(signal.SIGINT, True), (signal.SIGHUP, True)]
SILENT = [(signal.SIGTERM, False), (signal.SIGQUIT, False)]


@pytest.mark.parametrize(("how", "moving"), mostly_slow([*MOVING, *SILENT], MOVING[:1]))
def test_signals_ramp_out(ros, how, moving):
    given = {"on_fault": "hold", "ramp_time": 2.0}
    with GravityProcess(**given) as process, Driver(process) as arm:
        arm.enable()
        process.process.send_signal(how)
        check_ramp_out(arm, process, moving=moving)
        assert "Traceback" not in process.log


def test_launch_with_a_xacro_file_and_parameters_and_ramp_out_at_the_end(ros, installed, tmp_path):
    pytest.importorskip("xacro")
    robot = tmp_path / "arm.urdf.xacro"
    text = ARM7.read_text(encoding="utf-8")
    xmlns = '<robot xmlns:xacro="http://www.ros.org/wiki/xacro"'
    robot.write_text(text.replace("<robot", xmlns, 1), encoding="utf-8")
    parameters = tmp_path / "arm.yaml"
    timeout = {"stale_timeout": READY["stale_timeout"]}
    given = {"joints": list(JOINTS), "compensates_itself": False} | timeout
    parameters.write_text(yaml.safe_dump({"/**": {"ros__parameters": given}}), encoding="utf-8")
    arguments = [f"urdf:={robot}", f"params_file:={parameters}", "command_topic:=commands"]
    launched = Launched("gravity_compensation", "gravity_compensation_node", *arguments)
    with launched as process, Driver(process) as arm:
        arm.enable()
        process.process.send_signal(signal.SIGINT)
        check_ramp_out(arm, process, moving=True)


# -- beside a controller manager -------------------------------------------------------------------


EFFORTS = [f"{name}/effort" for name in JOINTS]
POSITIONS = [f"{name}/position" for name in JOINTS]


@pytest.fixture
def managed(controller_manager_msgs):
    """Start a node beside an inactive effort controller and an active position controller."""
    given = {"command_topic": "efforts/commands", "position_controller": "positions"}
    with GravityProcess(**given) as process, Driver(process) as driver:
        two = {"efforts": ("inactive", *EFFORTS), "positions": ("active", *POSITIONS)}
        driver.manager = StandIn(driver.node, **two)
        yield driver
        for one in driver.manager.nodes:
            one.destroy_node()


def enabled(managed):
    managed.waits(lambda: managed.ask(True).success)
    assert managed.manager.requests[-1] == (["efforts"], ["positions"])
    assert managed.manager.state("efforts") == "active"
    managed.waits(lambda: managed.enabled[-1:] == [True])


def test_enabling_switches_the_controllers_and_disabling_or_a_signal_switches_them_back(managed):
    enabled(managed)
    assert managed.ask(False).success
    managed.waits(lambda: managed.manager.state("positions") == "active")
    assert managed.manager.requests[-1] == (["positions"], ["efforts"])
    managed.waits(lambda: managed.value("state") == "disabled")
    enabled(managed)
    managed.target.process.send_signal(signal.SIGINT)
    managed.waits(lambda: managed.target.process.poll() is not None)
    assert managed.target.wait() == 0
    assert managed.manager.state("positions") == "active"


def test_a_controller_is_found_by_the_resolved_topic(controller_manager_msgs):
    """Two arms share a manager, and each node is in a namespace of its own."""
    space = f"/shared_{os.getpid()}"
    swapped = [EFFORTS[1], EFFORTS[0], *EFFORTS[2:]]
    owner = Node("owner", namespace=space)
    given = {"command_topic": f"{space}/left_efforts/commands"}
    with GravityProcess(**given) as process, Driver(process) as arm:
        manager = StandIn(owner, left_efforts=("active", *swapped), right_efforts=("active",))
        arm.executor.add_node(owner)
        arm.waits(lambda: "'left_efforts' has other order" in arm.ask(True).message)
        arm.waits(lambda: arm.enabled[-1:] == [False])
        there = manager.there.all
        there["left_efforts"] = there["left_efforts"]._replace(command_interfaces=tuple(EFFORTS))
        arm.waits(lambda: arm.ask(True).success)
        for one in (*manager.nodes, owner):
            one.destroy_node()
