# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The functions and objects of CPython and NumPy that the native call uses, by names in the IR."""

from __future__ import annotations

import ctypes
import functools
import sys

import numpy as np

from mbs_dynamics.compiler.codegen import builder
from mbs_dynamics.compiler.codegen.builder import (
    I32,
    I64,
    NULL,
    PTR,
    VOID,
    Pointer,
    Prototype,
    Type,
)
from mbs_dynamics.compiler.jit import machine_code as llvm
from mbs_dynamics.compiler.runtime.native.layout import ARRAY, TUPLE, array_new

NDARRAY, FLOAT64 = OBJECTS = ("mbs.ndarray", "mbs.float64")
"""Two objects of NumPy."""
_objects = (np.ndarray, np.dtype(np.float64))

VECTORCALL = Prototype("", PTR, PTR, Pointer(PTR), I64, Pointer(TUPLE))
"""``PyObject *f(callable, args, nargsf, kwnames)``, a vectorcallfunc."""

POSITIONAL = 2**63 - 1
"""The bits of ``nargsf`` that count arguments without a name."""

_functions: list[Prototype] = []


def _function(name: str, *types: Type) -> Prototype:
    """Return a function of CPython by its name, the type it returns and those it takes."""
    _functions.append(Prototype(f"mbs.{name}", *types))
    return _functions[-1]


CALL = _function("PyObject_Vectorcall", PTR, *VECTORCALL.parameters)
INC_REF = _function("Py_IncRef", VOID, PTR)
DEC_REF = _function("Py_DecRef", VOID, PTR)
TUPLE_NEW = _function("PyTuple_New", PTR, I64)
TUPLE_SET_ITEM = _function("PyTuple_SetItem", I32, PTR, I64, PTR)
ERR_CLEAR = _function("PyErr_Clear", VOID)
SAVE_THREAD = _function("PyEval_SaveThread", PTR)
RESTORE_THREAD = _function("PyEval_RestoreThread", VOID, PTR)

NEW_ARRAY = Prototype(
    *("mbs.PyArray_New", Pointer(ARRAY), PTR, I32, Pointer(I64), I32, PTR, PTR, I32, I32, PTR)
)
DOUBLES = 12  # NPY_DOUBLE

FALLBACK = Prototype("mbs.fallback", PTR, PTR, *VECTORCALL.parameters)


@functools.lru_cache(maxsize=1)
def name_symbols() -> None:
    """Tell LLVM where the objects and functions are."""
    symbols = dict(zip(OBJECTS, map(id, _objects), strict=True)) | {NEW_ARRAY.name: array_new()}
    for function in _functions:
        name = function.name.removeprefix("mbs.")
        if function is CALL and sys.version_info < (3, 11):  # what is called is written in Python
            name = "_PyFunction_Vectorcall"
        pointer = ctypes.cast(getattr(ctypes.pythonapi, name), ctypes.c_void_p)
        symbols[function.name] = pointer.value or 0
    llvm.add_symbols(symbols)


def vectorcall_function(
    name: str, offset: int, table: builder.Struct
) -> tuple[builder.Function, builder.Value]:
    """Return a new vectorcallfunc, and the table that the callable holds the address of there."""
    f = builder.Function(Prototype(name, PTR, *VECTORCALL.parameters), exported=True)
    return f, f.parameters[0].byte(offset).load(Pointer(table))


def fallback() -> builder.Function:
    """Return ``PyObject *mbs.fallback(function, callable, args, nargsf, kwnames)``.

    It calls a Python function with the callable before the arguments of its own call.
    """
    f = builder.Function(FALLBACK)
    function, callee, args, nargsf, kwnames = f.parameters
    given = nargsf & POSITIONAL
    count = f.variable(I64, given)
    with f.if_(kwnames != NULL):
        count.value = given + kwnames.size
    stack = f.array(PTR, count.value + 1)
    stack[0] = callee
    with f.loop(count.value) as k:
        stack[k + 1] = args[k]
    f.ret(f.call(CALL, function, stack, given + 1, kwnames))
    return f
