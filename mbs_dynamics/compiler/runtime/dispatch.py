# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Functions that choose a kernel by their owner and options, and remember the choice.

A function of an owner, arrays and options, ``jacobian(arm, q, "tool")``, has one kernel for each
owner and each choice of options. Looking it up would cost more than many kernels. So the function
keeps a table of previous calls: one with the identical owner and options goes to its kernel in
machine code, any other one to ``__call__``. Where calls cannot run machine code, nothing is stored.
"""

from __future__ import annotations

import functools
import sys
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np

from mbs_dynamics.compiler.codegen.builder import I64, NULL, PTR, Inline, Pointer, Struct, module
from mbs_dynamics.compiler.runtime.kernel import Kernel
from mbs_dynamics.compiler.runtime.native import vectorcall
from mbs_dynamics.compiler.runtime.native.layout import TUPLE
from mbs_dynamics.locks import Lock

ENTRIES = 16
"""Number of calls that are remembered for each function."""

TIMEOUT = 1000
"""Number of calls missing from a full table after which a function empties it."""

ENTRY = Struct.of_words(
    owner=PTR,
    given=I64,
    arrays=I64,
    names=Pointer(TUPLE),
    options=Pointer(TUPLE),
    kernel=PTR,
    call=vectorcall.VECTORCALL,
)
"""A call that was made: its owner, null if the entry is free; how many arguments there are without
names, and how many arrays follow the owner; the names, and the values of all that follows the
arrays; the kernel, and its vectorcallfunc."""

DISPATCH = Struct.of_words(fallback=PTR, entries=Inline(ENTRY))
"""The table of a function: the bound method for calls that are not in it, and the entries."""


def emit_dispatch(name: str, offset: int) -> str:
    """Return the IR of a vectorcallfunc, ``PyObject *name(function, args, nargsf, kwnames)``.

    The function has the address of its table at an offset.
    """
    f, table = vectorcall.vectorcall_function(name, offset, DISPATCH)
    _, args, nargsf, kwnames = f.parameters
    given, named = nargsf & vectorcall.POSITIONAL, f.variable(I64, 0)
    with f.if_(kwnames != NULL):
        named.value = kwnames.size
    with f.if_(given > 0):
        owner = args[0]
        with f.loop(ENTRIES) as k, f.block() as same:
            entry = table.entries[k]
            same.leave_unless((entry.owner == owner) & (entry.given == given))
            names, arrays = entry.names, entry.arrays
            same.leave_unless(names.size == named.value)
            with f.loop(named.value) as j:
                same.leave_unless(kwnames.items[j] == names.items[j])
            options = args.at(arrays + 1)
            with f.loop(given + named.value - arrays - 1) as option:
                same.leave_unless(options[option] == entry.options.items[option])
            kernel = entry.kernel
            f.call(vectorcall.INC_REF, kernel)  # the entry may be freed meanwhile
            result = f.call(entry.call, kernel, args.at(1), arrays, NULL)
            f.call(vectorcall.DEC_REF, kernel)
            f.ret(result)
    f.ret(f.call(vectorcall.CALL, table.fallback, args, nargsf, kwnames))
    return module([f])


class Dispatcher(vectorcall.NativeCallable):
    """A function ``f(owner, *arrays, *options, **options)``; its ``__call__`` calls a kernel."""

    __call__: Callable[..., Any]

    def __init__(self) -> None:
        self._lock = Lock()
        self._table: Any = None
        self._held: list[Any] = [None] * ENTRIES
        self._missed = 0

    def remember(
        self,
        owner: Any,
        arrays: int,
        options: tuple[Any, ...],
        named: tuple[tuple[str, Any], ...],
        kernel: Kernel,
    ) -> None:
        """Store a kernel for calls with this owner, number of arrays, and identical options.

        Nothing is stored unless the options are of immutable types.
        """
        values = (*options, *(value for _, value in named))
        if not vectorcall.code_of(kernel) or not all(map(_is_fixed, values)):
            return
        names = tuple(sys.intern(name) for name, _ in named)
        with self._lock:
            known = any(
                held is not None and held[0]() is owner and held[1:3] == (names, values)
                for held in self._held
            )
            k = None if known else self._place()  # equal options may be other objects each time
            if k is None:
                return
            watch = weakref.ref(owner, functools.partial(self._forget, k))
            self._held[k] = watch, names, values, kernel
            entry = ENTRY.words(
                owner=id(owner),
                given=1 + arrays + len(options),
                arrays=arrays,
                names=id(names),
                options=id(values),
                kernel=id(kernel),
                call=vectorcall.code_of(kernel),
            )
            self._entries[k, 1:] = entry[1:]
            self._entries[k, 0] = entry[0]  # last: the entry is valid from here on

    def _place(self) -> int | None:
        """Return the number of a free entry, if there is one."""
        if self._table is None:
            self._table = np.zeros(1 + ENTRIES * len(ENTRY.names), dtype=np.int64)
            self._fallback = self.__call__
            self._table[0] = id(self._fallback)
            self._entries = self._table[1:].reshape(ENTRIES, -1)
            vectorcall.attach(self, self._table, "mbs.dispatch", emit_dispatch)
        if None not in self._held:
            self._missed += 1
            if self._missed % TIMEOUT:
                return None
            for k in range(ENTRIES):
                self._forget(k)
        return self._held.index(None)

    def _forget(self, k: int, _: Any = None) -> None:
        self._entries[k, 0] = 0
        self._held[k] = None


def _is_fixed(x: Any) -> bool:
    if type(x) is tuple:
        return all(_is_fixed(y) for y in x)
    return x is None or type(x) in (str, int, float, bool)
