# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The call of a kernel from Python, as IR: one function for all kernels of a process.

It looks at the arguments itself (exact type ndarray, float64, native byte order, right shape,
C-contiguous, aligned), lets NumPy allocate the results, and hands everything else to a Python
function. What a kernel expects stands in a table of 64-bit words, which its object points to. The
IR holds no address: those of Python and NumPy are symbols.

To make an array costs more than to evaluate most kernels. So a kernel keeps its last results, two
of each output, and once nobody else has one of them any more, returns it again as a new one. Who
still holds a result, or a view of it, keeps it as it is.

That nobody else has a result is a reference count of 1, which is the kernel's own. CPython counts
no reference for a value that it loads from a variable to the stack (since 3.14), but then the
variable has a counted one until the value has left the stack, even if the variable is assigned to
meanwhile. So a result that is on a stack has a count of at least 2.
"""

from __future__ import annotations

from mbs_dynamics.compiler.runtime.native_objects import (
    ARRAY_FLAGS,
    ASK,
    DATA,
    DESCR,
    EXTERNALS,
    MOST_PORTS,
    NDIM,
    NPY_DOUBLE,
    OWN,
    PACKED,
    READABLE,
    REFERENCES,
    SHAPE,
    TUPLE_ITEMS,
    TUPLE_SIZE,
    TYPE,
    WEAK_REFERENCES,
    WRITEABLE,
    emit_targets,
    fields,
    head_words,
    port_words,
)


def _neat(prefix: str, value: str, k: str, flags: int, good: str, bad: str = "slow") -> str:
    """Emit the check of an object against a port; it goes on at ``good`` or at ``bad``.

    The first load is safe for any object, the rest for arrays. The entries are at %<prefix>data.
    """
    others = {
        "ndim": (NDIM, "i32"),
        "descr": (DESCR, "ptr"),
        "flags": (ARRAY_FLAGS, "i32"),
        "shape": (SHAPE, "ptr"),
        "data": (DATA, "ptr"),
    }
    p = "%" + prefix
    return f"""\
{fields(value, {"type": (TYPE, "ptr")}, prefix)}\
  {p}is.array = icmp eq ptr {p}type, @mbs.ndarray
  br i1 {p}is.array, label {p}array, label %{bad}
{prefix}array:
{fields(value, others, prefix)}\
{port_words(prefix, k)}\
  {p}axes = sext i32 {p}ndim to i64
  {p}same.axes = icmp eq i64 {p}axes, {p}port.ndim
  {p}same.type = icmp eq ptr {p}descr, @mbs.float64
  {p}masked = and i32 {p}flags, {flags}
  {p}same.flags = icmp eq i32 {p}masked, {flags}
  {p}ok0 = and i1 {p}same.axes, {p}same.type
  {p}ok1 = and i1 {p}ok0, {p}same.flags
  br i1 {p}ok1, label {p}axis, label %{bad}
{prefix}axis:
  {p}j = phi i64 [ 0, {p}array ], [ {p}j.next, {p}size ]
  {p}left = icmp slt i64 {p}j, {p}axes
  br i1 {p}left, label {p}size, label %{good}
{prefix}size:
  {p}came.at = getelementptr i64, ptr {p}shape, i64 {p}j
  {p}came = load i64, ptr {p}came.at
  {p}valid.at = getelementptr i64, ptr {p}port.shape, i64 {p}j
  {p}valid = load i64, ptr {p}valid.at
  {p}j.next = add i64 {p}j, 1
  {p}same = icmp eq i64 {p}came, {p}valid
  br i1 {p}same, label {p}axis, label %{bad}
"""


def _spare(slot: int, otherwise: str) -> str:
    """Emit the look at a result that is kept: if nobody else has it, on to again."""
    s = f"s{slot}."
    p = "%" + s
    return f"""\
  {p}at = getelementptr ptr, ptr %o.port.kept, i64 {slot}
  {p}kept = load ptr, ptr {p}at
{fields(f"{p}kept", {"references": (REFERENCES, "i32")}, s)}\
  {p}alone = icmp eq i32 {p}references, 1
  br i1 {p}alone, label {p}look, label %{otherwise}
{s}look:
{_neat(s, f"{p}kept", "%p", OWN, f"{s}whole", otherwise)}\
{s}whole:
{fields(f"{p}kept", {"weak": (WEAK_REFERENCES, "ptr")}, s)}\
  {p}unwatched = icmp eq ptr {p}weak, null
  br i1 {p}unwatched, label %again, label %{otherwise}
"""


def emit_call(offset: int) -> str:
    """Return IR of ``PyObject *mbs.call(kernel, args, nargsf, kwnames)``, a vectorcallfunc.

    The kernel holds the address of its table at this offset. Arguments are either the inputs
    without a default, or all inputs, and ``out`` by name, a tuple if there are several outputs. It
    calls ``mbs.rows`` of :mod:`runtime.native_rows`, which has to stand beside it.
    """
    return (
        EXTERNALS
        + PACKED
        + ASK
        + f"""\
define ptr @mbs.call(ptr %kernel, ptr %args, i64 %flagged, ptr %names) nounwind {{
entry:
  %ports = alloca [{MOST_PORTS} x ptr]
  %results = alloca [{MOST_PORTS} x ptr]
{fields("%kernel", {"table": (offset, "ptr")})}\
{head_words()}\
  %given = and i64 %flagged, {2**63 - 1}
  %unnamed = icmp eq ptr %names, null
  br i1 %unnamed, label %count, label %named
named:
{fields("%names", {"names.size": (TUPLE_SIZE, "i64")})}\
  %one.name = icmp eq i64 %names.size, 1
  br i1 %one.name, label %which, label %slow
which:
{fields("%names", {"name": (TUPLE_ITEMS, "ptr")})}\
  %is.out = icmp eq ptr %name, @mbs.out
  %out.at = getelementptr ptr, ptr %args, i64 %given
  br i1 %is.out, label %count, label %slow
count:
  %into.at = phi ptr [ null, %entry ], [ %out.at, %which ]
  %few = icmp eq i64 %given, %required
  %all = icmp eq i64 %given, %inputs
  %right = or i1 %few, %all
  br i1 %right, label %argument, label %slow
argument:
  %k = phi i64 [ 0, %count ], [ %k.next, %taken ]
  %more = icmp slt i64 %k, %given
  br i1 %more, label %inspect, label %rest
inspect:
  %arg.at = getelementptr ptr, ptr %args, i64 %k
  %arg = load ptr, ptr %arg.at
{_neat("in.", "%arg", "%k", READABLE, "taken")}\
taken:
  %to = getelementptr ptr, ptr %ports, i64 %k
  store ptr %in.data, ptr %to
  %k.next = add i64 %k, 1
  br label %argument
rest:
  %r = phi i64 [ %given, %argument ], [ %r.next, %default ]
  %r.more = icmp slt i64 %r, %inputs
  br i1 %r.more, label %default, label %targets
default:
{port_words("r.", "%r")}\
  %r.to = getelementptr ptr, ptr %ports, i64 %r
  store ptr %r.port.kept, ptr %r.to
  %r.next = add i64 %r, 1
  br label %rest
{emit_targets("slow")}\
target:
  %t = phi i64 [ 0, %fill ], [ %t.next, %taken.out ]
  %t.more = icmp slt i64 %t, %outputs
  br i1 %t.more, label %inspect.out, label %direct
inspect.out:
  %one.at = getelementptr ptr, ptr %outs, i64 %t
  %one = load ptr, ptr %one.at
  %t.port = add i64 %inputs, %t
{_neat("out.", "%one", "%t.port", WRITEABLE, "apart")}\
apart:
  %a = phi i64 [ 0, %out.axis ], [ %a.next, %disjoint ]
  %a.more = icmp slt i64 %a, %t.port
  br i1 %a.more, label %compare, label %taken.out
compare:
{port_words("a.", "%a")}\
  %a.at = getelementptr ptr, ptr %ports, i64 %a
  %a.data = load ptr, ptr %a.at
  %a.end = getelementptr i8, ptr %a.data, i64 %a.port.bytes
  %out.end = getelementptr i8, ptr %out.data, i64 %out.port.bytes
  %before = icmp ule ptr %a.end, %out.data
  %behind = icmp uge ptr %a.data, %out.end
  %free = or i1 %before, %behind
  br i1 %free, label %disjoint, label %slow
disjoint:
  %a.next = add i64 %a, 1
  br label %apart
taken.out:
  %t.to = getelementptr ptr, ptr %ports, i64 %t.port
  store ptr %out.data, ptr %t.to
  %t.next = add i64 %t, 1
  br label %target
direct:
  %direct.status = call i32 %function(ptr %ports)
  %direct.good = icmp eq i32 %direct.status, 0
  br i1 %direct.good, label %filled, label %slow
filled:
  call void @mbs.Py_IncRef(ptr %into)
  ret ptr %into
allocate:
  %o = phi i64 [ 0, %targets ], [ %o.next, %made ]
  %o.more = icmp slt i64 %o, %outputs
  br i1 %o.more, label %make, label %run
make:
  %p = add i64 %inputs, %o
{port_words("o.", "%p")}\
  %keeps = icmp ne ptr %o.port.kept, null
  br i1 %keeps, label %spare, label %anew
spare:
{_spare(0, "second")}\
second:
{_spare(1, "anew")}\
again:
  %spared = phi ptr [ %s0.kept, %s0.whole ], [ %s1.kept, %s1.whole ]
{fields("%spared", {"data": (DATA, "ptr")}, "spared.")}\
  store i32 2, ptr %spared
  br label %made
anew:
  %axes = trunc i64 %o.port.ndim to i32
  %new = call ptr @mbs.PyArray_New(ptr @mbs.ndarray, i32 %axes, ptr %o.port.shape,
      i32 {NPY_DOUBLE}, ptr null, ptr null, i32 0, i32 0, ptr null)
  %none = icmp eq ptr %new, null
  br i1 %none, label %drop, label %born
born:
{fields("%new", {"data": (DATA, "ptr")}, "new.")}\
  br i1 %keeps, label %keep, label %made
keep:
  %older.at = getelementptr ptr, ptr %o.port.kept, i64 1
  %older = load ptr, ptr %o.port.kept
  %oldest = load ptr, ptr %older.at
  call void @mbs.Py_IncRef(ptr %new)
  store ptr %new, ptr %o.port.kept
  store ptr %older, ptr %older.at
  call void @mbs.Py_DecRef(ptr %oldest)
  br label %made
made:
  %result = phi ptr [ %spared, %again ], [ %new, %born ], [ %new, %keep ]
  %result.data = phi ptr [ %spared.data, %again ], [ %new.data, %born ], [ %new.data, %keep ]
  %result.at = getelementptr ptr, ptr %results, i64 %o
  store ptr %result, ptr %result.at
  %p.to = getelementptr ptr, ptr %ports, i64 %p
  store ptr %result.data, ptr %p.to
  %o.next = add i64 %o, 1
  br label %allocate
run:
  %status = call i32 %function(ptr %ports)
  %good = icmp eq i32 %status, 0
  br i1 %good, label %done, label %drop
drop:
  %count.made = phi i64 [ %o, %anew ], [ %outputs, %run ]
  %failed = phi i1 [ true, %anew ], [ false, %run ]
  br label %release
release:
  %d = phi i64 [ 0, %drop ], [ %d.next, %released ]
  %d.more = icmp slt i64 %d, %count.made
  br i1 %d.more, label %released, label %dropped
released:
  %d.at = getelementptr ptr, ptr %results, i64 %d
  %dropping = load ptr, ptr %d.at
  call void @mbs.Py_DecRef(ptr %dropping)
  %d.next = add i64 %d, 1
  br label %release
dropped:
  br i1 %failed, label %error, label %slow
error:
  ret ptr null
done:
  %packed = call ptr @mbs.packed(ptr %results, i64 %outputs)
  ret ptr %packed
slow:
  br i1 %unnamed, label %batch, label %slow.named
slow.named:
{fields("%names", {"names.count": (TUPLE_SIZE, "i64"), "slow.name": (TUPLE_ITEMS, "ptr")})}\
  %slow.one = icmp eq i64 %names.count, 1
  %slow.out = icmp eq ptr %slow.name, @mbs.out
  %only.out = and i1 %slow.one, %slow.out
  br i1 %only.out, label %batch.out, label %copy
batch.out:
  %batch.out.at = getelementptr ptr, ptr %args, i64 %given
  br label %batch
batch:
  %batch.names = phi i64 [ 0, %slow ], [ 1, %batch.out ]
  %batch.into = phi ptr [ null, %slow ], [ %batch.out.at, %batch.out ]
  %batch.result = call ptr @mbs.rows(ptr %kernel, ptr %args, i64 %given, ptr %batch.into)
  %no.batch = icmp eq ptr %batch.result, null
  br i1 %no.batch, label %copy, label %return
return:
  ret ptr %batch.result
copy:
  %extra = phi i64 [ %batch.names, %batch ], [ %names.count, %slow.named ]
  %passed = add i64 %given, %extra
  %asked = call ptr @mbs.ask(ptr %otherwise, ptr %kernel, ptr %args, i64 %given, i64 %passed,
      ptr %names)
  ret ptr %asked
}}
"""
    )
