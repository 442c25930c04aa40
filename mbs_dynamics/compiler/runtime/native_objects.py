# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""What the call of a kernel knows of objects of Python and NumPy and of the table, as IR."""

from __future__ import annotations

REFERENCES, TYPE = 0, 8
"""Offsets in bytes of the fields of any object."""

DATA, NDIM, SHAPE, STRIDES, DESCR, ARRAY_FLAGS, WEAK_REFERENCES = 16, 24, 32, 40, 56, 64, 72
"""Offsets in bytes of the fields of an array object."""

TUPLE_SIZE, TUPLE_ITEMS = 16, getattr(tuple, "__basicsize__", 24)
"""Offsets in bytes of the fields of a tuple. Items follow the hash since CPython 3.14."""

LIST_ITEMS = 24
"""Offset in bytes of the address of a list's items."""

CONTIGUOUS, ALIGNED, CHANGEABLE = 0x0001, 0x0100, 0x0400
"""NPY_ARRAY_C_CONTIGUOUS, NPY_ARRAY_ALIGNED and NPY_ARRAY_WRITEABLE."""

READABLE = CONTIGUOUS | ALIGNED
WRITEABLE = READABLE | CHANGEABLE

OWN = WRITEABLE | 0x0004
"""WRITEABLE and NPY_ARRAY_OWNDATA."""

SPARES = 2
"""How many results of an output a kernel keeps: `x = kernel(q)` holds one during the next call."""

NPY_DOUBLE = 12

HEAD = ("function", "otherwise", "vector", "required", "inputs", "outputs")
"""The first words of a kernel's table: the address of its machine code, the Python function for
all that is not neat, called with the kernel and the arguments, the address of the words of its
vector code, null if there is none yet or while it runs, and how many inputs there are without a
default, inputs in all, and outputs."""

VECTOR = ("driver", "function", "rows", "pointers", "guards", "lanes")
"""The words of vector code: the driver's address, and what it is given, which is described in
:mod:`codegen.llvm_batch`, and how many lanes there are."""

PORT = ("ndim", "shape", "bytes", "kept")
"""The words of each port, inputs first: the number of axes, the address of the shape, the size in
bytes, and an address: that of an input's default entries, or of the pointers to an output's last
results, null if they are not kept."""

MOST_PORTS = 32

EXTERNALS = """\
@mbs.ndarray = external global i8
@mbs.float64 = external global i8
@mbs.tuple = external global i8
@mbs.out = external global i8
declare ptr @mbs.PyArray_New(ptr, i32, ptr, i32, ptr, ptr, i32, i32, ptr)
declare ptr @mbs.PyObject_Vectorcall(ptr, ptr, i64, ptr)
declare void @mbs.Py_IncRef(ptr)
declare void @mbs.Py_DecRef(ptr)
declare ptr @mbs.PyTuple_New(i64)
declare i32 @mbs.PyTuple_SetItem(ptr, i64, ptr)
"""
"""Two objects of NumPy, the type of tuples, the interned text "out", and functions of both."""


def fields(of: str, names: dict[str, tuple[int, str]], prefix: str = "") -> str:
    """Emit loads of fields at byte offsets."""
    return "".join(
        f"  %{prefix}{name}.at = getelementptr i8, ptr {of}, i64 {offset}\n"
        f"  %{prefix}{name} = load {kind}, ptr %{prefix}{name}.at\n"
        for name, (offset, kind) in names.items()
    )


def head_words() -> str:
    """Emit loads of the first words of %table."""
    kinds = {name: "ptr" if k < 3 else "i64" for k, name in enumerate(HEAD)}
    return fields("%table", {name: (8 * k, kinds[name]) for k, name in enumerate(HEAD)})


def port_words(prefix: str, k: str) -> str:
    """Emit the address of a port's words, as %<prefix>port, and loads of them."""
    words = {name: (8 * w, "ptr" if w in (1, 3) else "i64") for w, name in enumerate(PORT)}
    return (
        f"  %{prefix}index = mul i64 {k}, {8 * len(PORT)}\n"
        f"  %{prefix}offset = add i64 %{prefix}index, {8 * len(HEAD)}\n"
        f"  %{prefix}port = getelementptr i8, ptr %table, i64 %{prefix}offset\n"
        + fields(f"%{prefix}port", words, prefix + "port.")
    )


def emit_targets(otherwise: str) -> str:
    """Emit the look for arrays to write into, one for each output; they stand at %outs.

    %into.at is where the argument stands, or null; then it goes on at allocate, else at target, and
    at another label where there is no tuple of the right length for several outputs.
    """
    return f"""\
targets:
  %fresh = icmp eq ptr %into.at, null
  br i1 %fresh, label %allocate, label %given.out
given.out:
  %into = load ptr, ptr %into.at
  %one.output = icmp eq i64 %outputs, 1
  br i1 %one.output, label %fill, label %unpack
unpack:
{fields("%into", {"into.type": (TYPE, "ptr")})}\
  %is.tuple = icmp eq ptr %into.type, @mbs.tuple
  br i1 %is.tuple, label %length, label %{otherwise}
length:
{fields("%into", {"into.size": (TUPLE_SIZE, "i64")})}\
  %into.items = getelementptr i8, ptr %into, i64 {TUPLE_ITEMS}
  %enough = icmp eq i64 %into.size, %outputs
  br i1 %enough, label %fill, label %{otherwise}
fill:
  %outs = phi ptr [ %into.at, %given.out ], [ %into.items, %length ]
  br label %target
"""


PACKED = """\
define internal ptr @mbs.packed(ptr %results, i64 %count) nounwind {
entry:
  %single = icmp eq i64 %count, 1
  br i1 %single, label %only, label %several
only:
  %only.result = load ptr, ptr %results
  ret ptr %only.result
several:
  %tuple = call ptr @mbs.PyTuple_New(i64 %count)
  %none = icmp eq ptr %tuple, null
  br i1 %none, label %drop, label %pack
drop:
  %d = phi i64 [ 0, %several ], [ %d.next, %drop ]
  %d.at = getelementptr ptr, ptr %results, i64 %d
  %d.result = load ptr, ptr %d.at
  call void @mbs.Py_DecRef(ptr %d.result)
  %d.next = add i64 %d, 1
  %d.more = icmp slt i64 %d.next, %count
  br i1 %d.more, label %drop, label %end
pack:
  %t = phi i64 [ 0, %several ], [ %t.next, %pack.one ]
  %t.more = icmp slt i64 %t, %count
  br i1 %t.more, label %pack.one, label %end
pack.one:
  %t.at = getelementptr ptr, ptr %results, i64 %t
  %t.result = load ptr, ptr %t.at
  %ignored = call i32 @mbs.PyTuple_SetItem(ptr %tuple, i64 %t, ptr %t.result)
  %t.next = add i64 %t, 1
  br label %pack
end:
  ret ptr %tuple
}
"""
"""IR that returns the only result, or a tuple that takes several over; null after an error."""

ASK = """\
define internal ptr @mbs.ask(ptr %function, ptr %self, ptr %args, i64 %given, i64 %passed,
                             ptr %names) nounwind {
entry:
  %room = add i64 %passed, 1
  %stack = alloca ptr, i64 %room
  store ptr %self, ptr %stack
  br label %move
move:
  %m = phi i64 [ 0, %entry ], [ %m.next, %moved ]
  %m.more = icmp slt i64 %m, %passed
  br i1 %m.more, label %moved, label %ask
moved:
  %m.from = getelementptr ptr, ptr %args, i64 %m
  %moving = load ptr, ptr %m.from
  %m.next = add i64 %m, 1
  %m.to = getelementptr ptr, ptr %stack, i64 %m.next
  store ptr %moving, ptr %m.to
  br label %move
ask:
  %count = add i64 %given, 1
  %asked = call ptr @mbs.PyObject_Vectorcall(ptr %function, ptr %stack, i64 %count, ptr %names)
  ret ptr %asked
}
"""
"""IR that calls a Python function with an object before its arguments, of which some have names."""
