# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""From a traced program to what is printed for a target: a list of passes."""

from __future__ import annotations

from collections.abc import Callable

from mbs_dynamics.compiler.frontend.graph import INSTEAD
from mbs_dynamics.compiler.frontend.program import Program, uncollected
from mbs_dynamics.compiler.ir.nodes import Module
from mbs_dynamics.compiler.passes.sines import with_sines_together
from mbs_dynamics.compiler.passes.spilling import spilled
from mbs_dynamics.errors import log_warning

WIDTH = 8
"""Angles of which code for one state computes the sines at once."""

FAR = 150
"""Operations between two uses of a value from which on it is spilled."""

LARGEST_BLOCK = {"llvm": 6000, "llvm vectors": 20_000, "c": 6000}
"""Programs of more nodes than this are cut into chunks.

Measured for humanoids, chains and the control period of an arm: chunks take 0.9 to 1.2 of the time
of one block and 0.5 to 1.05 of the time to compile; with gcc -O1, 0.5 of it, and as long to run.
"""

CHUNK = 2000
"""Operations of a chunk: those of 1,000 run, and those of 4,000 compile, 1.1 times as long."""

RATES = {"llvm": 45e-6, "llvm vectors": 45e-6, "python": 7e-6}
"""Seconds of CPU time that it takes to compile an operation of a large program."""

ANNOUNCED = 10.0
"""Seconds of compilation from which on it is announced."""


def _sines(module: Module, target: str) -> Module:
    return with_sines_together(module, WIDTH if target == "llvm" else 1)


def _spill(module: Module, target: str) -> Module:
    """Spill values with distant uses in machine code, and cut large modules into chunks."""
    chunk = CHUNK if len(module.body) > LARGEST_BLOCK[target] else None
    return spilled(module, len(module.body) if target == "c" else FAR, chunk)


PASSES: dict[str, tuple[Callable[[Module, str], Module], ...]] = {
    "llvm": (_sines, _spill),
    "llvm vectors": (_sines, _spill),
    "c": (_spill,),
    "python": (),
}
"""The passes of each target, in order: functions from a module, and the target, to a module."""


def lower(program: Program, target: str) -> Module:
    """Return a program as it is printed for a target, one of :data:`PASSES`.

    ``"llvm"`` is code for one state, ``"llvm vectors"`` code for one state in each lane. What takes
    long to compile is announced.
    """
    module = program.module
    seconds = RATES.get(target, 0.0) * len(module.body)
    if seconds > ANNOUNCED:
        message = "%s: %d operations take about %.0f s to compile (%s), unless they are cached. %s"
        log_warning(message, program.name, len(module.body), seconds, target, INSTEAD)
    with uncollected():
        for run in PASSES[target]:
            module = run(module, target)
    return module
