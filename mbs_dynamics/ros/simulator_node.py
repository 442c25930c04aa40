# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Simulates a robot: a URDF under forward dynamics, in real time.

Behaviour: docs/reference/nodes. Nothing is decided here: callbacks convert, call and publish.
"""

from __future__ import annotations

import sys
import time
from collections import deque
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import Any

import numpy as np
from diagnostic_msgs.msg import DiagnosticStatus
from geometry_msgs.msg import InertiaStamped, WrenchStamped
from rosgraph_msgs.msg import Clock as ClockMessage
from std_msgs.msg import String
from std_srvs.srv import SetBool, Trigger

from mbs_dynamics.control.environment import LinkLoad
from mbs_dynamics.errors import listed, quoted
from mbs_dynamics.integrate import Stepper
from mbs_dynamics.ros import messages
from mbs_dynamics.ros.node_base import BaseNode
from mbs_dynamics.ros.process import run
from mbs_dynamics.ros.robot_description import loads_of, model_of, read_robot, remarks_about
from mbs_dynamics.ros.simulator.interface import SIMULATOR_NODE, SimulatorSettings
from mbs_dynamics.ros.simulator.world import (
    LONGEST_LAG,
    EffortCommands,
    Pace,
    Pacer,
    World,
    damping_of_drives,
    joint_forces,
)


class SimulatorNode(BaseNode):
    """The simulator; see docs/reference/nodes.

    Raises MbsError for a description or settings that cannot be used.
    """

    interface = SIMULATOR_NODE
    prefers_udp = True

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        settings: SimulatorSettings = self._settings
        text = settings.robot_description or read_robot(
            "robot_description_file", settings.robot_description_file
        )
        model = model_of(text, loads=loads_of(settings.loads)).with_gravity(settings.gravity)
        self._world = World(model, settings)
        self._commands = EffortCommands(
            model.joint_names, settings.joints, settings.command_timeout
        )
        fields = ("position", "velocity", "effort")
        self._message = messages.JointMessage(model.joint_names, *fields)
        self._refused, self._last_refusal = 0, ""
        self._loads: deque[LinkLoad] = deque()
        self._hanging: tuple[LinkLoad, Future[Stepper]] | None = None
        self._compiler = ThreadPoolExecutor(1)  # in a thread, so that the simulation continues
        self._joint_states = self.advertise("joint_states")
        self._touching: set[str] = set()
        if settings.contact_planes:
            self._contacts = self.advertise("~/contact")
        self._clock_messages: Any = None
        if settings.publish_clock:
            self._clock_messages = self.advertise("/clock")
        if settings.publish_description:
            self._description = self.advertise("robot_description")
            self._description.publish(String(data=text))
        commands = self.subscribe(
            "<command_topic>", lambda one: self._command(one.data), settings.command_topic
        )
        self.subscribe("~/effort_commands", lambda one: self._command(one.effort, one.name))
        self.subscribe("~/disturbance", self._on_disturbance)
        self.subscribe("~/payload", self._on_payload)
        self.answer("~/reset", self._reset)
        self.answer("~/brakes", self._brake)
        self._watch_parameters()
        # a clock for other nodes starts at zero; else stamps are those of the system's clock
        self._epoch = 0 if settings.publish_clock else time.time_ns()
        self._pacer = Pacer(self._world.period, settings.realtime_factor, time.perf_counter())
        self._timer = self._steady_timer(self._pacer.interval, self._tick)
        self._steady_timer(1.0, self._publish_diagnostics)
        self._log_model(
            f"model {quoted(model.name)}: {model.n} joints, {settings.integrator}, "
            f"{self._world.steps} steps a period, {settings.rate:g} Hz",
            remarks_about(model),
        )
        drives = damping_of_drives(model, settings)
        if drives:
            dampings = listed(f"{name} {damping:.3g}" for name, damping in drives.items())
            self.get_logger().info(
                f"damping of geared drives, by drive_damping {settings.drive_damping:g}, where the "
                f"description states less: {dampings}"
            )
        if self._world.braked:
            self.get_logger().info(
                f"brakes hold the robot until commands on {commands.topic_name} carry it, or "
                f"{self.resolve_service_name('~/brakes')} releases it"
            )

    # -- simulation --------------------------------------------------------------------------------

    def _tick(self) -> None:
        begin = time.perf_counter()
        self._hang_loads()
        done = 0
        for _ in range(self._pacer.due(begin)):
            late = time.perf_counter() - begin > LONGEST_LAG  # other callbacks need the executor
            if late or not self._advance():
                break
            done += 1
        self._pacer.did(done, time.perf_counter() - begin)

    def _advance(self) -> bool:
        """Simulate one period and publish it; False if the simulation is halted."""
        world = self._world
        if world.halted:
            return False
        commands = self._commands.at(world.time)
        commanded = self._commands.commanded
        if world.can_release(commanded) and commanded and world.carried(commands, commanded):
            world.release(commanded)
            rest = f"; they hold {listed(world.held)}" if world.held else ""
            self.get_logger().info(f"the commands carry the robot: brakes are released{rest}")
        if not world.advance(commands):
            self.get_logger().error(f"halted until ~/reset: {world.halted}")
            return False
        elapsed = round(1e9 * world.periods / self._settings.rate)
        stamp = messages.time_of(self._epoch + elapsed)
        if self._clock_messages is not None:
            self._clock_messages.publish(ClockMessage(clock=stamp))
        q, qd = world.state
        self._joint_states.publish(self._message.fill(stamp, q, qd, world.efforts))
        touched = world.touched()
        for link in self._touching | touched.keys():  # a zero at the end of each contact
            message = messages.wrench_message(self._settings.frame_prefix + link)
            self._contacts.publish(message.fill(stamp, touched.get(link, np.zeros(6))))
        self._touching = set(touched)
        return True

    # -- input -------------------------------------------------------------------------------------

    def _command(self, efforts: Sequence[float], names: Sequence[str] | None = None) -> None:
        rejection = self._commands.set(efforts, self._world.time, names)
        if rejection is not None:
            self._refuse(f"commands {rejection.kind}", f"commands refused: {rejection.reason}")

    def _refuse(self, kind: str, message: str) -> None:
        self._refused, self._last_refusal = self._refused + 1, message
        super()._refuse(kind, message)

    def _on_disturbance(self, message: WrenchStamped) -> None:
        link = messages.link_of(message.header.frame_id, self._settings.frame_prefix)
        wrench = messages.wrench_of(message)
        accepted = self._try("disturbance", lambda: self._world.push(link, wrench))
        if accepted and self._world.braked:
            self.warn("braked", "the disturbance moves nothing: brakes hold the robot")

    def _on_payload(self, message: InertiaStamped) -> None:
        self._loads.append(messages.load_of(message, self._settings.frame_prefix))

    def _hang_loads(self) -> None:
        """Attach loads, one after the other, each once its kernels are compiled."""
        if self._hanging is None:
            if self._loads:
                load = self._loads.popleft()
                self._hanging = load, self._compiler.submit(self._world.loaded, load)
            return
        load, compiled = self._hanging
        if compiled.done():
            self._hanging = None
            if self._try("payload", lambda: self._world.hang(load, compiled.result())):
                self._inform("payload accepted", messages.payload_line(load))

    def _reset(self, request: Trigger.Request) -> str:
        self._world.reset()
        self._commands.reset()
        self._pacer.change(self._settings.realtime_factor, time.perf_counter())
        held = ", held by brakes" if self._world.braked else ""
        at = f"at {self._world.time:.3f} s"
        return f"at the initial state, with zero efforts{held}, {at}"

    def _brake(self, request: SetBool.Request) -> str:
        self._world.brake(request.data)
        return "brakes hold the robot" if request.data else "brakes are released"

    def _publish_diagnostics(self) -> None:
        self._remind_of_clock(self._settings.publish_clock)
        refused, self._refused = self._refused, 0
        world, pace = self._world, self._pacer.report(time.perf_counter())
        statuses = [
            simulation_status(world, pace, self._refusals),
            input_status(world, self._commands, refused, self._last_refusal),
        ]
        self._report(statuses, world.model.name)

    # -- parameters --------------------------------------------------------------------------------

    def _check(self, settings: SimulatorSettings) -> None:
        joint_forces(self._world.model, settings)

    def _apply(self, before: SimulatorSettings, given: Sequence[str]) -> None:
        settings = self._settings
        self._world.change(settings)
        self._commands.timeout = settings.command_timeout
        if settings.realtime_factor != before.realtime_factor:
            self._pacer.change(settings.realtime_factor, time.perf_counter())
            self.destroy_timer(self._timer)
            self._timer = self._steady_timer(self._pacer.interval, self._tick)


def simulation_status(world: World, pace: Pace, refusals: Mapping[str, str]) -> DiagnosticStatus:
    """Return the pace of the simulation, why it halted, and why a payload was refused."""
    values: dict[str, object] = {
        "model": world.model.name,
        "simulated time [s]": f"{world.time:.3f}",
        "rate [Hz]": f"{pace.rate:.1f}",
        "wanted rate [Hz]": f"{pace.wanted:.1f}",
        "real-time factor": f"{pace.rate * world.period:.3f}",
        "load": f"{pace.load:.3f}",
        "lost [s]": f"{pace.lost:.3f}",
        "integrator": world.settings.integrator,
        "algorithm": world.settings.algorithm,
        **({} if world.halted else world.cost()),
        "links at planes": ", ".join(world.touched()) or "none",
        "brakes": _brakes(world),
        "step [s]": f"{world.period / world.steps:.6g}",
        **messages.environment_values(world.model.gravity, world.loads),
    }
    summary = f"{'brakes hold the robot; ' if world.braked else ''}{pace.rate:.1f} Hz"
    slow = f"too slow: {pace.rate:.1f} Hz of {pace.wanted:.1f} Hz, {pace.lost:.2f} s lost"
    return messages.status(
        "simulation",
        summary,
        values,
        warning=slow if pace.too_slow else "",
        error=f"halted until ~/reset: {world.halted}" if world.halted else "",
        refusals=refusals,
    )


def _brakes(world: World) -> str:
    if world.braked:
        return "hold the robot"
    return f"hold {listed(world.held)}" if world.held else "released"


def input_status(
    world: World, commands: EffortCommands, refused: int, last_refusal: str
) -> DiagnosticStatus:
    """Return the state of the commands; ``refused`` counts inputs since the status before."""
    latest = commands.latest
    saturated = ", ".join(world.saturated())
    values: dict[str, object] = {
        "commands accepted": commands.accepted,
        "commands refused": commands.rejected,
        "last refusal": last_refusal or "none",
        "joints at their effort limit": saturated or "none",
    }
    if latest is not None:
        values["since last command [s]"] = f"{world.time - latest:.3f}"
    summary, warning = "commands in force", ""
    if latest is None:
        summary = "no command yet: efforts are zero"
    elif commands.expired(world.time):
        warning = f"no command for {world.time - latest:.1f} s: efforts are zero"
    elif world.braked:
        summary = "commands in force, which do not carry the robot: brakes hold it"
    if saturated:
        warning = f"at their effort limit: {saturated}"
    if refused:
        warning = f"{refused} messages refused: {last_refusal}"
    return messages.status("input", summary, values, warning=warning)


main = partial(run, SimulatorNode)

if __name__ == "__main__":
    sys.exit(main())
