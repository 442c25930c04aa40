# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Tables of the pages, from the code: parts of nodes, settings of guarded arms, commands.

``python docs/tables.py`` writes them between the lines ``<!-- table: ... -->`` and ``<!-- end -->``
of all pages; a test compares.
"""

import argparse
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from mbs_dynamics.cli import command_line
from mbs_dynamics.control.faults import Doubt
from mbs_dynamics.control.guarded_arm import DEFAULTS
from mbs_dynamics.control.period.checks import CHECKS
from mbs_dynamics.control.settings import MotionSettings
from mbs_dynamics.ros.entry_points import interface_of
from mbs_dynamics.ros.interface import RELIABLE, Service, Topic
from mbs_dynamics.settings import Parameter, parameters_of

DOCS = Path(__file__).parent

MARKED = re.compile(r"(<!-- table: (.+?) -->\n)(.*?)(<!-- end -->)", re.DOTALL)


def filled(page: str) -> str:
    """Return the text of a page with its tables."""
    return MARKED.sub(lambda found: f"{found[1]}\n{_text(*found[2].split())}\n{found[4]}", page)


def _text(kind: str, *node: str) -> str:
    make = {
        "topics": _topics,
        "parameters": _parameters,
        "settings": _settings,
        "commands": _commands,
        "checks": _checks,
    }[kind]
    return "".join(f"{line}\n" for line in make(*node))


def _table(head: str, rows: Iterable[tuple[str, ...]]) -> Iterable[str]:
    columns = head.split(", ")
    lines = [columns, ["---"] * len(columns), *rows]
    yield from ("| " + " | ".join(cell.replace("|", r"\|") for cell in one) + " |" for one in lines)


def _topics(node: str) -> Iterable[str]:
    interface = interface_of(node)
    for title, group in (
        ("Subscribed topics", interface.subscribed),
        ("Published topics", interface.published),
        ("Services", interface.services),
    ):
        if group:
            yield from (*([""] if group is not interface.subscribed else []), f"### {title}", "")
            rows = [(f"`{_name(one)}`", re.sub("/(msg|srv)/", "/", one.type)) for one in group]
            purposes = [_purpose(one) for one in group]
            head = f"{title.split()[-1].lower().removesuffix('s')}, type, meaning"
            yield from _table(head, ((*a, b) for a, b in zip(rows, purposes, strict=True)))


def _name(one: Topic | Service) -> str:
    """Return the name, or the parameter that holds the whole name."""
    return one.name.strip("<>") if one.name.startswith("<") else one.name


def _purpose(one: Topic | Service) -> str:
    text = one.description
    if one.name.startswith("<"):
        text += f" The parameter {_name(one)} holds its name."
    if one.condition:
        sentence = one.condition.startswith(("unless", "while"))
        text += f" Exists {'' if sentence else 'with '}{one.condition}."
    if isinstance(one, Topic) and one.quality != RELIABLE:
        text += f" *{str(one.quality).capitalize()}.*"
    return _escaped(text)


def _parameters(node: str) -> Iterable[str]:
    declared = interface_of(node).parameters
    rows = ((f"`{p.full_name}`", _default(p), _folded(p)) for p in declared)
    yield from _table("parameter, default, meaning", rows)


def _checks() -> Iterable[str]:
    rows = (
        (
            f"`{one.kind}`",
            re.sub(r"{(\w+)[^}]*}", r"*\1*", _escaped(one.sentence)) or "what the motion shows",
            "yes" if one.stops else "",
            "yes" if one.forbids else "",
            Doubt(one.doubt).name.lower() if one.stops else "",
        )
        for one in CHECKS
    )
    yield from _table("check, sentence, stops, forbids, doubt", rows)


NOT_SETTINGS = (
    "joints",
    "fixed_positions",
    "velocity_from_position",
    "max_age",
)
"""Settings of arms that are arguments of other names, or without effect, where frames are read."""

OF_MOTORS = {
    "effort_limits": "`limit`",
    "stale_timeout": "`max_age`",
    "other_joints_timeout": "`max_age`",
}
"""Keys of the table of motors that are the defaults of settings."""


def _settings() -> Iterable[str]:
    rows = []
    for one in parameters_of(MotionSettings):
        if one.name not in NOT_SETTINGS:
            made = one._replace(
                default=DEFAULTS.get(one.name, one.default), at_rest_only=False, read_only=False
            )
            default = OF_MOTORS.get(one.name) or _default(made)
            rows.append((f"`{one.full_name}`", default, _folded(made)))
    yield from _table("setting, default, meaning", rows)


def _default(one: Parameter) -> str:
    if one.default is None:
        return "must be set"
    value = list(one.default) if isinstance(one.default, tuple) else one.default
    shown = str(value).lower() if isinstance(value, bool) else value
    return f"`{repr(value) if value == '' else shown}` {one.unit}".strip()


LONG = 100
"""A sentence of more characters is folded after its first colon or semicolon."""


def _folded(one: Parameter) -> str:
    """Return the first sentence of the meaning, which unfolds to all else.

    The type is part of it where the default does not show it.
    """
    line, *rest = re.split(r"(?<=\.) ", one.description, maxsplit=1)
    if len(line) > LONG:
        line, *clause = re.split("[:;] ", line, maxsplit=1)
        rest = [_capitalised(part) for part in clause] + rest
        line = line.removesuffix(".") + "."
    limits = f"Range: {one.range[0]:g} to {one.range[1]:g}." if one.range else ""
    details = _escaped(" ".join(filter(None, [*rest, one.remarks, limits])))
    if one.choices:
        choices = ", ".join(f"`{choice}`" for choice in one.choices)
        details = re.sub(r"One of [\w`, ]+", f"One of {choices}", details)
    fixed = "*Fixed at start.*" if one.read_only else ""
    shown = one.default not in ((), None)
    kind = "" if shown or not one.type else f"Type `{one.type}`."
    folded = " ".join(filter(None, [details, kind, fixed]))
    if not folded:
        return _escaped(line)
    return f"<details><summary>{_escaped(line)}</summary>{folded}</details>"


def _capitalised(text: str) -> str:
    """Return a text that begins a sentence; names of parameters and topics keep their letters."""
    name = re.match(r"\S*[_~/]", text)
    return text if name else f"{text[0].upper()}{text[1:]}"


def _escaped(text: str) -> str:
    """Return plain text as Markdown, with names of parameters and topics as code."""
    text = re.sub(r"[~\w./-]*(?:~/|_|<)[\w./<>]*", lambda found: f"`{found[0]}`", text)
    return re.sub(r"\.`", "`.", text)


def _commands() -> Iterable[str]:
    parser = command_line()
    commands: Any = next(a for a in parser._actions if isinstance(a, argparse._SubParsersAction))
    helps = {choice.dest: choice.help for choice in commands._choices_actions}
    for number, (name, command) in enumerate(commands.choices.items()):
        said = helps[name]
        yield from ([""] * bool(number))
        yield from (f"## {parser.prog} {name}", "", f"{_capitalised(said)}.", "")
        actions = [action for action in command._actions if action.dest != "help"]
        yield from _table("argument, meaning", ((_argument(a), _help(a)) for a in actions))
        yield from ("", "```", str(command.epilog).removeprefix("example: "), "```")


def _help(action: argparse.Action) -> str:
    said = action.help or f"One of {', '.join(map(str, action.choices or ()))}"
    said = said % vars(action) if "%(" in said else said
    return re.sub(r"([<*])", r"\\\1", f"{_capitalised(said)}.")


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


if __name__ == "__main__":
    for path in DOCS.rglob("*.md"):
        before = path.read_text("utf-8")
        if filled(before) != before:
            path.write_text(filled(before), "utf-8")
            print(path)
