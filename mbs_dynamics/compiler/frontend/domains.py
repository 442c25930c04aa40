# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Iteration domains: the rows of a forest, and the ranges of inner loops."""

from __future__ import annotations

from collections.abc import Sequence

from mbs_dynamics.compiler.ir.nodes import Index, Variable, index, table

ROWS, PAIRS, ALL, BEYOND, SINCE = "rows", "pairs", "all", "beyond", "since"
"""ROWS are all rows. PAIRS are, for each row, the rows beyond it. The others are, for each row,
columns, of which there is one for each row: ALL of the same tree, that of the row and of those
BEYOND it, or those of the same tree SINCE that of the row."""

OWN, PARENT, OTHER, COLUMN, LAST = "own", "parent", "other", "column", "last"
"""Roles of rows: that of the iteration, its parent, the one nearer to the root in PAIRS (OWN is the
one beyond it then), that of a column, and the last of all."""

GROUND = -1
"""The parent of a root."""

ROW, PARENT_ROW, BEGIN, END, WITHIN = map(Variable, ("i", "p", "begin", "end", "k"))
"""The parameters of a procedure for a row, and the variable of the loop within."""


NUMBERS = {OWN: ROW, PARENT: PARENT_ROW, COLUMN: WITHIN}
NUMBERS_OF_PAIRS = {OWN: WITHIN, OTHER: ROW}
"""The numbers of rows by role, in loops over PAIRS and in all others."""


class Forest:
    """Rows in depth-first order, each of a kind; roots have kinds of their own.

    The first ``head`` rows may be the columns of one root, written out before the loops. The last
    of them stands for the root, whose kind no other row has.
    """

    def __init__(self, parents: Sequence[int], kinds: Sequence[int], head: int = 0) -> None:
        self.parents, self.kinds, self.count = tuple(parents), tuple(kinds), len(parents)
        self.head, self.head_kind = head, kinds[0] if head else None
        self.before = max(head - 1, 0)
        """Rows before that of the first body."""
        self.is_chain = all(p == i - 1 for i, p in enumerate(parents) if i >= max(head, 1))
        ends = list(range(1, self.count + 1))
        for i in reversed(range(self.count)):
            if parents[i] != GROUND:
                ends[parents[i]] = max(ends[parents[i]], ends[i])
        ends[:head] = ends[head - 1 : head] * head
        roots: list[int] = []
        for i, p in enumerate(parents):
            roots.append((i if i >= head else 0) if p == GROUND else roots[p])
        row = index(ROW)
        end, root, end_of_tree = (
            index(table(name, numbers)[row])
            for name, numbers in (
                ("ends", ends),
                ("roots", roots),
                ("tree.ends", [ends[root] for root in roots]),
            )
        )
        firsts = [i if i >= head else 0 for i in range(self.count)]
        first = index(table("firsts", firsts)[row]) if head else row
        self._row = {ROW: row, PARENT_ROW: index(table("parents", parents)[row])}
        self._bounds: dict[str, tuple[Index, ...]] = {
            ROWS: (),
            PAIRS: (row + 1, end),
            ALL: (root, end_of_tree),
            BEYOND: (first, end),
            SINCE: (first, end_of_tree),
        }

    def arguments(self, domain: str) -> dict[Variable, Index]:
        """Return the arguments of an iteration: the row, its parent and the bounds of domains."""
        return self._row | dict(zip((BEGIN, END), self._bounds[domain], strict=False))
