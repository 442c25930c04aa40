# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The state of a simulation as diagnostic messages."""

from __future__ import annotations

from builtin_interfaces.msg import Time
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus

from mbs_dynamics.ros.messages import status
from mbs_dynamics.ros.simulator.commands import EffortCommands
from mbs_dynamics.ros.simulator.pacing import Pace
from mbs_dynamics.ros.simulator.world import World


def simulator_diagnostics(
    node_name: str,
    stamp: Time,
    world: World,
    commands: EffortCommands,
    pace: Pace,
    refused: int,
    last_refusal: str,
) -> DiagnosticArray:
    """Return the message; ``refused`` counts inputs refused since the message before."""
    array = DiagnosticArray()
    array.header.stamp = stamp
    array.status = [
        simulation_status(world, pace),
        input_status(world, commands, refused, last_refusal),
    ]
    for one in array.status:
        one.name = f"{node_name}: {one.name}"
        one.hardware_id = world.model.name
    return array


def simulation_status(world: World, pace: Pace) -> DiagnosticStatus:
    """Return how fast the simulation goes, and whether it does."""
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
        **(world.cost().values() if not world.halted else {}),
        "brakes": "hold the robot" if world.braked else "released",
        "step [s]": f"{world.period / world.steps:.6g}",
        "payloads": ", ".join(f"{load.mass:.6g} kg at {load.link}" for load in world.loads)
        or "none",
    }
    level, said = DiagnosticStatus.OK, f"{pace.rate:.1f} Hz"
    if world.halted:
        level, said = DiagnosticStatus.ERROR, f"halted until ~/reset: {world.halted}"
    elif world.braked:
        said = f"brakes hold the robot; {said}"
    if pace.too_slow and not world.halted:
        level = DiagnosticStatus.WARN
        said = f"too slow: {pace.rate:.1f} Hz of {pace.wanted:.1f} Hz, {pace.lost:.2f} s lost"
    return status("simulation", level, said, values)


def input_status(
    world: World, commands: EffortCommands, refused: int, last_refusal: str
) -> DiagnosticStatus:
    """Return what is commanded, and what was refused."""
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
    level, said = DiagnosticStatus.OK, "commands in force"
    if latest is None:
        said = "no command yet: efforts are zero"
    elif commands.expired(world.time):
        level = DiagnosticStatus.WARN
        said = f"no command for {world.time - latest:.1f} s: efforts are zero"
    elif world.braked:
        said = "commands in force, which do not carry the robot: brakes hold it"
    if saturated:
        level, said = DiagnosticStatus.WARN, f"at their effort limit: {saturated}"
    if refused:
        level, said = DiagnosticStatus.WARN, f"{refused} messages refused: {last_refusal}"
    return status("input", level, said, values)
