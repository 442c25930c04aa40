# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Strategy of compilation: its thresholds, each with the measurement and its script."""

from __future__ import annotations

from mbs_dynamics.compiler.frontend.graph import INSTEAD
from mbs_dynamics.compiler.frontend.program import Program
from mbs_dynamics.errors import log_warning

# -- blocks ----------------------------------------------------------------------------------------

WIDTH = 8
"""Angles of which code for one state computes the sines at once."""

FAR = 150
"""Operations between two uses of a value from which on it is spilled."""

LARGEST_BLOCK = {"llvm": 6000, "llvm vectors": 20_000, "c": 6000}
"""Programs of more nodes than this are cut into chunks.

Measured with LLVM for humanoids, TIAGo and chains: chunks
take 0.9 to 1.2 of the time of one block, and 0.5 to 1.05 of the time to compile; for the control
period of an arm with all laws, 24,000 operations, 0.9 of both. With gcc -O1, for
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


# -- time to compile -------------------------------------------------------------------------------

RATES = {"llvm": 45e-6, "python": 7e-6}
"""Seconds that each back end takes to compile an operation of a large program.

Measured in CPU time for 6,000 to 430,000 operations of humanoids and of chains of 40 to 100
joints: 15 to 60 microseconds with LLVM, 6 to 7 in plain Python.
"""

ANNOUNCED = 10.0
"""Seconds of compilation from which on it is announced."""


def announce(program: Program, backend: str) -> None:
    """Log how long compilation will take, and what to use instead, if it is long."""
    operations = len(program.module.statements)
    seconds = RATES[backend] * operations
    if seconds > ANNOUNCED:
        message = "%s: %d operations take about %.0f s to compile (%s), unless they are cached. %s"
        log_warning(message, program.name, operations, seconds, backend, INSTEAD)
