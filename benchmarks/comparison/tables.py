# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Results as tables."""

from __future__ import annotations

import argparse
import importlib.util
from collections.abc import Callable, Iterable, Sequence
from itertools import groupby
from typing import Any

from benchmarks.comparison.bounds import (
    BATCHES,
    COMPILED,
    ONE,
    Bound,
    Result,
    Start,
    Verdict,
    mean,
)
from benchmarks.comparison.processes import Versions
from benchmarks.report import Table

GOALS = {False: 0.25, True: 0.15}
"""Seconds to the first torque of an arm with 7 joints, without and with the cache."""

UNITS = {ONE: ("us", 1e6), COMPILED: ("s", 1.0), **dict.fromkeys(BATCHES, ("ns a state", 1e9))}


def heading(versions: Versions, asked: argparse.Namespace) -> str:
    """Return the title, and the command that makes these tables."""
    options = ["--quick"] * asked.quick
    if asked.only:
        options += ["--only", *(f'"{x}"' if " " in x else x for x in asked.only)]
    if asked.rounds:
        options += ["--rounds", str(asked.rounds)]
    command = " ".join(["python -m benchmarks.against", asked.revision, *options])
    return (
        f"# {versions.new.name} against {versions.old.name}\n\n`{command}`: ratios are the time of "
        f"the working tree ({versions.new.name}) divided by that of {versions.old.name}. Below 1 "
        "the working tree is faster. A time is the minimum of all samples."
    )


def report(results: Sequence[Result], starts: Sequence[Start], judged: Sequence[Verdict]) -> str:
    """Return what is printed: ratios, compile times, what breaks a bound, the verdicts."""
    found = [
        _ratios(results),
        _compilation(results),
        _pinocchio(results),
        _starts(starts),
        _left_out(results),
        _breaking(judged),
        _verdicts(judged),
    ]
    text = "\n".join(str(table) for table in found if table.rows)
    if importlib.util.find_spec("pinocchio") is None:
        text += "\nPinocchio is not installed, so nothing is compared with it.\n"
    return text


def details(results: Sequence[Result]) -> str:
    """Return the ratio of every function."""
    parts = {ONE: "one state", "batch": "batches", COMPILED: "seconds to compile"}
    text = []
    for what, title in parts.items():
        chosen = [x for x in results if x.what.startswith(what) and not _untimed(x)]
        names = list(dict.fromkeys((x.mechanism, x.what) for x in chosen))
        by = {(x.subject, x.mechanism, x.what): x.ratio for x in chosen}
        columns = [name if what != "batch" else f"{name}, {size[9:]}" for name, size in names]
        table = Table(f"Every ratio: {title}", ("function", *columns))
        for subject in dict.fromkeys(x.subject for x in chosen):
            table.rows.append([subject, *(by.get((subject, *name)) for name in names)])
        if table.rows:
            text.append(str(table))
    return "\n".join(text)


def _untimed(x: Result) -> bool:
    return bool(x.fault or x.left_out)


def _groups(results: Iterable[Result]) -> Iterable[tuple[tuple[str, str], list[Result]]]:
    """Yield the timed results of each mechanism and of what is measured, batches last."""

    def place(x: Result) -> tuple[bool, str, str]:
        return x.what in BATCHES, x.mechanism, x.what

    timed = [x for x in results if not _untimed(x)]
    order = {key: k for k, key in enumerate(dict.fromkeys(map(place, timed)))}
    timed.sort(key=lambda x: (x.what in BATCHES, order[place(x)]))
    for key, group in groupby(timed, place):
        yield key[1:], list(group)


def _ratios(results: Sequence[Result]) -> Table:
    columns = ("mechanism", "measured", "functions", "mean", "least", "worst", "function")
    table = Table("New time / old time", columns)
    table.note = "Means are geometric."
    for (mechanism, what), group in _groups(x for x in results if x.what != COMPILED):
        worst = max(group, key=lambda x: x.ratio)
        ratios = [x.ratio for x in group]
        row = [mechanism, what, len(group), mean(ratios), min(ratios), worst.ratio, worst.subject]
        table.rows.append(row)
    return table


def _compilation(results: Sequence[Result]) -> Table:
    columns = ("mechanism", "functions", "old, s", "new, s", "ratio", "slowest, s", "function")
    table = Table("Trace, compile and call for the first time", columns)
    table.note = (
        "Seconds of CPU time in a warm process without a cache. Old and new are sums over the "
        "functions. Sensitivities are with respect to parameters of up to eight joints."
    )
    for (mechanism, _), group in _groups(x for x in results if x.what == COMPILED):
        old, new = sum(x.old for x in group), sum(x.new for x in group)
        worst = max(group, key=lambda x: x.new)
        table.rows.append([mechanism, len(group), old, new, new / old, worst.new, worst.subject])
    return table


def _pinocchio(results: Sequence[Result]) -> Table:
    columns = ("mechanism", "functions", "mean", "worst", "function")
    table = Table("New time / Pinocchio's, one state, both called from Python", columns)

    def value(x: Result) -> float:
        assert x.pinocchio
        return x.new / x.pinocchio

    for (mechanism, _), group in _groups(x for x in results if x.pinocchio is not None):
        worst = max(group, key=value)
        row = [mechanism, len(group), mean(map(value, group)), value(worst), worst.subject]
        table.rows.append(row)
    return table


def _starts(starts: Sequence[Start]) -> Table:
    columns = ("cache", "old, s", "new, s", "ratio", "goal, s", "")
    table = Table("From the first import to the first torque of an arm with 7 joints", columns)
    table.note = (
        "Minimum CPU time of the main thread of fresh processes, the import of NumPy included. "
        "Goals are no bounds: the comparison does not fail if one is missed."
    )
    for x in starts:
        goal = GOALS[x.cached]
        said = "met" if x.new <= goal else "not met"
        name = "with" if x.cached else "without"
        table.rows.append([name, x.old, x.new, x.new / x.old, goal, said])
    return table


def _left_out(results: Sequence[Result]) -> Table:
    table = Table("Not measured", ("function", "measured", "reason"))
    table.rows = [[x.name, x.what, x.left_out] for x in results if x.left_out]
    return table


def _breaking(judged: Sequence[Verdict]) -> Table:
    columns = ("bound", "function", "measured", "old", "new", "unit", "value", "limit", "noise")
    table = Table("Broken bounds", columns)
    table.note = (
        "Each was measured again in new processes. Noise is the ratio of the times of two "
        "processes of the old version, measured together; 1 means no noise."
    )
    for verdict in judged:
        bound = verdict.bound
        for x in verdict.breaking:
            if x.fault:
                row: list[Any] = [bound.title, x.name, x.what, None, None, None, x.fault]
                table.rows.append([*row, bound.limit, None])
                continue
            unit, factor = UNITS[x.what]
            times = [factor * x.old, factor * x.new]
            limit = bound.limit if bound.over is None else None
            row = [bound.title, x.name, x.what, *times, unit, bound.value(x), limit, x.noise]
            table.rows.append(row)
    return table


def _verdicts(judged: Sequence[Verdict]) -> Table:
    table = Table("Verdicts", ("bound", "limit", "found", "worst", "verdict"))
    for verdict in judged:
        worst = verdict.worst
        named = f"{worst.name}, {worst.what}" if worst and verdict.value != 0.0 else None
        limit = _with_unit(verdict.bound, verdict.bound.limit, lambda x: f"{x:g}")
        found = None
        if verdict.value is not None:
            found = _with_unit(verdict.bound, verdict.value, lambda x: f"{x:#.3g}")
        table.rows.append([verdict.bound.title, limit, found, named, verdict.state])
    return table


def _with_unit(bound: Bound, value: float, text: Callable[[float], str]) -> str:
    return f"{text(value)} {bound.unit}"
