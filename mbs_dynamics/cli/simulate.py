# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The commands ``mbs-dynamics simulate`` and ``mbs-dynamics plot``."""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

import mbs_dynamics as mbs
from mbs_dynamics.checks import FloatArray
from mbs_dynamics.cli.options import (
    MOTION_DATA,
    Command,
    by_name,
    check_output,
    initial_state,
    model_code,
    part_of,
    recording_in,
    robot,
    robot_file,
    robot_of,
    robot_source,
)
from mbs_dynamics.errors import ArgumentError, SimulationError, listed
from mbs_dynamics.integrate import (
    METHODS,
    Event,
    JointForces,
    Motion,
    simulate,
    stop_events,
)
from mbs_dynamics.integrate.forces import Law
from mbs_dynamics.model.coordinates import velocity_names
from mbs_dynamics.timeseries import TimeSeries
from mbs_dynamics.timeseries.columns import Declarations
from mbs_dynamics.timeseries.joints import matched
from mbs_dynamics.timeseries.reading import columns_of, quantities
from mbs_dynamics.timeseries.tables import WRITTEN
from mbs_dynamics.view.figures import ANIMATIONS, FIGURES, write_animation, write_figure


def add_commands(commands: Any) -> None:
    """Add the two commands to the parser's subcommands."""
    run = Command(commands, "simulate", _simulate, "simulate a robot, under gravity and torques")
    run.robot()
    run.part()
    run.state()
    run.add("--duration", "seconds (default: 2)", type=float, default=2.0)
    run.add("--step", "seconds (default: 0.001)", type=float, default=1e-3)
    text = "store every K-th state (default: all)"
    run.add("--every", text, type=int, default=1, metavar="K")
    run.add("--method", f"one of {', '.join(METHODS)} (default: rk4)", default="rk4")
    run.file(
        "--torques",
        "torques over time: columns t and tau_<JOINT> or <JOINT>, or any motion data; between the "
        "rows they are interpolated, after the last one they stay constant (default: none)",
    )
    run.reading()
    run.gravity()
    run.flag("--friction", "with the damping and friction that the URDF states")
    run.add("--damping", "viscous damping of each joint, N m s/rad", type=float)
    run.flag("--stops", "with stops at the limits of position")
    run.file("--out", "write the motion: .csv or .npz")
    run.flag("--view", "play the motion in the browser")
    run.page()
    _add_pictures(run)

    purpose = "draw motion data: a simulation, a plan or a recording"
    plot = Command(commands, "plot", _plot, purpose)
    plot.file("file", MOTION_DATA)
    plot.reading()
    plot.add("--robot", "the robot, for an animation")
    plot.part()
    _add_pictures(plot)


def _add_pictures(command: Command) -> None:
    command.file("--figure", "draw it: .png, .svg or .pdf")
    command.file("--animation", "animate it: .gif")


def _check_files(options: argparse.Namespace, out: Path | None) -> None:
    """Refuse files of unknown kinds, or in missing folders, before anything is computed."""
    for option, path, kinds in (
        ("--out", out, WRITTEN),
        ("--figure", options.figure, FIGURES),
        ("--animation", options.animation, ANIMATIONS),
    ):
        check_output(option, path, kinds)


def _simulate(options: argparse.Namespace) -> int:
    _check_files(options, options.out)
    model = robot_of(options)
    q, qd = initial_state(model, options)
    if options.view:
        from mbs_dynamics.view.server import check_port

        check_port(options.port)
    begun, failed = time.perf_counter(), None
    try:
        motion = _moved(model, q, qd, options)
    except SimulationError as error:  # the trajectory up to the failure is written
        if error.motion is None:
            raise
        motion, failed = error.motion, error
    taken = time.perf_counter() - begun
    _report(model, motion, math.ceil(motion.t[-1] / options.step * (1.0 - 1e-9)), taken)
    series = motion.series
    if options.out is not None:
        series.write(options.out)
        print(f"wrote {options.out}")
    _write(series, options, model.name, model, motion.events)
    if options.view:
        _view(model, series, str(failed or ""), options)
    if failed is not None:
        raise failed
    return 0


def _view(model: mbs.Model, series: TimeSeries, failure: str, options: argparse.Namespace) -> None:
    from mbs_dynamics.view.opening import announce, open_page, until_interrupt
    from mbs_dynamics.view.playback import Playback

    path = robot_file(options.robot)
    source, code = robot_source(path, options.xacro_args), model_code(path, options)
    opened = open_page(model, source, beside=path, model_code=code, port=options.port)
    with closing(opened.page) as page, until_interrupt():
        page.set_message("failed", failure)
        playback = Playback(page, opened.drawn, series)
        playback.play()
        announce(page, browse=not options.no_browser)
        page.run(playback)


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
        given["control"] = _profile(options, velocity_names(model.joints))
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


def _report(model: mbs.Model, motion: Motion, steps: int, taken: float) -> None:
    span = motion.t[-1]
    print(f"{model.name}: {span:g} s in {steps} steps by {motion.method}, in {taken:.2f} s")
    with np.errstate(invalid="ignore"):  # of a failed simulation
        change = motion.energy[-1] - motion.energy[0]
    print(f"energy {motion.energy[0]:.6g} J at the beginning, changed by {change:.3g} J")
    for event in motion.events[:20]:
        print(f"  {event.t:.4f} s: {event.name}")
    if len(motion.events) > 20:
        print(f"  and {len(motion.events) - 20} times more")
    print("joint, position and rate at the end:")
    width = max(map(len, model.joint_names), default=0)
    for joint in model.joints:
        states = motion.q[-1, model.positions(joint)], motion.qd[-1, joint.velocities]
        numbers = "  ".join("".join(f" {x:10.4f}" for x in state) for state in states)
        print(f"  {joint.name:{width}}{numbers}")


def _write(
    series: TimeSeries,
    options: argparse.Namespace,
    title: str,
    model: mbs.Model | None,
    events: Sequence[Event] = (),
) -> None:
    """Write the figure and the animation that were asked for."""
    if options.figure is not None:
        write_figure(series, options.figure, title, events)
        print(f"wrote {options.figure}")
    if options.animation is not None and model is not None:
        write_animation(model, series, options.animation)
        print(f"wrote {options.animation}")


def _plot(options: argparse.Namespace) -> int:
    _check_files(options, None)
    if options.animation is not None and options.robot is None:
        raise ArgumentError("an animation needs the robot: --robot ROBOT.urdf")
    if options.figure is None and options.animation is None:
        options.figure = options.file.with_suffix(".png")
    model = None if options.robot is None else robot(options.robot, **part_of(options))
    _write(recording_in(options.file, options), options, "", model)
    return 0


def _profile(options: argparse.Namespace, joint_names: Sequence[str]) -> Law:
    """Return the law of a file of torques: interpolated between its rows, constant beyond them."""
    t, torques = _torques_in(options, joint_names)
    places = [list(joint_names).index(name) for name in torques]

    def law(now: float, *state: FloatArray) -> FloatArray:
        tau = np.zeros(len(joint_names))
        tau[places] = [np.interp(now, t, column) for column in torques.values()]
        return tau

    return law


def _torques_in(
    options: argparse.Namespace, joint_names: Sequence[str]
) -> tuple[FloatArray, dict[str, FloatArray]]:
    """Return times and torques by joint, from columns tau_<joint>, or from columns <joint>."""
    path, declared = options.torques, by_name("--columns", options.columns)
    table = columns_of(path, options.topic)
    own = {name: f"tau_{name}" for name in table.values if name in joint_names}
    declarations = Declarations({**own, **declared})
    t, given, *_ = quantities(table, declarations.meanings(table.values))
    if declarations.rate is not None:
        t = np.arange(len(table)) / declarations.rate
    torques = given["tau"]
    if t is None or not torques:
        raise ArgumentError(
            f"{path}: has no {'time' if t is None else 'torques'}; columns are t and "
            f"tau_<joint> or <joint>, with the joints {listed(joint_names)}, or are declared by "
            f"--columns; the file has {listed(list(table.values))}"
        )
    if set(torques) & set(joint_names):  # a slip in one of the names is no other robot
        mbs.UnknownJointError.check(torques, joint_names)
    else:
        pairs = matched(str(path), tuple(torques), joint_names)
        torques = {name: torques[other] for name, other in pairs.items()}
    columns = np.stack(list(torques.values()), axis=1)
    series = TimeSeries(t, tuple(torques), 0.0 * columns, tau=columns, name=str(path))
    if np.isnan(columns).any():
        raise ArgumentError(f"{path}: tau must be finite; got nan")
    return series.t, torques
