# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The native call: the call of a kernel from Python, as one function for all kernels of a process.

The fast path takes arrays of one state, or of one batch axis, in which the entries of a state lie
consecutive in C order; everything else, and every error, is passed to the kernel's Python function.
The IR holds no address: those of Python and NumPy are symbols.

A kernel keeps its last two results of each output, and reuses one as a new result once nothing else
refers to it or to a view of it: its reference count is then 1, the kernel's own. CPython counts no
reference for a value that it loads from a variable to the stack (since 3.14), but then the variable
has a counted one until the value has left the stack, even if the variable is assigned to meanwhile.
So a result that is on a stack has a count of at least 2.
"""

from __future__ import annotations

from mbs_dynamics.compiler.codegen import builder
from mbs_dynamics.compiler.codegen.builder import I32, I64, NULL, PTR, Function, Pointer, Value
from mbs_dynamics.compiler.runtime.machine import LEAST_STATES
from mbs_dynamics.compiler.runtime.native import layout, vectorcall
from mbs_dynamics.compiler.runtime.native.layout import ARRAY, TUPLE
from mbs_dynamics.compiler.runtime.native.table import KERNEL, MOST_AXES, MOST_PORTS, PORT, RECYCLED

CHECKED = builder.Prototype("mbs.checked", I64, Pointer(ARRAY), Pointer(PORT), I32)
RESULT = builder.Prototype("mbs.result", Pointer(ARRAY), Pointer(PORT), I64)

LEAST_UNLOCKED = 256
"""Number of states from which on the call releases Python's lock."""

ONE_STATE, REFUSED = -1, -2
"""In place of a number of states: for an array without a batch axis, and for unsupported ones."""

OUTPUT = layout.C_CONTIGUOUS | layout.ALIGNED | layout.WRITEABLE


def emit_call(name: str, offset: int) -> str:
    """Return the IR of a vectorcallfunc, ``PyObject *name(kernel, args, nargsf, kwnames)``.

    The kernel has the address of its table at an offset. The fast path is taken with the inputs
    without a default, or with all inputs, in order.
    """
    f, kernel = vectorcall.vectorcall_function(name, offset, KERNEL)
    _, args, nargsf, kwnames = f.parameters
    given = nargsf & vectorcall.POSITIONAL
    inputs, outputs, ports = kernel.inputs, kernel.outputs, kernel.ports
    count = inputs + outputs
    pointers, strides = f.array(PTR, MOST_PORTS), f.array(I64, MOST_PORTS)
    results, made = f.array(PTR, MOST_PORTS), f.variable(I64, 0)
    states = f.variable(I64, ONE_STATE)
    with f.block() as fast:
        fast.leave_unless(kwnames == NULL)
        fast.leave_unless((given == kernel.required) | (given == inputs))
        with f.loop(given) as k:
            array = args[k].to(Pointer(ARRAY))
            own = f.call(CHECKED, array, ports[k], layout.ALIGNED)
            fast.leave_if(own == REFUSED)
            strides[k] = 0
            with f.if_(own != ONE_STATE):
                fast.leave_unless((states.value == ONE_STATE) | (states.value == own))
                states.value = own
                strides[k] = array.strides[0]
                fast.leave_unless(strides[k] > 0)
            pointers[k] = array.data
        with f.loop(given, inputs) as k:
            pointers[k] = ports[k].default
        with f.if_(states.value != ONE_STATE):
            fast.leave_unless(states.value > 0)
            fast.leave_if((states.value >= LEAST_STATES) & (kernel.vector == NULL))
            with f.loop(given, count) as k:
                strides[k] = f.select(k < inputs, 0, ports[k].size * 8)
        with f.block() as attempt:
            with f.loop(inputs, count) as k:
                array = f.call(RESULT, ports[k], states.value)
                attempt.leave_if(array == NULL)
                results[k - inputs] = array
                made.value = k - inputs + 1
                pointers[k] = array.data
            _evaluate(f, attempt, kernel, pointers, strides, states.value)
            with f.if_(outputs == 1):
                f.ret(results[0])
            new = f.call(vectorcall.TUPLE_NEW, outputs)
            attempt.leave_if(new == NULL)
            with f.loop(outputs) as k:
                f.call(vectorcall.TUPLE_SET_ITEM, new, k, results[k])
            # a named tuple has the layout of a tuple
            f.call(vectorcall.INC_REF, kernel.result_type)
            new.to(Pointer(TUPLE)).type = kernel.result_type
            f.ret(new)
        with f.loop(made.value) as k:
            f.call(vectorcall.DEC_REF, results[k])
        f.call(vectorcall.ERR_CLEAR)
    f.ret(f.call(vectorcall.CALL, kernel.fallback, args, nargsf, kwnames))
    return builder.module([checked(), result(), f], vectorcall.OBJECTS)


def checked() -> Function:
    """Return ``i64 mbs.checked(array, port, flags)``: how many states an array has.

    It has to be exactly an ndarray of native float64, with these flags, and of the shape and the
    strides of the port after at most one batch axis. The first load is safe for any object.
    """
    f = Function(CHECKED, attributes="alwaysinline")
    array, port, flags = f.parameters
    with f.block() as checks:
        checks.leave_unless(array.type == f.symbol(vectorcall.NDARRAY))
        exact = (array.dtype == f.symbol(vectorcall.FLOAT64)) & ((array.flags & flags) == flags)
        axes = array.ndim.to(I64) - port.ndim
        checks.leave_unless(exact & ((axes == 0) | (axes == 1)))
        with f.loop(port.ndim) as axis:
            checks.leave_unless(array.shape[axes + axis] == port.shape[axis])
        with f.if_((array.flags & layout.C_CONTIGUOUS) == 0), f.loop(port.ndim) as axis:
            checks.leave_unless(array.strides[axes + axis] == port.strides[axis])
        with f.if_(axes == 0):
            f.ret(ONE_STATE)
        f.ret(array.shape[0])
    f.ret(REFUSED)
    return f


def result() -> Function:
    """Return ``PyObject *mbs.result(port, states)``, recycled or new; null after an exception."""
    f = Function(RESULT, attributes="alwaysinline")
    port, states = f.parameters
    kept, one, ndim = port.results, states == ONE_STATE, port.ndim
    with f.if_(one), f.loop(RECYCLED) as place, f.block() as checks:
        array = kept[place]  # None, or changed in shape or flags by its last owner
        checks.leave_unless(array.references == 1)
        own = f.call(CHECKED, array, port, OUTPUT | layout.OWNS_DATA) == ONE_STATE
        checks.leave_unless(own)
        checks.leave_unless(array.weak_references == NULL)
        array.references = 2
        f.ret(array)
    shape = f.array(I64, MOST_AXES)
    shape[0] = states
    with f.loop(ndim) as axis:
        shape[axis + 1] = port.shape[axis]
    first = f.select(one, 1, 0)
    what = (ndim + 1 - first).to(I32), shape.at(first), vectorcall.DOUBLES, NULL, NULL, 0, 0, NULL
    new = f.call(vectorcall.NEW_ARRAY, f.symbol(vectorcall.NDARRAY), *what)
    with f.if_(one & (new != NULL)):
        older, oldest = kept[0], kept[1]
        f.call(vectorcall.INC_REF, new)
        kept[0] = new
        kept[1] = older
        f.call(vectorcall.DEC_REF, oldest)  # may run Python, so it comes last
    f.ret(new)
    return f


def _evaluate(
    f: Function, block: builder.Block, kernel: Value, pointers: Value, strides: Value, states: Value
) -> None:
    """Emit the evaluation of all states, which leaves the block if a guard fails."""
    count = kernel.inputs + kernel.outputs
    with f.if_(states >= LEAST_STATES):
        sizes, thread = f.array(I64, MOST_PORTS), f.variable(PTR, NULL)
        with f.loop(count) as k:
            sizes[k] = kernel.ports[k].size
        with f.if_(states >= LEAST_UNLOCKED):
            thread.value = f.call(vectorcall.SAVE_THREAD)
        where = pointers, strides, sizes
        status = f.call(kernel.driver, kernel.vector, states, *where, kernel.inputs, count, 1)
        with f.if_(states >= LEAST_UNLOCKED):
            f.call(vectorcall.RESTORE_THREAD, thread.value)
        block.leave_unless(status == 0)
    with f.if_(states < LEAST_STATES), f.loop(f.select(states == ONE_STATE, 1, states)):
        block.leave_unless(f.call(kernel.function, pointers) == 0)
        with f.if_(states > 1), f.loop(count) as k:
            pointers[k] = pointers[k].byte(strides[k])
