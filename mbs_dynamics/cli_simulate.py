# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The commands ``mbs-dynamics simulate`` and ``mbs-dynamics plot``."""

from __future__ import annotations

import argparse
import math
import time
import warnings
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from queue import Queue
from threading import Thread
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

import mbs_dynamics as mbs
from mbs_dynamics.checks import FloatArray
from mbs_dynamics.errors import ArgumentError, SimulationError, listed
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
from mbs_dynamics.integrate.results import MOTIONS, is_motion
from mbs_dynamics.resources import robot_path
from mbs_dynamics.ros.robot_description import read_robot, split_arguments
from mbs_dynamics.view.figures import ANIMATIONS, FIGURES, write_animation, write_figure


def add_commands(commands: Any) -> None:
    """Add the two commands to the parser's subcommands."""
    run = commands.add_parser("simulate", help="simulate a robot, under gravity and torques")
    add_robot(run)
    add_part(run)
    add_state(run)
    run.add_argument("--duration", type=float, default=2.0, help="seconds (default: 2)")
    run.add_argument("--step", type=float, default=1e-3, help="seconds (default: 0.001)")
    run.add_argument("--every", type=int, default=1, metavar="K",
                     help="store every K-th state (default: all)")  # fmt: skip
    run.add_argument("--method", default="rk4", help=f"one of {', '.join(METHODS)} (default: rk4)")
    run.add_argument(
        "--torques",
        type=Path,
        metavar="FILE.csv",
        help="torques over time: a header 't, JOINT, ...' and rows of numbers; between the rows "
        "they are interpolated, after the last one held (default: none)",
    )
    run.add_argument("--gravity", type=float, nargs=3, metavar=("X", "Y", "Z"),
                     help="free-fall acceleration in m/s^2 (default: 0 0 -9.81)")  # fmt: skip
    run.add_argument("--friction", action="store_true",
                     help="with the damping and friction that the URDF states")  # fmt: skip
    run.add_argument("--damping", type=float, help="viscous damping of each joint, N m s/rad")
    run.add_argument("--stops", action="store_true", help="with stops at the limits of position")
    run.add_argument("--out", type=Path, metavar="FILE", help="write the motion: .npz or .csv")
    run.add_argument("--view", action="store_true", help="show the simulation in the browser")
    add_page(run)
    _add_pictures(run)
    run.set_defaults(run=_simulate)

    plot = commands.add_parser("plot", help="draw a motion that simulate wrote, or a recording")
    plot.add_argument("file", type=Path, help="the file of simulate, a bag, or a table")
    add_reading(plot)
    plot.add_argument("--robot", help="the robot, for an animation")
    add_part(plot)
    _add_pictures(plot)
    plot.set_defaults(run=_plot)


def add_robot(parser: argparse.ArgumentParser, **more: Any) -> None:
    """Add the argument of a robot, and that of a .xacro file."""
    parser.add_argument(
        "robot", help="path of a URDF or .xacro, or the name of a robot shipped here: arm7", **more
    )
    parser.add_argument(
        "--xacro-args",
        default="",
        metavar="ARGS",
        help='arguments of the .xacro, such as "ur_type:=ur5e name:=ur"',
    )


def add_part(parser: argparse.ArgumentParser) -> None:
    """Add the options that select a part of a robot and its base."""
    parser.add_argument("--root", help="link to take as the ground (default: the root link)")
    parser.add_argument("--tip", help="keep only the chain from the root to this link")
    parser.add_argument("--floating-base", action="store_true",
                        help="move the root link by a free joint")  # fmt: skip


def part_of(options: argparse.Namespace) -> dict[str, Any]:
    """Return the options of :func:`add_part`, as ``Model.from_urdf`` takes them."""
    every = {name: getattr(options, name) for name in ("root", "tip", "floating_base")}
    return {name: value for name, value in every.items() if value}


def add_state(parser: argparse.ArgumentParser) -> None:
    """Add the options of an initial state; see :func:`initial_state`."""
    parser.add_argument(
        "--q",
        type=_setting,
        nargs="+",
        default=[],
        metavar="JOINT=VALUE",
        help="initial posture, in rad or m: JOINT=VALUE of any joints, such as elbow=0.5, while "
        "others start at zero or the nearest limit; or one VALUE for each joint, in the order that "
        "info prints",
    )
    parser.add_argument("--qd", type=_setting, nargs="+", default=[], metavar="JOINT=VALUE",
                        help="initial rates, in the same way (default: at rest)")  # fmt: skip


def add_reading(parser: argparse.ArgumentParser) -> None:
    """Add the options of reading a recording."""
    parser.add_argument("--topic", default="", help="topic of the joint states in bags")
    parser.add_argument(
        "--columns", type=_column, nargs="+", default=[], metavar="NAME=MEANING",
        help="other names and units of columns, such as Time=t[ms] J1_pos=q_joint1 J1=tau_joint1",
    )  # fmt: skip


def _column(text: str) -> tuple[str, str]:
    name, equals, meaning = text.rpartition("=")
    if not equals or not name or not meaning:
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=MEANING")
    return name, meaning


def add_page(parser: argparse.ArgumentParser) -> None:
    """Add the options of a page in the browser."""
    parser.add_argument("--port", type=int, help="of the page (default: 8080 or the next free)")
    parser.add_argument("--no-browser", action="store_true", help="only print the address")


def model_code(path: Path, options: argparse.Namespace) -> str:
    """Return a Python expression for the model of a command line."""
    chain = "".join(f", {name}={x!r}" for name, x in part_of(options).items())
    source = repr(str(path))
    if path.suffix == ".xacro":
        given = split_arguments("xacro_args", options.xacro_args)
        source = f"xacro.process_file({source}, mappings={given}).toxml()"
    return f"mbs.Model.from_urdf({source}{chain})"


def initial_state(model: mbs.Model, options: argparse.Namespace) -> tuple[FloatArray, FloatArray]:
    """Return the initial positions (nq,) and rates (n,)."""
    q = _vector("--q", model.position_names, options.q, model.neutral(within_limits=True))
    return q, _vector("--qd", model.velocity_names, options.qd, np.zeros(model.n))


def motion_in(path: Path) -> Motion:
    """Return the motion in a file; ArgumentError if it is missing."""
    try:
        return load_motion(path)
    except FileNotFoundError as error:
        raise ArgumentError(f"no file {path}") from error


def _recorded(options: argparse.Namespace) -> Motion:
    """Return the motion in a recording, without energies."""
    from mbs_dynamics.identification.readers import read_recording

    columns = dict(options.columns)
    found = read_recording(options.file, columns=columns, topic=options.topic, torques=False)
    if options.robot is not None:
        found = found.of(robot(options.robot, **part_of(options)))
    unknown = np.full(found.q.shape, np.nan)
    return Motion(
        t=found.t - found.t[0],
        q=found.q,
        qd=unknown if found.qd is None else found.qd,
        qdd=unknown,
        tau=found.tau,
        kinetic=unknown[:, 0],
        potential=unknown[:, 0],
        momentum=np.full((len(found.t), 6), np.nan),
        joint_names=found.joints or tuple(str(k + 1) for k in range(found.q.shape[1])),
        method=found.name,
    )


def _add_pictures(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--figure", type=Path, metavar="FILE", help="draw it: .png, .svg or .pdf")
    parser.add_argument("--animation", type=Path, metavar="FILE", help="animate it: .gif")


def robot(name: str, xacro_args: str = "", **part: Any) -> mbs.Model:
    """Return the model of a URDF or .xacro, or of a robot shipped here, without warnings."""
    source = robot_source(robot_file(name), xacro_args)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", mbs.ModelWarning)
        return mbs.Model.from_urdf(source, **part)


def robot_of(options: argparse.Namespace) -> mbs.Model:
    """Return the model of a command line."""
    return robot(options.robot, options.xacro_args, **part_of(options))


def robot_source(path: Path, xacro_args: str) -> Path | str:
    """Return the path of a URDF, or the text of the URDF that a .xacro becomes."""
    if path.suffix != ".xacro" and not xacro_args:
        return path
    return read_robot("the robot", str(path), xacro_args)


def robot_file(name: str) -> Path:
    """Return the path of a URDF, given as such or as the name of a robot shipped here."""
    is_name = not Path(name).exists() and "/" not in name and "." not in name
    return robot_path(name) if is_name else Path(name)


def _setting(text: str) -> tuple[str, float]:
    """Return joint and value of JOINT=VALUE; the joint is empty for a mere value."""
    joint, _, value = text.rpartition("=")
    try:
        return joint, float(value)
    except ValueError:
        raise argparse.ArgumentTypeError(f"must be JOINT=VALUE or VALUE; got {text!r}") from None


def _vector(
    option: str, names: Sequence[str], given: Sequence[tuple[str, float]], x: FloatArray
) -> FloatArray:
    """Return x with the settings of a command line in it."""
    if not all(joint for joint, _ in given):
        if len(given) != len(names) or any(joint for joint, _ in given):
            got = " ".join(f"{joint}={x:g}" if joint else f"{x:g}" for joint, x in given)
            raise ArgumentError(
                f"{option} takes JOINT=VALUE of any joints, or {len(names)} values, those of "
                f"{listed(names)}; got {got}"
            )
        return np.array([value for _, value in given])
    x = x.copy()
    for joint, value in given:
        if joint not in names:
            raise mbs.UnknownJointError(joint, names)
        x[names.index(joint)] = value
    return x


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
    if options.gravity is not None:
        model = model.with_gravity(options.gravity)
    q, qd = initial_state(model, options)
    if options.view:
        return _view(model, q, qd, options)
    return _finish(model, _computed(model, q, qd, options), options)


class _Computed(NamedTuple):
    """The result of a simulation."""

    motion: Motion
    taken: float
    """Computing time in s."""
    failed: SimulationError | None = None
    """The error that ended the simulation early."""


def _computed(
    model: mbs.Model,
    q: FloatArray,
    qd: FloatArray,
    options: argparse.Namespace,
    observe: Callable[..., None] | None = None,
) -> _Computed:
    """Simulate; ``observe`` is called with every state at which the control law is evaluated."""
    begun = time.perf_counter()
    try:
        motion, failed = _moved(model, q, qd, options, observe), None
    except SimulationError as error:  # the trajectory up to the failure is written
        if error.motion is None:
            raise
        motion, failed = error.motion, error
    return _Computed(motion, time.perf_counter() - begun, failed)


def _finish(model: mbs.Model, computed: _Computed, options: argparse.Namespace) -> int:
    motion, taken, failed = computed
    _report(model, motion, math.ceil(motion.t[-1] / options.step * (1.0 - 1e-9)), taken)
    _write(motion, options, lambda: model, options.out)
    if failed is not None:
        raise failed
    return 0


def _view(model: mbs.Model, q: FloatArray, qd: FloatArray, options: argparse.Namespace) -> int:
    """Show the simulation while it runs, then play its motion."""
    from mbs_dynamics.view.opening import announce, open_page, until_interrupt
    from mbs_dynamics.view.playback import Playback, RunningSimulation

    path = robot_file(options.robot)
    source, code = robot_source(path, options.xacro_args), model_code(path, options)
    opened = open_page(model, source, beside=path, model_code=code, port=options.port)
    page, running = opened.page, RunningSimulation(opened.drawn)
    done: Queue[_Computed | Exception] = Queue()

    def compute() -> None:
        try:
            done.put(_computed(model, q, qd, options, running.update))
        except Exception as error:  # raised again in the main thread
            done.put(error)

    failed = None
    with closing(page), until_interrupt():
        announce(page, browse=not options.no_browser)
        Thread(target=compute, daemon=True).start()
        page.run(running, until=lambda: not done.empty())
        computed = done.get()
        if isinstance(computed, Exception):
            raise computed
        failed = computed.failed
        page.set_message("failed", str(failed or ""))
        _finish(model, computed._replace(failed=None), options)
        playback = Playback(page, opened.drawn, computed.motion)
        playback.play()
        page.run(playback)
    if failed is not None:
        raise failed
    return 0


def _moved(
    model: mbs.Model,
    q: FloatArray,
    qd: FloatArray,
    options: argparse.Namespace,
    observe: Callable[..., None] | None,
) -> Motion:
    given: dict[str, Any] = {
        "duration": options.duration,
        "step": options.step,
        "every": options.every,
        "method": options.method,
        "events": stop_events(model),
        "forces": _forces(model, options),
    }
    if options.torques is not None:
        given["control"] = _profile(options.torques, model.velocity_names)
    if observe is not None:
        none = np.zeros(model.n)
        given["control"] = _observed(given.get("control", lambda *state: none), observe)
    return simulate(model, q, qd, **given)


def _observed(law: Law, observe: Callable[..., None]) -> Law:
    """Return a control law that calls ``observe`` with each state."""

    def torques(t: float, *state: FloatArray) -> ArrayLike:
        observe(*state)
        return law(t, *state)

    return torques


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
        states = motion.q[-1, model.positions_of(joint)], motion.qd[-1, joint.velocities]
        numbers = "  ".join("".join(f" {x:10.4f}" for x in state) for state in states)
        print(f"  {joint.name:{width}}{numbers}")


def _write(
    motion: Motion,
    options: argparse.Namespace,
    model: Callable[[], mbs.Model],
    out: Path | None = None,
) -> None:
    if out is not None:
        motion.save(out)
        print(f"wrote {out}")
    if options.figure is not None:
        write_figure(motion, options.figure)
        print(f"wrote {options.figure}")
    if options.animation is not None:
        write_animation(model(), motion, options.animation)
        print(f"wrote {options.animation}")


def _plot(options: argparse.Namespace) -> int:
    _check_files(options, None)
    if options.file.suffix in MOTIONS and not options.columns and is_motion(options.file):
        motion = motion_in(options.file)
    else:
        motion = _recorded(options)
    if options.animation is not None and options.robot is None:
        raise ArgumentError("an animation needs the robot: --robot ROBOT.urdf")
    if options.figure is None and options.animation is None:
        options.figure = options.file.with_suffix(".png")
    _write(motion, options, lambda: robot(options.robot, **part_of(options)))
    return 0


def _profile(path: Path, joint_names: Sequence[str]) -> Law:
    """Return the law of a file of torques: interpolated between its rows, held beyond them."""
    try:
        table = read_table(path)
    except FileNotFoundError as error:
        raise ArgumentError(f"cannot read {path}: {error.strerror}") from error
    head = table.names
    if head[:1] != ["t"]:
        raise ArgumentError(f"{path} must have a header 't, JOINT, ...' and rows of numbers")
    for name in head[1:]:
        if name not in joint_names:
            raise mbs.UnknownJointError(name, joint_names)
    data = np.stack([table.column(k) for k in range(len(head))], axis=1)
    t = data[:, 0]
    if not np.isfinite(data).all() or (np.diff(t) <= 0.0).any():
        raise ArgumentError(f"{path}: numbers must be finite, and the times increase")
    columns = [list(joint_names).index(name) for name in head[1:]]

    def torques(now: float, *state: FloatArray) -> FloatArray:
        tau = np.zeros(len(joint_names))
        tau[columns] = [np.interp(now, t, column) for column in data[:, 1:].T]
        return tau

    return torques
