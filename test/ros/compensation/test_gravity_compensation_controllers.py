# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The gravity compensation node and a controller manager over DDS."""

from __future__ import annotations

import os
import signal
from contextlib import contextmanager

import pytest

pytest.importorskip("rclpy")

from controller_manager_bench import StandIn
from gravity_node_bench import JOINTS, Driver, GravityProcess
from rclpy.node import Node

pytestmark = pytest.mark.usefixtures("ros", "controller_manager_msgs")

EFFORTS = [f"{name}/effort" for name in JOINTS]
POSITIONS = [f"{name}/position" for name in JOINTS]


@contextmanager
def node(effort, **parameters):
    """Yield the node beside an effort controller in this state, and an active position one."""
    given = {"command_topic": "efforts/commands", "position_controller": "positions"}
    with GravityProcess(**given, **parameters) as process, Driver(process) as driver:
        driver.manager = StandIn(
            driver.node, efforts=(effort, *EFFORTS), positions=("active", *POSITIONS)
        )
        yield driver
        for one in driver.manager.nodes:
            one.destroy_node()


@pytest.fixture
def arm():
    with node("inactive") as driver:
        yield driver


def enabled(arm):
    arm.waits(lambda: arm.ask(True).success)
    assert arm.manager.requests[-1] == (["efforts"], ["positions"])
    assert arm.manager.state("efforts") == "active"
    arm.waits(lambda: arm.enabled[-1:] == [True])


def test_enable_switches_the_controllers_and_disable_switches_them_back(arm):
    enabled(arm)
    assert arm.ask(False).success
    arm.waits(lambda: arm.manager.state("positions") == "active")
    assert arm.manager.requests[-1] == (["positions"], ["efforts"])
    arm.waits(lambda: arm.value("state") == "disabled")
    enabled(arm)


def test_sigint_switches_the_controllers_back(arm):
    enabled(arm)
    arm.target.process.send_signal(signal.SIGINT)
    arm.waits(lambda: arm.target.process.poll() is not None)
    assert arm.target.wait() == 0
    assert arm.manager.state("positions") == "active"


def test_a_controller_is_found_by_the_resolved_topic(ros):
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
        manager.there.all["left_efforts"] = manager.there.all["left_efforts"]._replace(
            command_interfaces=tuple(EFFORTS)
        )
        arm.waits(lambda: arm.ask(True).success)
        for one in (*manager.nodes, owner):
            one.destroy_node()
