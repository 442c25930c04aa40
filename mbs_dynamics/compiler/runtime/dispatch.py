# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Functions that choose a kernel by their owner and options, and remember the choice.

See :mod:`runtime.native.dispatch`. Where calls cannot run machine code, nothing is
remembered, and every call is one of ``__call__``.
"""

from __future__ import annotations

import functools
import sys
import threading
import weakref
from typing import Any

import numpy as np

from mbs_dynamics.compiler.passes.strategy import PATIENCE
from mbs_dynamics.compiler.runtime.kernel import Kernel
from mbs_dynamics.compiler.runtime.native import layout, vectorcall
from mbs_dynamics.compiler.runtime.native.dispatch import ENTRIES, ENTRY


class Dispatcher:
    """A function ``f(owner, *arrays, *options, **options)``; its ``__call__`` calls a kernel."""

    def __new__(cls, *args: Any, **named: Any) -> Any:
        """Return an object of the class, or of its subclass that is called through machine code."""
        native = layout.supported()
        return object.__new__(vectorcall.callable_type(cls, at_once=False) if native else cls)

    def __init__(self) -> None:
        self._lock = threading.Lock()
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
        extras: tuple[Any, ...],
    ) -> None:
        """Let calls like this one go to a kernel at once.

        That is: calls with the same owner, so many arrays, and the very same options, which have to
        be of types whose objects never change, or nothing is remembered. ``extras`` are what the
        kernel takes after the arrays; the owner has to keep them, and the kernel, alive.
        """
        values = (*options, *(value for _, value in named))
        native = all(vectorcall.is_callable_type(type(x)) for x in (self, kernel))
        if not native or not all(map(_is_fixed, values)):
            return
        with self._lock:
            k = self._place()
            if k is None:
                return
            names = tuple(sys.intern(name) for name, _ in named)
            watch = weakref.ref(owner, functools.partial(self._forget, k))
            self._held[k] = watch, names, values, extras
            entry = ENTRY.words(
                owner=id(owner),
                given=1 + arrays + len(options),
                arrays=arrays,
                names=id(names),
                options=id(values),
                extras=id(extras),
                kernel=id(kernel),
                call=vectorcall.code_of(kernel),
            )
            self._entries[k, 1:] = entry[1:]
            self._entries[k, 0] = entry[0]  # last: from here on it counts

    def _place(self) -> int | None:
        """Return the number of a free entry, if there is one."""
        if self._table is None:
            self._table = np.zeros(1 + ENTRIES * len(ENTRY.names), dtype=np.int64)
            self._table[0] = id(type(self).__call__)
            self._entries = self._table[1:].reshape(ENTRIES, -1)
            vectorcall.attach(self, self._table, "mbs.dispatch")
        if None not in self._held:
            self._missed += 1
            if self._missed < PATIENCE:
                return None
            self._missed = 0
            for k in range(ENTRIES):
                self._forget(k)
        return self._held.index(None)

    def _forget(self, k: int, _: Any = None) -> None:
        self._entries[k, 0] = 0
        self._held[k] = None


def _is_fixed(x: Any) -> bool:
    """Whether an object is always the same."""
    if type(x) is tuple:
        return all(_is_fixed(y) for y in x)
    return x is None or type(x) in (str, int, float, bool)
