# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The node that stands in for a robot: a URDF under forward dynamics, in real time.

Topics, parameters and behaviour: docs/ros.md. Nothing is decided here: callbacks convert, call and
publish.
"""

from __future__ import annotations

import os
import sys
import time
from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from diagnostic_msgs.msg import DiagnosticArray
from geometry_msgs.msg import InertiaStamped, WrenchStamped
from rcl_interfaces.msg import SetParametersResult
from rclpy.clock import Clock, ClockType
from rclpy.event_handler import PublisherEventCallbacks
from rclpy.parameter import Parameter
from rosgraph_msgs.msg import Clock as ClockMessage
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray, String
from std_srvs.srv import SetBool, Trigger

from mbs_dynamics.errors import MbsError
from mbs_dynamics.integrate import Stepper
from mbs_dynamics.model.diagnostics import warnings_about
from mbs_dynamics.model.model import Model
from mbs_dynamics.ros import messages, parameters
from mbs_dynamics.ros.joint_input import Rejection
from mbs_dynamics.ros.node_base import LATCHED, CarefulNode
from mbs_dynamics.ros.process import prefer_udp, run
from mbs_dynamics.ros.robot_description import Load, loads_of, model_of, read_description
from mbs_dynamics.ros.simulator.commands import EffortCommands
from mbs_dynamics.ros.simulator.diagnostics import simulator_diagnostics
from mbs_dynamics.ros.simulator.pacing import LONGEST_LAG, Pacer
from mbs_dynamics.ros.simulator.settings import SimulatorSettings
from mbs_dynamics.ros.simulator.world import World, damping_of_drives, joint_forces


class SimulatorNode(CarefulNode):
    """The simulator; see docs/ros.md.

    Raises MbsError for a description or settings that cannot be used.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__("simulator_node", **options)
        settings = self._settings = parameters.declare(self, SimulatorSettings)
        text = settings.robot_description or read_description(settings.robot_description_file)
        model = self._model(text)
        self._world = World(model, settings)
        self._commands = EffortCommands(
            model.joint_names, settings.joints, settings.command_timeout
        )
        self._message = messages.StateMessage(model.joint_names)
        self._refused, self._last_refusal = 0, ""
        self._loads: deque[Load] = deque()
        self._hanging: tuple[Load, Future[Stepper]] | None = None
        self._compiler = ThreadPoolExecutor(1)  # the robot must not stand still meanwhile
        self._advertise(text)
        self._subscribe()
        self.add_on_set_parameters_callback(self._check_parameters)
        self.add_post_set_parameters_callback(self._apply_parameters)
        # a clock that others read starts at zero; else stamps are those of the system's clock
        self._epoch = 0 if settings.publish_clock else time.time_ns()
        self._steady = Clock(clock_type=ClockType.STEADY_TIME)
        self._pacer = Pacer(self._world.period, settings.realtime_factor, time.perf_counter())
        self._timer = self.create_timer(self._pacer.interval, self._tick, clock=self._steady)
        self.create_timer(1.0, self._publish_diagnostics, clock=self._steady)
        self.get_logger().info(
            f"model {model.name!r}: {model.n} joints, {settings.integrator}, "
            f"{self._world.steps} steps a period, {settings.rate:g} Hz"
        )
        drives = damping_of_drives(model, settings)
        if drives:
            said = ", ".join(f"{name} {damping:.3g}" for name, damping in drives.items())
            self.get_logger().info(
                f"damping of geared drives, by drive_damping {settings.drive_damping:g}, where the "
                f"description states less: {said}"
            )
        if self._world.braked:
            self.get_logger().info(
                f"brakes hold the robot until commands on {self._command_topic} carry it, or "
                f"{self.resolve_service_name('~/brakes')} releases it"
            )

    def _model(self, text: str) -> Model:
        loads = loads_of(self._settings.loads)
        model = model_of(text, loads=loads).with_gravity(self._settings.gravity)
        for message in warnings_about(model):
            self.get_logger().warning(message)
        return model

    def _advertise(self, text: str) -> None:
        # each event handler costs the executor time on every message
        quiet = PublisherEventCallbacks(use_default_callbacks=False)
        self._joint_states = self.create_publisher(
            JointState, "joint_states", 10, event_callbacks=quiet
        )
        self._diagnostics = self.create_publisher(DiagnosticArray, "/diagnostics", 10)
        self._clock_messages: Any = None
        if self._settings.publish_clock:
            self._clock_messages = self.create_publisher(
                ClockMessage, "/clock", 1, event_callbacks=quiet
            )
        if self._settings.publish_description:
            self._description = self.create_publisher(String, "robot_description", LATCHED)
            self._description.publish(String(data=text))

    def _subscribe(self) -> None:
        topic = self._settings.command_topic
        heard = self.create_subscription(Float64MultiArray, topic, self._on_commands, 10)
        self._command_topic = heard.topic_name
        self.create_subscription(JointState, "~/effort_commands", self._on_named_commands, 10)
        self.create_subscription(WrenchStamped, "~/disturbance", self._on_disturbance, 10)
        self.create_subscription(InertiaStamped, "~/payload", self._on_payload, 10)
        self.create_service(Trigger, "~/reset", self._on_reset)
        self.create_service(SetBool, "~/brakes", self._on_brakes)

    # -- what it does ------------------------------------------------------------------------------

    def _tick(self) -> None:
        begin = time.perf_counter()
        self._hang_loads()
        done = 0
        for _ in range(self._pacer.due(begin)):
            late = time.perf_counter() - begin > LONGEST_LAG  # others want the executor as well
            if late or not self._advance():
                break
            done += 1
        self._pacer.did(done, time.perf_counter() - begin)

    def _advance(self) -> bool:
        """Simulate one period and publish it; False if the simulation stands still."""
        world = self._world
        if world.halted:
            return False
        commands = self._commands.at(world.time)
        if world.braked and self._commands.latest is not None and world.carried(commands):
            world.brake(False)
            self.get_logger().info("the commands carry the robot: brakes are released")
        if not world.advance(commands):
            self.get_logger().error(f"halted until ~/reset: {world.halted}")
            return False
        elapsed = round(1e9 * world.periods / self._settings.rate)
        stamp = messages.time_of(self._epoch + elapsed)
        if self._clock_messages is not None:
            self._clock_messages.publish(ClockMessage(clock=stamp))
        q, qd = world.state
        self._joint_states.publish(self._message.fill(stamp, q, qd, world.efforts))
        return True

    def _on_commands(self, message: Float64MultiArray) -> None:
        self._judge("commands", self._commands.set(message.data, self._world.time))

    def _on_named_commands(self, message: JointState) -> None:
        now = self._world.time
        self._judge("commands", self._commands.set_by_name(message.name, message.effort, now))

    def _judge(self, what: str, rejection: Rejection | None) -> None:
        if rejection is not None:
            self._refuse(f"{what} {rejection.kind}", f"{what} refused: {rejection.reason}")

    def _refuse(self, kind: str, said: str) -> None:
        self._refused, self._last_refusal = self._refused + 1, said
        self._warn(kind, said)

    def _on_disturbance(self, message: WrenchStamped) -> None:
        try:
            link = messages.link_of(message.header.frame_id, self._settings.frame_prefix)
            self._world.push(link, messages.wrench_of(message))
        except MbsError as error:
            self._refuse("disturbance", f"disturbance refused: {error}")
            return
        if self._world.braked:
            self._warn("braked", "the disturbance moves nothing: brakes hold the robot")

    def _on_payload(self, message: InertiaStamped) -> None:
        self._loads.append(messages.load_of(message, self._settings.frame_prefix))

    def _hang_loads(self) -> None:
        """Take up loads, one after the other, each once what it needs is compiled."""
        if self._hanging is None:
            if self._loads:
                load = self._loads.popleft()
                self._hanging = load, self._compiler.submit(self._world.loaded, load)
            return
        load, compiled = self._hanging
        if compiled.done():
            self._hanging = None
            try:
                self._world.hang(load, compiled.result())
            except MbsError as error:
                self._refuse("payload", f"payload refused: {error}")
            else:
                self._inform("payload accepted", messages.said_of_payload(load))

    def _on_reset(self, request: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        self._world.reset()
        self._commands.reset()
        self._pacer.change(self._settings.realtime_factor, time.perf_counter())
        response.success = True
        held = ", held by brakes" if self._world.braked else ""
        time_now = f"at {self._world.time:.3f} s"
        response.message = f"at the initial state, with zero efforts{held}, {time_now}"
        return response

    def _on_brakes(self, request: SetBool.Request, response: SetBool.Response) -> SetBool.Response:
        self._world.brake(request.data)
        response.success = True
        response.message = "brakes hold the robot" if request.data else "brakes are released"
        self.get_logger().info(response.message)
        return response

    def _publish_diagnostics(self) -> None:
        self._remind_of_clock(self._settings.publish_clock)
        refused, self._refused = self._refused, 0
        self._diagnostics.publish(
            simulator_diagnostics(
                self.get_fully_qualified_name().lstrip("/"),
                self.get_clock().now().to_msg(),
                self._world,
                self._commands,
                self._pacer.report(time.perf_counter()),
                refused,
                self._last_refusal,
            )
        )

    # -- parameters --------------------------------------------------------------------------------

    def _check_parameters(self, given: list[Parameter]) -> SetParametersResult:
        try:
            settings = parameters.changed(self._settings, given)
            if settings is not self._settings:  # else it is a parameter of rclpy
                joint_forces(self._world.model, settings)
        except MbsError as error:
            return SetParametersResult(successful=False, reason=str(error))
        return SetParametersResult(successful=True)

    def _apply_parameters(self, given: list[Parameter]) -> None:
        before = self._settings
        self._settings = parameters.changed(before, given)
        if self._settings is before:
            return
        self._world.change(self._settings)
        self._commands.timeout = self._settings.command_timeout
        if self._settings.realtime_factor != before.realtime_factor:
            self._pacer.change(self._settings.realtime_factor, time.perf_counter())
            self.destroy_timer(self._timer)
            self._timer = self.create_timer(self._pacer.interval, self._tick, clock=self._steady)


def main(args: list[str] | None = None) -> int:
    """Run the node until SIGINT, SIGTERM or a shutdown of ROS; return the exit code."""
    prefer_udp(os.environ)
    return run("simulator_node", SimulatorNode, args)


if __name__ == "__main__":
    sys.exit(main())
