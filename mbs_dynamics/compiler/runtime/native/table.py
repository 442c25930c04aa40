# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Tables that describe the arguments of each kernel to the native call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from mbs_dynamics.compiler.codegen.builder import I64, PTR, Inline, Pointer, Struct
from mbs_dynamics.compiler.codegen.llvm_drivers import BODY, DRIVER, driver_name
from mbs_dynamics.compiler.frontend.program import Program
from mbs_dynamics.compiler.jit import machine_code
from mbs_dynamics.compiler.runtime.arguments import Signature, address
from mbs_dynamics.compiler.runtime.machine import Machine
from mbs_dynamics.compiler.runtime.native import layout
from mbs_dynamics.errors import log_once

MOST_PORTS, MOST_AXES = 32, 16
"""Programs with more inputs and outputs, or with more axes, are called through ctypes."""

RECYCLED = 2
"""Results of an output that a kernel stores: `x = kernel(q)` uses one during the next call."""

PORT = Struct.of_words(
    ndim=I64,
    shape=Pointer(I64),
    strides=Pointer(I64),
    size=I64,
    default=PTR,
    results=Pointer(Pointer(layout.ARRAY)),
)
"""An input or output: the number of axes, the shape, the strides and the number of entries, the
address of an input's default entries, and the last results of an output."""

KERNEL = Struct.of_words(
    function=BODY,
    fallback=PTR,
    result_type=PTR,
    vector=BODY,
    driver=DRIVER,
    required=I64,
    inputs=I64,
    outputs=I64,
    ports=Inline(PORT),
)
"""A kernel: its machine code; the bound method for all other calls; the named tuple of its results,
if there are several; its vector code, null if there is none yet, and the driver of that; how many
inputs there are without a default, how many inputs and how many outputs; and the ports in order."""


def is_supported(program: Program) -> bool:
    """Whether a program's kernel can be called through machine code here."""
    reason = layout.unsupported_reason()
    if reason is not None:
        log_once(
            "kernels are called through ctypes, some ten microseconds slower a call: %s", reason
        )
        return False
    ports = (*program.inputs, *program.outputs)
    return len(ports) <= MOST_PORTS and all(len(port.shape) < MOST_AXES for port in ports)


class KernelTable:
    """The table of one kernel and the memory that it points to; must live as long as the kernel.

    ``machine`` is the code of the kernel, which others may share, and ``fallback`` a bound method.
    """

    def __init__(
        self,
        signature: Signature,
        result_type: Any,
        machine: Machine,
        fallback: Callable[..., Any],
    ) -> None:
        inputs, outputs, required = signature.inputs, signature.outputs, signature.required
        words = KERNEL.words(
            function=machine.one.address,
            fallback=id(fallback),
            result_type=id(result_type),
            vector=0,
            driver=0,
            required=required,
            inputs=len(inputs),
            outputs=len(outputs),
        )
        self._held: list[Any] = [fallback, signature.defaults, result_type]
        for k, port in enumerate((*inputs, *outputs)):
            extents = np.array([port.shape, np.empty(port.shape).strides], np.int64)
            self._held.append(extents)
            default = results = 0
            if required <= k < len(inputs):
                default = address(signature.defaults[k - required])
            if k >= len(inputs):
                kept = np.full(RECYCLED, None, dtype=object)
                results = address(kept)
                self._held.append(kept)
            words += PORT.words(
                ndim=len(port.shape),
                shape=address(extents),
                strides=address(extents) + 8 * len(port.shape),
                size=port.size,
                default=default,
                results=results,
            )
        self.words = np.array(words, dtype=np.int64)
        self._machine = machine

    def take_vector_code(self) -> None:
        """Let calls run the vector code, once that is compiled."""
        vector = self._machine.vector
        if vector is not None:
            driver = machine_code.shared(driver_name(vector.lanes))
            self.words[KERNEL.names.index("driver")] = driver
            self.words[KERNEL.names.index("vector")] = vector.address
