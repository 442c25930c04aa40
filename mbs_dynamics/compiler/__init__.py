# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Tracing of NumPy code into graphs, and their compilation, independent of robots."""

from mbs_dynamics.compiler.frontend.functions import abs as abs
from mbs_dynamics.compiler.frontend.functions import atan2 as atan2
from mbs_dynamics.compiler.frontend.functions import cos as cos
from mbs_dynamics.compiler.frontend.functions import equal as equal
from mbs_dynamics.compiler.frontend.functions import hypot as hypot
from mbs_dynamics.compiler.frontend.functions import isnan as isnan
from mbs_dynamics.compiler.frontend.functions import less as less
from mbs_dynamics.compiler.frontend.functions import less_equal as less_equal
from mbs_dynamics.compiler.frontend.functions import max as max
from mbs_dynamics.compiler.frontend.functions import min as min
from mbs_dynamics.compiler.frontend.functions import positive as positive
from mbs_dynamics.compiler.frontend.functions import round as round
from mbs_dynamics.compiler.frontend.functions import select as select
from mbs_dynamics.compiler.frontend.functions import sin as sin
from mbs_dynamics.compiler.frontend.functions import sqrt as sqrt
from mbs_dynamics.compiler.frontend.graph import Graph as Graph
from mbs_dynamics.compiler.frontend.graph import Symbol as Symbol
from mbs_dynamics.compiler.frontend.program import Port as Port
from mbs_dynamics.compiler.frontend.program import Program as Program
from mbs_dynamics.compiler.frontend.program import named_results as named_results
from mbs_dynamics.compiler.frontend.program import trace as trace
from mbs_dynamics.compiler.frontend.series import Series as Series
from mbs_dynamics.compiler.frontend.series import derivative_of as derivative_of
from mbs_dynamics.compiler.frontend.series import series_of as series_of
from mbs_dynamics.compiler.ir.operations import Operations as Operations
from mbs_dynamics.compiler.runtime.backends import BACKENDS as BACKENDS
from mbs_dynamics.compiler.runtime.backends import call_mechanism as call_mechanism
from mbs_dynamics.compiler.runtime.backends import checked_backend as checked_backend
from mbs_dynamics.compiler.runtime.backends import default_backend as default_backend
from mbs_dynamics.compiler.runtime.dispatch import Dispatcher as Dispatcher
from mbs_dynamics.compiler.runtime.kernel import Kernel as Kernel
