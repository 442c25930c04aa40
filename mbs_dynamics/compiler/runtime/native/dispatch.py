# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The call of a function that chooses its kernel: one for all such functions of a process.

A function of an owner, arrays and options, ``jacobian(arm, q, "tool")``, has one kernel for each
owner and each choice of options. To look it up costs more than many kernels take. So the function
keeps a table of calls that were made before. A call that is like one of them, with the very same
owner and options, goes to its kernel at once, and every other one to a Python function.
"""

from __future__ import annotations

from mbs_dynamics.compiler.codegen.builder import I64, NULL, PTR, Function, Inline, Pointer, Struct
from mbs_dynamics.compiler.runtime.native import python
from mbs_dynamics.compiler.runtime.native.layout import TUPLE
from mbs_dynamics.compiler.runtime.native.table import MOST_PORTS

ENTRIES = 16
"""Calls that are remembered for each function."""

ENTRY = Struct.of_words(
    owner=PTR,
    given=I64,
    arrays=I64,
    names=Pointer(TUPLE),
    options=Pointer(TUPLE),
    extras=Pointer(TUPLE),
    kernel=PTR,
    call=python.VECTORCALL,
)
"""A call that was made: its owner, null if the entry is free; how many arguments there are without
names, and how many arrays follow the owner; the names, the values of all that follows the arrays,
and the arguments that the kernel takes besides; the kernel, and its vectorcallfunc."""

DISPATCH = Struct.of_words(fallback=PTR, entries=Inline(ENTRY))
"""The table of a function: the Python function for calls that are not in it, and the entries."""


def dispatch(offset: int) -> Function:
    """Return ``PyObject *mbs.dispatch(function, args, nargsf, kwnames)``, a vectorcallfunc."""
    f, table = python.vectorcall_function("mbs.dispatch", offset, DISPATCH)
    _, args, nargsf, kwnames = f.parameters
    given, named = nargsf & python.POSITIONAL, f.variable(I64, 0)
    with f.if_(kwnames != NULL):
        named.value = kwnames.size
    arguments = f.array(PTR, MOST_PORTS)
    with f.if_(given > 0):
        owner = args[0]
        with f.loop(ENTRIES) as k, f.block() as same:
            entry = table.entries[k]
            same.leave_unless((entry.owner == owner) & (entry.given == given))
            names, extras, arrays = entry.names, entry.extras, entry.arrays
            same.leave_unless(names.size == named.value)
            with f.loop(named.value) as name:
                same.leave_unless(kwnames.items[name] == names.items[name])
            options = args.at(arrays + 1)
            with f.loop(given + named.value - arrays - 1) as option:
                same.leave_unless(options[option] == entry.options.items[option])
            with f.loop(arrays) as array:
                arguments[array] = args[array + 1]
            with f.loop(extras.size) as extra:
                arguments[arrays + extra] = extras.items[extra]
            count = arrays + extras.size
            f.ret(f.call(entry.call, entry.kernel, arguments, count, NULL))
    f.ret(f.call(python.FALLBACK, table.fallback, *f.parameters))
    return f
