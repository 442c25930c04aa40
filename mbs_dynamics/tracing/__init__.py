# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Tracing of NumPy code into graphs, and their compilation. Knows nothing of robots."""

from mbs_dynamics.tracing.dispatch import Dispatcher
from mbs_dynamics.tracing.elementary import atan2, cos, less, positive, select, sin, sqrt
from mbs_dynamics.tracing.graph import Graph, Symbol
from mbs_dynamics.tracing.kernel import (
    BACKENDS,
    Kernel,
    checked_backend,
    default_backend,
    way_of_calling,
)
from mbs_dynamics.tracing.program import Operations, Port, Program, trace
from mbs_dynamics.tracing.taylor import Series, derivative_of, series_of

__all__ = [
    "BACKENDS",
    "Dispatcher",
    "Graph",
    "Kernel",
    "Operations",
    "Port",
    "Program",
    "Series",
    "Symbol",
    "atan2",
    "checked_backend",
    "cos",
    "default_backend",
    "derivative_of",
    "less",
    "positive",
    "select",
    "series_of",
    "sin",
    "sqrt",
    "trace",
    "way_of_calling",
]
