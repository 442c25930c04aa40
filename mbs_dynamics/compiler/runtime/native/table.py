# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The tables of kernels, from which the native call knows what each expects."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mbs_dynamics.checks import FloatArray
from mbs_dynamics.compiler.codegen.builder import I64, PTR, Inline, Pointer, Struct
from mbs_dynamics.compiler.codegen.llvm_batch import BATCH_PORT, DRIVER
from mbs_dynamics.compiler.codegen.llvm_shared import BODY
from mbs_dynamics.compiler.frontend.program import Program
from mbs_dynamics.compiler.passes.strategy import LARGEST_RECYCLED, RECYCLED
from mbs_dynamics.compiler.runtime.native.layout import (
    ARRAY,
    LIST,
    pointer,
    supported,
    unsupported_reason,
)

MOST_PORTS, MOST_AXES = 32, 16
"""Programs with more inputs and outputs, or with more axes, are called through ctypes."""

PORT = Struct.of_words(
    ndim=I64, shape=Pointer(I64), size=I64, default=PTR, results=Pointer(Pointer(ARRAY))
)
"""An input or output: the number of axes, the shape and the number of entries, the address of an
input's default entries, and the last results of an output, null if they are not kept."""

VECTOR = Struct.of_words(
    driver=DRIVER,
    function=BODY,
    ports=Pointer(BATCH_PORT),
    pointers=Pointer(PTR),
    guards=I64,
    lanes=I64,
)
"""Vector code: the driver and what it is given (see :mod:`codegen.llvm_batch`), and the number of
lanes."""

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
how many outputs; and these in order."""


def suits(program: Program) -> bool:
    """Whether a program's kernel can be called through machine code here."""
    if not supported():
        _report_once()
        return False
    ports = (*program.inputs, *program.outputs)
    return len(ports) <= MOST_PORTS and all(len(port.shape) < MOST_AXES for port in ports)


@functools.lru_cache(maxsize=1)
def _report_once() -> None:
    import logging  # slow to import, and rarely needed

    logging.getLogger("mbs_dynamics").warning(
        "kernels are called through ctypes, which takes one to two microseconds more per call: %s",
        unsupported_reason(),
    )


class KernelTable(NamedTuple):
    """The table of one kernel, and what it points to. Both have to live as long as the kernel."""

    words: NDArray[np.int64]
    held: tuple[Any, ...]

    def set_vector(self, vector: NDArray[np.int64]) -> None:
        """Let calls run vector code; its words have to live as long as the kernel does."""
        self.words[KERNEL.names.index("vector")] = vector.ctypes.data


def kernel_table(
    program: Program,
    function: int,
    defaults: Sequence[FloatArray],
    fallback: Callable[..., Any],
    result_type: Any = None,
) -> KernelTable:
    """Return the table of the kernel with code at an address and this Python function.

    ``result_type`` is the named tuple of its results, if it has several.
    """
    inputs, outputs = len(program.inputs), len(program.outputs)
    required = inputs - len(defaults)
    shapes = [np.array(x.shape, np.int64) for x in (*program.inputs, *program.outputs)]
    kept = [[None] * RECYCLED if 8 * x.size <= LARGEST_RECYCLED else None for x in program.outputs]
    given = [*[0] * required, *(x.ctypes.data for x in defaults), *[0] * outputs]
    results = [0 if x is None else pointer(id(x) + LIST.offset("items")) for x in kept]
    words = KERNEL.words(
        function=function,
        fallback=id(fallback),
        result_type=id(result_type),
        vector=0,
        required=required,
        inputs=inputs,
        outputs=outputs,
    )
    ports = zip(
        (*program.inputs, *program.outputs), shapes, given, [0] * inputs + results, strict=True
    )
    for port, shape, default, result in ports:
        words += PORT.words(
            ndim=shape.size,
            shape=shape.ctypes.data,
            size=port.size,
            default=default,
            results=result,
        )
    table = np.array(words, dtype=np.int64)
    return KernelTable(table, (*shapes, *defaults, *kept, fallback, result_type))
