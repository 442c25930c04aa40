# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""How long compilation takes, estimated before it begins, and logged if that is long."""

from __future__ import annotations

from mbs_dynamics.compiler.frontend.program import SILENT, Program

RATES = {"llvm": 35e-6, "python": 7e-6}
"""Seconds that each back end takes for an operation of a large program.

Measured in CPU time for 6,000 to 45,000 operations of humanoids and of chains of 100 and 200
joints: 15 to 45 microseconds with LLVM, 6 to 7 in plain Python.
"""


def operations_of(program: Program) -> int:
    """Return how many operations are compiled: of loops, those of their bodies."""
    return len(program.module.statements)


def warn_if_long(program: Program, backend: str) -> None:
    """Log how long compilation takes, if that is more than :data:`SILENT` seconds."""
    operations = operations_of(program)
    seconds = RATES[backend] * operations
    if seconds > SILENT:
        import logging  # slow to import, and rarely needed

        said = "%s: %d operations take some %.0f s to compile (%s), unless they are in the cache"
        logging.getLogger("mbs_dynamics").warning(said, program.name, operations, seconds, backend)
