# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The native call: the call of a kernel from Python, as one function for all kernels of a process.

The fast path takes arrays of one state, or of one batch axis, checks them itself, lets NumPy
allocate the results and returns. Everything else, and every error, goes to the kernel's Python
function. The IR holds no address: those of Python and NumPy are symbols.

What Python needs to look at a batch takes as long as hundreds of states do. Few states are
evaluated one after the other, more as vector code, once that has been compiled. Very large batches,
which threads may share, go to Python.
"""

from __future__ import annotations

from mbs_dynamics.compiler.codegen.builder import (
    I1,
    I32,
    I64,
    NULL,
    PTR,
    VOID,
    Block,
    Function,
    Pointer,
    Value,
    module,
)
from mbs_dynamics.compiler.runtime.batches import LEAST_STATES, STATES_PER_THREAD
from mbs_dynamics.compiler.runtime.native.arguments import (
    ONE_STATE,
    REFUSED,
    VIEWS,
    check_array,
    check_strides,
    new_views,
)
from mbs_dynamics.compiler.runtime.native.layout import ALIGNED
from mbs_dynamics.compiler.runtime.native.results import (
    check_out,
    result_of_batch,
    result_of_one_state,
)
from mbs_dynamics.compiler.runtime.native.table import KERNEL, MOST_PORTS
from mbs_dynamics.compiler.runtime.native.vectorcall import (
    OBJECTS,
    POSITIONAL,
    python_call,
    table_of,
    vectorcall_function,
)

LEAST_UNLOCKED = 256
"""From so many states on, other threads may run meanwhile."""


def emit_call(offset: int) -> str:
    """Return the IR of ``mbs.call``, for objects that have their table at an offset."""
    functions = [check_array(), check_strides(), check_out()]
    functions += [result_of_one_state(), result_of_batch(), evaluate(), evaluate_vector()]
    return module([*functions, python_call(), call(offset)], [f"mbs.{name}" for name in OBJECTS])


def call(offset: int) -> Function:
    """Return ``PyObject *mbs.call(kernel, args, nargsf, kwnames)``, a vectorcallfunc.

    The fast path is taken with the inputs without a default, or with all inputs, in order, and with
    or without ``out`` by name.
    """
    f = vectorcall_function("mbs.call")
    callee, args, nargsf, kwnames = f.parameters
    kernel = table_of(callee, offset, KERNEL)
    given, named = nargsf & POSITIONAL, f.variable(I64, 0)
    out = f.variable(Pointer(PTR), NULL)
    views, results = new_views(f), f.array(PTR, MOST_PORTS)
    with f.block() as fast:
        with f.if_(kwnames != NULL):
            named.value = kwnames.size
            fast.leave_unless(named.value == 1)
            fast.leave_unless(kwnames.items[0] == f.symbol("mbs.out"))
            out.value = args.at(given)
        inputs, outputs = kernel.inputs, kernel.outputs
        fast.leave_unless((given == kernel.required) | (given == inputs))
        states = _read_arguments(f, fast, kernel, args, given, views)
        vector = states >= LEAST_STATES
        with f.if_(states != ONE_STATE):
            fast.leave_unless((states > 0) & (states < 2 * STATES_PER_THREAD))
            with f.if_(vector):
                fast.leave_if(kernel.vector == NULL)
            with f.else_(), f.loop(given) as k:
                fast.leave_unless(views.strides[k].by_entry == 8)
        with f.if_(out.value != NULL):
            accepted = f.call(I1, "mbs.check_out", kernel, out.value, views, states, vector)
            fast.leave_unless(accepted)
        made = f.variable(I64, 0)
        with f.block() as attempt:
            with f.if_(out.value == NULL), f.loop(outputs) as output:
                k = inputs + output
                what = (kernel.ports[k], views, k)
                with f.if_(states == ONE_STATE):
                    results[output] = f.call(PTR, "mbs.result_of_one_state", *what)
                with f.else_():
                    results[output] = f.call(PTR, "mbs.result_of_batch", *what, states)
                attempt.leave_if(results[output] == NULL)
                made.value = output + 1
            attempt.leave_unless(f.call(I1, "mbs.evaluate", kernel, views, states))
            with f.if_(out.value != NULL):
                f.call(VOID, "mbs.Py_IncRef", out.value[0])
                f.ret(out.value[0])
            with f.if_(outputs == 1):
                f.ret(results[0])
            several = f.call(PTR, "mbs.PyTuple_New", outputs)
            attempt.leave_if(several == NULL)
            with f.loop(outputs) as output:
                f.call(I32, "mbs.PyTuple_SetItem", several, output, results[output])
            f.ret(several)
        with f.loop(made.value) as output:
            f.call(VOID, "mbs.Py_DecRef", results[output])
        f.call(VOID, "mbs.PyErr_Clear")
    passed = given + named.value
    arguments = (callee, args, given, passed, kwnames)
    f.ret(f.call(PTR, "mbs.python_call", kernel.fallback, *arguments))
    return f


def _read_arguments(
    f: Function, fast: Block, kernel: Value, args: Value, given: Value, views: Value
) -> Value:
    """Emit the checks of all arguments and return the number of states, or ONE_STATE."""
    states = f.variable(I64, ONE_STATE)
    with f.loop(given) as k:
        flags = f.operand(ALIGNED, I32)
        found = f.call(I64, "mbs.check_array", args[k], kernel.ports[k], flags, views, k)
        fast.leave_if(found == REFUSED)
        with f.if_(found != ONE_STATE):
            fast.leave_unless((states.value == ONE_STATE) | (states.value == found))
            states.value = found
    with f.loop(given, kernel.inputs) as k:
        views.pointers[k] = kernel.ports[k].default
        views.strides[k].by_state = 0
        views.strides[k].by_entry = 8
    return states.value


def evaluate() -> Function:
    """Return ``i1 mbs.evaluate(kernel, views, states)``, true if no guard fails."""
    f = Function(
        "mbs.evaluate", I1, Pointer(KERNEL), Pointer(VIEWS), I64, attributes="alwaysinline"
    )
    kernel, views, states = f.parameters
    ports, pointers = kernel.inputs + kernel.outputs, views.pointers
    with f.if_(states >= LEAST_STATES):
        f.ret(f.call(I1, "mbs.evaluate_vector", kernel, views, states, ports))
    with f.if_(states == ONE_STATE):
        f.ret(f.call(I32, kernel.function, pointers) == 0)
    with f.loop(states):
        with f.if_(f.call(I32, kernel.function, pointers) != 0):
            f.ret(0)
        with f.loop(ports) as k:
            pointers[k] = pointers[k].byte(views.strides[k].by_state)
    f.ret(1)
    return f


def evaluate_vector() -> Function:
    """Return ``i1 mbs.evaluate_vector(kernel, views, states, ports)``, true if no guard fails.

    No other call uses the vector code meanwhile.
    """
    f = Function("mbs.evaluate_vector", I1, Pointer(KERNEL), Pointer(VIEWS), I64, I64)
    kernel, views, states, ports = f.parameters
    vector: Value = kernel.vector
    with f.loop(ports) as k:
        strides, port = views.strides[k], vector.ports[k]
        by_state, by_entry = strides.by_state, strides.by_entry
        port.address = views.pointers[k]
        port.by_state = by_state
        port.by_entry = f.select((port.size == 1) & (by_state == 8), 0, by_entry)
        with f.if_(by_state == 0), f.loop(port.size) as entry, f.loop(vector.lanes) as lane:
            port.scratch[entry * vector.lanes + lane] = views.pointers[k][entry]
    kernel.vector = NULL
    unlocked = states >= LEAST_UNLOCKED
    thread = f.variable(PTR, NULL)
    with f.if_(unlocked):
        thread.value = f.call(PTR, "mbs.PyEval_SaveThread")
    first = f.operand(0, I64)
    what = (vector.function, first, states, vector.ports, kernel.inputs, ports)
    status = f.call(I64, vector.driver, *what, vector.pointers, vector.guards)
    with f.if_(unlocked):
        f.call(VOID, "mbs.PyEval_RestoreThread", thread.value)
    kernel.vector = vector
    f.ret(status == 0)
    return f
