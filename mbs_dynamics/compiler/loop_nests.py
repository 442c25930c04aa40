# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Rows, containers and results with which a function is traced so that its loops stay loops."""

from mbs_dynamics.compiler.frontend.containers import Columns as Columns
from mbs_dynamics.compiler.frontend.containers import Matrix as Matrix
from mbs_dynamics.compiler.frontend.containers import Values as Values
from mbs_dynamics.compiler.frontend.domains import LAST as LAST
from mbs_dynamics.compiler.frontend.domains import PAIRS as PAIRS
from mbs_dynamics.compiler.frontend.domains import Forest as Forest
from mbs_dynamics.compiler.frontend.loop_trace import Assembled as Assembled
from mbs_dynamics.compiler.frontend.loop_trace import Result as Result
from mbs_dynamics.compiler.frontend.loop_trace import trace_loops as trace_loops
from mbs_dynamics.compiler.frontend.loops import INWARD as INWARD
from mbs_dynamics.compiler.frontend.loops import OUTWARD as OUTWARD
from mbs_dynamics.compiler.frontend.loops import Loops as Loops
from mbs_dynamics.compiler.frontend.loops import NoLoopNest as NoLoopNest
from mbs_dynamics.compiler.frontend.loops import PerRow as PerRow
from mbs_dynamics.compiler.frontend.loops import Row as Row
