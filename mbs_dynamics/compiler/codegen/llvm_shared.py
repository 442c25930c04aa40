# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Machine code that all kernels of a process share: sine and cosine, and the loop over states."""

from __future__ import annotations

from collections.abc import Iterable

from mbs_dynamics.compiler.codegen.llvm_body import WIDTH, Body

TRIG_RANGE = 1e8
"""Up to this absolute angle (rad) the package's own sine and cosine are used."""

ROUND = 6755399441055744.0  # 1.5 * 2^52: adding it rounds to an integer in the lowest bits

SIN_POLYNOMIAL = (  # fdlibm k_sin.c, S1 to S6
    -1.66666666666666324348e-01,
    8.33333333332248946124e-03,
    -1.98412698298579493134e-04,
    2.75573137070700676789e-06,
    -2.50507602534068634195e-08,
    1.58969099521155010221e-10,
)
COS_POLYNOMIAL = (  # fdlibm k_cos.c, C1 to C6
    4.16666666666666019037e-02,
    -1.38888888888741095749e-03,
    2.48015872894767294178e-05,
    -2.75573143513906633035e-07,
    2.08757232129817482790e-09,
    -1.13596475577881948265e-11,
)


HALF_PI = (
    float.fromhex("0x1.921fb50000000p+0"),
    float.fromhex("0x1.110b460000000p-26"),
    float.fromhex("0x1.1a62633145c07p-54"),
)
"""pi/2 as a sum, of which the first two have 26 bits: their multiples by integers below 2^27 are
exact."""


def _polynomial(body: Body, z: str, coefficients: Iterable[float]) -> str:
    """Emit Horner's scheme in z and return the value."""
    *lower, highest = coefficients
    value = body.constant(highest)
    for c in reversed(lower):
        product = body.new(f"fmul contract {body.real} {value}, {z}")
        value = body.new(f"fadd contract {body.real} {product}, {body.constant(c)}")
    return value


def _sine_and_cosine(body: Body, x: str) -> tuple[str, str]:
    """Emit both for |x| <= TRIG_RANGE, without a branch: Cody-Waite reduction, fdlibm."""
    real, word, number = body.real, body.word, body.constant
    turns = body.new(f"fmul {real} {x}, {number(0.6366197723675814)}")
    shifted = body.new(f"fadd {real} {turns}, {number(ROUND)}")
    n = body.new(f"fsub {real} {shifted}, {number(ROUND)}")
    r = x
    for part in HALF_PI:
        product = body.new(f"fmul contract {real} {n}, {number(part)}")
        r = body.new(f"fsub contract {real} {r}, {product}")
    z = body.new(f"fmul {real} {r}, {r}")
    s = _polynomial(body, z, SIN_POLYNOMIAL)
    rz = body.new(f"fmul {real} {r}, {z}")
    rzs = body.new(f"fmul contract {real} {rz}, {s}")
    sine = body.new(f"fadd contract {real} {r}, {rzs}")
    c = _polynomial(body, z, COS_POLYNOMIAL)
    half = body.new(f"fmul {real} {z}, {number(0.5)}")
    w = body.new(f"fsub {real} {number(1.0)}, {half}")
    lost = body.new(f"fsub {real} {number(1.0)}, {w}")
    lost = body.new(f"fsub {real} {lost}, {half}")
    zz = body.new(f"fmul {real} {z}, {z}")
    zzc = body.new(f"fmul contract {real} {zz}, {c}")
    tail = body.new(f"fadd contract {real} {lost}, {zzc}")
    cosine = body.new(f"fadd {real} {w}, {tail}")
    bits = body.new(f"bitcast {real} {shifted} to {word}")
    odd = body.new(f"trunc {word} {bits} to {body.bit}")
    s1 = body.new(f"select {body.bit} {odd}, {real} {cosine}, {real} {sine}")
    c1 = body.new(f"select {body.bit} {odd}, {real} {sine}, {real} {cosine}")
    next_bits = body.new(f"add {word} {bits}, {body.whole(1)}")
    signed = []
    for value, quadrant in ((s1, bits), (c1, next_bits)):
        sign = body.new(f"shl {word} {quadrant}, {body.whole(62)}")
        sign = body.new(f"and {word} {sign}, {body.whole(-(2**63))}")
        raw = body.new(f"bitcast {real} {value} to {word}")
        raw = body.new(f"xor {word} {raw}, {sign}")
        signed.append(body.new(f"bitcast {word} {raw} to {real}"))
    return signed[0], signed[1]


def emit_sines_and_cosines(lanes: int) -> str:
    """Return LLVM IR of ``void @mbs.sincos<lanes>(<lanes x double> x, ptr out)``.

    It writes the sines of x to ``out``, and behind them the cosines. Where an absolute angle is
    beyond :data:`TRIG_RANGE`, or none, the C library is asked, by a function of its own: what that
    keeps on the stack would take as long as a tenth of the rest.
    """
    body = Body(lanes)
    real = body.real
    sine, cosine = _sine_and_cosine(body, "%x")
    beyond = body.constant(TRIG_RANGE)
    body.lines += [
        f"  %cosines = getelementptr {real}, ptr %out, i64 1",
        f"  store {real} {sine}, ptr %out",
        f"  store {real} {cosine}, ptr %cosines",
        f"  %size = call {real} @llvm.fabs.{body.sqrt}({real} %x)",
        f"  %far = fcmp ugt {real} %size, {beyond}",
        f"  %mask = bitcast {body.bit} %far to i{lanes}",
        f"  %any = icmp ne i{lanes} %mask, 0",
        "  br i1 %any, label %ask, label %end",
        "ask:",
        f"  tail call void @mbs.far{lanes}({real} %x, ptr %out)",
        "  ret void",
        "end:",
        "  ret void",
    ]
    apart = [
        f"  %cosines = getelementptr {real}, ptr %out, i64 1",
        f"  %size = call {real} @llvm.fabs.{body.sqrt}({real} %x)",
        f"  %far = fcmp ugt {real} %size, {beyond}",
        "  br label %lane",
        "lane:",
        "  %k = phi i64 [ 0, %entry ], [ %next, %done ]",
        f"  %here = extractelement {body.bit} %far, i64 %k",
        "  br i1 %here, label %ask, label %done",
        "ask:",
        f"  %angle = extractelement {real} %x, i64 %k",
        "  %sine = call double @sin(double %angle)",
        "  %cosine = call double @cos(double %angle)",
        "  %sine.at = getelementptr double, ptr %out, i64 %k",
        "  %cosine.at = getelementptr double, ptr %cosines, i64 %k",
        "  store double %sine, ptr %sine.at",
        "  store double %cosine, ptr %cosine.at",
        "  br label %done",
        "done:",
        "  %next = add i64 %k, 1",
        f"  %more = icmp slt i64 %next, {lanes}",
        "  br i1 %more, label %lane, label %end",
        "end:",
        "  ret void",
    ]
    return (
        f"declare {real} @llvm.fabs.{body.sqrt}({real})\n"
        f"define internal void @mbs.far{lanes}({real} %x, ptr %out) noinline cold nounwind {{\n"
        "entry:\n" + "\n".join(apart) + "\n}\n"
        f"define void @mbs.sincos{lanes}({real} %x, ptr %out) nounwind {{\nentry:\n"
        + "\n".join(body.lines)
        + "\n}\n"
    )


LOOP = """\
define i64 @mbs.loop(ptr %function, i64 %states, ptr %pointers, ptr %strides, i64 %ports,
                     i64 %guards) nounwind {
entry:
  %now = alloca ptr, i64 %ports
  br label %copy
copy:
  %c = phi i64 [ 0, %entry ], [ %c.next, %copy ]
  %from = getelementptr ptr, ptr %pointers, i64 %c
  %first = load ptr, ptr %from
  %to = getelementptr ptr, ptr %now, i64 %c
  store ptr %first, ptr %to
  %c.next = add i64 %c, 1
  %c.more = icmp slt i64 %c.next, %ports
  br i1 %c.more, label %copy, label %begin
begin:
  %any = icmp sgt i64 %states, 0
  br i1 %any, label %step, label %end
step:
  %i = phi i64 [ 0, %begin ], [ %i.next, %stepped ]
  %status = call i32 %function(ptr %now)
  %good = icmp eq i32 %status, 0
  br i1 %good, label %advance, label %failed
advance:
  %p = phi i64 [ 0, %step ], [ %p.next, %advance ]
  %at = getelementptr ptr, ptr %now, i64 %p
  %old = load ptr, ptr %at
  %stride.at = getelementptr i64, ptr %strides, i64 %p
  %stride = load i64, ptr %stride.at
  %new = getelementptr i8, ptr %old, i64 %stride
  store ptr %new, ptr %at
  %p.next = add i64 %p, 1
  %p.more = icmp slt i64 %p.next, %ports
  br i1 %p.more, label %advance, label %stepped
stepped:
  %i.next = add i64 %i, 1
  %more = icmp slt i64 %i.next, %states
  br i1 %more, label %step, label %end
failed:
  %before = mul i64 %i, %guards
  %guard = zext i32 %status to i64
  %where = add i64 %before, %guard
  %lost = icmp slt i32 %status, 0
  %said = select i1 %lost, i64 -1, i64 %where
  ret i64 %said
end:
  ret i64 0
}
"""
"""IR of the loop over states, one after the other.

``i64 @mbs.loop(ptr function, i64 states, ptr pointers, ptr strides, i64 ports, i64 guards)``
calls a function that :func:`codegen.llvm_body.emit_straight` wrote. ``pointers`` holds the
address of each port, of which there is at least one, ``strides`` the bytes from one state to the
next in each (0 to use the same one for all). It returns 0, or for the first state i at which the
guard k fails, i times the number of guards, plus k. It returns -1 if there is no memory.
"""


def emit_shared() -> str:
    """Return the IR of the loop, and of the sines and cosines of bodies of one state."""
    return (
        "declare double @sin(double)\ndeclare double @cos(double)\n"
        + emit_sines_and_cosines(WIDTH)
        + LOOP
    )
