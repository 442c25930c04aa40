# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""LLVM IR of any program: in loops, straight on, or in chunks if it is too large for that."""

from __future__ import annotations

from mbs_dynamics.compiler.codegen.llvm_body import emit_straight
from mbs_dynamics.compiler.codegen.llvm_chunks import emit_chunks
from mbs_dynamics.compiler.codegen.llvm_soon import Announced
from mbs_dynamics.compiler.frontend.program import Program, uncollected
from mbs_dynamics.compiler.passes.scheduling import in_good_order

STRAIGHT = 20_000
STRAIGHT_VECTORS = 40_000

UNORDERED = 6000


def emit_llvm(program: Program, lanes: int = 1, announced: Announced = ()) -> str:
    """Return LLVM IR of a program.

    Chunks announce nothing: between their calls it is worth nothing.

    See :func:`codegen.llvm_body.emit_straight` for the function that is written.
    """
    if program.in_loops:
        return _in_loops(program, lanes)
    with uncollected():
        size = len(program.nodes)
        if lanes > 1 and size > UNORDERED:
            program = in_good_order(program)
        if size <= (STRAIGHT if lanes == 1 else STRAIGHT_VECTORS):
            return emit_straight(program, lanes, announced)
        return emit_chunks(program, lanes)


def _in_loops(program: Program, lanes: int) -> str:
    # most robots have no loops, and what prints them takes time to import
    from mbs_dynamics.compiler.codegen.llvm_module import emit_module
    from mbs_dynamics.compiler.frontend.loop_program import LoopProgram
    from mbs_dynamics.compiler.passes.pipeline import loop_nest

    assert isinstance(program, LoopProgram)
    return emit_module(loop_nest(program, lanes), lanes)
