# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The checks of arrays in the native call: type, shape, strides, alignment, shared memory.

They are the same for arguments, for arrays to write into and for results that are recycled, with a
batch axis and without.
"""

from __future__ import annotations

from mbs_dynamics.compiler.codegen.builder import (
    DOUBLE,
    I32,
    I64,
    WORD,
    Block,
    Function,
    Inline,
    Pointer,
    Prototype,
    Struct,
    Value,
)
from mbs_dynamics.compiler.runtime.native.layout import ARRAY, C_CONTIGUOUS
from mbs_dynamics.compiler.runtime.native.python import FLOAT64, NDARRAY
from mbs_dynamics.compiler.runtime.native.table import MOST_PORTS, PORT

STRIDES = Struct.of_words(by_state=I64, by_entry=I64)
"""The distances in bytes from one state to the next, 0 if all share them, and between entries."""

VIEWS = Struct(pointers=(0, Inline(Pointer(DOUBLE))), strides=(WORD * MOST_PORTS, Inline(STRIDES)))
"""Where the states of all ports are: the first entries of the first state, and the distances."""

CHECK_ARRAY = Prototype(
    "mbs.check_array", I64, Pointer(ARRAY), Pointer(PORT), I32, Pointer(VIEWS), I64
)
CHECK_STRIDES = Prototype("mbs.check_strides", I64, Pointer(ARRAY), Pointer(PORT), Pointer(STRIDES))

ONE_STATE, REFUSED = -1, -2
"""What :func:`check_array` returns in place of a number of states: for an array without a batch
axis, and for anything that needs a closer look by Python."""


def new_views(f: Function) -> Value:
    """Return views on the stack, which are not initialized."""
    return f.array(I64, 3 * MOST_PORTS).to(Pointer(VIEWS))


def leave_unless_one_state(
    f: Function, checks: Block, array: Value, port: Value, flags: int
) -> None:
    """Emit what leaves a block unless an object is one state of a port.

    That is exactly an ndarray of native float64, C-contiguous and with these flags, and of the
    shape of the port. The first load is safe for any object.
    """
    flags |= C_CONTIGUOUS
    checks.leave_unless(array.type == f.symbol(NDARRAY))
    exact = (array.dtype == f.symbol(FLOAT64)) & ((array.flags & flags) == flags)
    checks.leave_unless(exact & (array.ndim.to(I64) == port.ndim))
    with f.loop(port.ndim) as axis:
        checks.leave_unless(array.shape[axis] == port.shape[axis])


def check_array() -> Function:
    """Return ``i64 mbs.check_array(array, port, flags, views, k)``.

    It checks that an object is exactly an ndarray of native float64, that it has these flags, the
    shape of the port after at most one batch axis, and strides that a view can describe. Returns
    the number of states and fills in view k. The first load is safe for any object.
    """
    f = Function(CHECK_ARRAY)
    array, port, flags, views, k = f.parameters
    with f.block() as checks:
        checks.leave_unless(array.type == f.symbol(NDARRAY))
        ndim, set_flags = port.ndim, array.flags
        axes = array.ndim.to(I64) - ndim
        exact = (array.dtype == f.symbol(FLOAT64)) & ((set_flags & flags) == flags)
        checks.leave_unless(((axes == 0) | (axes == 1)) & exact)
        shape, valid = array.shape, port.shape
        with f.loop(ndim) as axis:
            checks.leave_unless(shape[axes + axis] == valid[axis])
        strides = views.strides[k]
        views.pointers[k] = array.data
        strides.by_entry = 8
        contiguous = (set_flags & C_CONTIGUOUS) != 0
        with f.if_(axes == 0):
            strides.by_state = 0
            f.ret(f.select(contiguous, ONE_STATE, REFUSED))
        with f.if_(contiguous):
            strides.by_state = port.size * 8
            f.ret(shape[0])
        f.ret(f.call(CHECK_STRIDES, array, port, strides))
    f.ret(REFUSED)
    return f


def check_strides() -> Function:
    """Return ``i64 mbs.check_strides(array, port, found)``, for batches that are not contiguous.

    States have to follow each other at the same distance, and entries as well: either these or the
    states side by side.
    """
    f = Function(CHECK_STRIDES)
    array, port, found = f.parameters
    states, strides, shape = array.shape[0], array.strides, port.shape
    by_state = strides[0]
    by_entry, entries = f.variable(I64, 0), f.variable(I64, 1)
    with f.block() as checks:
        checks.leave_unless((by_state > 0) & (states > 1))
        with f.loop(port.ndim) as k:
            axis = port.ndim - k  # the last one first, which in the port is that before
            stride, extent = strides[axis], shape[axis - 1]
            with f.if_(extent != 1):
                with f.if_(by_entry.value == 0):
                    checks.leave_unless(stride > 0)
                    by_entry.value = stride
                with f.else_():
                    checks.leave_unless(stride == by_entry.value * entries.value)
            entries.value = entries.value * extent
        gap = f.select(by_entry.value == 0, 8, by_entry.value)
        checks.leave_unless((gap == 8) | (by_state == 8))
        found.by_state = by_state
        found.by_entry = gap
        f.ret(states)
    f.ret(REFUSED)
    return f
