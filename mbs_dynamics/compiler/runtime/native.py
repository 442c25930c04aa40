# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Kernels whose call is machine code, through CPython's vectorcall protocol.

The call path of a kernel costs more than many kernels. So kernels are objects of a type whose
vectorcall function is that of :mod:`runtime.native_call`, which takes neat arrays and
hands anything else to Python. It relies on the layout of objects in ordinary builds of CPython;
:func:`supported` tests that layout, and where it does not hold, kernels are called through ctypes,
which :func:`suits` reports once.
"""

from __future__ import annotations

import ctypes
import functools
import importlib
import sys
import threading
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mbs_dynamics.checks import FloatArray
from mbs_dynamics.compiler.frontend.program import Program
from mbs_dynamics.compiler.jit import machine_code as llvm
from mbs_dynamics.compiler.runtime.native_call import emit_call
from mbs_dynamics.compiler.runtime.native_objects import (
    ARRAY_FLAGS,
    DATA,
    DESCR,
    HEAD,
    LIST_ITEMS,
    MOST_PORTS,
    NDIM,
    OWN,
    READABLE,
    REFERENCES,
    SHAPE,
    SPARES,
    STRIDES,
    TUPLE_ITEMS,
    TUPLE_SIZE,
    TYPE,
    WEAK_REFERENCES,
    WRITEABLE,
)
from mbs_dynamics.compiler.runtime.native_rows import MOST_AXES, emit_rows

OLDEST = (3, 10)
"""The first version of CPython with the functions that are called. Later ones are probed."""

PYARRAY_NEW = 93  # index of PyArray_New in NumPy's table of functions

TP_CALL, TP_MEMBERS = 50, 72  # Py_tp_call, Py_tp_members
T_PYSSIZET, READONLY = 19, 1
PYTHON = {
    "PyObject_Vectorcall": "PyObject_Vectorcall",
    "Py_IncRef": "Py_IncRef",
    "Py_DecRef": "Py_DecRef",
    "PyTuple_New": "PyTuple_New",
    "PyTuple_SetItem": "PyTuple_SetItem",
    "PyErr_Clear": "PyErr_Clear",
    "PyEval_SaveThread": "PyEval_SaveThread",
    "PyEval_RestoreThread": "PyEval_RestoreThread",
}
"""Functions of CPython by their names in the IR."""
if sys.version_info < (3, 11):  # where it has no symbol; what is called is a function of Python
    PYTHON["PyObject_Vectorcall"] = "_PyFunction_Vectorcall"

LARGEST_KEPT = 1 << 20
"""Results of more bytes than this are not kept to be used again."""

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


def supported() -> bool:
    """Whether objects of this interpreter and of NumPy have the layout that calls rely on."""
    return unsupported_reason() is None


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
        known = _has_known_layout()
    except (ImportError, AttributeError, ValueError) as error:
        return f"{here} has no function that makes arrays ({error})"
    return None if known else f"the layout of objects of {here} is not known"


def _has_known_layout() -> bool:
    """Whether probes find all fields where calls expect them.

    No address is followed before sizes and neighbouring fields are right.
    """
    _array_new()
    probe = np.arange(6.0).reshape(2, 3)
    strided = probe[:, ::2]
    frozen = np.zeros(2)
    frozen.flags.writeable = False
    at, watch = id(probe), weakref.ref(strided)
    names = ("first", "second")
    items = list(names)
    return (
        (object.__basicsize__, list.__basicsize__) == (TYPE + 8, LIST_ITEMS + 16)
        and ctypes.c_void_p.from_address(at + TYPE).value == id(np.ndarray)
        and ctypes.c_void_p.from_address(at + DATA).value == probe.ctypes.data
        and ctypes.c_int.from_address(at + NDIM).value == 2
        and _pointer(at + STRIDES) - _pointer(at + SHAPE) == 16
        and list((ctypes.c_int64 * 2).from_address(_pointer(at + SHAPE))) == [2, 3]
        and list((ctypes.c_int64 * 2).from_address(_pointer(at + STRIDES))) == [24, 8]
        and ctypes.c_void_p.from_address(at + DESCR).value == id(np.dtype(np.float64))
        and [_flags(x) & WRITEABLE for x in (probe, frozen)] == [WRITEABLE, READABLE]
        and [_flags(x) & OWN for x in (frozen.copy(), probe[:1])] == [OWN, WRITEABLE]
        and _flags(strided) & READABLE != READABLE
        and _counts_references()
        and [_pointer(id(x) + WEAK_REFERENCES) for x in (frozen, strided)] == [0, id(watch)]
        and _pointer(_pointer(id(items) + LIST_ITEMS) + 8) == id(names[1])
        and ctypes.c_ssize_t.from_address(id(names) + TUPLE_SIZE).value == 2
        and [_pointer(id(names) + TUPLE_ITEMS + 8 * k) for k in (0, 1)] == [id(x) for x in names]
    )


def _counts_references() -> bool:
    """Whether an array that only a list holds has one reference, and two if it is there twice.

    The bits above the count must not change with it: calls write 32 bits.
    """
    held = [np.zeros(2)]
    count = ctypes.c_uint64.from_address(id(held[0]) + REFERENCES)
    once = count.value
    held.append(held[0])
    return once & 0xFFFFFFFF == 1 and count.value == once + 1


def _flags(array: FloatArray) -> int:
    return ctypes.c_int.from_address(id(array) + ARRAY_FLAGS).value


def _pointer(address: int) -> int:
    return ctypes.c_void_p.from_address(address).value or 0


@functools.lru_cache(maxsize=1)
def _array_new() -> int:
    """Return the address of PyArray_New."""
    core = "numpy._core" if np.lib.NumpyVersion(np.__version__) >= "2.0.0" else "numpy.core"
    umath = importlib.import_module(f"{core}._multiarray_umath")
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    table = get(umath._ARRAY_API, None)
    return _pointer(table + 8 * PYARRAY_NEW)


_lock = threading.Lock()
_types: dict[type, type] = {}
_entries: dict[tuple[str, int], tuple[llvm.MachineCode, int]] = {}
_forever: list[Any] = []
"""What types and code point to."""


def suits(program: Program) -> bool:
    """Whether a program's kernel can be called through machine code here."""
    if not supported():
        _report_once()
        return False
    ports = (*program.inputs, *program.outputs)
    return len(ports) <= MOST_PORTS and all(len(port.shape) < MOST_AXES for port in ports)


@functools.lru_cache(maxsize=1)
def _report_once() -> None:
    import logging  # slow to import, and rarely needed

    logging.getLogger("mbs_dynamics").warning(
        "kernels are called through ctypes, which takes one to two microseconds more per call: %s",
        unsupported_reason(),
    )


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
    # behind what Python keeps: the function and the table, 8 bytes each
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


@functools.lru_cache(maxsize=1)
def _name_symbols() -> None:
    """Tell LLVM where the objects and functions are that the IR names."""
    out = sys.intern("out")
    _forever.append(out)
    symbols = {
        "ndarray": id(np.ndarray),
        "float64": id(np.dtype(np.float64)),
        "tuple": id(tuple),
        "out": id(out),
        "PyArray_New": _array_new(),
    }
    for name, real in PYTHON.items():
        symbols[name] = ctypes.cast(getattr(ctypes.pythonapi, real), ctypes.c_void_p).value or 0
    llvm.add_symbols({f"mbs.{name}": address for name, address in symbols.items()})


def _entry(name: str, emit: Callable[[int], str], offset: int) -> int:
    """Return the address of the function of this name for tables whose address stands there."""
    with _lock:
        if (name, offset) not in _entries:
            _name_symbols()
            code = llvm.kept_forever(llvm.MachineCode(emit(offset)))
            _entries[name, offset] = code, code.address(name)
        return _entries[name, offset][1]


def attach(callee: Any, table: NDArray[np.int64], name: str, emit: Callable[[int], str]) -> None:
    """Let calls of an object of a type from :func:`callable_type` run code that reads a table."""
    offset = type(callee).__basicsize__ - 16
    ctypes.c_void_p.from_address(id(callee) + offset + 8).value = table.ctypes.data
    ctypes.c_void_p.from_address(id(callee) + offset).value = _entry(name, emit, offset + 8)


def code_of(callee: Any) -> int:
    """Return the address of the function that calls of an object run."""
    offset = type(callee).__basicsize__ - 16
    return _pointer(id(callee) + offset)


def connect(
    kernel: Any,
    program: Program,
    function: int,
    defaults: Sequence[FloatArray],
    otherwise: Callable[..., Any],
) -> Any:
    """Make calls of a kernel, of a type from :func:`callable_type`, run machine code.

    ``function`` is the address of the code, ``otherwise`` the Python function that is called with
    the kernel and the arguments where they are not neat. Returns what has to live as long as the
    kernel does.
    """
    ports = (*program.inputs, *program.outputs)
    required = len(program.inputs) - len(defaults)
    shapes = [np.array(port.shape or (0,), dtype=np.int64) for port in ports]
    kept = [[None] * SPARES if 8 * x.size <= LARGEST_KEPT else None for x in program.outputs]
    spares = [0 if items is None else _pointer(id(items) + LIST_ITEMS) for items in kept]
    given = [*[0] * required, *(x.ctypes.data for x in defaults), *spares]
    words = [function, id(otherwise), 0, required, len(program.inputs), len(program.outputs)]
    for port, shape, address in zip(ports, shapes, given, strict=True):
        words += [len(port.shape), shape.ctypes.data, 8 * port.size, address]
    table = np.array(words, dtype=np.int64)
    attach(kernel, table, "mbs.call", lambda offset: emit_call(offset) + emit_rows(offset))
    return table, shapes, tuple(defaults), kept, otherwise


def connect_vector(connected: Any, words: NDArray[np.int64]) -> None:
    """Let calls of a kernel that :func:`connect` made run vector code, which these words tell of.

    They have to live as long as the kernel does.
    """
    table, *_ = connected
    table[HEAD.index("vector")] = words.ctypes.data
