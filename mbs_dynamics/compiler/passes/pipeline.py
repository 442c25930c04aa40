# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""From a traced program to what is printed for a target: a list of passes."""

from __future__ import annotations

from collections.abc import Callable

from mbs_dynamics.compiler.frontend.program import Program, uncollected
from mbs_dynamics.compiler.ir.nodes import Module
from mbs_dynamics.compiler.passes.sines import with_sines_together
from mbs_dynamics.compiler.passes.spilling import spilled
from mbs_dynamics.compiler.passes.strategy import CHUNK, FAR, LARGEST_BLOCK, WIDTH

Pass = Callable[[Module, str], Module]
"""A function from a module, and the target, to a module."""


def _sines(module: Module, target: str) -> Module:
    return with_sines_together(module, WIDTH if target == "llvm" else 1)


def _spill(module: Module, target: str) -> Module:
    """Spill values with distant uses in machine code, and cut large modules into chunks."""
    chunk = CHUNK if len(module.body) > LARGEST_BLOCK[target] else None
    return spilled(module, len(module.body) if target == "c" else FAR, chunk)


PASSES: dict[str, tuple[Pass, ...]] = {
    "llvm": (_sines, _spill),
    "llvm vectors": (_sines, _spill),
    "c": (_spill,),
    "python": (),
}
"""The passes of each target, in order."""


def lower(program: Program, target: str) -> Module:
    """Return a program as it is printed for a target, one of :data:`PASSES`.

    ``"llvm"`` is code for one state, ``"llvm vectors"`` code for one state in each lane.
    """
    module = program.module
    with uncollected():
        for run in PASSES[target]:
            module = run(module, target)
    return module
