# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The commands ``mbs-dynamics identify`` and ``mbs-dynamics validate``."""

from __future__ import annotations

import argparse
import json
import sys
import warnings
from pathlib import Path
from typing import Any

import mbs_dynamics as mbs
from mbs_dynamics.errors import ArgumentError, MbsError
from mbs_dynamics.model.model import Model
from mbs_dynamics.resources import robot_path

SHIPPED = "arm7"


def add_identification(commands: Any) -> None:
    """Add the two commands to the parser's subcommands."""
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


def _add_common(command: Any) -> None:
    command.add_argument("--json", type=Path, metavar="FILE", help="write the figures as JSON")
    command.add_argument("--topic", default="", help="topic of the joint states in bags")
    command.add_argument(
        "--columns",
        type=_column,
        nargs="+",
        default=[],
        metavar="NAME=MEANING",
        help="columns of tables by other names, such as Time=t J1_pos=q_joint1 J1_tau=tau_joint1",
    )


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


def description(name: str) -> tuple[Path, Model]:
    """Return the file of a robot, and its model; its warnings are printed."""
    path = robot_path(name) if name == SHIPPED else Path(name).expanduser()
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        model = mbs.Model.from_urdf(path)
    for one in said:
        print(f"warning: {one.message}", file=sys.stderr)
    return path, model


def _identify(options: argparse.Namespace) -> int:
    room = _identification()
    for name in ("out", "report", "json"):
        check_folder(name, getattr(options, name))
    path, model = description(options.robot)
    columns = dict(options.columns)

    def read(file: Path) -> Any:
        return room.read_recording(file, columns=columns, topic=options.topic)

    recordings = [read(file) for file in options.recordings]
    validation = None if options.validate is None else read(options.validate)
    found = room.identify(model, recordings, validation, progress=_progress)
    for note in found.notes:
        print(f"note: {note}", file=sys.stderr)
    _print_errors(found.errors)
    _print_joints(found)
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
            "masses": {
                name: float(parameters[0])
                for name, parameters in zip(model.body_names, found.inertial, strict=True)
            },
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
    _, model = description(options.robot)
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
