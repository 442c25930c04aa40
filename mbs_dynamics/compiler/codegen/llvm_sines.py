# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Sine and cosine of several angles, as functions that all programs share."""

from __future__ import annotations

import math
from collections.abc import Sequence

from mbs_dynamics.compiler.codegen import builder
from mbs_dynamics.compiler.codegen.builder import DOUBLE, I1, I64, VOID, Pointer, Value

SIN, COS = (builder.Prototype(name, DOUBLE, DOUBLE) for name in ("sin", "cos"))

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
"""pi/2 as a sum of three numbers. The first two have 26 bits, so that their products with integers
below 2^27 are exact."""


def sines(lanes: int) -> builder.Prototype:
    """Return ``void mbs.sincos<lanes>(<lanes x double> x, ptr out)``.

    It writes the sines of x to ``out``, and behind them the cosines.
    """
    angles = builder.vector(lanes, DOUBLE)
    return builder.Prototype(f"mbs.sincos{lanes}", VOID, angles, Pointer(angles))


def emit_sines(lanes: int) -> str:
    """Return the IR of the function :func:`sines`.

    Absolute angles beyond :data:`TRIG_RANGE`, and NaN, are passed to the C library.
    """
    f = builder.Function(sines(lanes), exported=True)
    x, out = f.parameters
    out[0], out[1] = _sine_and_cosine(f, x, lanes)
    absolute = f.call(builder.Prototype(builder.intrinsic("fabs", x.kind), x.kind, x.kind), x)
    limit = f.operand(TRIG_RANGE, x.kind)
    far = f.new(builder.vector(lanes, I1), f"fcmp ugt {absolute}, {limit.text}")
    numbers = out.to(Pointer(DOUBLE))
    with f.if_(far.cast("bitcast", f"i{lanes}") != 0), f.loop(lanes) as lane, f.if_(far.lane(lane)):
        numbers[lane] = f.call(SIN, x.lane(lane))
        numbers[lane + lanes] = f.call(COS, x.lane(lane))
    f.ret()
    return builder.module([f])


def _sine_and_cosine(f: builder.Function, x: Value, lanes: int) -> tuple[Value, Value]:
    """Emit both for |x| <= TRIG_RANGE, without a branch: Cody-Waite reduction, fdlibm."""
    words, one = builder.vector(lanes, I64), f.operand(1.0, x.kind)
    shifted = x * (2.0 / math.pi) + ROUND
    quadrants = shifted - ROUND
    r = x
    for part in HALF_PI:
        r = f.product_plus(quadrants, -part, r)
    z = r * r
    polynomial = _polynomial(f, z, SIN_POLYNOMIAL)  # the longest chain of operations first
    sine = f.product_plus(r * z, polynomial, r)
    polynomial = _polynomial(f, z, COS_POLYNOMIAL)
    half = z * 0.5
    w = one - half
    cosine = w + f.product_plus(z * z, polynomial, one - w - half)
    number = shifted.cast("bitcast", words)
    odd = number.cast("trunc", builder.vector(lanes, I1))

    def signed(value: Value, quadrant: Value) -> Value:
        sign = quadrant.binary("shl", 62) & -(2**63)
        return value.cast("bitcast", words).binary("xor", sign).cast("bitcast", x.kind)

    return signed(f.select(odd, cosine, sine), number), signed(
        f.select(odd, sine, cosine), number + 1
    )


def _polynomial(f: builder.Function, z: Value, coefficients: Sequence[float]) -> Value:
    """Emit Horner's scheme in z and return the value."""
    value = f.operand(coefficients[-1], z.kind)
    for c in reversed(coefficients[:-1]):
        value = f.product_plus(value, z, c)
    return value
