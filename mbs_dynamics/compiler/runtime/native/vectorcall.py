# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Classes whose objects are called through machine code, by CPython's vectorcall protocol.

Each object ends with the addresses of its vectorcall function and of a table that this reads.
"""

from __future__ import annotations

import ctypes
import functools
import struct
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mbs_dynamics.compiler.jit import machine_code
from mbs_dynamics.compiler.runtime.native import layout
from mbs_dynamics.compiler.runtime.native.layout import pointer
from mbs_dynamics.compiler.runtime.native.python import name_symbols
from mbs_dynamics.locks import Lock

TP_MEMBERS = 72  # Py_tp_members
T_PYSSIZET, READONLY = 19, 1
FLAGS = 1 << 11 | 1 << 18  # Py_TPFLAGS_HAVE_VECTORCALL, Py_TPFLAGS_DEFAULT

_lock = Lock()
_types: dict[type, type] = {}
_forever: list[Any] = []


def _kept(data: bytes) -> int:
    """Return the address of what a type points to: PyType_Spec, PyType_Slot[], PyMemberDef[]."""
    _forever.append(ctypes.create_string_buffer(data))
    return ctypes.addressof(_forever[-1])


class NativeCallable:
    """An object that is called through machine code once that is attached; by ``__call__`` before.

    Where calls cannot run machine code, it is an ordinary object.
    """

    def __new__(cls, *args: Any, **named: Any) -> Any:
        """Return an object of the subclass with room for the addresses."""
        return object.__new__(_native_type(cls) if layout.supported() else cls)


def _native_type(base: type) -> type:
    with _lock:
        made = _types.get(base)
        if made is None:
            made = _types[base] = _new_type(base)
            _types[made] = made
        return made


def _new_type(base: type) -> type:
    offset = base.__basicsize__
    name = _kept(f"{base.__module__}.{base.__qualname__}".encode())
    place = _kept(b"__vectorcalloffset__")
    members = _kept(struct.pack("@PiniP", place, T_PYSSIZET, offset, READONLY, 0) + bytes(40))
    slots = struct.pack("@iP", TP_MEMBERS, members) + bytes(16)
    spec = struct.pack("@PiiIP", name, offset + 16, 0, FLAGS, _kept(slots))
    new = ctypes.pythonapi.PyType_FromSpecWithBases
    new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.py_object]
    made: type = new(_kept(spec), (base,))
    made.__doc__ = base.__doc__
    return made


def attach(
    callee: Any, table: NDArray[np.int64], name: str, emit: Callable[[str, int], str]
) -> None:
    """Let calls of a :class:`NativeCallable` run code that reads a table.

    ``emit`` returns the IR of a vectorcall function that has a name and whose callable has the
    address of its table, which stands behind that of the function, at an offset.
    """
    place = id(callee) + type(callee).__basicsize__ - 16
    ctypes.c_void_p.from_address(place + 8).value = table.ctypes.data
    offset = type(callee).__basicsize__ - 8
    name_symbols()
    name = f"{name}{offset}"
    code = machine_code.shared(name, functools.partial(emit, name, offset))
    ctypes.c_void_p.from_address(place).value = code


def code_of(callee: Any) -> int:
    """Return the address of the function that calls of an object run; 0 if none is attached."""
    kind = type(callee)
    return pointer(id(callee) + kind.__basicsize__ - 16) if _types.get(kind) is kind else 0
