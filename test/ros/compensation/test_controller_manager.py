# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The client of the controller manager, over DDS, from callbacks of a single-threaded executor."""

import pytest

pytest.importorskip("rclpy")

from controller_manager_bench import StandIn
from rclpy.callback_groups import ReentrantCallbackGroup
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rclpy.task import Future
from sensor_msgs.msg import JointState
from std_srvs.srv import SetBool
from waiting import wait_until

from mbs_dynamics.errors import ControllerError
from mbs_dynamics.ros.command_watchdog_node import CommandWatchdogNode
from mbs_dynamics.ros.compensation import controllers
from mbs_dynamics.ros.compensation.controller_list import Controller
from mbs_dynamics.ros.compensation.controllers import ControllerManager
from mbs_dynamics.ros.compensation.interface import ControllerSettings

pytestmark = pytest.mark.usefixtures("ros", "controller_manager_msgs")


class Bench:
    """A node with a client, a node with a manager, and the one executor of both."""

    def __init__(self, namespace):
        self.executor = SingleThreadedExecutor()
        self.node = Node("client", namespace=namespace)
        self.other = Node("manager", namespace=namespace)
        self.executor.add_node(self.node)
        self.executor.add_node(self.other)
        self.manager = ControllerManager(self.node, ControllerSettings(), timeout=60.0)
        self.controllers = []

    def end(self):
        self.executor.shutdown()
        for node in self.controllers:
            node.destroy_node()
        self.node.destroy_node()
        self.other.destroy_node()

    def stand_in(self):
        made = StandIn(
            self.other,
            efforts=("inactive", "a/effort", "b/effort"),
            holder=("active", "chained/a", "b/position"),
            chained=("active", "a/position"),
        )
        self.controllers += made.nodes
        clients = (self.manager._list, self.manager._switch)
        self.until(lambda: all(client.service_is_ready() for client in clients))
        return made

    def until(self, condition):
        wait_until(condition, lambda: self.executor.spin_once(timeout_sec=0.05))

    def run(self, coroutine):
        """Return the result of a coroutine, run by the executor."""
        outcome = Future()

        async def catch():
            try:
                outcome.set_result(await coroutine)
            except ControllerError as error:
                outcome.set_result(error)

        self.executor.create_task(catch)
        self.until(outcome.done)
        return outcome.result()


@pytest.fixture
def bench(request):
    made = Bench(f"/{request.node.name}")
    yield made
    made.end()


def test_lists_controllers_with_joints_in_their_order_and_reads_how_one_starts(bench):
    stand_in = bench.stand_in()
    kind = "some/Controller"
    assert bench.run(bench.manager.list()) == [
        Controller("efforts", "inactive", kind, ("a/effort", "b/effort")),
        Controller("holder", "active", kind, ("chained/a", "b/position"), ("chained",)),
        Controller("chained", "active", kind, ("a/position",)),
    ]
    for value in (True, False):
        stand_in.starts_from_command = value
        assert bench.run(bench.manager.starts_from_command("holder")) is value
    assert bench.run(bench.manager.starts_from_command("nobody")) is None


def test_a_switch_is_refused_by_an_error_or_leaves_no_control_cycle_without_a_controller(bench):
    stand_in = bench.stand_in()
    stand_in.there.refusal = lambda activate: "the hardware does not want to"
    error = bench.run(bench.manager.switch(["efforts"], ["holder"]))
    assert isinstance(error, ControllerError)
    assert str(error).endswith("refused to switch controllers: the hardware does not want to")
    assert stand_in.state("holder") == "active"
    stand_in.there.refusal = lambda activate: ""
    assert bench.run(bench.manager.switch(["efforts"], ["holder"])) is None
    assert (stand_in.state("efforts"), stand_in.state("holder")) == ("active", "inactive")
    assert not stand_in.skipped


def test_a_manager_that_is_away_is_not_waited_for(bench):
    assert not bench.manager.present()
    error = bench.run(bench.manager.list())
    namespace = bench.node.get_namespace()
    assert str(error) == f"there is no service {namespace}/controller_manager/list_controllers"
    bench.stand_in()
    assert bench.manager.present()


def test_an_answer_that_does_not_come_raises_and_leaves_nothing_behind(bench):
    stand_in = bench.stand_in()
    bench.manager._timeout = 0.2
    held = Future()

    async def never(request, response):
        await held
        return response

    stand_in.services[0].callback = never
    timers = len(list(bench.node.timers))
    error = bench.run(bench.manager.list())
    assert str(error).endswith("/list_controllers within 0.2 s: no list of controllers")
    assert len(list(bench.node.timers)) == timers
    assert not bench.manager._list._pending_requests
    stand_in.services[0].callback = stand_in._list
    held.set_result(None)  # the answer comes too late, and is dropped
    bench.manager._timeout = 60.0
    assert len(bench.run(bench.manager.list())) == 3


def test_joint_states_are_served_while_a_service_callback_awaits_the_manager(bench):
    stand_in = bench.stand_in()
    held, heard, before, during = Future(), [], [], []

    async def slow(request, response):
        await held
        return stand_in._list(request, response)

    stand_in.services[0].callback = slow

    async def enable(request, response):
        before.append(len(heard))
        response.message = ", ".join(one.name for one in await bench.manager.list())
        during.append(len(heard) - before[0])
        return response

    node = bench.node
    node.create_service(SetBool, "enable", enable, callback_group=ReentrantCallbackGroup())
    node.create_subscription(JointState, "joint_states", lambda _: heard.append(0), 10)
    states = bench.other.create_publisher(JointState, "joint_states", 10)
    client = bench.other.create_client(SetBool, "enable")
    bench.until(lambda: client.service_is_ready() and states.get_subscription_count())
    answer = client.call_async(SetBool.Request())

    def enough():
        states.publish(JointState())
        return before and len(heard) > before[0] + 10

    bench.until(enough)
    assert not answer.done()
    held.set_result(None)
    bench.until(answer.done)
    assert answer.result().message == "efforts, holder, chained"
    assert during[0] > 10


def test_without_the_messages_presence_is_seen_calls_raise_and_no_watchdog_starts(
    bench, monkeypatch
):
    monkeypatch.setattr(controllers, "_services", lambda: None)
    manager = ControllerManager(bench.node, ControllerSettings())
    bench.stand_in()
    assert manager.present()
    for call in (manager.list(), manager.switch(["a"], ["b"])):
        error = bench.run(call)
        assert "install ros-<distro>-controller-manager-msgs" in str(error)
    with pytest.raises(ControllerError, match="controller_manager_msgs is not installed"):
        CommandWatchdogNode(namespace=bench.node.get_namespace())
