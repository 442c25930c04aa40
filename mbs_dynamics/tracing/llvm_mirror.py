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
"""LLVM IR that fills the lower triangle of a matrix, block by block.

Stores down a column take ten times as long as those along a row. So what belongs below the diagonal
is first stored above it, in the matrix itself if it is symmetric, or in another one.
"""

from __future__ import annotations

from mbs_dynamics.tracing.llvm_batch import transposed
from mbs_dynamics.tracing.llvm_body import WIDTH, Body


def emit_mirror(name: str, count: int) -> str:
    """Return the IR of ``void <name>(ptr from, ptr to)``, for matrices (count, count) by rows.

    Sets to[k, j] = from[j, k] for all j < k.
    """
    body = Body(WIDTH)
    body.lines += [
        "entry:",
        "  br label %rows",
        "rows:",
        "  %j = phi i64 [ 0, %entry ], [ %j.next, %next ]",
        "  br label %block",
        "block:",
        "  %k = phi i64 [ %j, %rows ], [ %k.next, %block ]",
    ]
    lanes = ", ".join(f"i64 {lane}" for lane in range(WIDTH))
    across = {axis: _from(body, axis, lanes) for axis in ("%j", "%k")}
    vector, mask = body.real, body.bit
    all_ = body.whole(count)
    within = body.new(f"icmp slt {body.word} {across['%k']}, {all_}")
    rows = []
    for lane in range(WIDTH):
        row = body.new(f"add i64 %j, {lane}")
        some = _in_all_lanes(body, body.new(f"icmp slt i64 {row}, {count}"))
        at = _at(body, "%from", row, "%k", count)
        mask_of_row = body.new(f"and {mask} {within}, {some}")
        rows.append(
            body.new(
                f"call {vector} @llvm.masked.load.v{WIDTH}f64.p0(ptr {at}, i32 8, "
                f"{mask} {mask_of_row}, {vector} zeroinitializer)"
            )
        )
    for lane, x in enumerate(transposed(body, rows)):
        row = body.new(f"add i64 %k, {lane}")
        end = body.new(f"icmp slt i64 {row}, {count}")
        last = body.new(f"select i1 {end}, i64 {row}, i64 0")
        one = body.new(f"insertelement {body.word} poison, i64 {last}, i64 0")
        zeros = f"<{WIDTH} x i32> zeroinitializer"
        limit = body.new(f"shufflevector {body.word} {one}, {body.word} poison, {zeros}")
        below = body.new(f"icmp slt {body.word} {across['%j']}, {limit}")
        at = _at(body, "%to", row, "%j", count)
        body.lines.append(
            f"  call void @llvm.masked.store.v{WIDTH}f64.p0({vector} {x}, ptr {at}, i32 8, "
            f"{mask} {below})"
        )
    body.lines += [
        f"  %k.next = add i64 %k, {WIDTH}",
        f"  %k.more = icmp slt i64 %k.next, {count}",
        "  br i1 %k.more, label %block, label %next",
        "next:",
        f"  %j.next = add i64 %j, {WIDTH}",
        f"  %j.more = icmp slt i64 %j.next, {count}",
        "  br i1 %j.more, label %rows, label %end",
        "end:",
        "  ret void",
    ]
    lines = "\n".join(body.lines)
    return f"define internal void {name}(ptr %from, ptr %to) nounwind {{\n{lines}\n}}\n"


def _from(body: Body, first: str, lanes: str) -> str:
    one = body.new(f"insertelement {body.word} poison, i64 {first}, i64 0")
    zeros = f"<{WIDTH} x i32> zeroinitializer"
    all_ = body.new(f"shufflevector {body.word} {one}, {body.word} poison, {zeros}")
    return body.new(f"add {body.word} {all_}, <{lanes}>")


def _in_all_lanes(body: Body, bit: str) -> str:
    one = body.new(f"insertelement {body.bit} poison, i1 {bit}, i64 0")
    zeros = f"<{WIDTH} x i32> zeroinitializer"
    return body.new(f"shufflevector {body.bit} {one}, {body.bit} poison, {zeros}")


def _at(body: Body, base: str, row: str, column: str, count: int) -> str:
    first = body.new(f"mul i64 {row}, {count}")
    entry = body.new(f"add i64 {first}, {column}")
    return body.new(f"getelementptr double, ptr {base}, i64 {entry}")
