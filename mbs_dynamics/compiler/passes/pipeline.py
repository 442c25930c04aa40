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
"""Number of angles whose sines are computed at once in code for one state."""

FAR = 150
"""Number of operations between two uses of a value from which on the value is spilled."""

LARGEST_BLOCK = {"llvm": 6000, "llvm vectors": 20_000, "c": 6000}
"""Programs of more nodes than this are cut into chunks.

Measured for humanoids, chains and the control period of an arm, relative to one block: chunks run
in 0.9 to 1.2 of the time and compile in 0.5 to 1.05 of it; with gcc -O1 they compile in half the
time and run equally fast.
"""

CHUNK = 2000
"""Operations per chunk. With 1,000 the run time, with 4,000 the compile time is 1.1 times that."""

RATES = {"llvm": 45e-6, "llvm vectors": 45e-6, "python": 7e-6}
"""CPU time in s to compile one operation of a large program."""

ANNOUNCED = 10.0
"""Estimated compile time in s above which compilation is announced."""


def _sines(module: Module, target: str) -> Module:
    return with_sines_together(module, WIDTH if target == "llvm" else 1)


def _spill(module: Module, target: str) -> Module:
    """Spill values with distant uses, and cut large modules into chunks, in C with branches."""
    chunk = CHUNK if len(module.body) > LARGEST_BLOCK[target] else None
    far = len(module.body) if target == "c" else FAR
    return spilled(module, far, chunk, branches=target == "c")


PASSES: dict[str, tuple[Callable[[Module, str], Module], ...]] = {
    "llvm": (_sines, _spill),
    "llvm vectors": (_sines, _spill),
    "c": (_spill,),
    "python": (),
}
"""The passes of each target, in order: functions of a module and a target that return a module."""


def lower(program: Program, target: str) -> Module:
    """Return a program as it is printed for a target, one of :data:`PASSES`.

    ``"llvm"`` is code for one state, ``"llvm vectors"`` code for one state in each lane. Long
    compilations are announced.
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
