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
    Command,
    initial_state,
    model_code,
    motion_in,
    part_of,
    robot,
    robot_file,
    robot_of,
    robot_source,
)
from mbs_dynamics.errors import ArgumentError, SimulationError
from mbs_dynamics.files import check_writable, read_table
from mbs_dynamics.integrate import (
    METHODS,
    JointForces,
    Motion,
    load_motion,
    simulate,
    stop_events,
)
from mbs_dynamics.integrate.forces import Law
from mbs_dynamics.integrate.results import MOTIONS, checked_single
from mbs_dynamics.model.coordinates import velocity_names
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
        "torques over time: a header 't, JOINT, ...' or 't, tau_<JOINT>, ...' and rows of numbers, "
        "or a motion that simulate wrote; between the rows they are interpolated, after the last "
        "one they stay constant (default: none)",
    )
    run.gravity()
    run.flag("--friction", "with the damping and friction that the URDF states")
    run.add("--damping", "viscous damping of each joint, N m s/rad", type=float)
    run.flag("--stops", "with stops at the limits of position")
    run.file("--out", "write the motion: .npz or .csv")
    run.flag("--view", "play the motion in the browser")
    run.page()
    _add_pictures(run)

    purpose = "draw a motion that simulate wrote, or a recording"
    plot = Command(commands, "plot", _plot, purpose)
    plot.file("file", "the file of simulate, a bag, or a table")
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
        ("--out", out, MOTIONS),
        ("--figure", options.figure, FIGURES),
        ("--animation", options.animation, ANIMATIONS),
    ):
        if path is not None and path.suffix not in kinds:
            raise ArgumentError(f"{option} must end in {', '.join(kinds)}; got {str(path)!r}")
        if path is not None:
            check_writable(option, path)


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
    _write(motion, options, model, model.name, options.out)
    if options.view:
        _view(model, motion, str(failed or ""), options)
    if failed is not None:
        raise failed
    return 0


def _view(model: mbs.Model, motion: Motion, failure: str, options: argparse.Namespace) -> None:
    from mbs_dynamics.view.opening import announce, open_page, until_interrupt
    from mbs_dynamics.view.playback import Playback

    path = robot_file(options.robot)
    source, code = robot_source(path, options.xacro_args), model_code(path, options)
    opened = open_page(model, source, beside=path, model_code=code, port=options.port)
    with closing(opened.page) as page, until_interrupt():
        page.set_message("failed", failure)
        playback = Playback(page, opened.drawn, motion)
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
        given["control"] = _profile(options.torques, velocity_names(model.joints))
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
    motion: Motion,
    options: argparse.Namespace,
    model: mbs.Model | None,
    name: str,
    out: Path | None = None,
) -> None:
    if out is not None:
        motion.save(out)
        print(f"wrote {out}")
    if options.figure is not None:
        write_figure(motion, options.figure, name)
        print(f"wrote {options.figure}")
    if options.animation is not None and model is not None:
        write_animation(model, motion, options.animation)
        print(f"wrote {options.animation}")


def _plot(options: argparse.Namespace) -> int:
    _check_files(options, None)
    model = None if options.robot is None else robot(options.robot, **part_of(options))
    motion = motion_in(options.file, options, model)
    if options.animation is not None and model is None:
        raise ArgumentError("an animation needs the robot: --robot ROBOT.urdf")
    if options.figure is None and options.animation is None:
        options.figure = options.file.with_suffix(".png")
    _write(motion, options, model, options.file.stem)
    return 0


def _profile(path: Path, joint_names: Sequence[str]) -> Law:
    """Return the law of a file of torques: interpolated between its rows, constant beyond them."""
    t, torques = _torques_in(path, joint_names)
    if not all(np.isfinite(x).all() for x in (t, *torques.values())) or (np.diff(t) <= 0.0).any():
        raise ArgumentError(f"{path}: numbers must be finite, and the times increase")
    places = [list(joint_names).index(name) for name in torques]

    def law(now: float, *state: FloatArray) -> FloatArray:
        tau = np.zeros(len(joint_names))
        tau[places] = [np.interp(now, t, column) for column in torques.values()]
        return tau

    return law


def _torques_in(path: Path, joint_names: Sequence[str]) -> tuple[FloatArray, dict[str, FloatArray]]:
    """Return times and torques by joint: of a motion, or of a table with columns t and joints.

    A column may be called tau_<joint>; all others are then ignored.
    """
    if path.suffix == ".npz":
        motion = load_motion(path)
        checked_single(motion, "--torques takes")
        names, columns = list(motion.joint_names), list(motion.tau.T)
        mbs.UnknownJointError.check(names, joint_names)
        return motion.t, dict(zip(names, columns, strict=True))
    try:
        table = read_table(path)
    except FileNotFoundError as error:
        raise ArgumentError(f"cannot read {path}: {error.strerror}") from error
    head = table.names
    if head[:1] != ["t"]:
        raise ArgumentError(f"{path} must have a header 't, JOINT, ...' and rows of numbers")
    places = {k: name for k, name in enumerate(head) if name in joint_names}
    prefixed = {k: name for k, name in enumerate(head) if name.startswith("tau_")}
    if not prefixed:
        mbs.UnknownJointError.check(head[1:], joint_names)
    torques: dict[str, FloatArray] = {}
    for k, name in sorted({**prefixed, **places}.items()):
        joint = name if name in joint_names else name.removeprefix("tau_")
        mbs.UnknownJointError.check([joint], joint_names)
        if joint in torques:
            raise ArgumentError(f"{path}: {joint!r} and 'tau_{joint}' are both torques of {joint}")
        torques[joint] = table.column(k)
    return table.column(0), torques
