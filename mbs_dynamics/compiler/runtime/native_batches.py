# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""What calls with batches need, as IR: the look at arrays, whether they overlap, vector code."""

from __future__ import annotations

from mbs_dynamics.compiler.codegen.llvm_batch import FIELDS
from mbs_dynamics.compiler.runtime.native_objects import (
    ARRAY_FLAGS,
    CONTIGUOUS,
    DATA,
    DESCR,
    NDIM,
    SHAPE,
    STRIDES,
    TYPE,
    VECTOR,
    fields,
    port_words,
)

LEAST_UNLOCKED = 256
"""From so many states on, other threads may run meanwhile."""

_ARRAY = {
    "ndim": (NDIM, "i32"),
    "descr": (DESCR, "ptr"),
    "flags": (ARRAY_FLAGS, "i32"),
    "shape": (SHAPE, "ptr"),
    "strides": (STRIDES, "ptr"),
    "data": (DATA, "ptr"),
}

WALK = f"""\
define internal i64 @mbs.walk(ptr %table, i64 %k, ptr %object, i32 %wanted, ptr %ports, ptr %steps,
                              ptr %entries) nounwind {{
entry:
{fields("%object", {"type": (TYPE, "ptr")})}\
  %is.array = icmp eq ptr %type, @mbs.ndarray
  br i1 %is.array, label %array, label %no
array:
{fields("%object", _ARRAY)}\
{port_words("", "%k")}\
  %axes = sext i32 %ndim to i64
  %batched = sub i64 %axes, %port.ndim
  %none.or.one = icmp ult i64 %batched, 2
  %same.type = icmp eq ptr %descr, @mbs.float64
  %masked = and i32 %flags, %wanted
  %same.flags = icmp eq i32 %masked, %wanted
  %ok0 = and i1 %none.or.one, %same.type
  %ok1 = and i1 %ok0, %same.flags
  br i1 %ok1, label %axis, label %no
axis:
  %j = phi i64 [ 0, %array ], [ %j.next, %size ]
  %left = icmp slt i64 %j, %port.ndim
  br i1 %left, label %size, label %shaped
size:
  %came.index = add i64 %j, %batched
  %came.at = getelementptr i64, ptr %shape, i64 %came.index
  %came = load i64, ptr %came.at
  %valid.at = getelementptr i64, ptr %port.shape, i64 %j
  %valid = load i64, ptr %valid.at
  %j.next = add i64 %j, 1
  %same = icmp eq i64 %came, %valid
  br i1 %same, label %axis, label %no
shaped:
  %packed.flag = and i32 %flags, {CONTIGUOUS}
  %packed = icmp ne i32 %packed.flag, 0
  %is.batch = icmp eq i64 %batched, 1
  br i1 %is.batch, label %batch, label %one
one:
  br i1 %packed, label %found, label %no
batch:
  %rows = load i64, ptr %shape
  br i1 %packed, label %found, label %spread
spread:
  %by_state = load i64, ptr %strides
  %forward = icmp sgt i64 %by_state, 0
  %several = icmp sgt i64 %rows, 1
  %walkable = and i1 %forward, %several
  br i1 %walkable, label %inner, label %no
inner:
  %i = phi i64 [ %port.ndim, %spread ], [ %i.next, %next ]
  %by_entry = phi i64 [ 0, %spread ], [ %by_entry.next, %next ]
  %span = phi i64 [ 1, %spread ], [ %span.next, %next ]
  %i.more = icmp sgt i64 %i, 0
  br i1 %i.more, label %stride, label %walked
stride:
  %i.next = sub i64 %i, 1
  %extent.at = getelementptr i64, ptr %port.shape, i64 %i.next
  %extent = load i64, ptr %extent.at
  %stride.at = getelementptr i64, ptr %strides, i64 %i
  %here = load i64, ptr %stride.at
  %single = icmp eq i64 %extent, 1
  %unknown = icmp eq i64 %by_entry, 0
  %expected = mul i64 %by_entry, %span
  %regular = icmp eq i64 %here, %expected
  %any.stride = or i1 %single, %unknown
  %good = or i1 %any.stride, %regular
  br i1 %good, label %next, label %no
next:
  %first = xor i1 %single, true
  %learn = and i1 %first, %unknown
  %by_entry.next = select i1 %learn, i64 %here, i64 %by_entry
  %span.next = mul i64 %span, %extent
  br label %inner
walked:
  %unset = icmp eq i64 %by_entry, 0
  %each = select i1 %unset, i64 8, i64 %by_entry
  %ascending = icmp sgt i64 %each, 0
  %in.rows = icmp eq i64 %each, 8
  %side.by.side = icmp eq i64 %by_state, 8
  %either = or i1 %in.rows, %side.by.side
  %fine = and i1 %either, %ascending
  br i1 %fine, label %found, label %no
found:
  %count = phi i64 [ -1, %one ], [ %rows, %batch ], [ %rows, %walked ]
  %step = phi i64 [ 0, %one ], [ %port.bytes, %batch ], [ %by_state, %walked ]
  %gap = phi i64 [ 8, %one ], [ 8, %batch ], [ %each, %walked ]
  %data.to = getelementptr ptr, ptr %ports, i64 %k
  store ptr %data, ptr %data.to
  %step.to = getelementptr i64, ptr %steps, i64 %k
  store i64 %step, ptr %step.to
  %gap.to = getelementptr i64, ptr %entries, i64 %k
  store i64 %gap, ptr %gap.to
  ret i64 %count
no:
  ret i64 -2
}}
"""
"""IR that looks at an argument. It returns the number of states, -1 for an array without a batch
axis, and -2 for anything else than a float64 array of the right shape in which states follow each
other at the same distance, and entries as well: either these or the states side by side. Where it
begins, and both distances in bytes, are stored for port k."""

APART = f"""\
define internal ptr @mbs.end(ptr %table, ptr %ports, ptr %steps, ptr %entries, i64 %k, i64 %rows)
    nounwind {{
entry:
{port_words("", "%k")}\
  %data.at = getelementptr ptr, ptr %ports, i64 %k
  %data = load ptr, ptr %data.at
  %step.at = getelementptr i64, ptr %steps, i64 %k
  %step = load i64, ptr %step.at
  %gap.at = getelementptr i64, ptr %entries, i64 %k
  %gap = load i64, ptr %gap.at
  %empty = icmp eq i64 %port.bytes, 0
  %size = udiv i64 %port.bytes, 8
  %gaps = sub i64 %size, 1
  %inner = mul i64 %gaps, %gap
  %steps.made = sub i64 %rows, 1
  %outer = mul i64 %steps.made, %step
  %last = add i64 %inner, %outer
  %bytes = add i64 %last, 8
  %extent = select i1 %empty, i64 0, i64 %bytes
  %end = getelementptr i8, ptr %data, i64 %extent
  ret ptr %end
}}
define internal i1 @mbs.apart(ptr %table, ptr %ports, ptr %steps, ptr %entries, i64 %k, i64 %rows)
    nounwind {{
entry:
  %data.at = getelementptr ptr, ptr %ports, i64 %k
  %data = load ptr, ptr %data.at
  %end = call ptr @mbs.end(ptr %table, ptr %ports, ptr %steps, ptr %entries, i64 %k, i64 %rows)
  br label %other
other:
  %a = phi i64 [ 0, %entry ], [ %a.next, %compare ]
  %more = icmp slt i64 %a, %k
  br i1 %more, label %compare, label %done
compare:
  %a.at = getelementptr ptr, ptr %ports, i64 %a
  %a.data = load ptr, ptr %a.at
  %a.end = call ptr @mbs.end(ptr %table, ptr %ports, ptr %steps, ptr %entries, i64 %a, i64 %rows)
  %before = icmp ule ptr %a.end, %data
  %behind = icmp uge ptr %a.data, %end
  %apart = or i1 %before, %behind
  %a.next = add i64 %a, 1
  br i1 %apart, label %other, label %done
done:
  %all = phi i1 [ true, %other ], [ false, %compare ]
  ret i1 %all
}}
"""
"""IR that says whether a port shares no memory with the ports before it."""

_WORDS = {
    name: (8 * k, "i64" if name in ("guards", "lanes") else "ptr") for k, name in enumerate(VECTOR)
}
_ROW = {
    "size": (8 * FIELDS.index("size"), "i64"),
    "area": (8 * FIELDS.index("scratch"), "ptr"),
    "direct": (8 * FIELDS.index("direct"), "i64"),
}

SEVERAL = f"""\
declare ptr @mbs.PyEval_SaveThread()
declare void @mbs.PyEval_RestoreThread(ptr)
define internal i64 @mbs.several(ptr %vector, ptr %ports, ptr %steps, ptr %entries, i64 %states,
                                 i64 %inputs, i64 %count) nounwind {{
entry:
{fields("%vector", _WORDS)}\
  br label %port
port:
  %p = phi i64 [ 0, %entry ], [ %p.next, %filled ]
  %more = icmp slt i64 %p, %count
  br i1 %more, label %fill, label %run
fill:
  %row = getelementptr [{len(FIELDS)} x i64], ptr %rows, i64 %p
  %at = getelementptr ptr, ptr %ports, i64 %p
  %data = load ptr, ptr %at
  %step.at = getelementptr i64, ptr %steps, i64 %p
  %step = load i64, ptr %step.at
  store ptr %data, ptr %row
  %by_state = getelementptr i64, ptr %row, i64 {FIELDS.index("by_state")}
  store i64 %step, ptr %by_state
{fields("%row", _ROW)}\
  %gap.at = getelementptr i64, ptr %entries, i64 %p
  %gap = load i64, ptr %gap.at
  %in.rows = icmp eq i64 %gap, 8
  %moved = icmp eq i64 %direct, 0
  %able = or i1 %in.rows, %moved
  br i1 %able, label %place, label %refuse
place:
  %single = icmp eq i64 %size, 1
  %side.by.side = icmp eq i64 %step, 8
  %one.run = and i1 %single, %side.by.side
  %by_entry = select i1 %one.run, i64 0, i64 %gap
  %by_entry.to = getelementptr i64, ptr %row, i64 {FIELDS.index("by_entry")}
  store i64 %by_entry, ptr %by_entry.to
  %alike = icmp eq i64 %step, 0
  br i1 %alike, label %constant, label %filled
constant:
  br label %element
element:
  %e = phi i64 [ 0, %constant ], [ %e.next, %spread ]
  %e.more = icmp slt i64 %e, %size
  br i1 %e.more, label %value, label %filled
value:
  %from = getelementptr double, ptr %data, i64 %e
  %entry.value = load double, ptr %from
  %first = mul i64 %e, %lanes
  %e.next = add i64 %e, 1
  br label %spread
spread:
  %l = phi i64 [ 0, %value ], [ %l.next, %lane ]
  %l.more = icmp slt i64 %l, %lanes
  br i1 %l.more, label %lane, label %element
lane:
  %cell = add i64 %first, %l
  %to = getelementptr double, ptr %area, i64 %cell
  store double %entry.value, ptr %to
  %l.next = add i64 %l, 1
  br label %spread
filled:
  %p.next = add i64 %p, 1
  br label %port
refuse:
  ret i64 -1
run:
  %many = icmp uge i64 %states, {LEAST_UNLOCKED}
  br i1 %many, label %unlock, label %locked
locked:
  %few.status = call i64 %driver(ptr %function, i64 0, i64 %states, ptr %rows, i64 %inputs,
      i64 %count, ptr %pointers, i64 %guards)
  ret i64 %few.status
unlock:
  %thread = call ptr @mbs.PyEval_SaveThread()
  %status = call i64 %driver(ptr %function, i64 0, i64 %states, ptr %rows, i64 %inputs,
      i64 %count, ptr %pointers, i64 %guards)
  call void @mbs.PyEval_RestoreThread(ptr %thread)
  ret i64 %status
}}
"""
"""IR that evaluates states as vector code and returns the driver's status; -1 as well where results
that the code writes itself would not lie side by side."""
