# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Results of a kernel's program by the interpreter; values read before they are written are NaN."""

from __future__ import annotations

from typing import Any

import mbs_dynamics as mbs
from mbs_dynamics.compiler.ir.interpreter import evaluate


def interpreted(kernel: mbs.Kernel, *arguments: Any) -> tuple[Any, ...]:
    """Return the outputs for one state; inputs that are not given have their defaults."""
    values = (*arguments, *kernel.defaults)
    given = {port.name: x for port, x in zip(kernel.inputs, values, strict=True)}
    found, status = evaluate(kernel.program.module, given)
    assert not status
    return tuple(found[port.name].reshape(port.shape) for port in kernel.outputs)
