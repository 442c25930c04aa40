# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The commands ``simulate`` and ``plot``."""

from __future__ import annotations

import argparse
import math
import time
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

import mbs_dynamics as mbs
from mbs_dynamics.checks import FloatArray
from mbs_dynamics.cli.description import Description
from mbs_dynamics.cli.options import MOTION_DATA, Command, by_name, initial_state, recording_in
from mbs_dynamics.errors import SimulationError
from mbs_dynamics.integrate import METHODS, JointForces, Motion, simulate, stop_events
from mbs_dynamics.model.coordinates import velocity_names
from mbs_dynamics.timeseries.reading import read_torques
from mbs_dynamics.timeseries.tables import WRITTEN
from mbs_dynamics.view import play
from mbs_dynamics.view.figures import FIGURES, write_figure


def add_commands(commands: Any) -> None:
    """Add the two commands to the parser's subcommands."""
    purpose = "simulate a robot, under gravity and torques"
    example = "arm7 --q joint2=1 --duration 3 --out fall.csv --view"
    run = Command(commands, "simulate", _simulate, purpose, example)
    run.robot()
    run.part()
    run.state()
    run.numbers(("--duration", "duration, s", 2.0), ("--step", "time step, s", 0.001))
    text = "store every K-th state (default: all)"
    run.add("--every", text, type=int, default=1, metavar="K")
    run.add("--method", f"integrator, one of {', '.join(METHODS)} (default: rk4)", default="rk4")
    run.file(
        "--torques",
        "torques over time: columns t and tau_<JOINT> or <JOINT>, or any motion data; between the "
        "rows they are interpolated, after the last one they stay constant (default: none)",
    )
    run.reading()
    run.gravity()
    run.flag("--friction", "apply the damping and friction of the description")
    run.add("--damping", "viscous damping of each joint, N m s/rad", type=float)
    run.flag("--stops", "put stops at the position limits")
    run.output("--out", "motion to write, .csv or .npz", WRITTEN)
    run.flag("--view", "play the motion in the browser")
    run.page()

    purpose = "draw motion data: a simulation, a plan or a recording"
    plot = Command(commands, "plot", _plot, purpose, "fall.csv --figure fall.png")
    plot.file("file", MOTION_DATA)
    plot.reading()
    text = "figure to write, .png, .svg or .pdf (default: the file with the ending .png)"
    plot.output("--figure", text, FIGURES)


def _simulate(options: argparse.Namespace) -> int:
    robot = Description(options)
    model = robot.model()
    q, qd = initial_state(model, options)
    begun, failed = time.perf_counter(), None
    try:
        motion = _moved(model, q, qd, options)
    except SimulationError as error:  # the motion up to the failure is written
        if error.motion is None:
            raise
        motion, failed = error.motion, error
    taken = time.perf_counter() - begun
    _report(model.name, motion, math.ceil(motion.t[-1] / options.step * (1.0 - 1e-9)), taken)
    if options.out is not None:
        motion.series.write(options.out)
        print(f"wrote {options.out}")
    if failed is not None:
        raise failed
    if options.view:
        play(model, motion.series, options=robot.page(options)).wait(browse=not options.no_browser)
    return 0


def _moved(model: mbs.Model, q: FloatArray, qd: FloatArray, options: argparse.Namespace) -> Motion:
    given: dict[str, Any] = {
        "duration": options.duration,
        "step": options.step,
        "every": options.every,
        "method": options.method,
        "events": stop_events(model),
        "forces": _forces(model, options),
    }
    if options.torques is not None:
        columns = by_name("--columns", options.columns)
        names = velocity_names(model.joints)
        torques = read_torques(options.torques, names, columns=columns, topic=options.topic)
        assert torques.tau is not None
        t, tau = torques.t, torques.tau

        def interpolated(now: float, *state: FloatArray) -> FloatArray:
            return np.array([np.interp(now, t, column) for column in tau.T])

        given["control"] = interpolated
    return simulate(model, q, qd, **given)


def _forces(model: mbs.Model, options: argparse.Namespace) -> JointForces | None:
    """Return damping, friction and stops; a free joint has none."""
    if not (options.friction or options.stops or options.damping is not None):
        return None
    stated = None if options.friction else 0.0
    damping: ArrayLike | None = stated
    if options.damping is not None:
        damping = np.full(model.n, options.damping)
        for joint in model.joints:
            if joint.kind == "free":
                damping[joint.velocities] = 0.0
    return JointForces.of(model, damping=damping, friction=stated, stops=options.stops)


def _report(name: str, motion: Motion, steps: int, taken: float) -> None:
    span = motion.t[-1]
    print(f"{name}: {span:g} s in {steps} steps by {motion.method}, in {taken:.2f} s")
    with np.errstate(invalid="ignore"):  # of a failed simulation
        change = motion.energy[-1] - motion.energy[0]
    print(f"energy {motion.energy[0]:.6g} J at the beginning, changed by {change:.3g} J")
    for event in motion.events[:20]:
        print(f"  {event.t:.4f} s: {event.name}")
    if len(motion.events) > 20:
        print(f"  and {len(motion.events) - 20} times more")


def _plot(options: argparse.Namespace) -> int:
    target = options.figure or options.file.with_suffix(".png")
    write_figure(recording_in(options.file, options), target)
    print(f"wrote {target}")
    return 0
