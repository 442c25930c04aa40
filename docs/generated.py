# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Directives for nodes and the command line, which list the declarations of the code; figures.

The figures of the pages are drawn while the site is built: by the programs in examples/, and by the
pages whose code ends in ``figure.savefig(...)``.
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

from mbs_dynamics.cli import command_line, main
from mbs_dynamics.ros.entry_points import interface_of
from mbs_dynamics.ros.interface import RELIABLE, Parameter, Service, Topic

DOCS = Path(__file__).parent
FIGURES = DOCS / "figures"
PROGRAMS = ("counts_over_n", "falling_chain", "four_representations", "heavy_top", "spinning_body")
"""The programs in examples/ that write one figure each, named after them."""
PUMA = ("puma_torques", "puma_errors", "puma_eigenvalues", "puma_power")
"""The figures of examples/puma_study.py."""


def topics(node: str) -> Iterable[str]:
    """Yield Markdown lists of the topics and services of a node."""
    interface = interface_of(node)
    for title, group in (
        ("Subscribed topics", interface.subscribed),
        ("Published topics", interface.published),
        ("Services", interface.services),
    ):
        if group:
            yield from (f"### {title}", "")
        for one in group:
            kind = re.sub("/(msg|srv)/", "/", one.type)
            yield from _entry(f"`{_parameter(one) or one.name}` ({kind})", _purpose(one))


def _entry(term: str, text: str) -> Iterable[str]:
    yield from (term, f": {text}", "")


def _parameter(one: Topic | Service) -> str:
    """Return the parameter that holds the whole name, if there is one."""
    return one.name.strip("<>") if one.name.startswith("<") else ""


def _purpose(one: Topic | Service) -> str:
    text = one.description
    if _parameter(one):
        text += f" The parameter {_parameter(one)} holds its name."
    if one.condition:
        sentence = one.condition.startswith(("unless", "while"))
        text += f" Exists {'' if sentence else 'with '}{one.condition}."
    if isinstance(one, Topic) and one.quality != RELIABLE:
        text += f" *{str(one.quality).capitalize()}.*"
    return _escaped(text)


def parameters(node: str) -> Iterable[str]:
    """Yield a Markdown list of the parameters of a node."""
    for one in interface_of(node).parameters:
        yield from _entry(f"`{one.full_name}` ({one.type}, {_default(one)})", _meaning(one))


def _default(one: Parameter) -> str:
    if one.default is None:
        return "must be set"
    value = list(one.default) if isinstance(one.default, tuple) else one.default
    shown = str(value).lower() if isinstance(value, bool) else value
    return f"`{repr(value) if value == '' else shown}` {one.unit}".strip()


def _meaning(one: Parameter) -> str:
    text = f"{one.description} {one.remarks}".strip()
    if one.range is not None:
        text += f" Range: {one.range[0]:g} to {one.range[1]:g}."
    return _escaped(text) + (" *Fixed at start.*" if one.read_only else "")


def _escaped(text: str) -> str:
    """Return plain text as Markdown, with names of parameters and topics as code."""
    text = re.sub(r"[~\w./-]*(?:~/|_|<)[\w./<>]*", lambda found: f"`{found[0]}`", text)
    return re.sub(r"\.`", "`.", text)


def command_pages(parser: argparse.ArgumentParser) -> Iterable[str]:
    """Yield Markdown that describes every command of a parser."""
    commands: Any = next(a for a in parser._actions if isinstance(a, argparse._SubParsersAction))
    helps = {choice.dest: choice.help for choice in commands._choices_actions}
    for name, command in commands.choices.items():
        said = helps[name]
        yield from (f"## {parser.prog} {name}", "", f"{said[0].upper()}{said[1:]}.", "")
        for action in command._actions:
            if action.dest != "help":
                said = action.help or f"One of {', '.join(map(str, action.choices or ()))}"
                said = said % vars(action) if "%(" in said else said
                text = f"{said[0].upper()}{said[1:]}."
                yield from _entry(_argument(action), re.sub(r"([<*])", r"\\\1", text))


def _argument(action: argparse.Action) -> str:
    if not action.option_strings:
        return f"`{action.metavar or action.dest}`"
    shown = ", ".join(f"`{option}`" for option in action.option_strings)
    if action.nargs == 0:
        return shown
    value = action.metavar or (
        "{" + ",".join(map(str, action.choices)) + "}" if action.choices else action.dest.upper()
    )
    return f"{shown} `{value if isinstance(value, str) else ' '.join(value)}`"


class NodeParameters(SphinxDirective):
    """The parameters of the node that is the argument."""

    required_arguments = 1
    text = staticmethod(parameters)

    def run(self) -> list[nodes.Node]:
        """Return the list."""
        node = self.arguments[0]
        self.env.note_dependency(str(sys.modules[interface_of(node).settings.__module__].__file__))
        return self.parse_text_to_nodes("\n".join(self.text(node)), allow_section_headings=True)


class NodeTopics(NodeParameters):
    """The topics and services of a node."""

    text = staticmethod(topics)


class CommandLine(SphinxDirective):
    """A section for each command of mbs-dynamics."""

    def run(self) -> list[nodes.Node]:
        """Return the sections."""
        for source in (*(DOCS.parent / "mbs_dynamics").glob("cli*.py"), __file__):
            self.env.note_dependency(str(source))
        text = "\n".join(command_pages(command_line()))
        return self.parse_text_to_nodes(text, allow_section_headings=True)


def escape(app: Sphinx, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Escape what docstrings mean literally and reStructuredText does not: |x| and (n, *shape)."""
    lines[:] = [re.sub(r"\||(?<=[ (])\*(?=\w+[,)])", r"\\\g<0>", line) for line in lines]


def draw(app: Sphinx) -> None:
    """Write the figures that are missing or older than their source."""
    if not app.config.draw_figures:
        return
    examples = DOCS.parent / "examples"
    sources = {examples / f"{name}.py": (name,) for name in PROGRAMS}
    sources[examples / "puma_study.py"] = PUMA
    for page in DOCS.rglob("*.md"):
        sources[page] = tuple(re.findall(r"savefig\(\"(\w+)\.png\"\)", page.read_text("utf-8")))
    late = [source for source, names in sources.items() if any(_late(source, n) for n in names)]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(lambda source: _run(source, sources[source]), late))


SCENE = "arm7 --q 0.3 0.5 -0.2 1.1 0 0.7 0.1 --qd 0.4 -0.2 0.6 0.1 0.3 -0.5 0.2 --layers twist"
"""The interactive scene of the page on frames, as arguments of mbs-dynamics view."""


def write_scene(app: Sphinx, error: Exception | None) -> None:
    """Write the interactive scene to the folder of the pages."""
    target = app.outdir / "twist.html"
    if app.config.draw_figures and app.builder.format == "html" and not target.exists():
        main(["view", *SCENE.split(), "--write", str(target)])


def _late(source: Path, figure: str) -> bool:
    path = FIGURES / f"{figure}.png"
    return not path.exists() or path.stat().st_mtime < source.stat().st_mtime


def _run(source: Path, figures: Iterable[str]) -> None:
    command: list[str | Path] = ["-m", "doctest", source]
    if source.suffix == ".py":
        command = [source, "." if source.stem == "puma_study" else f"{source.stem}.png"]
    done = subprocess.run([sys.executable, *command], cwd=FIGURES, capture_output=True, text=True)
    if done.returncode:
        for figure in figures:  # drawn in part
            (FIGURES / f"{figure}.png").unlink(missing_ok=True)
        raise RuntimeError(f"{source} draws no figure: {done.stdout}{done.stderr}")


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the directives."""
    app.add_directive("node-parameters", NodeParameters)
    app.add_directive("node-topics", NodeTopics)
    app.add_directive("command-line", CommandLine)
    app.add_config_value("draw_figures", True, "")
    app.connect("autodoc-process-docstring", escape)
    app.connect("builder-inited", draw)
    app.connect("build-finished", write_scene)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
