# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Which way a program is compiled: every threshold, with what was measured and by what."""

from __future__ import annotations

from mbs_dynamics.compiler.frontend.program import Program

LEAST_STATES = 64
"""From so many states on, several are evaluated at once, by code compiled when it is first used."""

STATES_PER_THREAD = 50_000
"""No thread is started for fewer states."""

CACHE = 3 << 20
"""Bytes that several states at once may need for their memory and their results.

Measured for batches of matrices and derivatives of chains of 48 to 200: up to there several states
at once take 0.6 to 1.05 of the time of divided programs, beyond 1.0 to 2.4 times as long.
"""

STAGED, STAGED_STATES = 1 << 14, 16
"""Results of at least so many bytes are computed in one place and copied, in batches of at least so
many states that are evaluated one after the other.

Measured for matrices of chains of 60 to 200: it takes 0.3 to 0.6 of the time.
"""

TOGETHER = 64
"""So many states at a time pass through both modules of a divided program."""


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
