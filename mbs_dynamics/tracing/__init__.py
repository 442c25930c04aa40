# Copyright 2026 The mbs_dynamics authors
#
# Licensed under the Apache License, Version 2.0 (the "License");
# you may not use this file except in compliance with the License.
# You may obtain a copy of the License at
#
#     http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS,
# WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
# See the License for the specific language governing permissions and
# limitations under the License.
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
