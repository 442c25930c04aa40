# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Classes whose objects are called through machine code, by CPython's vectorcall protocol.

Behind what Python keeps of an object stand the address of its vectorcall function, and that of a
table, which tells the function about the object.
"""

from __future__ import annotations

import ctypes
import functools
import sys
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mbs_dynamics.compiler.codegen.builder import (
    I64,
    PTR,
    Function,
    Pointer,
    Struct,
    Value,
)
from mbs_dynamics.compiler.jit import machine_code as llvm
from mbs_dynamics.compiler.runtime.native.layout import TUPLE, array_new, pointer

TP_CALL, TP_MEMBERS = 50, 72  # Py_tp_call, Py_tp_members
T_PYSSIZET, READONLY = 19, 1
FLAGS = 1 << 11 | 1 << 18  # Py_TPFLAGS_HAVE_VECTORCALL, Py_TPFLAGS_DEFAULT

POSITIONAL = 2**63 - 1
"""The bits of ``nargsf`` that count arguments without a name."""

OBJECTS = ("ndarray", "float64", "tuple", "out")
"""Names in the IR: two objects of NumPy, the type of tuples, and the interned text "out"."""

PYTHON = {
    name: name
    for name in (
        *("PyObject_Vectorcall", "Py_IncRef", "Py_DecRef", "PyTuple_New", "PyTuple_SetItem"),
        *("PyErr_Clear", "PyEval_SaveThread", "PyEval_RestoreThread"),
    )
}
"""Functions of CPython by their names in the IR."""
if sys.version_info < (3, 11):  # where it has no symbol; what is called is a function of Python
    PYTHON["PyObject_Vectorcall"] = "_PyFunction_Vectorcall"


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
"""What types and code point to."""


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
            _name_symbols()
            code = llvm.kept_forever(llvm.MachineCode(emit(offset), optimized=True))
            _entries[name, offset] = code, code.address(name)
        return _entries[name, offset][1]


@functools.lru_cache(maxsize=1)
def _name_symbols() -> None:
    """Tell LLVM where the objects and functions are that the IR names."""
    out = sys.intern("out")
    _forever.append(out)
    objects = map(id, (np.ndarray, np.dtype(np.float64), tuple, out))
    symbols = dict(zip(OBJECTS, objects, strict=True)) | {"PyArray_New": array_new()}
    for name, real in PYTHON.items():
        symbols[name] = ctypes.cast(getattr(ctypes.pythonapi, real), ctypes.c_void_p).value or 0
    llvm.add_symbols({f"mbs.{name}": address for name, address in symbols.items()})


def vectorcall_function(name: str) -> Function:
    """Return a new ``PyObject *name(callee, args, nargsf, kwnames)``: a vectorcallfunc."""
    return Function(name, PTR, PTR, Pointer(PTR), I64, Pointer(TUPLE), exported=True)


def table_of(callee: Value, offset: int, struct: Struct) -> Value:
    """Emit the load of the address of an object's table."""
    return callee.byte(offset).load(Pointer(struct))


def python_call() -> Function:
    """Return ``PyObject *mbs.python_call(function, self, args, given, passed, kwnames)``.

    It calls a Python function with an object before its ``passed`` arguments, of which those after
    the ``given`` first ones have names.
    """
    f = Function("mbs.python_call", PTR, PTR, PTR, Pointer(PTR), I64, I64, PTR)
    function, self, args, given, passed, kwnames = f.parameters
    stack = f.array(PTR, passed + 1)
    stack[0] = self
    with f.loop(passed) as k:
        stack[k + 1] = args[k]
    f.ret(f.call(PTR, "mbs.PyObject_Vectorcall", function, stack, given + 1, kwnames))
    return f
