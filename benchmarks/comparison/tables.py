# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Results of a comparison as tables."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from benchmarks.comparison.bounds import COMPILED, Result, Verdict, mean
from benchmarks.report import Table

NOTE = """Means are geometric. Compilation is in seconds of CPU time in a warm process without a
cache, up to the first result; old and new are sums, and sensitivities those of up to eight joints.
What breaks a bound was measured again in new processes."""


def report(results: Sequence[Result], judged: Sequence[Verdict]) -> str:
    """Return ratios, compile times, what breaks a bound, and the verdicts."""
    timed = [x for x in results if not (x.fault or x.left_out)]
    tables = [
        _ratios([x for x in timed if x.what != COMPILED]),
        Table(
            "Trace, compile and call for the first time",
            ("mechanism", "functions", "old, s", "new, s", "slowest, s", "function"),
        ),
        Table(
            "Not measured",
            ("function", "measured", "reason"),
            [[x.name, x.what, x.left_out] for x in results if x.left_out],
        ),
        Table(
            "Broken bounds",
            ("bound", "function", "measured", "old, s", "new, s", "value"),
            [
                [v.bound.title, x.name, x.what, x.old, x.new, x.fault or v.bound.value(x)]
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


def _ratios(results: Sequence[Result]) -> Table:
    columns = ("mechanism", "functions", "mean", "least", "worst", "function")
    table = Table("New time / old time", columns)
    for name, group in _groups(results).items():
        ratios, worst = [x.ratio for x in group], max(group, key=lambda x: x.ratio)
        table.rows.append([name, len(group), mean(ratios), min(ratios), worst.ratio, worst.subject])
    return table
