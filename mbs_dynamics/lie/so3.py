# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The rotation group SO(3): hat, exp, log, dexp and its inverse.

Rotation vectors x (..., 3) are axis times angle, in rad; matrices R (..., 3, 3). All functions take
floats, with leading batch axes, and arrays of traced symbols. All are accurate to rounding at every
angle, also near zero and near pi.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mbs_dynamics.compiler import atan2, less, select, sqrt
from mbs_dynamics.lie import series
from mbs_dynamics.lie.arrays import Array, square, times

TINY = 1e-24
"""Squared length of the vector part of a quaternion below which its angle is linear in it."""


def hat(x: Array) -> Array:
    """Return the skew matrix x~ (..., 3, 3) with x~ y = x cross y."""
    x = np.asarray(x)
    a, b, c = np.moveaxis(x, -1, 0)
    zero = 0.0 * a
    X = np.array([[zero, -c, b], [c, zero, -a], [-b, a, zero]], dtype=x.dtype)
    return np.moveaxis(X, (0, 1), (-2, -1))


def vee(A: Array) -> Array:
    """Return the vector (..., 3) of a skew matrix: the inverse of :func:`hat`."""
    A = np.asarray(A)
    return np.stack([A[..., 2, 1], A[..., 0, 2], A[..., 1, 0]], axis=-1)


def exp(x: Array) -> Array:
    """Return the rotation matrix of a rotation vector: Mueller (kinematics), eq. (64)."""
    X, angle2 = hat(x), square(x)
    return np.eye(3) + times(series.sinc(angle2), X) + times(series.cosc(angle2), X @ X)


def log(R: Array) -> Array:
    """Return the rotation vector of a rotation matrix, with an angle of at most pi.

    At pi both signs of the axis are logarithms; one of them is returned. The unit quaternion is
    computed from its largest component (Shepperd), because the trace alone loses half the digits
    near zero and near pi.
    """
    w, v = _quaternion(np.asarray(R))
    return _log(w, v, 2.0 + 0.0 * w)  # w is 1 to rounding where v is zero


def quaternion_log(q: Array) -> Array:
    """Return the rotation vector (..., 3), of an angle of at most pi, of a quaternion (..., 4).

    The quaternion x, y, z, w need not have unit length.
    """
    q = np.asarray(q)
    sign = select(less(q[..., 3], 0.0), -1.0, 1.0)
    w, v = sign * q[..., 3], times(sign, q[..., :3], 1)
    return _log(w, v, 2.0 / select(less(square(v), TINY), w, 1.0))


def _log(w: Array, v: Array, limit: Array) -> Array:
    """Return 2 atan2(n, w) v / n with n = |v|; ``limit`` is 2 atan2(n, w) / n for n = 0."""
    n2 = square(v)
    tiny = less(n2, TINY)
    n = sqrt(select(tiny, 1.0, n2))
    scale = select(tiny, limit, 2.0 * atan2(n, w) / n)
    return times(scale, v, axes=1)


def dexp(x: Array) -> Array:
    """Return the right-trivialised differential (..., 3, 3): omega^s = dexp(x) xdot.

    omega^s~ = Rdot R^T for R = exp(x~); below eq. (89) of Mueller (dynamics), for SO(3).
    """
    X, angle2 = hat(x), square(x)
    return np.eye(3) + times(series.cosc(angle2), X) + times(series.sinc3(angle2), X @ X)


def dexp_inv(x: Array) -> Array:
    """Return the inverse of :func:`dexp` (..., 3, 3), for angles below 2 pi."""
    X = hat(x)
    return np.eye(3) - 0.5 * X + times(series.cotc(square(x)), X @ X)


def conjugate(R: Array, A: Array) -> Array:
    """Return the product R A R^T of any A (3, 3).

    If R turns about a coordinate axis by an angle with cosine c and sine s, the block
    [[a, b], [b', d]] across it becomes [[a - s u, c u - b'], [c u - b, d + s u]] with
    u = s (a - d) + c (b + b'). This takes half the operations of the two products.
    """
    k = _axis(R)
    if k is None:
        return R @ A @ R.T
    i, j = (k + 1) % 3, (k + 2) % 3
    c, s = R[i, i], R[j, i]
    u = s * (A[i, i] - A[j, j]) + c * (A[i, j] + A[j, i])
    B = np.array(A, dtype=np.result_type(R, A))
    B[i, i], B[i, j] = A[i, i] - s * u, c * u - A[j, i]
    B[j, i], B[j, j] = c * u - A[i, j], A[j, j] + s * u
    B[i, k], B[j, k] = c * A[i, k] - s * A[j, k], s * A[i, k] + c * A[j, k]
    B[k, i], B[k, j] = c * A[k, i] - s * A[k, j], s * A[k, i] + c * A[k, j]
    return B


def _axis(R: Array) -> int | None:
    """Return the coordinate axis of a rotation matrix, unless its angle is a multiple of pi/2."""
    for k in range(3):
        others = [R[k, j] for j in range(3) if j != k] + [R[j, k] for j in range(3) if j != k]
        if _is(R[k, k], 1.0) and all(_is(x, 0.0) for x in others):
            quarter = any(_is(R[(k + 1) % 3, j], 0.0) for j in range(3) if j != k)
            return None if quarter else k  # products with 0, 1 and -1 cost nothing
    return None


def _is(x: Any, value: float) -> bool:
    return isinstance(x, float) and x == value


def sparse_factors(A: Array, B: Array) -> tuple[Array, ...]:
    """Return the rotation matrices to apply in succession, or none if A B is cheaper.

    A rotation about a coordinate axis has four zeros, and a permutation of axes six. Two rotations
    about the same axis are cheaper as one.
    """
    a, b, product = (sum(_is(x, 0.0) for x in R.flat) for R in (A, B, A @ B))
    return (A, B) if min(a, b) >= 4 and (a == 6 or product < 4) else ()


def to_quaternion(R: Array) -> Array:
    """Return the unit quaternion x, y, z, w (..., 4) of a rotation matrix, w not negative."""
    w, v = _quaternion(np.asarray(R))
    return np.concatenate([v, w[..., None]], axis=-1)


def from_quaternion(q: Array, length2: Array | None = None) -> Array:
    """Return the rotation matrix (..., 3, 3) of a quaternion x, y, z, w (..., 4) of any length.

    ``length2`` is its squared length, if known already.
    """
    q = np.asarray(q)
    v, w = q[..., :3], q[..., 3]
    scale = 2.0 / (square(v) + w * w if length2 is None else length2)
    V = hat(v)
    return np.eye(3) + times(scale, times(w, V) + V @ V)


def quaternion_product(p: Array, q: Array) -> Array:
    """Return the quaternion (..., 4) of the rotation q followed by p: R(p) R(q)."""
    p, q = np.asarray(p), np.asarray(q)
    a, b, u, v = p[..., 3:], q[..., 3:], p[..., :3], q[..., :3]
    vector = a * v + b * u + (hat(u) @ v[..., None])[..., 0]
    return np.concatenate([vector, a * b - (u * v).sum(-1, keepdims=True)], axis=-1)


def quaternion_exp(x: Array) -> Array:
    """Return the unit quaternion x, y, z, w (..., 4) of a rotation vector (..., 3)."""
    half = 0.5 * np.asarray(x)
    angle2 = square(half)
    cosine = np.asarray(1.0 - angle2 * series.cosc(angle2))
    return np.concatenate([times(series.sinc(angle2), half, 1), cosine[..., None]], axis=-1)


def _quaternion(R: Array) -> tuple[Array, Array]:
    """Return the unit quaternion (w, v) of a rotation matrix, w not negative."""
    a, b, c = R[..., 0, 0], R[..., 1, 1], R[..., 2, 2]
    transpose = np.swapaxes(R, -1, -2)
    x, y, z = np.moveaxis(vee(R - transpose), -1, 0)
    twice = R + transpose  # the symmetric part
    xy, xz, yz = twice[..., 0, 1], twice[..., 0, 2], twice[..., 1, 2]
    # 4 q_k times the quaternion, for k = w, x, y, z; the largest pivot is the most accurate
    candidates = [
        (1.0 + a + b + c, x, y, z),
        (x, 1.0 + a - b - c, xy, xz),
        (y, xy, 1.0 - a + b - c, yz),
        (z, xz, yz, 1.0 - a - b + c),
    ]
    best, pivot = candidates[0], candidates[0][0]
    for k in (1, 2, 3):
        better = less(pivot, candidates[k][k])
        best = tuple(select(better, p, q) for p, q in zip(candidates[k], best, strict=True))
        pivot = select(better, candidates[k][k], pivot)
    length = sqrt(sum(p * p for p in best[1:]) + best[0] * best[0])
    signed = select(less(best[0], 0.0), -1.0 * length, length)
    w, *v = (p / signed for p in best)
    return w, np.stack(v, axis=-1)
