# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""How many operations each algorithm takes in each representation."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import mbs_dynamics as mbs
from benchmarks.mechanisms import ARMS, HUMANOIDS, chain, program, representations, robot
from benchmarks.report import Table

LENGTHS = (1, 2, 3, 4, 5, 6, 7, 8, 10, 15, 20, 25, 30)

LARGEST = 5_000
"""Longer chains are left out once one of them takes this many operations."""

NOTE = (
    "Multiplications and additions, without the sine and the cosine of each joint. The last column "
    "is the polynomial in n that equals every count from n = 5 on, if one exists."
)


def operations() -> Iterator[Table]:
    """Yield the table of the robots, then those of two kinds of random chains."""
    names = (*ARMS, *HUMANOIDS)
    models = [robot(name) for name in names]
    table = Table("Robots", ("operations", "representation", *names))
    for function, name in _algorithms():
        totals = [program(function, model, name).operations.total for model in models]
        table.rows.append((function.__name__, name, *totals))
    table.note = "Operations of all kinds. Bases are fixed; Jacobians are for the first leaf."
    yield table
    yield _chains("Chains with generic placements, n joints", generic=True)
    yield _chains("Chains with a Denavit-Hartenberg table, n joints", generic=False)


def _algorithms() -> Iterator[tuple[Callable[..., Any], str]]:
    for function in mbs.ALGORITHMS:
        for name in representations(function):
            yield function, name


def _chains(title: str, *, generic: bool) -> Table:
    lengths = [str(n) for n in LENGTHS]
    table = Table(title, ("operations", "representation", *lengths, "any n"), note=NOTE)
    models = {n: chain(n, generic=generic) for n in LENGTHS}
    for function, name in _algorithms():
        counts: dict[int, int] = {}
        for n, model in models.items():
            if max(counts.values(), default=0) < LARGEST:
                counted = program(function, model, name).operations
                counts[n] = counted.multiplications + counted.additions
        shown = [counts.get(n) for n in LENGTHS]
        table.rows.append((function.__name__, name, *shown, _polynomial(counts)))
    return table


def _polynomial(counts: dict[int, int]) -> str | None:
    """Return the counts as a polynomial in n, or None if they are none of degree 1 to 3."""
    n = np.array([n for n in counts if n >= 5])
    count = np.array([counts[k] for k in n])
    for degree in (1, 2, 3):
        if len(n) > degree + 1:
            terms = np.round(2.0 * np.polyfit(n, count, degree)) / 2.0
            if np.array_equal(np.polyval(terms, n), count):
                return _written(terms)
    return None


def _written(terms: Any) -> str:
    powers = ["", " n", " n^2", " n^3"][len(terms) - 1 :: -1]
    text = " ".join(f"{c:+.4g}{p}" for c, p in zip(terms, powers, strict=True) if c)
    return text.replace("+", "+ ").replace("-", "- ").removeprefix("+ ") or "0"
