# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The tables of kernels, from which the native call knows what each expects."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from mbs_dynamics.checks import FloatArray
from mbs_dynamics.compiler.codegen.builder import I64, PTR, Inline, Pointer, Struct
from mbs_dynamics.compiler.codegen.llvm_batch import VECTOR
from mbs_dynamics.compiler.codegen.llvm_shared import BODY
from mbs_dynamics.compiler.frontend.program import Program
from mbs_dynamics.compiler.passes import strategy
from mbs_dynamics.compiler.runtime.native import layout

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
"""A kernel: its machine code; the Python function that is called with the kernel and the arguments
of all other calls; the named tuple of its results, if there are several; its vector code, null if
there is none yet or while it runs; how many inputs there are without a default, how many inputs and
how many outputs; and the ports in order."""


def suits(program: Program) -> bool:
    """Whether a program's kernel can be called through machine code here."""
    if not layout.supported():
        _report_once()
        return False
    ports = (*program.inputs, *program.outputs)
    return len(ports) <= MOST_PORTS and all(len(port.shape) < MOST_AXES for port in ports)


@functools.lru_cache(maxsize=1)
def _report_once() -> None:
    import logging  # slow to import, and rarely needed

    logging.getLogger("mbs_dynamics").warning(
        "kernels are called through ctypes, which takes one to two microseconds more per call: %s",
        layout.unsupported_reason(),
    )


class KernelTable:
    """The table of one kernel, and what it points to. It has to live as long as the kernel.

    ``function`` is the address of the code, and ``result_type`` the named tuple of the results, if
    there are several.
    """

    def __init__(
        self,
        program: Program,
        function: int,
        defaults: Sequence[FloatArray],
        fallback: Callable[..., Any],
        result_type: Any,
    ) -> None:
        required = len(program.inputs) - len(defaults)
        words = KERNEL.words(
            function=function,
            fallback=id(fallback),
            result_type=id(result_type),
            vector=0,
            required=required,
            inputs=len(program.inputs),
            outputs=len(program.outputs),
        )
        self._held: list[Any] = [defaults, fallback, result_type]
        for k, port in enumerate((*program.inputs, *program.outputs)):
            extents = np.array([port.shape, np.empty(port.shape).strides], np.int64)
            default = results = 0
            if required <= k < len(program.inputs):
                default = defaults[k - required].ctypes.data
            if k >= len(program.inputs) and 8 * port.size <= strategy.LARGEST_RECYCLED:
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
