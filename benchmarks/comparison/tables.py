# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Results of a comparison as tables."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from benchmarks.comparison.bounds import COMPILED, Result, Verdict, mean
from benchmarks.report import Table

GOALS = {"without": 0.25, "with": 0.15}
"""Seconds to the first torque of an arm with 7 joints, without and with the cache."""

NOTE = """Means are geometric. Compilation is in seconds of CPU time in a warm process without a
cache, up to the first result; old and new are sums, and sensitivities those of up to eight joints.
Pinocchio and this package are called from Python. Noise is the ratio of the times of two processes
of the old version, measured together; what breaks a bound was measured again in new processes."""


def report(
    results: Sequence[Result],
    starts: Mapping[str, tuple[float, float]],
    judged: Sequence[Verdict],
) -> str:
    """Return ratios, compile times, starts of processes, what breaks a bound, and the verdicts."""
    timed = [x for x in results if not (x.fault or x.left_out)]
    tables = [
        _ratios("New time / old time", [x for x in timed if x.what != COMPILED], lambda x: x.ratio),
        Table(
            "Trace, compile and call for the first time",
            ("mechanism", "functions", "old, s", "new, s", "slowest, s", "function"),
        ),
        _ratios(
            "New time / Pinocchio's, one state",
            [x for x in timed if x.pinocchio is not None],
            lambda x: x.new / (x.pinocchio or 1.0),
        ),
        Table(
            "Seconds of the main thread from the first import to the first torque of 7 joints",
            ("cache", "old, s", "new, s", "ratio", "goal, s"),
            [[x, old, new, new / old, GOALS[x]] for x, (old, new) in starts.items()],
        ),
        Table(
            "Not measured",
            ("function", "measured", "reason"),
            [[x.name, x.what, x.left_out] for x in results if x.left_out],
        ),
        Table(
            "Broken bounds",
            ("bound", "function", "measured", "old, s", "new, s", "value", "noise"),
            [
                [v.bound.title, x.name, x.what, x.old, x.new, x.fault or v.bound.value(x), x.noise]
                for v in judged
                for x in v.breaking
            ],
        ),
        Table(
            "Verdicts",
            ("bound", "limit", "found", "worst", "verdict"),
            [
                [
                    v.bound.title,
                    f"{v.bound.limit:g} {v.bound.unit}",
                    None if v.value is None else f"{v.value:#.3g}",
                    f"{v.worst.name}, {v.worst.what}" if v.worst and v.value != 0.0 else None,
                    v.state,
                ]
                for v in judged
            ],
            NOTE,
        ),
    ]
    for mechanism, group in _groups([x for x in timed if x.what == COMPILED]).items():
        old, new = sum(x.old for x in group), sum(x.new for x in group)
        worst = max(group, key=lambda x: x.new)
        tables[1].rows.append([mechanism, len(group), old, new, worst.new, worst.subject])
    return "\n".join(str(table) for table in tables if table.rows)


def _groups(results: Iterable[Result]) -> dict[str, list[Result]]:
    """Return the results of each mechanism and of what is measured of it."""
    groups: dict[str, list[Result]] = {}
    for x in results:
        groups.setdefault(f"{x.mechanism}, {x.what}", []).append(x)
    return groups


def _ratios(title: str, results: Sequence[Result], value: Callable[[Result], float]) -> Table:
    table = Table(title, ("mechanism", "functions", "mean", "least", "worst", "function"))
    for name, group in _groups(results).items():
        ratios, worst = [value(x) for x in group], max(group, key=value)
        row = [name, len(group), mean(ratios), min(ratios), max(ratios), worst.subject]
        table.rows.append(row)
    return table
