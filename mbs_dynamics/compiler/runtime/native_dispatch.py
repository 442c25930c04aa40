# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The call of a function that chooses its kernel, as IR: one for all such functions of a process.

A function of an owner, arrays and options, ``jacobian(arm, q, "tool")``, has one kernel for each
owner and each choice of options. To look it up costs more than many kernels take. So the function
keeps a table of calls that were made before. A call that is like one of them, with the very same
owner and options, goes to its kernel at once, and every other one to a Python function.
"""

from __future__ import annotations

from mbs_dynamics.compiler.runtime.native_objects import (
    ASK,
    MOST_PORTS,
    TUPLE_ITEMS,
    TUPLE_SIZE,
    fields,
)

ENTRIES = 16
"""Calls that are remembered for each function."""

ENTRY = (
    *("owner", "given", "names", "arrays", "extras"),
    *("name.at", "value.at", "extra.at", "kernel", "call"),
)
"""The words of each entry: the owner, null if it is free; how many arguments there are without and
with names, how many arrays follow the owner, and how many arguments the kernel takes besides; where
the names, the values of all that follows the arrays, and these further arguments stand; the kernel,
and its vectorcallfunc."""


def emit_dispatch(offset: int) -> str:
    """Return IR of ``PyObject *mbs.dispatch(function, args, nargsf, kwnames)``, a vectorcallfunc.

    The function holds the address of its table at this offset: that of the Python function for
    calls that are not in it, and then the entries.
    """
    words = {name: (8 * k, "i64" if 1 <= k <= 4 else "ptr") for k, name in enumerate(ENTRY)}
    return f"""\
{ASK}\
declare ptr @mbs.PyObject_Vectorcall(ptr, ptr, i64, ptr)
define ptr @mbs.dispatch(ptr %self, ptr %args, i64 %flagged, ptr %kwnames) nounwind {{
entry:
  %ports = alloca [{MOST_PORTS} x ptr]
{fields("%self", {"table": (offset, "ptr")})}\
  %given = and i64 %flagged, {2**63 - 1}
  %unnamed = icmp eq ptr %kwnames, null
  br i1 %unnamed, label %begin, label %named
named:
{fields("%kwnames", {"size": (TUPLE_SIZE, "i64")}, "named.")}\
  %named.items = getelementptr i8, ptr %kwnames, i64 {TUPLE_ITEMS}
  br label %begin
begin:
  %names = phi i64 [ 0, %entry ], [ %named.size, %named ]
  %items = phi ptr [ null, %entry ], [ %named.items, %named ]
  %passed = add i64 %given, %names
  %some = icmp sgt i64 %given, 0
  br i1 %some, label %owned, label %miss
owned:
  %owner = load ptr, ptr %args
  br label %search
search:
  %e = phi i64 [ 0, %owned ], [ %e.next, %next ]
  %e.more = icmp slt i64 %e, {ENTRIES}
  br i1 %e.more, label %look, label %miss
next:
  %e.next = add i64 %e, 1
  br label %search
look:
  %e.index = mul i64 %e, {8 * len(ENTRY)}
  %e.offset = add i64 %e.index, 8
  %e.at = getelementptr i8, ptr %table, i64 %e.offset
{fields("%e.at", words, "e.")}\
  %same.owner = icmp eq ptr %e.owner, %owner
  %same.given = icmp eq i64 %e.given, %given
  %same.names = icmp eq i64 %e.names, %names
  %same.0 = and i1 %same.owner, %same.given
  %same.1 = and i1 %same.0, %same.names
  br i1 %same.1, label %name, label %next
name:
  %n = phi i64 [ 0, %look ], [ %n.next, %name.look ]
  %n.more = icmp slt i64 %n, %names
  br i1 %n.more, label %name.look, label %values
name.look:
  %n.came.at = getelementptr ptr, ptr %items, i64 %n
  %n.came = load ptr, ptr %n.came.at
  %n.known.at = getelementptr ptr, ptr %e.name.at, i64 %n
  %n.known = load ptr, ptr %n.known.at
  %n.next = add i64 %n, 1
  %n.same = icmp eq ptr %n.came, %n.known
  br i1 %n.same, label %name, label %next
values:
  %first = add i64 %e.arrays, 1
  %options = sub i64 %passed, %first
  %option.at = getelementptr ptr, ptr %args, i64 %first
  br label %value
value:
  %v = phi i64 [ 0, %values ], [ %v.next, %value.look ]
  %v.more = icmp slt i64 %v, %options
  br i1 %v.more, label %value.look, label %array
value.look:
  %v.came.at = getelementptr ptr, ptr %option.at, i64 %v
  %v.came = load ptr, ptr %v.came.at
  %v.known.at = getelementptr ptr, ptr %e.value.at, i64 %v
  %v.known = load ptr, ptr %v.known.at
  %v.next = add i64 %v, 1
  %v.same = icmp eq ptr %v.came, %v.known
  br i1 %v.same, label %value, label %next
array:
  %a = phi i64 [ 0, %value ], [ %a.next, %array.copy ]
  %a.more = icmp slt i64 %a, %e.arrays
  br i1 %a.more, label %array.copy, label %extra
array.copy:
  %a.next = add i64 %a, 1
  %a.from = getelementptr ptr, ptr %args, i64 %a.next
  %a.array = load ptr, ptr %a.from
  %a.to = getelementptr ptr, ptr %ports, i64 %a
  store ptr %a.array, ptr %a.to
  br label %array
extra:
  %x = phi i64 [ 0, %array ], [ %x.next, %extra.copy ]
  %x.more = icmp slt i64 %x, %e.extras
  br i1 %x.more, label %extra.copy, label %hit
extra.copy:
  %x.from = getelementptr ptr, ptr %e.extra.at, i64 %x
  %x.extra = load ptr, ptr %x.from
  %x.behind = add i64 %e.arrays, %x
  %x.to = getelementptr ptr, ptr %ports, i64 %x.behind
  store ptr %x.extra, ptr %x.to
  %x.next = add i64 %x, 1
  br label %extra
hit:
  %count = add i64 %e.arrays, %e.extras
  %found = call ptr %e.call(ptr %e.kernel, ptr %ports, i64 %count, ptr null)
  ret ptr %found
miss:
  %otherwise = load ptr, ptr %table
  %asked = call ptr @mbs.ask(ptr %otherwise, ptr %self, ptr %args, i64 %given, i64 %passed,
      ptr %kwnames)
  ret ptr %asked
}}
"""
