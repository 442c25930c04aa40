# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Which way a program is compiled: every threshold, with what was measured and by what."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from mbs_dynamics.compiler.frontend.program import Program

if TYPE_CHECKING:
    from mbs_dynamics.compiler.frontend.loop_program import LoopProgram

MANY = 48
"""Rows, such as bodies, from which on a program is large: what would be traced for each of them may
be traced once, as loops.
"""

DEEP = 12.0
"""Mean depth of rows from which on loops over pairs and columns stay loops, and others may.

Measured for chains: of 24 joints they take 0.55 to 1.1 of the time of straight code, of 40 joints
0.4 to 1. Straight code leaves out more zeros, and takes half of the time where a tree is shallow.
"""

LONG = 40_000
"""Operations, or entries of results, from which on loops stay loops in any case, because they are
compiled sooner: straight code takes 35 microseconds an operation, so 1.4 s.
"""

CACHE = 1 << 20
"""Bytes of a cache that is still fast: what several states at once need has to fit.

Measured for batches of matrices of chains of 30 to 200: where it does not fit, several states at
once take 0.9 to 1.7 times as long as one after the other.
"""

STAGED = 1 << 14
"""Results of at least so many bytes are computed in one place and copied, in batches of states that
are evaluated one after the other.

Measured for matrices of chains of 60 to 200: it takes 0.3 to 0.6 of the time.
"""


def is_large(rows: int) -> bool:
    """Whether so much may have to be traced that it may take long."""
    return rows >= MANY


def chosen(
    parents: Sequence[int],
    coordinates: int,
    looped: Callable[[], LoopProgram],
    straight: Callable[[], Program],
) -> Program:
    """Return the same program with loops over the rows of a forest, or as straight code.

    ``parents`` are those of the rows, each before its children, and ``coordinates`` is the size of
    what results have entries for. ``looped`` raises Unsuitable if there can be no loops.
    """
    if not is_large(coordinates) and mean_depth(parents) <= DEEP:
        return straight()
    from mbs_dynamics.compiler.frontend.loops import Unsuitable

    try:
        program = looped()
    except Unsuitable:
        return straight()
    return program if _stays_in_loops(program) else straight()


def _stays_in_loops(program: LoopProgram) -> bool:
    if program.has_wide_loops and mean_depth(program.forest.parents) > DEEP:
        return True
    entries = sum(port.size for port in program.outputs)
    return max(program.operations.total, entries) > LONG


def mean_depth(parents: Sequence[int]) -> float:
    """Return the mean number of rows from a root to a row, both included."""
    depth: list[int] = []
    for p in parents:
        depth.append(1 if p < 0 else depth[p] + 1)
    return sum(depth) / max(len(depth), 1)


def is_worth_lanes(program: Program, lanes: int) -> bool:
    """Whether several states at once take less time than one after the other.

    Parallel loops fill the lanes with one state, and need less memory for that.
    """
    if not program.in_loops:
        return True
    from mbs_dynamics.compiler.frontend.loop_program import LoopProgram
    from mbs_dynamics.compiler.passes.lowering_loops import scratch_size

    assert isinstance(program, LoopProgram)
    if not program.has_wide_loops:
        return True
    results = sum(port.size for port in program.outputs)
    return 8 * lanes * (scratch_size(program) + results) <= CACHE
