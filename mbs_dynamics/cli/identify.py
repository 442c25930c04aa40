# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The commands ``identify``, ``validate``, ``identify-static`` and ``identify-payload``."""

from __future__ import annotations

import argparse
import shlex
from contextlib import closing
from dataclasses import asdict
from pathlib import Path
from typing import Any

from mbs_dynamics.cli.description import Description
from mbs_dynamics.cli.options import (
    MOTION_DATA,
    Command,
    by_name,
    recording_in,
    remark,
    write_json,
    write_text,
)
from mbs_dynamics.errors import ArgumentError, missing_extra
from mbs_dynamics.model.model import warnings_about
from mbs_dynamics.progress import Progress

OF_TORQUES = ("validate", "report", "gains", "fit-gains")
OF_SERVOS = ("loaded", "link", "mass", "mjcf")
"""Options of ``identify`` that only recordings with torques, or of position servos, allow."""


def add_commands(commands: Any) -> None:
    """Add the commands to the parser's subcommands."""
    purpose = "identify inertias and friction, and write a URDF"
    example = "arm.urdf run1.mcap run2.mcap --out identified.urdf --report report.html"
    command = command_on(commands, "identify", _identify, purpose, example)
    command.file("recordings", MOTION_DATA, nargs="+")
    text = "recording for validation (default: three tenths of the others are held out)"
    command.file("--validate", text, metavar="RECORDING")
    text = "URDF to write; parameters of the nodes go to a .yaml file of the same name"
    command.output("--out", text)
    command.output("--report", "report to write, .html")
    command.output("--json", "write the results as JSON")
    text = "gains of efforts that are motor currents, N m/A or N/A"
    command.pairs("--gains", text, form="JOINT=GAIN")
    text = "use the gains with which the currents best fit the masses of the description"
    command.flag("--fit-gains", text)
    command.flag("--force", "write the result even if it is no better")
    text = "position servos: recording with a known load (--link, --mass, --com), for true masses"
    command.file("--loaded", text, metavar="RECORDING")
    command.add("--link", "link that carries the load")
    command.add("--mass", "mass of the load, kg", type=float, default=0.0)
    text = "centre of mass of the load in the frame of the link, m (default: its origin)"
    command.add("--com", text, type=float, nargs=3, default=[0.0] * 3, metavar=("X", "Y", "Z"))
    command.output("--mjcf", "position servos: MJCF to write")

    purpose = "compare the torques of a description with measured ones"
    command = command_on(commands, "validate", _validate, purpose, "arm.urdf run.csv")
    command.file("recording", MOTION_DATA)
    command.output("--json", "write the results as JSON")

    purpose, example = "identify masses from a few still poses", "arm.urdf poses.csv --out new.urdf"
    command = command_on(commands, "identify-static", _identify_static, purpose, example)
    command.file("poses", ".csv with q_<joint> and tau_<joint>, a row for each pose")
    command.output("--out", "URDF to write")
    command.flag("--force", "write the result even if it is no better")

    purpose, example = "identify the load on a link from a motion", "arm.urdf run.csv --link tool"
    command = command_on(commands, "identify-payload", _identify_payload, purpose, example)
    command.file("recording", "a motion with the load")
    command.add("--link", "link that carries the load", required=True)
    command.file("--without", "recording of the arm without the load")


def command_on(commands: Any, name: str, run: Any, purpose: str, example: str) -> Command:
    """Return a command with the options of a robot, of gravity and of recordings."""
    command = Command(commands, name, run, purpose, example)
    command.robot()
    command.gravity()
    command.reading()
    return command


class Job:
    """The description, the model and the recordings of a command."""

    def __init__(self, options: argparse.Namespace) -> None:
        try:
            import scipy  # noqa: F401

            from mbs_dynamics import identification
        except ImportError as error:
            raise missing_extra("identification needs SciPy", "identify", error) from error
        robot = Description(options)
        self.options, self.identification = options, identification
        self.urdf, self.model = robot.urdf, robot.model()
        remark(*warnings_about(self.model), kind="warning")

    def read(self, file: Path | None, **given: Any) -> Any:
        """Return a recording; None for None."""
        return None if file is None else recording_in(file, self.options, **given)

    def write_urdf(self, urdf: bytes, parameters: str = "") -> None:
        """Write a URDF, and parameters as a .yaml file of the same name."""
        self.options.out.write_bytes(urdf)
        print(f"wrote {self.options.out}")
        if parameters:
            write_text(self.options.out.with_suffix(".yaml"), parameters)

    def refused(self, result: Any) -> bool:
        """Return whether the result is not good enough to be written, and print a message then."""
        if result.better or self.options.force:
            return False
        remark(
            "the description, with fitted friction or without, predicts as well, or the error is "
            "too large: no URDF is written; --force writes it",
            kind="mbs-dynamics",
        )
        return True


def _identify(options: argparse.Namespace) -> int:
    job = Job(options)
    recordings = [job.read(file) for file in options.recordings]
    of_servos = all(one.tau is None and one.goal is not None for one in recordings)
    others = OF_TORQUES if of_servos else OF_SERVOS
    ignored = [f"--{name}" for name in others if getattr(options, name.replace("-", "_"))]
    if ignored:
        kind = "goals and no torques" if of_servos else "torques"
        raise ArgumentError(f"{', '.join(ignored)} cannot be used with recordings of {kind}")
    return _identify_servos(job, recordings) if of_servos else _identify_torques(job, recordings)


def _identify_torques(job: Job, recordings: list[Any]) -> int:
    options, identification, model = job.options, job.identification, job.model
    recordings += [] if options.validate is None else [job.read(options.validate)]
    gains = by_name("--gains", options.gains)
    if options.fit_gains:
        fitted = identification.fitted_gains(model, recordings[0], known=gains)
        listed = ", ".join(f"{joint} {gain:.4g}" for joint, gain in fitted.items())
        remark(f"gains by the masses of the description: {listed}")
        gains = fitted | gains
    if gains:
        recordings = [identification.with_gains(one, model, gains) for one in recordings]
    validation = None if options.validate is None else recordings.pop()
    with closing(Progress(100.0, what="identifying ", unit="%")) as progress:
        result = identification.identify(
            model, recordings, validation, progress=lambda share: progress.update(100.0 * share)
        )
    remark(*result.notes)
    _print_errors(result.errors)
    _print_table("joint", result.joint_parameters)
    base = result.base
    print(
        f"the data show {base.rank} of {len(base.values)} combinations of parameters, with a "
        f"condition number of {base.condition:.3g}"
    )
    write_json(
        options.json,
        relative_error=asdict(result.errors),
        consistent=result.consistent,
        cutoff_hz=result.cutoff,
        weight=result.choice.weight,
        friction_speed=result.torque_model.friction_speed,
        rank=base.rank,
        base_parameters=len(base.values),
        condition=base.condition,
        joints=result.joint_parameters,
        masses=result.masses,
        notes=list(result.notes),
    )
    if options.report is not None:
        write_text(options.report, identification.report(result, f"{model.name}: identification"))
    if job.refused(result):
        return 1
    if options.out is not None:
        job.write_urdf(
            identification.identified_urdf(job.urdf, result), identification.node_parameters(result)
        )
    return 0


def _identify_servos(job: Job, recordings: list[Any]) -> int:
    """Identify position servos, which report goals and no torques."""
    options, identification = job.options, job.identification
    loaded = job.read(options.loaded)
    if (loaded is None) != (options.link is None) or (loaded is None) != (options.mass == 0.0):
        raise ArgumentError("--loaded, --link and --mass must be given together")
    result = identification.identify_servos(
        job.model, recordings, loaded, link=options.link or "", mass=options.mass, com=options.com
    )
    remark(*result.notes)
    _print_table(
        "servo",
        {
            joint: {
                "stiffness": servo.stiffness,
                "+- %": 100.0 * servo.deviation,
                "damping": servo.damping,
                "friction": servo.friction,
                "delay s": servo.delay,
                "error %": 100.0 * servo.error,
            }
            for joint, servo in result.servos.items()
        },
    )
    estimate = result.identification
    if estimate is None:
        print("the masses of the description set the scale; --loaded finds the true one")
    else:
        _print_errors(estimate.errors)
    write_json(
        options.json,
        servos={joint: servo._asdict() for joint, servo in result.servos.items()},
        masses=None if estimate is None else estimate.masses,
        notes=list(result.notes),
    )
    if estimate is not None and job.refused(estimate):
        return 1
    urdf = identification.servo_urdf(job.urdf, result)
    if options.out is not None:
        job.write_urdf(urdf, identification.servo_yaml(result))
    if options.mjcf is not None:
        write_text(options.mjcf, identification.servo_mjcf(urdf.decode(), job.model, result))
    return 0


def _validate(options: argparse.Namespace) -> int:
    job = Job(options)
    errors, notes = job.identification.validate(job.model, job.read(options.recording))
    remark(*notes)
    _print_errors(errors, "with friction on held-out data")
    write_json(options.json, relative_error=asdict(errors), notes=list(notes))
    return 0


def _identify_static(options: argparse.Namespace) -> int:
    job = Job(options)
    result = job.identification.identify_static(job.model, job.read(options.poses, timed=False))
    estimate = result.identification
    remark(*estimate.notes)
    print(f"{result.poses} poses, {result.pairs} of them from several sides")
    _print_errors(estimate.errors)
    print("the most informative next pose:")
    for joint, value in result.next_pose.items():
        print(f"  {joint:24} {value:9.4f}")
    if job.refused(estimate):
        return 1
    if options.out is not None:
        job.write_urdf(job.identification.identified_urdf(job.urdf, estimate, friction=False))
    return 0


def _identify_payload(options: argparse.Namespace) -> int:
    job = Job(options)
    without = job.read(options.without)
    recording = job.read(options.recording)
    load = job.identification.identify_payload(job.model, recording, options.link, without)
    com, spread = load.inertia.com, load.com_deviation
    print(f"mass            {load.inertia.mass:.4g} +- {load.mass_deviation:.2g} kg")
    for axis, x, deviation in zip("xyz", com, spread, strict=True):
        print(f"centre of mass  {axis} {x:.4g} +- {deviation:.2g} m")
    print(
        f"relative error of the torques: {100.0 * load.error_without:.2f} % without the load, "
        f"{100.0 * load.error:.2f} % with it"
    )
    remark(*load.notes)
    if not load.better:
        text = "the load does not explain the torques: do not announce it to a node"
        remark(text, kind="mbs-dynamics")
        return 1
    print("\nto announce it to a node:")
    topic, kind = "/gravity_compensation_node/payload", "geometry_msgs/msg/InertiaStamped"
    print(f"ros2 topic pub --once {topic} {kind} \\")
    print(f"    {shlex.quote(load.message())}")
    return 0


def _print_errors(errors: Any, compared: str = "on held-out data") -> None:
    print(f"relative error of the torques, all joints, {compared}:")
    for name, value in asdict(errors).items():
        if value is not None:
            print(f"  {name.replace('_', ' '):26} {100.0 * value:8.2f} %")


def _print_table(first: str, rows: dict[str, dict[str, float]]) -> None:
    """Print values by joint and title."""
    titles = next(iter(rows.values()))
    print(f"{first:24}" + "".join(f"{title:>12}" for title in titles))
    for joint, values in rows.items():
        print(f"{joint:24}" + "".join(f"{value:12.4g}" for value in values.values()))
