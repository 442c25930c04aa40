# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Classes whose objects are called through machine code, by CPython's vectorcall protocol.

Behind what Python keeps of an object stand the address of its vectorcall function, and that of a
table, which tells the function about the object.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mbs_dynamics.compiler.jit import machine_code as llvm
from mbs_dynamics.compiler.runtime.native.layout import pointer
from mbs_dynamics.compiler.runtime.native.python import name_symbols

TP_CALL, TP_MEMBERS = 50, 72  # Py_tp_call, Py_tp_members
T_PYSSIZET, READONLY = 19, 1
FLAGS = 1 << 11 | 1 << 18  # Py_TPFLAGS_HAVE_VECTORCALL, Py_TPFLAGS_DEFAULT


class _Slot(ctypes.Structure):
    _fields_ = (("slot", ctypes.c_int), ("function", ctypes.c_void_p))


class _Spec(ctypes.Structure):
    _fields_ = (
        ("name", ctypes.c_char_p),
        ("basicsize", ctypes.c_int),
        ("itemsize", ctypes.c_int),
        ("flags", ctypes.c_uint),
        ("slots", ctypes.c_void_p),
    )


class _Member(ctypes.Structure):
    _fields_ = (
        ("name", ctypes.c_char_p),
        ("type", ctypes.c_int),
        ("offset", ctypes.c_ssize_t),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    )


_lock = threading.Lock()
_types: dict[type, type] = {}
_entries: dict[tuple[str, int], tuple[llvm.MachineCode, int]] = {}
_forever: list[Any] = []
"""What types point to."""


def callable_type(base: type, *, at_once: bool = True) -> type:
    """Return the subclass of a class whose objects are called through machine code.

    ``at_once`` says that each has its code from the beginning. Else the class's ``__call__`` is
    called until it has, and for calls with ``*args``.
    """
    with _lock:
        made = _types.get(base)
        if made is None:
            made = _types[base] = _new_type(base, at_once)
            _types[made] = made
        return made


def is_callable_type(kind: type) -> bool:
    """Whether a class came from :func:`callable_type`."""
    return _types.get(kind) is kind


def _new_type(base: type, at_once: bool) -> type:
    offset = base.__basicsize__
    members = (_Member * 2)(_Member(b"__vectorcalloffset__", T_PYSSIZET, offset, READONLY, None))
    api = ctypes.pythonapi
    call = ctypes.cast(api.PyVectorcall_Call, ctypes.c_void_p).value
    used = [_Slot(TP_MEMBERS, ctypes.addressof(members)), *[_Slot(TP_CALL, call)] * at_once]
    slots = (_Slot * 3)(*used)
    name = f"{base.__module__}.{base.__qualname__}".encode()
    spec = _Spec(name, offset + 16, 0, FLAGS, ctypes.addressof(slots))
    new = api.PyType_FromSpecWithBases
    new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.py_object]
    _forever.extend([members, slots, spec, name])
    made: type = new(ctypes.addressof(spec), (base,))
    made.__doc__ = base.__doc__
    return made


def attach(callee: Any, table: NDArray[np.int64], name: str, emit: Callable[[int], str]) -> None:
    """Let calls of an object of a type from :func:`callable_type` run code that reads a table.

    ``emit`` returns the IR of the vectorcall function of this name for objects that hold the
    address of their table at an offset.
    """
    offset = type(callee).__basicsize__ - 16
    ctypes.c_void_p.from_address(id(callee) + offset + 8).value = table.ctypes.data
    ctypes.c_void_p.from_address(id(callee) + offset).value = _entry(name, emit, offset + 8)


def code_of(callee: Any) -> int:
    """Return the address of the function that calls of an object run."""
    return pointer(id(callee) + type(callee).__basicsize__ - 16)


def _entry(name: str, emit: Callable[[int], str], offset: int) -> int:
    with _lock:
        if (name, offset) not in _entries:
            name_symbols()
            code = llvm.kept_forever(llvm.MachineCode(emit(offset), optimized=True))
            _entries[name, offset] = code, code.address(name)
        return _entries[name, offset][1]
