# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The mbs-dynamics command: descriptions of robots, operation counts, export, demonstration."""

from __future__ import annotations

import argparse
import importlib
import io
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import mbs_dynamics as mbs
from mbs_dynamics.algorithms import algorithm_of
from mbs_dynamics.c_export import export_c
from mbs_dynamics.cli.explain import add_command
from mbs_dynamics.cli.identify import add_identification
from mbs_dynamics.cli.motors import add_motors
from mbs_dynamics.cli.options import Command, robot_of
from mbs_dynamics.cli.options import robot as _robot
from mbs_dynamics.cli.simulate import add_commands
from mbs_dynamics.cli.teaching import add_teaching
from mbs_dynamics.cli.view import add_view
from mbs_dynamics.compiler import Operations, call_mechanism, default_backend
from mbs_dynamics.errors import UnknownAlgorithmError
from mbs_dynamics.model.body import GROUND, preorder
from mbs_dynamics.model.diagnostics import warnings_about
from mbs_dynamics.operation_counts import Count, algorithm_counts, forward_dynamics_counts


def command_line() -> argparse.ArgumentParser:
    """Return the parser of all commands."""
    parser = argparse.ArgumentParser(
        prog="mbs-dynamics", description="Kinematics and dynamics of multibody systems."
    )
    parser.add_argument("--version", action="version", version=mbs.__version__)
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")

    purpose = "print a robot's tree, masses, limits, warnings and operation counts"
    info = Command(commands, "info", _info, purpose)
    info.robot()
    info.part()

    purpose = "print operation counts of a robot's algorithms, or of chains with published ones"
    count = Command(commands, "count", _count, purpose)
    count.add("robot", "path or name, as for info (default: chains)", nargs="?")
    sizes: dict[str, Any] = {"type": _size, "nargs": "+", "metavar": "N"}
    text = "numbers of joints of the chains (default: 6 10 14)"
    count.add("--sizes", text, default=[6, 10, 14], **sizes)

    purpose = "write algorithms of a robot as C99 without dependencies beyond math.h"
    export = Command(commands, "export", _export, purpose)
    export.add("robot", "path or name, as for info")
    text = "algorithms, such as gravity_torques,inverse_dynamics,jacobian"
    export.add("--functions", text, type=_functions, required=True, metavar="NAME,...")
    folder: dict[str, Any] = {"dest": "output", "required": True, "metavar": "FOLDER"}
    export.add("--out --output", "folder for the .c and the .h file", **folder)
    export.add("--prefix", "first part of all names in C (default: the robot's name)")
    text = "of all numbers (default: double)"
    export.add("--precision", text, choices=("double", "single"), default="double")
    export.algorithm()
    export.flag("--wrenches", "applied wrenches are an argument as well")

    purpose = "an arm held up against gravity, pushed and loaded, by nodes over DDS"
    demo = Command(commands, "demo", _demo, purpose)
    demo.add("--robot", "path of a URDF (default: the arm shipped here)")

    purpose = "write the output of dynamics_node for a recorded bag"
    again = Command(commands, "replay", _replay, purpose)
    again.file("robot", "path of a URDF")
    again.file("bag", ".db3, .mcap, or the folder of a bag")
    again.file("--out", ".mcap to write", required=True)
    again.file("--params-file", "parameters of dynamics_node, .yaml")
    several: dict[str, Any] = {"action": "append", "default": [], "metavar": "NAME:=VALUE"}
    text = "a parameter of dynamics_node, such as publish_mass_matrix:=true"
    again.add("-p --param", text, **several)
    again.add("--joint-states", "topic in the bag", default="")

    add_command(commands)
    add_commands(commands)
    add_identification(commands)
    add_motors(commands)
    add_teaching(commands)
    add_view(commands)
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    for stream in (sys.stdout, sys.stderr):  # which may lack characters of a name
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    options = command_line().parse_args(arguments)
    try:
        return int(options.run(options))
    except mbs.MbsError as error:
        print(f"mbs-dynamics: {error}", file=sys.stderr)
        return 1
    except BrokenPipeError:  # the reader of the pipe has closed it
        sys.stderr.close()
        return 0
    except OSError as error:
        said = f"{error.filename!r}: {error.strerror}" if error.filename else str(error)
        print(f"mbs-dynamics: cannot read or write {said}", file=sys.stderr)
        return 1


def _of_ros(module: str, purpose: str) -> Any:
    """Return a module that needs ROS 2, or raise BackendError."""
    try:
        return importlib.import_module(f"mbs_dynamics.ros.{module}")
    except ImportError as error:
        raise mbs.BackendError(
            f"{purpose} ({error}); source it, or install the extra 'ros' of this package"
        ) from error


def _demo(options: argparse.Namespace) -> int:
    return int(_of_ros("demo", "the demonstration needs ROS 2").main(robot=options.robot))


def _replay(options: argparse.Namespace) -> int:
    purpose = "replay is dynamics_node itself, and needs the messages of ROS 2"
    done = _of_ros("replay", purpose).replay(
        options.robot,
        options.bag,
        options.out,
        params_file=options.params_file,
        params=options.param,
        joint_states=options.joint_states,
    )
    print(f"{done.read} messages were replayed; wrote {options.out}:")
    for topic, count in sorted(done.written.items()):
        print(f"  {count:7} {topic}")
    return 0


def _export(options: argparse.Namespace) -> int:
    asked = {name: getattr(options, name) for name in ("body", "representation", "wrenches")}
    written = export_c(
        _robot(options.robot),
        options.functions,
        options.output,
        prefix=options.prefix,
        precision=options.precision,
        **{name: value for name, value in asked.items() if value},
    )
    print("\n".join(map(str, written)))
    return 0


def _functions(text: str) -> list[Callable[..., Any]]:
    """Return algorithms by name."""
    try:
        return [algorithm_of(name.strip()) for name in text.split(",")]
    except UnknownAlgorithmError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _count(options: argparse.Namespace) -> int:
    if options.robot is None:
        sizes = sorted(set(options.sizes))
        counts = forward_dynamics_counts(sizes)
        print("Forward dynamics of n revolute joints: multiplications / additions")
        rows = [[name, *map(str, row)] for name, row in counts.items()]
        lines = _table(["algorithm", *(f"n = {n}" for n in sizes)], rows)
    else:
        model = _robot(options.robot)
        print(f"{model.name}: multiplications / additions (the cheapest has a star)")
        rows = list(_operation_rows(model, Count.of))
        lines = _table(["algorithm", *mbs.REPRESENTATIONS], rows)
    for line in lines:
        print(line)
    return 0


def _size(text: str) -> int:
    """Return a number of joints, limited so that counting ends in reasonable time."""
    n = int(text)
    if not 1 <= n <= 100:
        raise argparse.ArgumentTypeError(f"a size must be from 1 to 100; got {n}")
    return n


def _info(options: argparse.Namespace) -> int:
    model = robot_of(options)  # warned of below
    for line in describe(model):
        print(line)
    backend = default_backend()
    print(f"\nKernels: back end {backend}, called through {call_mechanism(backend)}")
    return 0


USUAL = (
    mbs.forward_kinematics,
    mbs.twists,
    mbs.jacobian,
    mbs.jacobian_rate,
    mbs.inverse_dynamics,
    mbs.gravity_torques,
    mbs.bias_torques,
    mbs.mass_matrix,
    mbs.forward_dynamics,
    mbs.kinetic_energy,
    mbs.potential_energy,
)
"""The algorithms whose operations the description lists: counting all of them takes long."""


def describe(model: mbs.Model) -> Iterable[str]:
    """Yield the lines that describe a model, as ``mbs-dynamics info`` prints them."""
    mass = sum(body.inertia.mass for body in model.bodies)
    yield (
        f"{model.name}: {model.size}, {model.nb} moving bodies, "
        f"{mass:.6g} kg in motion, gravity {_vector(model.gravity)} m/s^2"
    )
    yield from ("", "Tree")
    yield from _table(
        ["body", "joint", "type", "axis", "mass kg", "centre of mass m", "merged links"],
        list(_tree_rows(model)),
    )
    yield from ("", "Joints (SI units: rad, m, N m, N)")
    yield from _table(
        ["joint", "lower", "upper", "velocity", "effort", "damping", "friction", "follows"],
        list(_joint_rows(model)),
    )
    warned = warnings_about(model)
    notes = [str(each) for each in model.diagnostics if each.severity == "note"]
    for title, said in (("Warnings", warned), ("Notes", notes)):
        if said:
            yield from ("", title, *(f"  {each}" for each in said))
    yield from ("", "Operations of one evaluation (the cheapest representation has a star)")
    rows = _operation_rows(model, functions=USUAL)
    yield from _table(["algorithm", *mbs.REPRESENTATIONS], list(rows))
    yield from ("", "mbs-dynamics count lists all algorithms.")


def _tree_rows(model: mbs.Model) -> Iterable[list[str]]:
    merged: dict[int, list[str]] = {}
    for frame in model.frames.values():
        if frame.body == GROUND or frame.name != model.bodies[frame.body].name:
            merged.setdefault(frame.body, []).append(frame.name)
    if GROUND in merged:
        yield ["(ground)", "", "", "", "", "", ", ".join(merged[GROUND])]
    depth = {GROUND: 0}
    for i in preorder(model.parents):
        body, depth[i] = model.bodies[i], depth[model.parents[i]] + 1
        axis = ""
        if body.joint.nv == 1:
            X = body.joint.screw
            axis = _vector(X[:3] if X[:3].any() else X[3:])
        yield [
            "  " * depth[i] + body.name,
            body.joint.name,
            body.joint.kind,
            axis,
            f"{body.inertia.mass:.5g}",
            _vector(body.inertia.com),
            ", ".join(merged.get(i, [])),
        ]


def _joint_rows(model: mbs.Model) -> Iterable[list[str]]:
    for body in model.bodies:
        joint, limits = body.joint, body.joint.limits
        follows = ""
        if joint.mimics is not None:
            follows = f"{joint.ratio:g} x {joint.mimics}"
            follows += f" + {joint.offset:g}" if joint.offset else ""
        yield [
            joint.name,
            *(_number(x) for x in (limits.lower, limits.upper, limits.velocity, limits.effort)),
            _number(joint.damping or None),
            _number(joint.friction or None),
            follows,
        ]


def _operation_rows(
    model: mbs.Model,
    show: Callable[[Operations], object] = lambda operations: operations.total,
    functions: Sequence[Callable[..., Any]] = mbs.ALGORITHMS,
) -> Iterable[list[str]]:
    for title, operations in algorithm_counts(model, functions):
        if not operations:
            yield [title, "the mass matrix is singular", *[""] * (len(mbs.REPRESENTATIONS) - 1)]
            continue
        least = min(count.total for count in operations.values())
        cells = [
            f"{show(count)}{' *' if count.total == least and len(operations) > 1 else ''}"
            for count in operations.values()
        ]
        yield [title, *(cells if len(cells) > 1 else cells * len(mbs.REPRESENTATIONS))]


def _vector(x: Any) -> str:
    return "(" + ", ".join(f"{value + 0.0:.4g}" for value in x) + ")"


def _number(x: float | None) -> str:
    return "-" if x is None else f"{x:.5g}"


def _table(head: list[str], rows: list[list[str]]) -> Iterable[str]:
    """Yield a table with columns as wide as their contents; empty columns are omitted."""
    kept = [k for k in range(len(head)) if any(row[k] for row in rows)]
    widths = {k: max(len(line[k]) for line in [head, *rows]) for k in kept}

    def text(row: list[str], justify: Callable[[str, int], str] = str.ljust) -> str:
        return "  " + "  ".join(justify(row[k], widths[k]) for k in kept).rstrip()

    yield text(head)
    yield "  " + "  ".join("-" * widths[k] for k in kept)
    yield from (text(row) for row in rows)
