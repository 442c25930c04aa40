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
"""What calls with batches need, as IR: checks of arrays to write into, and vector code."""

from __future__ import annotations

from mbs_dynamics.tracing.llvm_batch import FIELDS
from mbs_dynamics.tracing.llvm_objects import (
    ARRAY_FLAGS,
    DATA,
    DESCR,
    NDIM,
    SHAPE,
    TYPE,
    VECTOR,
    WRITEABLE,
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
    "data": (DATA, "ptr"),
}

TARGET = f"""\
define internal ptr @mbs.target(ptr %table, i64 %k, ptr %object, i64 %rows) nounwind {{
entry:
{fields("%object", {"type": (TYPE, "ptr")})}\
  %is.array = icmp eq ptr %type, @mbs.ndarray
  br i1 %is.array, label %array, label %no
array:
{fields("%object", _ARRAY)}\
{port_words("", "%k")}\
  %axes = sext i32 %ndim to i64
  %valid.axes = add i64 %port.ndim, 1
  %same.axes = icmp eq i64 %axes, %valid.axes
  %same.type = icmp eq ptr %descr, @mbs.float64
  %masked = and i32 %flags, {WRITEABLE}
  %same.flags = icmp eq i32 %masked, {WRITEABLE}
  %ok0 = and i1 %same.axes, %same.type
  %ok1 = and i1 %ok0, %same.flags
  br i1 %ok1, label %length, label %no
length:
  %states = load i64, ptr %shape
  %same.states = icmp eq i64 %states, %rows
  br i1 %same.states, label %axis, label %no
axis:
  %j = phi i64 [ 0, %length ], [ %j.next, %size ]
  %left = icmp slt i64 %j, %port.ndim
  br i1 %left, label %size, label %yes
size:
  %j.next = add i64 %j, 1
  %came.at = getelementptr i64, ptr %shape, i64 %j.next
  %came = load i64, ptr %came.at
  %valid.at = getelementptr i64, ptr %port.shape, i64 %j
  %valid = load i64, ptr %valid.at
  %same = icmp eq i64 %came, %valid
  br i1 %same, label %axis, label %no
yes:
  ret ptr %data
no:
  ret ptr null
}}
"""
"""IR that returns where the results of a port begin in an object: null if it is no neat array."""

APART = f"""\
define internal i1 @mbs.apart(ptr %table, ptr %ports, ptr %steps, i64 %k, i64 %rows, ptr %data)
    nounwind {{
entry:
{port_words("", "%k")}\
  %bytes = mul i64 %port.bytes, %rows
  %end = getelementptr i8, ptr %data, i64 %bytes
  br label %other
other:
  %a = phi i64 [ 0, %entry ], [ %a.next, %compare ]
  %more = icmp slt i64 %a, %k
  br i1 %more, label %compare, label %done
compare:
{port_words("a.", "%a")}\
  %a.at = getelementptr ptr, ptr %ports, i64 %a
  %a.data = load ptr, ptr %a.at
  %step.at = getelementptr i64, ptr %steps, i64 %a
  %step = load i64, ptr %step.at
  %alike = icmp eq i64 %step, 0
  %a.rows = select i1 %alike, i64 1, i64 %rows
  %a.bytes = mul i64 %a.port.bytes, %a.rows
  %a.end = getelementptr i8, ptr %a.data, i64 %a.bytes
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
"""IR that says whether the results of a port share no memory with the ports before it."""

_WORDS = {
    name: (8 * k, "i64" if name in ("guards", "lanes") else "ptr") for k, name in enumerate(VECTOR)
}
_SCRATCH = {"size": (8 * FIELDS.index("size"), "i64"), "area": (8 * FIELDS.index("scratch"), "ptr")}

SEVERAL = f"""\
declare ptr @mbs.PyEval_SaveThread()
declare void @mbs.PyEval_RestoreThread(ptr)
define internal i64 @mbs.several(ptr %vector, ptr %ports, ptr %steps, i64 %states, i64 %inputs,
                                 i64 %count) nounwind {{
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
  %by_entry = getelementptr i64, ptr %row, i64 {FIELDS.index("by_entry")}
  store i64 8, ptr %by_entry
  %alike = icmp eq i64 %step, 0
  br i1 %alike, label %constant, label %filled
constant:
{fields("%row", _SCRATCH)}\
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
"""IR that evaluates states as vector code and returns the driver's status."""
