# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Strategy of compilation: its thresholds, each with the measurement and its script."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mbs_dynamics.compiler.frontend.program import SILENT, Program
from mbs_dynamics.compiler.ir.nodes import For
from mbs_dynamics.errors import log_warning

# -- loops -----------------------------------------------------------------------------------------

MANY = 48
"""Rows, such as bodies, from which on a program is large and may be traced once per kind of row."""

DEEP = 12.0
"""Mean depth of rows from which on loops over pairs and columns stay loops, and others may.

Measured for chains: of 24 joints they take 0.55 to 1.1 of the time of straight code, of 40 joints
0.4 to 1. Straight code leaves out more zeros, and takes half of the time where a tree is shallow.
"""

LONG = 40_000
"""Operations, or entries of results, from which on loops stay loops in any case, because they are
compiled sooner: straight code takes 35 microseconds an operation, so 1.4 s."""

SCATTERED = 150_000
"""The same where all trees are small and shallow: straight code takes half of the time in batches
(TIAGo, of 48 joints in several trees)."""

WIDTH = 8
"""Iterations of parallel loops, and angles, that code for one state takes at once."""

LEAST_LANES = 8
"""Doubles of a vector register from which on loops over columns are not written out: with four they
take 0.95 to 1.15 of the time of straight code."""

# -- blocks ----------------------------------------------------------------------------------------

FAR = 150
"""Operations between two uses of a value from which on it is spilled (``benchmarks passes``)."""

LARGEST_BLOCK = {"llvm": 35_000, "llvm vectors": 20_000, "c": 6000}
"""Programs of more nodes than this are cut into chunks.

Measured with LLVM for humanoids, TIAGo and chains (``benchmarks passes``): chunks
take 0.9 to 1.2 of the time of one block, and 0.5 to 1.05 of the time to compile. With gcc -O1, for
an arm and a humanoid, they take 0.7 of the time to compile with 4,000 nodes, 0.5 with 6,000 and
0.35 with 9,000, and as long to run.
"""

CHUNK = 2000
"""Operations of a chunk.

Measured with LLVM for a humanoid and for chains of 30 and 200 joints: chunks of 1,000 take 1.05 to
1.12 of the time of those of 2,000 and 0.85 to 1 of the time to compile; chunks of 4,000 take as
long to run, and 1.1 times as long to compile.
"""

STACK = 1 << 18
"""Bytes of scratch memory from which on machine code takes it from the heap."""

C_STACK = 1 << 16
"""Bytes of scratch memory from which on it is an argument of the function in C."""

# -- batches and calls -----------------------------------------------------------------------------

LEAST_STATES = 64
"""States from which on several are evaluated at once, by code compiled when it is first used."""

LEAST_UNLOCKED = 256
"""States from which on other threads of Python may run meanwhile."""

LARGEST_BATCH = 1 << 20
"""Bytes of results from which on Python makes those of batches, aligned to lines of the cache."""

RECYCLED = 2
"""Results of an output that a kernel keeps: `x = kernel(q)` holds one during the next call."""

LARGEST_RECYCLED = 1 << 20
"""Bytes from which on results are not kept."""

TIMEOUT = 1000
"""Calls with options that are not in its table after which a function empties it, if it is full."""

RATES = {"llvm": 35e-6, "python": 7e-6}
"""Seconds that each takes to compile an operation of a large program.

Measured in CPU time for 6,000 to 45,000 operations of humanoids and of chains of 100 and 200
joints: 15 to 45 microseconds with LLVM, 6 to 7 in plain Python.
"""


def is_large(rows: int) -> bool:
    """Whether tracing may take long."""
    return rows >= MANY


def chosen(
    parents: Sequence[int],
    coordinates: int,
    looped: Callable[[], Program],
    straight: Callable[[], Program],
) -> Program:
    """Return the same program with loops over the rows of a forest, or as straight code.

    ``parents`` are those of the rows, each before its children, and ``coordinates`` is the size of
    what results have entries for. ``looped`` raises NoLoopNest if there can be no loops.
    """
    if not is_large(coordinates) and mean_depth(parents) <= DEEP:
        return straight()
    from mbs_dynamics.compiler.frontend.loops import NoLoopNest

    try:
        program = looped()
    except NoLoopNest:
        return straight()
    return program if _stays_in_loops(program, parents) else straight()


def _stays_in_loops(program: Program, parents: Sequence[int]) -> bool:
    deep = mean_depth(parents) > DEEP
    bodies = (procedure.body for procedure in program.module.procedures)
    wide = any(isinstance(x, For) and x.parallel for body in bodies for x in body)
    if wide and deep:
        return True
    entries = sum(port.size for port in program.outputs)
    scattered = not deep and _largest_tree(parents) < MANY
    return entries > LONG or program.operations.total > (SCATTERED if scattered else LONG)


def _largest_tree(parents: Sequence[int]) -> int:
    roots: list[int] = []
    for i, p in enumerate(parents):
        roots.append(i if p < 0 else roots[p])
    return max(map(roots.count, set(roots)), default=0)


def mean_depth(parents: Sequence[int]) -> float:
    """Return the mean number of rows from a root to a row, both included."""
    depth: list[int] = []
    for p in parents:
        depth.append(1 if p < 0 else depth[p] + 1)
    return sum(depth) / max(len(depth), 1)


def warn_if_long(program: Program, backend: str) -> None:
    """Log how long compilation takes, if that is more than :data:`SILENT` seconds.

    The operations of loops are those of their bodies.
    """
    operations = len(program.module.statements)
    seconds = RATES[backend] * operations
    if seconds > SILENT:
        message = "%s: %d operations take some %.0f s to compile (%s), unless they are in the cache"
        log_warning(message, program.name, operations, seconds, backend)
