# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The back ends: which can be used here, and how they are called."""

from __future__ import annotations

import importlib.util
import os

from mbs_dynamics.compiler.jit import machine_code
from mbs_dynamics.compiler.runtime.native import layout
from mbs_dynamics.errors import UnknownBackendError, log_once

BACKENDS = ("llvm", "python")


def checked_backend(name: str) -> str:
    """Return the name of a back end, or raise UnknownBackendError."""
    if name not in BACKENDS:
        raise UnknownBackendError(name, BACKENDS)
    return name


def default_backend() -> str:
    """Return the back end used when none is named.

    The environment variable MBS_BACKEND decides if it is set; else llvm where llvmlite is
    installed, and plain Python where it is not. Where llvmlite is installed and cannot be used, a
    warning is logged once. Raises UnknownBackendError for another value of the variable.
    """
    named = os.environ.get("MBS_BACKEND")
    if named:
        return checked_backend(named)
    if importlib.util.find_spec("llvmlite") is None:
        return "python"
    problem = machine_code.problem()
    if problem is not None:
        log_once("kernels are plain Python: %s", problem)
    return "llvm" if problem is None else "python"


def call_mechanism(backend: str) -> str:
    """Return how kernels of a back end are called here, and why if there is a faster way."""
    if backend == "llvm":
        reason = layout.unsupported_reason()
        return "machine code" if reason is None else f"ctypes: {reason}"
    reason = None if os.environ.get("MBS_BACKEND") else machine_code.problem()
    return "plain Python" if reason is None else f"plain Python: {reason}"
