# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Calls of a kernel with batches, as IR: what :mod:`runtime.native_call` does for one
state, for arrays with one batch axis.

What Python needs to look at them takes as long as hundreds of states do. Inputs without that axis
are the same for all states. Few rows are evaluated one after the other, more as vector code, once
that has been compiled. Very large batches, which threads may share, go to Python.
"""

from __future__ import annotations

from mbs_dynamics.compiler.runtime.native_batches import APART, SEVERAL, WALK
from mbs_dynamics.compiler.runtime.native_objects import (
    ALIGNED,
    CHANGEABLE,
    DATA,
    MOST_PORTS,
    NPY_DOUBLE,
    emit_targets,
    fields,
    head_words,
    port_words,
)

LEAST_STATES = 64
"""From so many states on, several are evaluated at once, by code compiled when it is first used."""

STATES_PER_THREAD = 50_000
"""No thread is started for fewer states."""

LARGEST_NEW = 1 << 20
"""Results of more bytes than this are made in Python, where they begin with a line of the cache."""

MOST_AXES = 16


def emit_rows(offset: int) -> str:
    """Return IR of ``PyObject *mbs.rows(kernel, args, given, into)``, which returns as a call does.

    ``into`` is where an array to write into stands, or a tuple of arrays; null if none is given.
    The result is null, without an exception, where the arguments are anything but arrays that can
    be walked through, where there is no vector code for so many states, and where a guard fails.
    """
    return f"""\
{WALK}\
{APART}\
{SEVERAL}\
declare void @mbs.PyErr_Clear()
define internal ptr @mbs.rows(ptr %kernel, ptr %args, i64 %given, ptr %into.at) nounwind {{
entry:
  %ports = alloca [{MOST_PORTS} x ptr]
  %steps = alloca [{MOST_PORTS} x i64]
  %entries = alloca [{MOST_PORTS} x i64]
  %results = alloca [{MOST_PORTS} x ptr]
  %dims = alloca [{MOST_AXES} x i64]
{fields("%kernel", {"table": (offset, "ptr")})}\
{head_words()}\
  %few = icmp eq i64 %given, %required
  %all = icmp eq i64 %given, %inputs
  %right = or i1 %few, %all
  br i1 %right, label %argument, label %no
argument:
  %k = phi i64 [ 0, %entry ], [ %k.next, %taken ]
  %rows = phi i64 [ -1, %entry ], [ %rows.known, %taken ]
  %turned = phi i1 [ false, %entry ], [ %turned.so.far, %taken ]
  %more = icmp slt i64 %k, %given
  br i1 %more, label %inspect, label %counted
inspect:
  %arg.at = getelementptr ptr, ptr %args, i64 %k
  %arg = load ptr, ptr %arg.at
  %states = call i64 @mbs.walk(ptr %table, i64 %k, ptr %arg, i32 {ALIGNED}, ptr %ports, ptr %steps,
      ptr %entries)
  %wrong = icmp eq i64 %states, -2
  br i1 %wrong, label %no, label %counting
counting:
  %gap.at = getelementptr i64, ptr %entries, i64 %k
  %gap = load i64, ptr %gap.at
  %is.turned = icmp ne i64 %gap, 8
  %turned.so.far = or i1 %turned, %is.turned
  %for.all = icmp eq i64 %states, -1
  br i1 %for.all, label %taken, label %batch
batch:
  %first = icmp slt i64 %rows, 0
  %equal = icmp eq i64 %rows, %states
  %fits = or i1 %first, %equal
  br i1 %fits, label %taken, label %no
taken:
  %rows.known = phi i64 [ %rows, %counting ], [ %states, %batch ]
  %k.next = add i64 %k, 1
  br label %argument
counted:
  %every = add i64 %inputs, %outputs
  %before = add i64 %rows, -1
  %some = icmp ult i64 %before, {2 * STATES_PER_THREAD - 1}
  %few.rows = icmp ult i64 %rows, {LEAST_STATES}
  %has.vector = icmp ne ptr %vector, null
  %straight = xor i1 %turned, true
  %able = select i1 %few.rows, i1 %straight, i1 %has.vector
  %possible = and i1 %some, %able
  %many.rows = xor i1 %few.rows, true
  br i1 %possible, label %rest, label %no
rest:
  %r = phi i64 [ %given, %counted ], [ %r.next, %default ]
  %r.more = icmp slt i64 %r, %inputs
  br i1 %r.more, label %default, label %targets
default:
{port_words("r.", "%r")}\
  %r.to = getelementptr ptr, ptr %ports, i64 %r
  store ptr %r.port.kept, ptr %r.to
  %r.step = getelementptr i64, ptr %steps, i64 %r
  store i64 0, ptr %r.step
  %r.gap = getelementptr i64, ptr %entries, i64 %r
  store i64 8, ptr %r.gap
  %r.next = add i64 %r, 1
  br label %rest
{emit_targets("no")}\
target:
  %t = phi i64 [ 0, %fill ], [ %t.next, %write ]
  %t.more = icmp slt i64 %t, %outputs
  br i1 %t.more, label %check, label %evaluate
check:
  %t.k = add i64 %inputs, %t
  %t.from = getelementptr ptr, ptr %outs, i64 %t
  %t.object = load ptr, ptr %t.from
  %t.rows = call i64 @mbs.walk(ptr %table, i64 %t.k, ptr %t.object, i32 {ALIGNED | CHANGEABLE},
      ptr %ports, ptr %steps, ptr %entries)
  %t.right = icmp eq i64 %t.rows, %rows
  br i1 %t.right, label %dense, label %no
dense:
{port_words("t.", "%t.k")}\
  %t.step.at = getelementptr i64, ptr %steps, i64 %t.k
  %t.step = load i64, ptr %t.step.at
  %t.gap.at = getelementptr i64, ptr %entries, i64 %t.k
  %t.gap = load i64, ptr %t.gap.at
  %t.in.rows = icmp eq i64 %t.gap, 8
  %t.whole = icmp eq i64 %t.step, %t.port.bytes
  %t.row.by.row = and i1 %t.in.rows, %t.whole
  %t.run = mul i64 %rows, 8
  %t.runs = icmp eq i64 %t.gap, %t.run
  %t.side.by.side = icmp eq i64 %t.step, 8
  %t.entry.by.entry = and i1 %t.runs, %t.side.by.side
  %t.turned = and i1 %t.entry.by.entry, %many.rows
  %t.fine = or i1 %t.row.by.row, %t.turned
  br i1 %t.fine, label %overlap, label %no
overlap:
  %t.apart = call i1 @mbs.apart(ptr %table, ptr %ports, ptr %steps, ptr %entries, i64 %t.k,
      i64 %rows)
  br i1 %t.apart, label %write, label %no
write:
  %t.next = add i64 %t, 1
  br label %target
allocate:
  %o = phi i64 [ 0, %targets ], [ %o.next, %made ]
  %o.more = icmp slt i64 %o, %outputs
  br i1 %o.more, label %make, label %evaluate
make:
  %p = add i64 %inputs, %o
{port_words("o.", "%p")}\
  store i64 %rows, ptr %dims
  %o.bytes = mul i64 %rows, %o.port.bytes
  %o.large = icmp ugt i64 %o.bytes, {LARGEST_NEW}
  br i1 %o.large, label %too.large, label %dim
too.large:
  br label %drop
dim:
  %d = phi i64 [ 0, %make ], [ %d.next, %dim.copy ]
  %d.more = icmp slt i64 %d, %o.port.ndim
  br i1 %d.more, label %dim.copy, label %create
dim.copy:
  %d.from = getelementptr i64, ptr %o.port.shape, i64 %d
  %d.size = load i64, ptr %d.from
  %d.next = add i64 %d, 1
  %d.to = getelementptr i64, ptr %dims, i64 %d.next
  store i64 %d.size, ptr %d.to
  br label %dim
create:
  %o.axes = add i64 %o.port.ndim, 1
  %axes.given = trunc i64 %o.axes to i32
  %new = call ptr @mbs.PyArray_New(ptr @mbs.ndarray, i32 %axes.given, ptr %dims,
      i32 {NPY_DOUBLE}, ptr null, ptr null, i32 0, i32 0, ptr null)
  %none = icmp eq ptr %new, null
  br i1 %none, label %no.memory, label %made
no.memory:
  call void @mbs.PyErr_Clear()
  br label %drop
made:
{fields("%new", {"data": (DATA, "ptr")}, "new.")}\
  %result.at = getelementptr ptr, ptr %results, i64 %o
  store ptr %new, ptr %result.at
  %p.to = getelementptr ptr, ptr %ports, i64 %p
  store ptr %new.data, ptr %p.to
  %p.step = getelementptr i64, ptr %steps, i64 %p
  store i64 %o.port.bytes, ptr %p.step
  %p.gap = getelementptr i64, ptr %entries, i64 %p
  store i64 8, ptr %p.gap
  %o.next = add i64 %o, 1
  br label %allocate
evaluate:
  br i1 %few.rows, label %state, label %several
several:
  store ptr null, ptr %vector.at
  %several.status = call i64 @mbs.several(ptr %vector, ptr %ports, ptr %steps, ptr %entries,
      i64 %rows, i64 %inputs, i64 %every)
  store ptr %vector, ptr %vector.at
  %several.good = icmp eq i64 %several.status, 0
  br i1 %several.good, label %done, label %failed
state:
  %i = phi i64 [ 0, %evaluate ], [ %i.next, %moved ]
  %status = call i32 %function(ptr %ports)
  %good = icmp eq i32 %status, 0
  br i1 %good, label %next, label %failed
next:
  %i.next = add i64 %i, 1
  %i.more = icmp slt i64 %i.next, %rows
  br i1 %i.more, label %advance, label %done
advance:
  %m = phi i64 [ 0, %next ], [ %m.next, %advance ]
  %m.at = getelementptr ptr, ptr %ports, i64 %m
  %m.step.at = getelementptr i64, ptr %steps, i64 %m
  %m.here = load ptr, ptr %m.at
  %m.step = load i64, ptr %m.step.at
  %m.there = getelementptr i8, ptr %m.here, i64 %m.step
  store ptr %m.there, ptr %m.at
  %m.next = add i64 %m, 1
  %m.more = icmp slt i64 %m.next, %every
  br i1 %m.more, label %advance, label %moved
moved:
  br label %state
failed:
  br i1 %fresh, label %drop, label %no
drop:
  %made.count = phi i64 [ %o, %no.memory ], [ %o, %too.large ], [ %outputs, %failed ]
  br label %release
release:
  %e = phi i64 [ 0, %drop ], [ %e.next, %released ]
  %e.more = icmp slt i64 %e, %made.count
  br i1 %e.more, label %released, label %no
released:
  %e.at = getelementptr ptr, ptr %results, i64 %e
  %e.result = load ptr, ptr %e.at
  call void @mbs.Py_DecRef(ptr %e.result)
  %e.next = add i64 %e, 1
  br label %release
no:
  ret ptr null
done:
  br i1 %fresh, label %pack, label %filled
filled:
  %returned = load ptr, ptr %into.at
  call void @mbs.Py_IncRef(ptr %returned)
  ret ptr %returned
pack:
  %packed = call ptr @mbs.packed(ptr %results, i64 %outputs)
  %no.tuple = icmp eq ptr %packed, null
  br i1 %no.tuple, label %clear, label %return
clear:
  call void @mbs.PyErr_Clear()
  br label %return
return:
  ret ptr %packed
}}
"""
