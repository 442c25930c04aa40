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


def _sines_of_one_state(module: Module) -> Module:
    return with_sines_together(module, WIDTH)


def _sines_of_lanes(module: Module) -> Module:
    return with_sines_together(module, 1)


def _spilled(module: Module) -> Module:
    large = len(module.body) > LARGEST_BLOCK["llvm"]
    return spilled(module, FAR, CHUNK if large else None)


def _spilled_vectors(module: Module) -> Module:
    large = len(module.body) > LARGEST_BLOCK["llvm vectors"]
    return spilled(module, FAR, CHUNK if large else None)


def _cut(module: Module) -> Module:
    large = len(module.body) > LARGEST_BLOCK["c"]
    return spilled(module, len(module.body), CHUNK) if large else module


PASSES: dict[str, tuple[Callable[[Module], Module], ...]] = {
    "llvm": (_sines_of_one_state, _spilled),
    "llvm vectors": (_sines_of_lanes, _spilled_vectors),
    "c": (_cut,),
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
            module = run(module)
    return module
