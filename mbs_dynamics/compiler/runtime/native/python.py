# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The functions and objects of CPython and NumPy that the native call uses, by names in the IR."""

from __future__ import annotations

import functools
import sys
import types

import numpy as np

from mbs_dynamics.compiler.codegen import builder
from mbs_dynamics.compiler.codegen.builder import I32, I64, PTR, VOID, Pointer, Prototype
from mbs_dynamics.compiler.jit import machine_code
from mbs_dynamics.compiler.runtime.native.layout import ARRAY, TUPLE, array_new, pointer

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
