# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Machine code that all kernels of a process share: sine and cosine, and the loop over states."""

from __future__ import annotations

import math
from collections.abc import Sequence

from mbs_dynamics.compiler.codegen.builder import (
    DOUBLE,
    I1,
    I32,
    I64,
    PTR,
    VOID,
    Function,
    Pointer,
    Prototype,
    Value,
    module,
    name_of,
    vector,
)

BODY = Prototype("", I32, PTR)
"""A program's function, for one state or several: it is given the addresses of all ports."""

LOOP = Prototype("mbs.loop", I64, BODY, I64, Pointer(PTR), Pointer(I64), I64, I64)

SIN, COS = Prototype("sin", DOUBLE, DOUBLE), Prototype("cos", DOUBLE, DOUBLE)

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


def sines_and_cosines(lanes: int) -> list[Function]:
    """Return ``void mbs.sincos<lanes>(<lanes x double> x, ptr out)``, after what it calls.

    It writes the sines of x to ``out``, and behind them the cosines. Where an absolute angle is
    beyond :data:`TRIG_RANGE`, or none, the C library is asked, by a function of its own: what that
    keeps on the stack would take as long as a tenth of the rest.
    """
    angles = vector(lanes, DOUBLE)
    f = Function(Prototype(f"mbs.sincos{lanes}", VOID, angles, Pointer(angles)), exported=True)
    far = Function(Prototype(f"mbs.far{lanes}", VOID, angles, PTR), attributes="noinline cold")
    x, out = f.parameters
    out[0], out[1] = _sine_and_cosine(f, x, lanes)
    mask = f.new(f"i{lanes}", f"bitcast {_is_far(f, x, lanes)} to i{lanes}")
    with f.if_(mask != 0):
        f.call(far.prototype, x, out)
    f.ret()
    _ask_the_library(far, lanes)
    return [far, f]


def _sine_and_cosine(f: Function, x: Value, lanes: int) -> tuple[Value, Value]:
    """Emit both for |x| <= TRIG_RANGE, without a branch: Cody-Waite reduction, fdlibm."""
    words, bits, angles = vector(lanes, I64), vector(lanes, I1), x.kind
    shifted = x * (2.0 / math.pi) + ROUND
    quadrants = shifted - ROUND
    r = x
    for part in HALF_PI:
        r = f.product_plus(quadrants, -part, r)
    z = r * r
    polynomial = _polynomial(f, z, SIN_POLYNOMIAL)  # what takes longest is begun first
    sine = f.product_plus(r * z, polynomial, r)
    polynomial = _polynomial(f, z, COS_POLYNOMIAL)
    half = z * 0.5
    w = f.operand(1.0, angles) - half
    lost = f.operand(1.0, angles) - w - half
    cosine = w + f.product_plus(z * z, polynomial, lost)
    number = f.new(words, f"bitcast {shifted} to {words}")
    odd = f.new(bits, f"trunc {number} to {bits}")

    def signed(value: Value, quadrant: Value) -> Value:
        sign = quadrant.binary("shl", 62) & -(2**63)
        raw = f.new(words, f"bitcast {value} to {words}").binary("xor", sign)
        return f.new(angles, f"bitcast {raw} to {name_of(angles)}")

    return (
        signed(f.select(odd, cosine, sine, angles), number),
        signed(f.select(odd, sine, cosine, angles), number + 1),
    )


def _polynomial(f: Function, z: Value, coefficients: Sequence[float]) -> Value:
    """Emit Horner's scheme in z and return the value."""
    value = f.operand(coefficients[-1], z.kind)
    for c in reversed(coefficients[:-1]):
        value = f.product_plus(value, z, c)
    return value


def _is_far(f: Function, x: Value, lanes: int) -> Value:
    """Emit whether angles are beyond the range, or NaN."""
    absolute = f.call(Prototype(f"llvm.fabs.v{lanes}f64", x.kind, x.kind), x)
    limit = f.operand(TRIG_RANGE, x.kind)
    return f.new(vector(lanes, I1), f"fcmp ugt {absolute}, {limit.text}")


def _ask_the_library(f: Function, lanes: int) -> None:
    """Emit the body of ``void mbs.far<lanes>(x, out)``: those of lanes that are far."""
    x, out = f.parameters[0], f.parameters[1].to(Pointer(DOUBLE))
    far = _is_far(f, x, lanes)
    with f.loop(lanes) as lane, f.if_(f.new(I1, f"extractelement {far}, {lane}")):
        angle = f.new(DOUBLE, f"extractelement {x}, {lane}")
        out[lane] = f.call(SIN, angle)
        out[lane + lanes] = f.call(COS, angle)
    f.ret()


def loop_over_states() -> Function:
    """Return ``i64 mbs.loop(function, states, pointers, strides, ports, guards)``.

    It evaluates one state after the other by a function that :mod:`codegen.llvm` printed.
    ``pointers`` holds the address of each port, ``strides`` the bytes from one state to the next in
    each (0: all share the same one). It returns 0, or for the first state i at which the guard k
    fails, i times the number of guards, plus k; or -1 if there is no memory.
    """
    f = Function(LOOP, exported=True)
    function, states, pointers, strides, ports, guards = f.parameters
    now = f.array(PTR, ports)
    with f.loop(ports) as k:
        now[k] = pointers[k]
    with f.loop(states) as state:
        status = f.call(function, now)
        with f.if_(status != 0):
            f.ret(f.select(status < 0, -1, state * guards + status.to(I64)))
        with f.loop(ports) as k:
            now[k] = now[k].byte(strides[k])
    f.ret(0)
    return f


def emit_loop() -> str:
    """Return the IR of the loop over states."""
    return module([loop_over_states()])


def emit_sines(lanes: int) -> str:
    """Return the IR of so many sines and cosines at once."""
    return module(sines_and_cosines(lanes))
