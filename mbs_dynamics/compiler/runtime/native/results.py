# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The arrays that the native call writes results into: given by the caller, recycled, or new.

To make an array costs more than to evaluate most kernels. So a kernel keeps its last results, two
of each output, and once nobody else has one of them any more, returns it again as a new one. Who
still holds a result, or a view of it, keeps it as it is.

That nobody else has a result is a reference count of 1, which is the kernel's own. CPython counts
no reference for a value that it loads from a variable to the stack (since 3.14), but then the
variable has a counted one until the value has left the stack, even if the variable is assigned to
meanwhile. So a result that is on a stack has a count of at least 2.
"""

from __future__ import annotations

from mbs_dynamics.compiler.codegen.builder import (
    I1,
    I32,
    I64,
    NULL,
    PTR,
    Function,
    Pointer,
    Prototype,
    Value,
)
from mbs_dynamics.compiler.passes.strategy import LARGEST_BATCH, RECYCLED
from mbs_dynamics.compiler.runtime.native import python
from mbs_dynamics.compiler.runtime.native.arguments import (
    CHECK_ARRAY,
    ONE_STATE,
    VIEWS,
    leave_unless_one_state,
)
from mbs_dynamics.compiler.runtime.native.layout import (
    ALIGNED,
    OWNS_DATA,
    TUPLE,
    WRITEABLE,
)
from mbs_dynamics.compiler.runtime.native.table import KERNEL, MOST_AXES, MOST_PORTS, PORT

CHECK_OUT = Prototype("mbs.check_out", I1, Pointer(KERNEL), Pointer(PTR), Pointer(VIEWS), I64, I1)
RESULT_OF_ONE_STATE = Prototype("mbs.result_of_one_state", PTR, Pointer(PORT), Pointer(VIEWS), I64)
RESULT_OF_BATCH = Prototype("mbs.result_of_batch", PTR, Pointer(PORT), Pointer(VIEWS), I64, I64)


def check_out() -> Function:
    """Return ``i1 mbs.check_out(kernel, out, views, states, vector)``.

    It checks the array to write into, or for several outputs the tuple of arrays, that stands at
    ``out``, and fills in the views. In a batch, entries have to lie side by side, and states as
    well; or the same entry of all states, for vector code, and then those of the next entry. From
    its first to its last entry, no output may share memory with an input or another output.
    """
    f = Function(CHECK_OUT, attributes="alwaysinline")
    kernel, out, views, states, vector = f.parameters
    inputs, outputs = kernel.inputs, kernel.outputs
    begins, ends = views.pointers, f.array(PTR, MOST_PORTS)

    def end(k: Value) -> Value:
        """Emit the address behind the last entry; of an empty array it is that of the first."""
        size, strides = kernel.ports[k].size, views.strides[k]
        extent = f.variable(I64, size * 8)
        with f.if_(states != ONE_STATE):
            last = (size - 1) * strides.by_entry + (states - 1) * strides.by_state
            extent.value = last + 8
        return begins[k].byte(extent.value)

    targets = f.variable(Pointer(PTR), out)
    with f.block() as checks:
        with f.if_(outputs != 1):
            several = out[0].to(Pointer(TUPLE))
            own = several.type == kernel.result_type  # what a call returned before
            checks.leave_unless(own | (several.type == f.symbol(python.TUPLE_TYPE)))
            checks.leave_unless(several.size == outputs)
            targets.value = several.items
        with f.loop(inputs) as k:
            ends[k] = end(k)
        with f.loop(inputs, inputs + outputs) as k:
            target, port = targets.value[k - inputs], kernel.ports[k]
            found = f.call(CHECK_ARRAY, target, port, ALIGNED | WRITEABLE, views, k)
            checks.leave_unless(found == states)
            with f.if_(states != ONE_STATE):
                by_state, by_entry = views.strides[k].by_state, views.strides[k].by_entry
                straight = (by_entry == 8) & (by_state == port.size * 8)
                transposed = (by_state == 8) & (by_entry == states * 8) & vector
                checks.leave_unless(straight | transposed)
            ends[k] = end(k)
            with f.loop(k) as other:
                checks.leave_if((begins[k] < ends[other]) & (begins[other] < ends[k]))
        f.ret(1)
    f.ret(0)
    return f


def result_of_one_state() -> Function:
    """Return ``PyObject *mbs.result_of_one_state(port, views, k)``; null after an exception."""
    f = Function(RESULT_OF_ONE_STATE, attributes="alwaysinline")
    port, views, k = f.parameters
    kept = port.results
    with f.if_(kept != NULL), f.loop(RECYCLED) as place, f.block() as checks:
        result = kept[place]
        checks.leave_unless(result.references == 1)
        # whoever had it may have changed all of this; at first it is None
        leave_unless_one_state(f, checks, result, port, ALIGNED | WRITEABLE | OWNS_DATA)
        checks.leave_unless(result.weak_references == NULL)
        views.pointers[k] = result.data
        result.references = 2
        f.ret(result)
    new = _new_array(f, port.ndim, port.shape, views.pointers.at(k))
    with f.if_((new != NULL) & (kept != NULL)):
        older, oldest = kept[0], kept[1]
        f.call(python.INC_REF, new)
        kept[0] = new
        kept[1] = older
        f.call(python.DEC_REF, oldest)  # may run Python, so it comes last
    f.ret(new)
    return f


def result_of_batch() -> Function:
    """Return ``PyObject *mbs.result_of_batch(port, views, k, states)``.

    Null after an exception, and without one for results that are better made in Python.
    """
    f = Function(RESULT_OF_BATCH)
    port, views, k, states = f.parameters
    by_state = port.size * 8
    with f.if_(by_state * states > LARGEST_BATCH):
        f.ret(NULL)
    shape = f.array(I64, MOST_AXES)
    shape[0] = states
    with f.loop(port.ndim) as axis:
        shape[axis + 1] = port.shape[axis]
    strides = views.strides[k]
    strides.by_state = by_state
    strides.by_entry = 8
    f.ret(_new_array(f, port.ndim + 1, shape, views.pointers.at(k)))
    return f


def _new_array(f: Function, ndim: Value, shape: Value, data: Value) -> Value:
    """Emit the call that makes an array, and the store of the address of its entries."""
    ndarray, axes = f.symbol(python.NDARRAY), ndim.to(I32)
    new = f.call(python.NEW_ARRAY, ndarray, axes, shape, python.DOUBLES, NULL, NULL, 0, 0, NULL)
    with f.if_(new != NULL):
        data[0] = new.data
    return new
