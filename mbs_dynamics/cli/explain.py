# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The command ``mbs-dynamics explain``: an algorithm on its way from equations to machine code."""

from __future__ import annotations

import argparse
import inspect
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import mbs_dynamics as mbs
from mbs_dynamics.algorithms import algorithm_of
from mbs_dynamics.cli.options import Command, robot
from mbs_dynamics.compiler import Program
from mbs_dynamics.compiler.codegen import c, llvm, python
from mbs_dynamics.compiler.ir.text import text
from mbs_dynamics.compiler.jit.machine_code import assembly
from mbs_dynamics.compiler.passes import pipeline
from mbs_dynamics.errors import ArgumentError


def add_commands(commands: Any) -> None:
    """Add the command to the parser's subcommands."""
    purpose = "print the stages from the equations of an algorithm to machine code"
    explain = Command(commands, "explain", _explain, purpose)
    explain.add("algorithm", "such as inverse_dynamics")
    explain.add("robot", "path of a URDF, or the name of a robot shipped here: arm7")
    stages = "; ".join(f"{name}: {what}" for name, (what, _) in STAGES.items())
    explain.add("--stage", f"{stages} (default: the size of each)", choices=STAGES)
    explain.add("--after", "with --stage ir: only the program after this pass", metavar="PASS")
    text = "states that are evaluated at once (default: 1)"
    explain.add("--lanes", text, type=int, choices=(1, 2, 4, 8), default=1)
    explain.algorithm()


def _explain(options: argparse.Namespace) -> int:
    function = algorithm_of(options.algorithm)
    model = robot(options.robot)
    asked = {name: getattr(options, name) for name in ("body", "representation")}
    given = {name: value for name, value in asked.items() if value}
    program = mbs.compile(function, model, backend="python", **given).program
    if options.stage is None:
        lines: Iterable[str] = _sizes(function, program, options)
    else:
        _, show = STAGES[options.stage]
        lines = show(function, program, options)
    for line in lines:
        print(line)
    return 0


def _sizes(
    function: Callable[..., Any], program: Program, options: argparse.Namespace
) -> Iterator[str]:
    yield f"{program.name}: {program.operations}"
    for name, (what, show) in STAGES.items():
        if name == "ir":
            for passed, module in pipeline.llvm_stages(program, options.lanes):
                yield f"  {name:10} {len(module.statements):7} statements after {passed}"
            continue
        try:
            lines = sum(1 for _ in show(function, program, options))
        except mbs.MbsError as error:
            yield f"  {name:10} {error}"
        else:
            yield f"  {name:10} {lines:7} lines: {what}"


def _equations(function: Callable[..., Any], *_: Any) -> list[str]:
    """Return the source file of the algorithm, which has most of the functions that it calls."""
    module = inspect.getmodule(algorithm_of(function).equations)
    assert module is not None
    return inspect.getsource(module).splitlines()


def _ir(_: Any, program: Program, options: argparse.Namespace) -> Iterator[str]:
    """Yield the program after each pass, or after one."""
    stages = dict(pipeline.llvm_stages(program, options.lanes))
    if options.after not in (None, *stages):
        raise ArgumentError(f"no pass {options.after!r} here; valid are {', '.join(stages)}")
    for name, module in stages.items():
        if options.after is None:
            yield f"== after {name}"
        if options.after in (None, name):
            yield from text(module).splitlines()


def _llvm(_: Any, program: Program, options: argparse.Namespace) -> list[str]:
    return llvm.emit_llvm(program, options.lanes).splitlines()


def _assembly(_: Any, program: Program, options: argparse.Namespace) -> list[str]:
    return assembly(llvm.emit_llvm(program, options.lanes)).splitlines()


def _c(_: Any, program: Program, options: argparse.Namespace) -> list[str]:
    return c.emit_c(program).splitlines()


def _python(_: Any, program: Program, options: argparse.Namespace) -> list[str]:
    return python.emit_python(program.straight.module).splitlines()


STAGES: dict[str, tuple[str, Callable[..., Iterable[str]]]] = {
    "equations": ("the file with the algorithm", _equations),
    "ir": ("the intermediate representation, after each pass", _ir),
    "llvm": ("LLVM IR", _llvm),
    "assembly": ("the machine code", _assembly),
    "c": ("C99", _c),
    "python": ("plain Python", _python),
}
