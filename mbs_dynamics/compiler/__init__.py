# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Tracing of NumPy code into graphs, and their compilation, independent of robots."""

from mbs_dynamics.compiler.frontend.columns import columnwise
from mbs_dynamics.compiler.frontend.domains import ALL, BEYOND, SINCE
from mbs_dynamics.compiler.frontend.functions import atan2, cos, less, positive, select, sin, sqrt
from mbs_dynamics.compiler.frontend.graph import Graph, Symbol
from mbs_dynamics.compiler.frontend.program import Operations, Port, Program, named_results, trace
from mbs_dynamics.compiler.frontend.series import Series, derivative_of, series_of
from mbs_dynamics.compiler.runtime.backends import (
    BACKENDS,
    call_mechanism,
    checked_backend,
    default_backend,
)
from mbs_dynamics.compiler.runtime.dispatch import Dispatcher
from mbs_dynamics.compiler.runtime.kernel import Kernel

__all__ = [
    "ALL",
    "BACKENDS",
    "BEYOND",
    "SINCE",
    "Dispatcher",
    "Graph",
    "Kernel",
    "Operations",
    "Port",
    "Program",
    "Series",
    "Symbol",
    "atan2",
    "call_mechanism",
    "checked_backend",
    "columnwise",
    "cos",
    "default_backend",
    "derivative_of",
    "less",
    "named_results",
    "positive",
    "select",
    "series_of",
    "sin",
    "sqrt",
    "trace",
]
