# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Which way a program is compiled: every threshold, with what was measured and by what."""

from __future__ import annotations

from mbs_dynamics.compiler.frontend.program import Program

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
