# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Machine code that all kernels of a process share: sine and cosine, and the loop over states."""

from __future__ import annotations

from collections.abc import Iterable

from mbs_dynamics.compiler.codegen.builder import (
    DOUBLE,
    I1,
    I32,
    I64,
    NULL,
    PTR,
    VOID,
    Function,
    Pointer,
    Prototype,
    module,
)
from mbs_dynamics.compiler.codegen.llvm_body import WIDTH, Body

BODY = Prototype("", I32, PTR)
"""A program's function, for one state or several: it is given the addresses of all ports."""

LOOP = Prototype(
    *("mbs.loop", I64, BODY, I64, Pointer(PTR), Pointer(I64), I64, I64, Pointer(PTR), Pointer(I64))
)
COPY = Prototype("memcpy", PTR, PTR, PTR, I64)

SIN, COS = Prototype("sin", DOUBLE, DOUBLE), Prototype("cos", DOUBLE, DOUBLE)
LIBRARY = f"declare {SIN}\ndeclare {COS}\n"

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
    large = _sines_and_cosines_of_large_angles(lanes)
    return (
        f"declare {real} @llvm.fabs.{body.sqrt}({real})\n{large}"
        f"define void @mbs.sincos{lanes}({real} %x, ptr %out) nounwind {{\nentry:\n"
        + "\n".join(body.lines)
        + "\n}\n"
    )


def _sines_and_cosines_of_large_angles(lanes: int) -> Function:
    """Return ``void mbs.far<lanes>(x, out)``: those of lanes beyond the range, or of NaN."""
    body = Body(lanes)
    prototype = Prototype(f"mbs.far{lanes}", VOID, body.real, Pointer(DOUBLE))
    f = Function(prototype, attributes="noinline cold")
    x, out = f.parameters
    size = f.new(body.real, f"call {body.real} @llvm.fabs.{body.sqrt}({x})")
    far = f.new(body.bit, f"fcmp ugt {size}, {body.constant(TRIG_RANGE)}")
    with f.loop(lanes) as lane, f.if_(f.new(I1, f"extractelement {far}, {lane}")):
        angle = f.new(DOUBLE, f"extractelement {x}, {lane}")
        out[lane] = f.call(SIN, angle)
        out[lane + lanes] = f.call(COS, angle)
    f.ret()
    return f


def loop_over_states() -> Function:
    """Return ``i64 mbs.loop(function, states, pointers, strides, ports, guards, staging, sizes)``.

    It evaluates one state after the other by a function that :func:`codegen.llvm.emit_llvm`
    wrote. ``pointers`` holds the address of each port, ``strides`` the bytes from one state to the
    next in each (0 to use the same one for all). An output for which ``staging`` has an address,
    not null, is written there, ``sizes`` of bytes, and copied to where it belongs: a cache keeps
    what is written in any order, and memory is written from one end to the other. It returns 0, or
    for the first state i at which the guard k fails, i times the number of guards, plus k. It
    returns -1 if there is no memory.
    """
    f = Function(LOOP, exported=True)
    function, states, pointers, strides, ports, guards, staging, sizes = f.parameters
    home, now = f.array(PTR, ports), f.array(PTR, ports)
    with f.loop(ports) as k:
        home[k] = pointers[k]
        now[k] = f.select(staging[k] == NULL, home[k], staging[k], PTR)
    with f.loop(states) as state:
        status = f.call(function, now)
        with f.if_(status != 0):
            f.ret(f.select(status < 0, -1, state * guards + status.to(I64)))
        with f.loop(ports) as k:
            following = home[k].byte(strides[k])
            with f.if_(staging[k] == NULL):
                now[k] = following
            with f.else_():
                f.call(COPY, home[k], staging[k], sizes[k])
            home[k] = following
    f.ret(0)
    return f


def emit_shared() -> str:
    """Return the IR of the loop, and of the sines and cosines of bodies of one state."""
    return LIBRARY + emit_sines_and_cosines(WIDTH) + module([loop_over_states()])
