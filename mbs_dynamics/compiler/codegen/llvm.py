# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""LLVM IR of any program: in loops, straight on, or in chunks if it is too large for that."""

from __future__ import annotations

from mbs_dynamics.compiler.codegen.llvm_body import emit_straight
from mbs_dynamics.compiler.codegen.llvm_chunks import emit_chunks
from mbs_dynamics.compiler.codegen.llvm_prefetch import Prefetched
from mbs_dynamics.compiler.frontend.program import Program, uncollected
from mbs_dynamics.compiler.passes.scheduling import in_good_order

STRAIGHT, STRAIGHT_VECTORS = 35_000, 20_000
"""Programs of more nodes than this are cut into chunks, for one state and for several at once.

Measured for humanoids, TIAGo, and chains of 30 to 200 joints; ``python -m benchmarks large_trees``
compares both. For one state chunks take 0.95 to 1.1 of the time of straight-line code from 8,000 to
20,000 nodes, and 0.9 to 1.2 of it from 20,000 to 45,000; they take 0.5 to 1.05 of the time to
compile. In batches chunks take 0.93 to 1.07 of the time, of TIAGo with 32,000 nodes 0.65.
"""


def emit_llvm(program: Program, lanes: int = 1, prefetched: Prefetched = ()) -> str:
    """Return LLVM IR of the function that :func:`codegen.llvm_body.emit_straight` describes.

    Chunks prefetch nothing.
    """
    if program.in_loops:
        return _in_loops(program, lanes)
    with uncollected():
        if lanes > 1:
            program = in_good_order(program)
        if len(program.nodes) <= (STRAIGHT if lanes == 1 else STRAIGHT_VECTORS):
            return emit_straight(program, lanes, prefetched)
        return emit_chunks(program, lanes)


def _in_loops(program: Program, lanes: int) -> str:
    # most robots have no loops, and what prints them takes time to import
    from mbs_dynamics.compiler.codegen.llvm_module import emit_module
    from mbs_dynamics.compiler.frontend.loop_program import LoopProgram
    from mbs_dynamics.compiler.passes.pipeline import loop_nest, vector_loop_nest

    assert isinstance(program, LoopProgram)
    module = vector_loop_nest(program) if lanes == 1 else loop_nest(program, lanes)
    return emit_module(module, lanes)
