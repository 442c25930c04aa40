# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The layout of objects of CPython and NumPy that the native call relies on, and its probe."""

from __future__ import annotations

import ctypes
import functools
import importlib
import sys
import weakref

import numpy as np

from mbs_dynamics.checks import FloatArray
from mbs_dynamics.compiler.codegen.builder import I32, I64, PTR, Inline, Pointer, Struct

OLDEST = (3, 10)
"""The first version of CPython with the functions that are called. Later ones are probed."""

ARRAY = Struct(
    references=(0, I32),
    type=(8, PTR),
    data=(16, PTR),
    ndim=(24, I32),
    shape=(32, Pointer(I64)),
    strides=(40, Pointer(I64)),
    dtype=(56, PTR),
    flags=(64, I32),
    weak_references=(72, PTR),
)
TUPLE = Struct(  # the hash comes before the items since CPython 3.14
    type=(8, PTR), size=(16, I64), items=(getattr(tuple, "__basicsize__", 24), Inline(PTR))
)

C_CONTIGUOUS, OWNS_DATA, ALIGNED, WRITEABLE = 0x0001, 0x0004, 0x0100, 0x0400
"""NPY_ARRAY_C_CONTIGUOUS and so on: bits of an array's flags."""

PYARRAY_NEW = 93  # index of PyArray_New in NumPy's table of functions


@functools.lru_cache(maxsize=1)
def unsupported_reason() -> str | None:
    """Return why kernels cannot be called through machine code here; None if they can."""
    here = f"Python {sys.version.split()[0]} with NumPy {np.__version__}"
    if sys.implementation.name != "cpython":
        return f"the interpreter is {sys.implementation.name}, not CPython"
    if sys.version_info < OLDEST or ctypes.sizeof(ctypes.c_void_p) != 8:
        return f"{here} is older than {OLDEST[0]}.{OLDEST[1]} or not a 64-bit build"
    if hasattr(sys, "_is_gil_enabled"):  # since 3.13; the variables are slow to import
        import sysconfig

        if sysconfig.get_config_var("Py_GIL_DISABLED"):
            return f"{here} is a free-threaded build"
    if hasattr(sys, "gettotalrefcount"):
        return f"{here} is a debug build"
    try:
        array_new()
    except (ImportError, AttributeError, ValueError) as error:
        return f"{here} has no function that makes arrays ({error})"
    return None if _has_known_layout() else f"the layout of objects of {here} is not known"


def _has_known_layout() -> bool:
    """Whether probes find all fields where calls expect them.

    No address is followed before sizes and neighbouring fields are right.
    """
    probe = np.arange(6.0).reshape(2, 3)
    strided = probe[:, ::2]
    frozen = np.zeros(2)
    frozen.flags.writeable = False
    watch = weakref.ref(strided)
    names = ("first", "second")
    at = {field: id(probe) + ARRAY.offset(field) for field in ARRAY.fields}
    return (
        object.__basicsize__ == ARRAY.offset("type") + 8 == TUPLE.offset("type") + 8
        and pointer(at["type"]) == id(np.ndarray)
        and pointer(at["data"]) == probe.ctypes.data
        and ctypes.c_int.from_address(at["ndim"]).value == 2
        and pointer(at["strides"]) - pointer(at["shape"]) == 16
        and list((ctypes.c_int64 * 2).from_address(pointer(at["shape"]))) == [2, 3]
        and list((ctypes.c_int64 * 2).from_address(pointer(at["strides"]))) == [24, 8]
        and pointer(at["dtype"]) == id(np.dtype(np.float64))
        and _has(probe, C_CONTIGUOUS | ALIGNED | WRITEABLE)
        and _has(frozen, C_CONTIGUOUS | ALIGNED | OWNS_DATA)
        and not _has(frozen, WRITEABLE)
        and not _has(probe[:1], OWNS_DATA)
        and not _has(strided, C_CONTIGUOUS)
        and _counts_references()
        and [pointer(id(x) + ARRAY.offset("weak_references")) for x in (frozen, strided)]
        == [0, id(watch)]
        and ctypes.c_ssize_t.from_address(id(names) + TUPLE.offset("size")).value == 2
        and [pointer(id(names) + TUPLE.offset("items") + 8 * k) for k in (0, 1)]
        == [id(x) for x in names]
    )


def _has(array: FloatArray, flags: int) -> bool:
    return ctypes.c_int.from_address(id(array) + ARRAY.offset("flags")).value & flags == flags


def _counts_references() -> bool:
    """Whether an array that only a list holds has one reference, and two if it is there twice.

    The bits above the count must not change with it: calls write 32 bits.
    """
    held = [np.zeros(2)]
    count = ctypes.c_uint64.from_address(id(held[0]) + ARRAY.offset("references"))
    initial = count.value
    held.append(held[0])
    return initial & 0xFFFFFFFF == 1 and count.value == initial + 1


def pointer(address: int) -> int:
    """Return the address that stands at an address."""
    return ctypes.c_void_p.from_address(address).value or 0


@functools.lru_cache(maxsize=1)
def array_new() -> int:
    """Return the address of PyArray_New."""
    core = "numpy._core" if np.lib.NumpyVersion(np.__version__) >= "2.0.0" else "numpy.core"
    umath = importlib.import_module(f"{core}._multiarray_umath")
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    table = get(umath._ARRAY_API, None)
    return pointer(table + 8 * PYARRAY_NEW)
