# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Directives for what the code itself states: parameters of nodes and the command line; figures.

The figures of the pages are written by the programs in examples/ while the site is built.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from mbs_dynamics.cli import command_line
from mbs_dynamics.ros.entry_points import interface_of
from mbs_dynamics.ros.interface import Parameter

DOCS = Path(__file__).parent
FIGURES = DOCS / "figures"
PUMA = ("puma_torques", "puma_errors", "puma_eigenvalues", "puma_power")
PROGRAMS = {
    **{
        name: (name,)
        for name in (
            "counts_over_n",
            "falling_chain",
            "four_representations",
            "heavy_top",
            "spinning_body",
        )
    },
    "puma_study": PUMA,
}
"""The programs in examples/ and the figures that they write."""


def parameter_table(node: str) -> Iterable[str]:
    """Yield the lines of a Markdown table of a node's parameters."""
    yield "| parameter | default | meaning |"
    yield "|---|---|---|"
    for one in interface_of(node).parameters:
        yield f"| `{one.full_name}` | {_default(one)} | {_meaning(one)} |"


def _default(one: Parameter) -> str:
    if one.default is None:
        return "must be set"
    value = list(one.default) if isinstance(one.default, tuple) else one.default
    shown = f"`{str(value).lower() if isinstance(value, bool) else value or repr(value)}`"
    return f"{shown} {one.unit}".strip()


def _meaning(one: Parameter) -> str:
    text = f"{one.description} {one.remarks}".strip()
    if one.range is not None:
        text += f" Range: {one.range[0]:g} to {one.range[1]:g}."
    if one.read_only:
        text += " *Fixed at start.*"
    return text.replace("|", r"\|").replace("<", r"\<").replace("~/", r"\~/").replace("_", r"\_")


def command_pages(parser: argparse.ArgumentParser) -> Iterable[str]:
    """Yield Markdown that describes every command of a parser."""
    commands: Any = next(a for a in parser._actions if isinstance(a, argparse._SubParsersAction))
    helps = {choice.dest: choice.help for choice in commands._choices_actions}
    for name, command in commands.choices.items():
        said = helps[name]
        yield from (f"## {parser.prog} {name}", "", f"{said[0].upper()}{said[1:]}.", "")
        yield from ("| argument | meaning |", "|---|---|")
        for action in command._actions:
            if action.dest != "help":
                said = (action.help or "").replace("|", r"\|").replace("<", r"\<")
                yield f"| {_argument(action)} | {said % vars(action) if '%(' in said else said} |"
        yield ""


def _argument(action: argparse.Action) -> str:
    if not action.option_strings:
        return f"`{action.metavar or action.dest}`"
    shown = ", ".join(f"`{option}`" for option in action.option_strings)
    if action.nargs == 0:
        return shown
    value = action.metavar or (
        "{" + ",".join(map(str, action.choices)) + "}" if action.choices else action.dest.upper()
    )
    return f"{shown} `{value}`"


class NodeParameters(SphinxDirective):
    """The table of the parameters of the node that is the argument."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """Return the table."""
        module = sys.modules[interface_of(self.arguments[0]).settings.__module__]
        self.env.note_dependency(str(module.__file__))
        return self.parse_text_to_nodes("\n".join(parameter_table(self.arguments[0])))


class CommandLine(SphinxDirective):
    """A section for each command of mbs-dynamics."""

    def run(self) -> list[nodes.Node]:
        """Return the sections."""
        text = "\n".join(command_pages(command_line()))
        return self.parse_text_to_nodes(text, allow_section_headings=True)


def escape(app: Sphinx, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Escape what docstrings mean literally and reStructuredText does not: |x| and (n, *shape)."""
    lines[:] = [re.sub(r"\||(?<=[ (])\*(?=\w+[,)])", r"\\\g<0>", line) for line in lines]


def draw(app: Sphinx) -> None:
    """Write the figures that are missing or older than their program."""
    if not app.config.draw_figures:
        return
    late = [name for name in PROGRAMS if any(_is_late(name, figure) for figure in PROGRAMS[name])]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(_run, late))


def _is_late(name: str, figure: str) -> bool:
    path = FIGURES / f"{figure}.png"
    program = DOCS.parent / "examples" / f"{name}.py"
    return not path.exists() or path.stat().st_mtime < program.stat().st_mtime


def _run(name: str) -> None:
    target = FIGURES if len(PROGRAMS[name]) > 1 else FIGURES / f"{name}.png"
    program = DOCS.parent / "examples" / f"{name}.py"
    subprocess.run([sys.executable, program, target], check=True, stdout=subprocess.DEVNULL)


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the directives."""
    app.add_directive("node-parameters", NodeParameters)
    app.add_directive("command-line", CommandLine)
    app.add_config_value("draw_figures", True, "")
    app.connect("autodoc-process-docstring", escape)
    app.connect("builder-inited", draw)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
