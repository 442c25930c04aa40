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
    I64,
    NULL,
    PTR,
    Block,
    Function,
    Pointer,
    Prototype,
    Value,
    module,
)
from mbs_dynamics.compiler.passes.strategy import LEAST_STATES, LEAST_UNLOCKED, STATES_PER_THREAD
from mbs_dynamics.compiler.runtime.native import arguments, python, results
from mbs_dynamics.compiler.runtime.native.arguments import ONE_STATE, REFUSED, VIEWS
from mbs_dynamics.compiler.runtime.native.layout import ALIGNED, ARRAY, TUPLE
from mbs_dynamics.compiler.runtime.native.table import KERNEL, MOST_PORTS

EVALUATE = Prototype("mbs.evaluate", I1, Pointer(KERNEL), Pointer(VIEWS), I64)
EVALUATE_VECTOR = Prototype("mbs.evaluate_vector", I1, Pointer(KERNEL), Pointer(VIEWS), I64, I64)


def emit_call(offset: int) -> str:
    """Return the IR of ``mbs.call``, for objects that have their table at an offset."""
    functions = [arguments.check_array(), arguments.check_strides(), results.check_out()]
    functions += [results.result_of_one_state(), results.result_of_batch()]
    functions += [evaluate(), evaluate_vector(), python.fallback(), call(offset)]
    return module(functions, python.OBJECTS)


def call(offset: int) -> Function:
    """Return ``PyObject *mbs.call(kernel, args, nargsf, kwnames)``, a vectorcallfunc.

    The fast path is taken with the inputs without a default, or with all inputs, in order, and with
    or without ``out`` by name.
    """
    f, kernel = python.vectorcall_function("mbs.call", offset, KERNEL)
    callee, args, nargsf, kwnames = f.parameters
    given, named = nargsf & python.POSITIONAL, f.variable(I64, 0)
    out = f.variable(Pointer(PTR), NULL)
    views, made = arguments.new_views(f), f.array(PTR, MOST_PORTS)
    with f.block() as fast:
        with f.if_(kwnames != NULL):
            named.value = kwnames.size
            fast.leave_unless(named.value == 1)
            fast.leave_unless(kwnames.items[0] == f.symbol(python.OUT))
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
            accepted = f.call(results.CHECK_OUT, kernel, out.value, views, states, vector)
            fast.leave_unless(accepted)
        count = f.variable(I64, 0)
        with f.block() as attempt:
            with f.if_(out.value == NULL), f.loop(outputs) as output:
                k = inputs + output
                what = (kernel.ports[k], views, k)
                with f.if_(states == ONE_STATE):
                    made[output] = f.call(results.RESULT_OF_ONE_STATE, *what)
                with f.else_():
                    made[output] = f.call(results.RESULT_OF_BATCH, *what, states)
                attempt.leave_if(made[output] == NULL)
                count.value = output + 1
            attempt.leave_unless(f.call(EVALUATE, kernel, views, states))
            with f.if_(out.value != NULL):
                f.call(python.INC_REF, out.value[0])
                f.ret(out.value[0])
            with f.if_(outputs == 1):
                f.ret(made[0])
            several = f.call(python.TUPLE_NEW, outputs)
            attempt.leave_if(several == NULL)
            with f.loop(outputs) as output:
                f.call(python.TUPLE_SET_ITEM, several, output, made[output])
            # a named tuple has the layout of a tuple, and no more than that
            f.call(python.INC_REF, kernel.result_type)
            several.to(Pointer(TUPLE)).type = kernel.result_type
            f.ret(several)
        with f.loop(count.value) as output:
            f.call(python.DEC_REF, made[output])
        f.call(python.ERR_CLEAR)
    passed = given + named.value
    f.ret(f.call(python.FALLBACK, kernel.fallback, callee, args, given, passed, kwnames))
    return f


def _read_arguments(
    f: Function, fast: Block, kernel: Value, args: Value, given: Value, views: Value
) -> Value:
    """Emit the checks of all arguments and return the number of states, or ONE_STATE."""
    states = f.variable(I64, ONE_STATE)
    with f.loop(given) as k, f.block() as argument:
        array, port = args[k].to(Pointer(ARRAY)), kernel.ports[k]
        with f.block() as one_state:
            arguments.leave_unless_one_state(f, one_state, array, port, ALIGNED)
            views.pointers[k] = array.data
            views.strides[k].by_state = 0
            views.strides[k].by_entry = 8
            argument.leave()
        found = f.call(arguments.CHECK_ARRAY, array, port, ALIGNED, views, k)
        fast.leave_if(found == REFUSED)
        fast.leave_unless((states.value == ONE_STATE) | (states.value == found))
        states.value = found
    with f.loop(given, kernel.inputs) as k:
        views.pointers[k] = kernel.ports[k].default
        views.strides[k].by_state = 0
        views.strides[k].by_entry = 8
    return states.value


def evaluate() -> Function:
    """Return ``i1 mbs.evaluate(kernel, views, states)``, true if no guard fails."""
    f = Function(EVALUATE, attributes="alwaysinline")
    kernel, views, states = f.parameters
    ports, pointers = kernel.inputs + kernel.outputs, views.pointers
    with f.if_(states >= LEAST_STATES):
        f.ret(f.call(EVALUATE_VECTOR, kernel, views, states, ports))
    with f.if_(states == ONE_STATE):
        f.ret(f.call(kernel.function, pointers) == 0)
    with f.loop(states):
        with f.if_(f.call(kernel.function, pointers) != 0):
            f.ret(0)
        with f.loop(ports) as k:
            pointers[k] = pointers[k].byte(views.strides[k].by_state)
    f.ret(1)
    return f


def evaluate_vector() -> Function:
    """Return ``i1 mbs.evaluate_vector(kernel, views, states, ports)``, true if no guard fails.

    No other call uses the vector code meanwhile.
    """
    f = Function(EVALUATE_VECTOR)
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
        thread.value = f.call(python.SAVE_THREAD)
    what = (vector.function, 0, states, vector.ports, kernel.inputs, ports)
    status = f.call(vector.driver, *what, vector.pointers, vector.guards)
    with f.if_(unlocked):
        f.call(python.RESTORE_THREAD, thread.value)
    kernel.vector = vector
    f.ret(status == 0)
    return f
