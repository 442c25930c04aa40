# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Classes whose objects are called through machine code, by CPython's vectorcall protocol.

Each object ends with the addresses of its vectorcall function and of a table that this reads. The
functions and objects of CPython and NumPy that such functions use have names in the IR.
"""

from __future__ import annotations

import ctypes
import functools
import struct
import sys
import types
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mbs_dynamics.compiler.codegen import builder
from mbs_dynamics.compiler.codegen.builder import I32, I64, PTR, VOID, Pointer, Prototype
from mbs_dynamics.compiler.jit import machine_code
from mbs_dynamics.compiler.runtime.native import layout
from mbs_dynamics.compiler.runtime.native.layout import ARRAY, TUPLE, array_new, pointer
from mbs_dynamics.locks import Lock

VECTORCALL = Prototype("", PTR, PTR, Pointer(PTR), I64, Pointer(TUPLE))
"""``PyObject *f(callable, args, nargsf, kwnames)``, a vectorcallfunc."""

POSITIONAL = 2**63 - 1
"""The bits of ``nargsf`` that count arguments without a name."""

CALL = Prototype("PyObject_Vectorcall", PTR, *VECTORCALL.parameters)
INC_REF, DEC_REF = Prototype("Py_IncRef", VOID, PTR), Prototype("Py_DecRef", VOID, PTR)
TUPLE_NEW = Prototype("PyTuple_New", PTR, I64)
TUPLE_SET_ITEM = Prototype("PyTuple_SetItem", I32, PTR, I64, PTR)
ERR_CLEAR = Prototype("PyErr_Clear", VOID)
SAVE_THREAD = Prototype("PyEval_SaveThread", PTR)
RESTORE_THREAD = Prototype("PyEval_RestoreThread", VOID, PTR)

NEW_ARRAY = Prototype(
    *("mbs.PyArray_New", Pointer(ARRAY), PTR, I32, Pointer(I64), I32, PTR, PTR, I32, I32, PTR)
)
DOUBLES = 12  # NPY_DOUBLE

NDARRAY, FLOAT64 = OBJECTS = ("mbs.ndarray", "mbs.float64")
"""Two objects of NumPy."""

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
        return object.__new__(cls if layout.unsupported_reason() else _native_type(cls))


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


@functools.lru_cache(maxsize=1)
def name_symbols() -> None:
    """Register the addresses of symbols that the process does not export by name."""
    objects = zip(OBJECTS, (np.ndarray, np.dtype(np.float64)), strict=True)
    symbols = {name: id(x) for name, x in objects} | {NEW_ARRAY.name: array_new()}
    if sys.version_info < (3, 11):  # it is inline there: that of methods, which alone are called
        method = types.MethodType(print, sys)
        symbols[CALL.name] = pointer(id(method) + types.MethodType.__basicsize__ - 8)
    machine_code.symbols.update(symbols)


def vectorcall_function(
    name: str, offset: int, table: builder.Struct
) -> tuple[builder.Function, builder.Value]:
    """Return a new vectorcallfunc, and the table that the callable holds the address of there."""
    f = builder.Function(Prototype(name, PTR, *VECTORCALL.parameters), exported=True)
    return f, f.parameters[0].byte(offset).load(Pointer(table))


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
