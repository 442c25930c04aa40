# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Rows, containers and results with which a function is traced so that its loops stay loops."""

from mbs_dynamics.compiler.frontend.containers import Columns, Matrix, Values
from mbs_dynamics.compiler.frontend.domains import LAST, PAIRS, Forest
from mbs_dynamics.compiler.frontend.loop_trace import Assembled, Result, trace_loops
from mbs_dynamics.compiler.frontend.loops import INWARD, OUTWARD, Loops, NoLoopNest, PerRow, Row

__all__ = [
    "INWARD",
    "LAST",
    "OUTWARD",
    "PAIRS",
    "Assembled",
    "Columns",
    "Forest",
    "Loops",
    "Matrix",
    "NoLoopNest",
    "PerRow",
    "Result",
    "Row",
    "Values",
    "trace_loops",
]
