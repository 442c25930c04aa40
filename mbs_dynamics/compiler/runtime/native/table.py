# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The tables of kernels, from which the native call knows what each expects."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from mbs_dynamics.compiler.codegen.builder import I64, PTR, Inline, Pointer, Struct
from mbs_dynamics.compiler.codegen.llvm_batch import VECTOR
from mbs_dynamics.compiler.codegen.llvm_shared import BODY
from mbs_dynamics.compiler.frontend.program import Program
from mbs_dynamics.compiler.passes import strategy
from mbs_dynamics.compiler.runtime.native import layout
from mbs_dynamics.errors import log_once

if TYPE_CHECKING:
    from mbs_dynamics.compiler.runtime.kernel import Kernel

MOST_PORTS, MOST_AXES = 32, 16
"""Programs with more inputs and outputs, or with more axes, are called through ctypes."""

PORT = Struct.of_words(
    ndim=I64,
    shape=Pointer(I64),
    strides=Pointer(I64),
    size=I64,
    default=PTR,
    results=Pointer(Pointer(layout.ARRAY)),
)
"""An input or output: the number of axes, the shape, the strides and the number of entries, the
address of an input's default entries, and the last results of an output, null if they are not kept.
"""

KERNEL = Struct.of_words(
    function=BODY,
    fallback=PTR,
    result_type=PTR,
    vector=Pointer(VECTOR),
    required=I64,
    inputs=I64,
    outputs=I64,
    ports=Inline(PORT),
)
"""A kernel: its machine code; the bound method for all other calls; the named tuple of its results,
if there are several; its vector code, null if there is none yet or while it runs; how many inputs
there are without a default, how many inputs and how many outputs; and the ports in order."""


def suits(program: Program) -> bool:
    """Whether a program's kernel can be called through machine code here."""
    reason = layout.unsupported_reason()
    if reason is not None:
        log_once("kernels are called through ctypes, 1 to 2 microseconds slower a call: %s", reason)
        return False
    ports = (*program.inputs, *program.outputs)
    return len(ports) <= MOST_PORTS and all(len(port.shape) < MOST_AXES for port in ports)


class KernelTable:
    """The table of one kernel, and what it points to. It has to live as long as the kernel.

    ``function`` is the address of its code, and ``fallback`` a bound method.
    """

    def __init__(self, kernel: Kernel, function: int, fallback: Callable[..., Any]) -> None:
        inputs, outputs = kernel.inputs, kernel.outputs
        words = KERNEL.words(
            function=function,
            fallback=id(fallback),
            result_type=id(kernel.result_type),
            vector=0,
            required=kernel.required,
            inputs=len(inputs),
            outputs=len(outputs),
        )
        self._held: list[Any] = [fallback, kernel.defaults, kernel.result_type]
        for k, port in enumerate((*inputs, *outputs)):
            extents = np.array([port.shape, np.empty(port.shape).strides], np.int64)
            default = results = 0
            if kernel.required <= k < len(inputs):
                default = kernel.defaults[k - kernel.required].ctypes.data
            if k >= len(inputs) and 8 * port.size <= strategy.LARGEST_RECYCLED:
                kept = [None] * strategy.RECYCLED
                results = layout.pointer(id(kept) + layout.LIST.offset("items"))
                self._held.append(kept)
            self._held.append(extents)
            words += PORT.words(
                ndim=len(port.shape),
                shape=extents.ctypes.data,
                strides=extents.ctypes.data + 8 * len(port.shape),
                size=port.size,
                default=default,
                results=results,
            )
        self.words = np.array(words, dtype=np.int64)

    def set_vector(self, vector: Any) -> None:
        """Let calls run vector code that has this workspace to itself."""
        self._held.append(vector)
        self.words[KERNEL.names.index("vector")] = vector.words.ctypes.data
