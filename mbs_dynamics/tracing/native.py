# Copyright 2026 The mbs_dynamics authors
#
# Licensed under the Apache License, Version 2.0 (the "License");
# you may not use this file except in compliance with the License.
# You may obtain a copy of the License at
#
#     http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS,
# WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
# See the License for the specific language governing permissions and
# limitations under the License.
"""Kernels as builtins of CPython: machine code that checks its own array arguments.

The call path of a kernel costs more than many kernels. A builtin whose machine code looks at the
arguments itself (exact type ndarray, float64, native byte order, right shape, C-contiguous,
aligned), lets NumPy allocate the result and hands anything else to a Python function costs a few
dozen nanoseconds. It relies on the layout of objects in ordinary builds of CPython;
:func:`supported` tests that layout, and where it does not hold, kernels are called through ctypes.
"""

from __future__ import annotations

import ctypes
import functools
import importlib
import sys
import sysconfig
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from mbs_dynamics.tracing.llvm import MachineCode
from mbs_dynamics.tracing.program import Port, Program

TYPE, DATA, NDIM, SHAPE, DESCR, ARRAY_FLAGS = 8, 16, 24, 32, 56, 64
"""Offsets in bytes of the fields of an array object."""

WANTED_FLAGS = 0x0101
"""NPY_ARRAY_C_CONTIGUOUS and NPY_ARRAY_ALIGNED."""

NPY_DOUBLE = 12
PYARRAY_NEW = 93  # index of PyArray_New in NumPy's table of functions
METH_FASTCALL = 0x0080


class _MethodDef(ctypes.Structure):
    _fields_ = (
        ("name", ctypes.c_char_p),
        ("function", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    )


_METHODS: list[_MethodDef] = []
"""The definitions of all builtins. CPython reads them while it frees a builtin, when the garbage
collector may have cleared the owner already, so they are never freed (a few dozen bytes each)."""


class _Owner:
    """Keeps alive what a builtin points to. It is the builtin's ``self``."""

    def __init__(self, *things: Any) -> None:
        self.things = things


@functools.lru_cache(maxsize=1)
def supported() -> bool:
    """Whether array objects of this interpreter and NumPy have the layout that builtins rely on."""
    if sys.implementation.name != "cpython" or ctypes.sizeof(ctypes.c_void_p) != 8:
        return False
    if sysconfig.get_config_var("Py_GIL_DISABLED") or hasattr(sys, "gettotalrefcount"):
        return False
    try:
        _array_new()
    except (ImportError, AttributeError, ValueError):
        return False
    probe = np.arange(6.0).reshape(2, 3)
    strided = probe[:, ::2]
    at = id(probe)
    return (
        ctypes.c_void_p.from_address(at + TYPE).value == id(np.ndarray)
        and ctypes.c_void_p.from_address(at + DATA).value == probe.ctypes.data
        and ctypes.c_int.from_address(at + NDIM).value == 2
        and list((ctypes.c_int64 * 2).from_address(_pointer(at + SHAPE))) == [2, 3]
        and ctypes.c_void_p.from_address(at + DESCR).value == id(np.dtype(np.float64))
        and ctypes.c_int.from_address(at + ARRAY_FLAGS).value & WANTED_FLAGS == WANTED_FLAGS
        and ctypes.c_int.from_address(id(strided) + ARRAY_FLAGS).value & WANTED_FLAGS
        != WANTED_FLAGS
    )


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


def emit_builtin(
    program: Program, required: int, defaults: Sequence[Any], slow: Callable[..., Any]
) -> str:
    """Return IR of ``PyObject *<name>.call(self, args, nargs)``.

    It takes either the first ``required`` inputs, the rest coming from ``defaults``, or all inputs.
    """
    api = ctypes.pythonapi
    vectorcall = ctypes.cast(api.PyObject_Vectorcall, ctypes.c_void_p).value
    inputs, outputs = program.inputs, program.outputs
    lines = [
        f'define ptr @"{program.name}.call"(ptr %self, ptr %args, i64 %nargs) {{',
        "entry:",
        f"  %ports = alloca [{len(inputs) + len(outputs)} x ptr]",
        f"  %few = icmp eq i64 %nargs, {required}",
        f"  %all = icmp eq i64 %nargs, {len(inputs)}",
        "  %count = or i1 %few, %all",
        "  br i1 %count, label %check0, label %slow",
    ]
    for k, port in enumerate(inputs):
        if k == required:
            lines += [f"check{k}:", f"  br i1 %few, label %run, label %check{k}.given"]
            lines += _check(k, port, f"check{k}.given")
        else:
            lines += _check(k, port, f"check{k}")
    last = len(inputs)
    lines += [f"check{last}:", "  br label %run", "run:"]
    pointers = []
    for k in range(last):
        if k < required:
            pointers.append(f"%data{k}")
        else:
            default = _inttoptr(defaults[k - required].ctypes.data)
            lines.append(
                f"  %in{k} = phi ptr [ {default}, %check{required} ], [ %data{k}, %check{last} ]"
            )
            pointers.append(f"%in{k}")
    for k, port in enumerate(outputs):
        lines += _allocate(k, port, program.name)
        pointers.append(f"%data.out{k}")
    drop = ctypes.cast(ctypes.pythonapi.Py_DecRef, ctypes.c_void_p).value or 0
    lines += [
        *_stored(pointers),
        f"  %status = call i32 @{program.name}(ptr %ports)",
        "  %good = icmp eq i32 %status, 0",
        "  br i1 %good, label %done, label %guarded",
        "guarded:",  # the slow path comes to the same guard, and says so
        *(f"  call void {_inttoptr(drop)}(ptr %out{k})" for k in range(len(outputs))),
        "  br label %slow",
        "done:",
        *_result(len(outputs), drop),
    ]
    lines += [
        "slow:",
        f"  %asked = call ptr {_inttoptr(vectorcall or 0)}("
        f"ptr {_inttoptr(id(slow))}, ptr %args, i64 %nargs, ptr null)",
        "  ret ptr %asked",
        "failed:",
        "  ret ptr null",
        "}",
        "",
    ]
    shapes = []
    for k, port in enumerate(outputs):
        sizes = ", ".join(f"i64 {size}" for size in port.shape) or "i64 0"
        count = max(len(port.shape), 1)
        shapes.append(f'@"{program.name}.shape{k}" = private constant [{count} x i64] [{sizes}]')
    return "\n".join([*shapes, *lines])


def _stored(pointers: Sequence[str]) -> list[str]:
    lines = []
    for k, pointer in enumerate(pointers):
        lines += [
            f"  %port{k} = getelementptr ptr, ptr %ports, i64 {k}",
            f"  store ptr {pointer}, ptr %port{k}",
        ]
    return lines


def _inttoptr(address: int) -> str:
    return f"inttoptr (i64 {address} to ptr)"


def _check(k: int, port: Port, label: str) -> list[str]:
    """Emit the test of one argument; the first load is safe for any object, the rest for arrays."""

    def field(name: str, offset: int, kind: str) -> list[str]:
        return [
            f"  %{name}{k}.at = getelementptr i8, ptr %arg{k}, i64 {offset}",
            f"  %{name}{k} = load {kind}, ptr %{name}{k}.at",
        ]

    lines = [
        f"{label}:",
        f"  %arg{k}.at = getelementptr ptr, ptr %args, i64 {k}",
        f"  %arg{k} = load ptr, ptr %arg{k}.at",
        *field("type", TYPE, "ptr"),
        f"  %isarray{k} = icmp eq ptr %type{k}, {_inttoptr(id(np.ndarray))}",
        f"  br i1 %isarray{k}, label %array{k}, label %slow",
        f"array{k}:",
        *field("ndim", NDIM, "i32"),
        *field("descr", DESCR, "ptr"),
        *field("flags", ARRAY_FLAGS, "i32"),
        *field("shape", SHAPE, "ptr"),
        *field("data", DATA, "ptr"),
        f"  %nd{k} = icmp eq i32 %ndim{k}, {len(port.shape)}",
        f"  %f64{k} = icmp eq ptr %descr{k}, {_inttoptr(id(np.dtype(np.float64)))}",
        f"  %mask{k} = and i32 %flags{k}, {WANTED_FLAGS}",
        f"  %neat{k} = icmp eq i32 %mask{k}, {WANTED_FLAGS}",
        f"  %ok0{k} = and i1 %nd{k}, %f64{k}",
        f"  %ok1{k} = and i1 %ok0{k}, %neat{k}",
        f"  br i1 %ok1{k}, label %sizes{k}, label %slow",
        f"sizes{k}:",
    ]
    good = "true"
    for d, size in enumerate(port.shape):
        lines += [
            f"  %size{k}.{d}.at = getelementptr i64, ptr %shape{k}, i64 {d}",
            f"  %size{k}.{d} = load i64, ptr %size{k}.{d}.at",
            f"  %same{k}.{d} = icmp eq i64 %size{k}.{d}, {size}",
            f"  %good{k}.{d} = and i1 {good}, %same{k}.{d}",
        ]
        good = f"%good{k}.{d}"
    return [*lines, f"  br i1 {good}, label %check{k + 1}, label %slow"]


def _allocate(k: int, port: Port, name: str) -> list[str]:
    return [
        f"  %out{k} = call ptr {_inttoptr(_array_new())}(ptr {_inttoptr(id(np.ndarray))}, "
        f'i32 {len(port.shape)}, ptr @"{name}.shape{k}", i32 {NPY_DOUBLE}, '
        "ptr null, ptr null, i32 0, i32 0, ptr null)",
        f"  %none{k} = icmp eq ptr %out{k}, null",
        f"  br i1 %none{k}, label %failed, label %out{k}.ready",
        f"out{k}.ready:",
        f"  %data.out{k}.at = getelementptr i8, ptr %out{k}, i64 {DATA}",
        f"  %data.out{k} = load ptr, ptr %data.out{k}.at",
    ]


def _result(count: int, drop: int) -> list[str]:
    """Emit the return: the array itself, or a tuple of several."""
    if count == 1:
        return ["  ret ptr %out0"]
    pack = ctypes.cast(ctypes.pythonapi.PyTuple_Pack, ctypes.c_void_p).value or 0
    arrays = ", ".join(f"ptr %out{k}" for k in range(count))
    lines = [f"  %tuple = call ptr (i64, ...) {_inttoptr(pack)}(i64 {count}, {arrays})"]
    lines += [f"  call void {_inttoptr(drop)}(ptr %out{k})" for k in range(count)]
    return [*lines, "  ret ptr %tuple"]


def make_builtin(
    program: Program, code: MachineCode, defaults: Sequence[Any], slow: Callable[..., Any]
) -> Callable[..., Any]:
    """Return the builtin whose IR :func:`emit_builtin` wrote and ``code`` compiled."""
    method = _MethodDef(
        program.name.encode(), code.address(f"{program.name}.call"), METH_FASTCALL, None
    )
    _METHODS.append(method)
    owner = _Owner(code, tuple(defaults), slow)
    new = ctypes.pythonapi.PyCFunction_NewEx
    new.restype = ctypes.py_object
    new.argtypes = [ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p]
    return new(ctypes.addressof(method), owner, None)  # type: ignore[no-any-return]
