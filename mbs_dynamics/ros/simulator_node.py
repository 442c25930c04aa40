# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Simulates a robot: a URDF under forward dynamics, in real time.

Behaviour: docs/reference/nodes. Nothing is decided here: callbacks convert, call and publish.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from functools import partial
from typing import Any

from diagnostic_msgs.msg import DiagnosticStatus
from geometry_msgs.msg import InertiaStamped, WrenchStamped
from rosgraph_msgs.msg import Clock as ClockMessage
from std_msgs.msg import Float64MultiArray, String
from std_srvs.srv import SetBool, Trigger

from mbs_dynamics.control.environment import link_loads
from mbs_dynamics.errors import quoted
from mbs_dynamics.ros import messages
from mbs_dynamics.ros.node_base import BaseNode
from mbs_dynamics.ros.performance import InputStatistics
from mbs_dynamics.ros.process import run
from mbs_dynamics.ros.robot_description import loads_of, model_of, remarks_about, text_of
from mbs_dynamics.ros.simulator.interface import SIMULATOR_NODE, SimulatorSettings
from mbs_dynamics.ros.simulator.world import (
    LATE,
    Pacer,
    World,
    joint_forces,
)

LEAST_RATE = 0.9
"""Share of the wanted rate of joint states below which the simulation is too slow."""


class SimulatorNode(BaseNode):
    """The simulator; see docs/reference/nodes.

    Raises MbsError for a description or settings that cannot be used.
    """

    interface = SIMULATOR_NODE

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        settings: SimulatorSettings = self._settings
        text = text_of(settings.robot_description)
        model = model_of(text, loads=loads_of(settings.loads)).with_gravity(settings.gravity)
        self._world = World(model, settings)
        self._statistics = InputStatistics(time.monotonic())
        """Statistics of the received commands."""
        self._joint_states = self.advertise("joint_states")
        self._clock_messages = self.advertise("/clock") if settings.publish_clock else None
        self.advertise("robot_description").publish(String(data=text))
        commands = self.subscribe("<command_topic>", self._on_command, settings.command_topic)
        self.subscribe("~/disturbance", self._on_disturbance)
        self.subscribe("~/payload", self._on_payload)
        self.answer("~/reset", self._reset)
        self.answer("~/brakes", self._brake)
        # a clock for other nodes starts at zero; else stamps are those of the system's clock
        self._epoch = 0 if settings.publish_clock else time.time_ns()
        self._pacer = Pacer(1.0 / settings.rate / settings.realtime_factor, time.perf_counter())
        self._published = 0
        """Number of published joint states."""
        self._since = time.monotonic(), 0
        """Time in s, and number of published joint states, at the latest diagnostics."""
        self._steady_timer(self._pacer.interval, self._tick)
        self._log_model(
            f"model {quoted(model.name)}: {model.n} joints, {settings.rate:g} Hz",
            remarks_about(model),
        )
        if self._world.braked:
            self.get_logger().info(
                f"brakes hold the robot until commands on {commands.topic_name} carry it, or "
                f"{self.resolve_service_name('~/brakes')} releases it"
            )

    # -- simulation --------------------------------------------------------------------------------

    def _tick(self) -> None:
        """Simulate the periods that are due, and publish those that are not late."""
        begin = time.perf_counter()
        for due in range(self._pacer.due(begin), 0, -1):
            # other callbacks need the executor
            if time.perf_counter() - begin > LATE or not self._advance():
                break
            self._pacer.did(1)
            if (due - 1) * self._pacer.interval < LATE:
                self._publish_state()

    def _advance(self) -> bool:
        """Simulate one period; False if the simulation is halted."""
        world = self._world
        if world.halted:
            return False
        if world.braked and world.commands is not None and world.carried:
            world.brake(False)
            self.get_logger().info("the commands carry the robot: brakes are released")
        if not world.advance():
            self.get_logger().error(f"halted until ~/reset: {world.halted}")
            return False
        return True

    def _publish_state(self) -> None:
        """Publish joint states, and the clock."""
        world = self._world
        periods = world.periods
        if self._clock_messages is None:  # stamps keep up with the system's clock
            periods += self._pacer.skipped
        self._published += 1
        stamp = messages.time_of(self._epoch + round(1e9 * periods / self._settings.rate))
        if self._clock_messages is not None:
            self._clock_messages.publish(ClockMessage(clock=stamp))
        q, qd = world.state
        names, efforts = world.model.joint_names, world.efforts
        self._joint_states.publish(
            messages.joint_message(stamp, names, position=q, velocity=qd, effort=efforts)
        )

    # -- input -------------------------------------------------------------------------------------

    def _on_command(self, message: Float64MultiArray) -> None:
        begin = time.monotonic()
        rejection = self._world.command(message.data)
        if rejection is None:
            self._statistics.answered(begin, time.monotonic())
        else:
            self._statistics.rejected(rejection)
            self.warn(f"commands {rejection.kind}", f"commands refused: {rejection.reason}")

    def _on_disturbance(self, message: WrenchStamped) -> None:
        link = messages.link_of(message.header.frame_id, self._settings.frame_prefix)
        wrench = messages.wrench_of(message)
        accepted = self._try("disturbance", lambda: self._world.push(link, wrench))
        if accepted and self._world.braked:
            self.warn("braked", "the disturbance moves nothing: brakes hold the robot")

    def _on_payload(self, message: InertiaStamped) -> None:
        load = messages.load_of(message, self._settings.frame_prefix)
        if self._try("payload", lambda: self._world.hang(load)):
            self.get_logger().info(messages.payload_line(load))

    def _reset(self, request: Trigger.Request) -> str:
        self._world.reset()
        self._pacer.restart(time.perf_counter())
        held = ", held by brakes" if self._world.braked else ""
        return f"at the initial state, with zero efforts{held}, at {self._world.time:.3f} s"

    def _brake(self, request: SetBool.Request) -> str:
        self._world.brake(request.data)
        return "brakes hold the robot" if request.data else "brakes are released"

    # -- diagnostics and parameters ----------------------------------------------------------------

    def _publish_diagnostics(self) -> None:
        self._remind_of_clock(self._settings.publish_clock)
        world, (since, before), now = self._world, self._since, time.monotonic()
        self._since = now, self._published
        rate, wanted = (self._published - before) / (now - since), 1.0 / self._pacer.interval
        slow = f"too slow: {rate:.1f} Hz of {wanted:.1f} Hz" if rate < LEAST_RATE * wanted else ""
        simulation = messages.status(
            "simulation",
            f"{'brakes hold the robot; ' if world.braked else ''}{rate:.1f} Hz",
            {
                "model": world.model.name,
                "simulated time [s]": f"{world.time:.3f}",
                "rate [Hz]": f"{rate:.1f}",
                "wanted rate [Hz]": f"{wanted:.1f}",
                "algorithm": world.settings.algorithm,
                "brakes": "hold the robot" if world.braked else "released",
                **messages.environment_values(world.model.gravity, link_loads(world.model)),
            },
            warning=slow,
            error=f"halted until ~/reset: {world.halted}" if world.halted else "",
            refusals=self._refusals,
        )
        self._report([simulation, self._input_status(now)], world.model.name)

    def _input_status(self, now: float) -> DiagnosticStatus:
        """Return the state of the commands."""
        report = self._statistics.report(now)
        summary = "commands in force"
        if self._world.commands is None:
            summary = "no command yet: efforts are zero"
        elif self._world.braked:
            summary = "commands in force, which do not carry the robot: brakes hold it"
        warning = ""
        if report.rejected:
            warning = f"{report.rejected} messages refused: {report.values['last rejection']}"
        return messages.status("input", summary, report.values, warning=warning)

    def _check(self, settings: SimulatorSettings) -> None:
        joint_forces(self._world.model, settings)

    def _apply(self, before: SimulatorSettings, given: Sequence[str]) -> None:
        self._world.change(self._settings)


main = partial(run, SimulatorNode)

if __name__ == "__main__":
    sys.exit(main())
