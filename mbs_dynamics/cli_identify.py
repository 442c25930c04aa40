# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The commands of ``mbs-dynamics`` for identification: identify, validate, excite and others."""

from __future__ import annotations

import argparse
import functools
import json
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import mbs_dynamics as mbs
from mbs_dynamics.errors import ArgumentError, MbsError
from mbs_dynamics.model.model import Model
from mbs_dynamics.resources import robot_path

SHIPPED = "arm7"


def add_identification(commands: Any) -> None:
    """Add the commands to the parser's subcommands."""
    run = commands.add_parser(
        "identify", help="find inertias and friction of an arm from recordings, and write its URDF"
    )
    run.add_argument("robot", help="path of a URDF, or the name of a robot shipped here: arm7")
    run.add_argument("recordings", nargs="+", type=Path, help="bags, .csv or .npz files")
    run.add_argument(
        "--validate", type=Path, metavar="RECORDING", help="recording to compare torques on "
        "(default: three tenths of the others, which are then not learned from)"
    )  # fmt: skip
    run.add_argument("--out", type=Path, help="URDF to write; parameters of nodes beside it, .yaml")
    run.add_argument("--report", type=Path, help="web page to write")
    run.add_argument(
        "--gains",
        type=_gain,
        nargs="+",
        default=[],
        metavar="JOINT=GAIN",
        help="what efforts are multiplied by, N m/A or N/A, where they are currents",
    )
    run.add_argument(
        "--fit-gains",
        action="store_true",
        help="take the gains with which the currents fit the description's masses best",
    )
    run.add_argument("--force", action="store_true", help="write even what is no better")
    _add_common(run)
    run.set_defaults(run=_identify)
    check = commands.add_parser(
        "validate", help="compare the torques of a description with measured ones"
    )
    check.add_argument("robot", help="path of a URDF, or the name of a robot shipped here: arm7")
    check.add_argument("recording", type=Path, help="a bag, a .csv or a .npz file")
    _add_common(check)
    check.set_defaults(run=_validate)
    _add_others(commands)


def _add_others(commands: Any) -> None:
    still = commands.add_parser(
        "identify-static", help="find what gravity shows of an arm from a few still poses"
    )
    still.add_argument("robot", help="path of a URDF, or the name of a robot shipped here: arm7")
    still.add_argument(
        "poses", type=Path, help=".csv with q_<joint> and tau_<joint>, a row for each pose"
    )
    still.add_argument("--out", type=Path, help="URDF to write")
    still.add_argument("--force", action="store_true", help="write even what is no better")
    _add_common(still)
    still.set_defaults(run=_identify_static)
    load = commands.add_parser(
        "identify-payload", help="find the load on a link from a recording with it"
    )
    load.add_argument("robot", help="path of a URDF, or the name of a robot shipped here: arm7")
    load.add_argument("recording", type=Path, help="a motion with the load")
    load.add_argument("--link", required=True, help="link that carries the load")
    load.add_argument("--without", type=Path, help="recording of the arm without the load")
    _add_common(load)
    load.set_defaults(run=_identify_payload)
    plan = commands.add_parser(
        "excite", help="plan a motion that makes the parameters of an arm visible"
    )
    plan.add_argument("robot", help="path of a URDF, or the name of a robot shipped here: arm7")
    plan.add_argument("--duration", type=float, default=20.0, help="seconds (default: 20)")
    plan.add_argument("--out", type=Path, required=True, help=".csv to write")
    plan.add_argument("--trajectory", type=Path, help="JointTrajectory to write, as .yaml")
    plan.add_argument("--rate", type=float, default=100.0, help="samples per second (default: 100)")
    plan.add_argument(
        "--position", type=float, default=0.9, help="share of the joints' ranges (default: 0.9)"
    )
    plan.add_argument(
        "--velocity", type=float, default=0.5, help="share of the velocity limits (default: 0.5)"
    )
    plan.add_argument(
        "--acceleration", type=float, default=3.0, help="rad/s^2 or m/s^2 (default: 3)"
    )
    plan.add_argument(
        "--torque", type=float, default=0.8, help="share of the effort limits (default: 0.8)"
    )
    plan.add_argument(
        "--box",
        nargs="+",
        default=[],
        metavar="FRAME:xmin,xmax,ymin,ymax,zmin,zmax",
        help="where the origin of a frame must stay, m, in the root link's frame",
    )
    plan.add_argument("--seed", type=int, default=0)
    plan.set_defaults(run=_excite)


def _add_common(command: Any) -> None:
    command.add_argument("--json", type=Path, metavar="FILE", help="write the figures as JSON")
    command.add_argument(
        "--gravity",
        type=float,
        nargs=3,
        metavar=("X", "Y", "Z"),
        help="free-fall acceleration in the axes of the root link, m/s^2 (default: 0 0 -9.81)",
    )
    command.add_argument("--topic", default="", help="topic of the joint states in bags")
    command.add_argument(
        "--columns",
        type=_column,
        nargs="+",
        default=[],
        metavar="NAME=MEANING",
        help="columns of tables by other names, such as Time=t J1_pos=q_joint1 J1_tau=tau_joint1",
    )


def _gain(text: str) -> tuple[str, float]:
    name, _, value = text.rpartition("=")
    try:
        return name, float(value)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not JOINT=GAIN") from None


def _column(text: str) -> tuple[str, str]:
    name, equals, meaning = text.partition("=")
    if not equals or not name or not meaning:
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=MEANING")
    return name, meaning


def _identification() -> Any:
    """Return the package, or raise MbsError that says what it lacks."""
    try:
        import scipy  # noqa: F401

        from mbs_dynamics import identification
    except ImportError as error:
        raise MbsError(
            f"identification needs SciPy ({error}): install the extra 'identify' of this package"
        ) from error
    return identification


def description(name: str, gravity: Sequence[float] | None = None) -> tuple[Path, Model]:
    """Return the file of a robot, and its model; its warnings are printed."""
    path = robot_path(name) if name == SHIPPED else Path(name).expanduser()
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        model = mbs.Model.from_urdf(path)
    for one in said:
        print(f"warning: {one.message}", file=sys.stderr)
    return path, model if gravity is None else model.with_gravity(gravity)


def _identify(options: argparse.Namespace) -> int:
    room = _identification()
    for name in ("out", "report", "json"):
        check_folder(name, getattr(options, name))
    path, model = description(options.robot, options.gravity)
    columns = dict(options.columns)

    def read(file: Path) -> Any:
        recording = room.read_recording(file, columns=columns, topic=options.topic)
        return room.scaled(recording, model, gains) if gains else recording

    gains = dict(options.gains)
    if options.fit_gains:
        gains = room.fitted_gains(model, read(options.recordings[0]))
        listed = ", ".join(f"{joint} {gain:.4g}" for joint, gain in gains.items())
        print(f"note: gains by the masses of the description: {listed}", file=sys.stderr)
    recordings = [read(file) for file in options.recordings]
    validation = None if options.validate is None else read(options.validate)
    found = room.identify(model, recordings, validation, progress=_progress)
    for note in found.notes:
        print(f"note: {note}", file=sys.stderr)
    _print_errors(found.errors)
    _print_joints(found)
    base = found.base
    print(
        f"the data show {base.rank} of {len(base.values)} combinations of parameters, with a "
        f"condition number of {base.condition:.3g}"
    )
    if options.json is not None:
        figures = {
            "relative_error": _relative(found.errors),
            "consistent": found.consistent,
            "cutoff_hz": found.cutoff,
            "weight": found.choice.weight,
            "friction_speed": found.torque_model.friction_speed,
            "rank": found.base.rank,
            "base_parameters": len(found.base.values),
            "condition": found.base.condition,
            "joints": found.joint_parameters,
            "masses": _masses(found),
            "notes": list(found.notes),
        }
        options.json.write_text(json.dumps(figures, indent=2) + "\n", encoding="utf-8")
    if options.report is not None:
        page = room.report(found, f"{model.name}: identification")
        options.report.write_text(page, encoding="utf-8")
        print(f"wrote {options.report}")
    if not found.better and not options.force:
        print(
            "mbs-dynamics: the description with fitted friction predicts as well: no URDF is "
            "written; --force writes it",
            file=sys.stderr,
        )
        return 1
    if options.out is not None:
        options.out.write_bytes(room.identified_urdf(path, found))
        parameters = options.out.with_suffix(".yaml")
        parameters.write_text(room.node_parameters(found), encoding="utf-8")
        print(f"wrote {options.out} and {parameters}")
    return 0


def _validate(options: argparse.Namespace) -> int:
    room = _identification()
    check_folder("json", options.json)
    _, model = description(options.robot, options.gravity)
    recording = room.read_recording(
        options.recording, columns=dict(options.columns), topic=options.topic
    )
    errors, notes = room.validate(model, recording)
    for note in notes:
        print(f"note: {note}", file=sys.stderr)
    _print_errors(errors)
    if options.json is not None:
        figures = {"relative_error": _relative(errors), "notes": list(notes)}
        options.json.write_text(json.dumps(figures, indent=2) + "\n", encoding="utf-8")
    return 0


def _identify_static(options: argparse.Namespace) -> int:
    room = _identification()
    for name in ("out", "json"):
        check_folder(name, getattr(options, name))
    path, model = description(options.robot, options.gravity)
    poses = room.read_recording(
        options.poses, columns=dict(options.columns), topic=options.topic, timed=False
    )
    result = room.identify_static(model, poses)
    found = result.found
    for note in found.notes:
        print(f"note: {note}", file=sys.stderr)
    print(f"{result.poses} poses, {result.pairs} of them from several sides")
    _print_errors(found.errors)
    print("the pose that would tell the most next:")
    for joint, value in result.next_pose.items():
        print(f"  {joint:24} {value:9.4f}")
    if options.json is not None:
        figures = {
            "relative_error": _relative(found.errors),
            "consistent": found.consistent,
            "poses": result.poses,
            "next_pose": result.next_pose,
            "masses": _masses(found),
        }
        options.json.write_text(json.dumps(figures, indent=2) + "\n", encoding="utf-8")
    if not found.better and not options.force:
        print(
            "mbs-dynamics: the description predicts as well: no URDF is written; --force writes it",
            file=sys.stderr,
        )
        return 1
    if options.out is not None:
        options.out.write_bytes(room.identified_urdf(path, found, friction=False))
        print(f"wrote {options.out}")
    return 0


def _identify_payload(options: argparse.Namespace) -> int:
    room = _identification()
    check_folder("json", options.json)
    _, model = description(options.robot, options.gravity)
    read = functools.partial(
        room.read_recording, columns=dict(options.columns), topic=options.topic
    )
    without = None if options.without is None else read(options.without)
    found = room.identify_payload(model, read(options.recording), options.link, without)
    com, spread = found.inertia.com, found.com_deviation
    print(f"mass            {found.inertia.mass:.4g} +- {found.mass_deviation:.2g} kg")
    for axis, x, deviation in zip("xyz", com, spread, strict=True):
        print(f"centre of mass  {axis} {x:.4g} +- {deviation:.2g} m")
    print(
        f"relative error of the torques: {100.0 * found.error_without:.2f} % without the load, "
        f"{100.0 * found.error:.2f} % with it"
    )
    print("\nto announce it to a node:")
    topic, kind = "/gravity_compensation_node/payload", "geometry_msgs/msg/InertiaStamped"
    print(f"ros2 topic pub --once {topic} {kind} \\")
    print(f'    "{found.message()}"')
    if options.json is not None:
        figures = {
            "link": found.link,
            "mass": float(found.inertia.mass),
            "mass_deviation": found.mass_deviation,
            "com": com.tolist(),
            "com_deviation": spread.tolist(),
            "inertia_at_com": found.inertia.tensor_at_com.tolist(),
            "relative_error": {"with": found.error, "without": found.error_without},
        }
        options.json.write_text(json.dumps(figures, indent=2) + "\n", encoding="utf-8")
    return 0


def _excite(options: argparse.Namespace) -> int:
    room = _identification()
    for name in ("out", "trajectory"):
        check_folder(name, getattr(options, name))
    _, model = description(options.robot)
    limits = room.Limits(
        options.position,
        options.velocity,
        options.acceleration,
        options.torque,
        tuple(room.box_of(text, model.frames) for text in options.box),
    )
    found = room.plan_excitation(
        model,
        options.duration,
        limits=limits,
        rate=options.rate,
        seed=options.seed,
        progress=_progress,
    )
    options.out.write_text(found.to_csv(), encoding="utf-8")
    print(f"wrote {options.out}: {found.t[-1]:g} s, condition number {found.condition:.4g}")
    if options.trajectory is not None:
        options.trajectory.write_text(found.to_trajectory(), encoding="utf-8")
        print(f"wrote {options.trajectory}")
    print("warning: collisions are not looked at; try it slowly, or in simulation", file=sys.stderr)
    return 0


def check_folder(name: str, path: Path | None) -> None:
    """Raise ArgumentError if a file cannot be written for want of its folder."""
    if path is not None and not path.expanduser().parent.is_dir():
        raise ArgumentError(f"--{name} {path}: there is no folder {path.parent}")


def _relative(errors: Any) -> dict[str, float | None]:
    return {
        "description": errors.description,
        "description_with_friction": errors.description_with_friction,
        "identified": errors.identified,
    }


def _masses(found: Any) -> dict[str, float]:
    names = found.torque_model.model.body_names
    return {name: float(row[0]) for name, row in zip(names, found.inertial, strict=True)}


def _print_errors(errors: Any) -> None:
    print("relative error of the torques, all joints, on data that was not learned from:")
    for name, value in _relative(errors).items():
        if value is not None:
            print(f"  {name.replace('_', ' '):26} {100.0 * value:8.2f} %")


def _print_joints(found: Any) -> None:
    names = ("Coulomb", "viscous", "motor inertia", "offset")
    print(f"{'joint':24}" + "".join(f"{name:>15}" for name in names))
    for joint, values in found.joint_parameters.items():
        print(f"{joint:24}" + "".join(f"{value:15.4g}" for value in values.values()))


def _progress(share: float) -> None:
    if sys.stderr.isatty():
        end = "\n" if share >= 1.0 else ""
        sys.stderr.write(f"\ridentifying: {100.0 * share:3.0f} %{end}")
        sys.stderr.flush()
