# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The group of rigid-body motions SE(3): screws, adjoints, exp, log, dexp and its inverse.

Poses C (..., 4, 4) map body to inertial coordinates; twists and screws (..., 6) have the angular
part first. All functions take floats, with leading batch axes, and arrays of traced symbols, except
for :func:`screw_parameters`, which takes floats only.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from mbs_dynamics.compiler import Symbol, cos, sin
from mbs_dynamics.lie import series, so3
from mbs_dynamics.lie.arrays import Array, shaped, square, symmetric, times

PITCH_TOLERANCE = 1e-14
TRANSLATION_TOLERANCE = 1e-9
"""Angular part, relative to the linear part in m, of a screw that counts as a translation."""


def pose(R: Array, r: Array) -> Array:
    """Return the pose C = (R, r) of rotation R (..., 3, 3) and translation r (..., 3)."""
    R, r = np.asarray(R), np.asarray(r)
    batch = np.broadcast_shapes(R.shape[:-2], r.shape[:-1])
    symbolic = "O" in (R.dtype.kind, r.dtype.kind)
    C = np.full((*batch, 4, 4), 0.0, dtype=object if symbolic else np.float64)
    C[..., :3, :3], C[..., :3, 3], C[..., 3, 3] = R, r, 1.0
    return C


def inverse(C: Array) -> Array:
    """Return C^-1 = (R^T, -R^T r): Mueller (kinematics), eq. (62), with superscripts restored."""
    R = np.swapaxes(C[..., :3, :3], -1, -2)
    return pose(R, -(R @ C[..., :3, 3:])[..., 0])


def hat(X: Array) -> Array:
    """Return the matrix X^ (..., 4, 4) of a screw X (..., 6)."""
    X = np.asarray(X)
    A = pose(so3.hat(X[..., :3]), X[..., 3:])
    A[..., 3, 3] = 0.0
    return A


def vee(A: Array) -> Array:
    """Return the screw (..., 6) of a matrix of se(3): the inverse of :func:`hat`."""
    A = np.asarray(A)
    return np.concatenate([so3.vee(A[..., :3, :3]), A[..., :3, 3]], axis=-1)


def Ad(C: Array) -> Array:
    """Return Ad_C = [[R, 0], [r~ R, R]] (..., 6, 6): Mueller (kinematics), eq. (73)."""
    C = np.asarray(C)
    R = C[..., :3, :3]
    return _lower(R, so3.hat(C[..., :3, 3]) @ R)


def ad(X: Array) -> Array:
    """Return ad_X = [[xi~, 0], [eta~, xi~]] (..., 6, 6), so that ad_X Y = [X, Y]."""
    X = np.asarray(X)
    return _lower(so3.hat(X[..., :3]), so3.hat(X[..., 3:]))


def ad_dual(P: Array) -> Array:
    """Return the matrix (6, 6) that maps a twist X to -ad_X^T P, for a co-screw P (6,)."""
    h, p = so3.hat(P[:3]), so3.hat(P[3:])
    return np.block([[-h, -p], [-p, np.zeros((3, 3))]])


def reciprocal_product(X: Array, Y: Array) -> Array:
    """Return xi_1^T eta_2 + eta_1^T xi_2 (...) of two screws (..., 6): zero if reciprocal.

    Mueller (dynamics), appendix B.2. For a wrench (t, f) as the screw Y = (f, t), it is the power
    of the wrench on the twist X. Axes of screws without pitch intersect or are parallel if they
    are reciprocal.
    """
    X, Y = shaped(X=(X, (6,)), Y=(Y, (6,)))
    return (X * np.roll(Y, 3, axis=-1)).sum(axis=-1)


class ScrewParameters(NamedTuple):
    """Axis, pitch and magnitude of a screw: (e, p x e + h e) times its magnitude."""

    point: Array
    """p (..., 3), the point of the axis nearest to the origin, in m; zero for a translation."""
    direction: Array
    """e (..., 3), a unit vector; zero for the zero screw."""
    pitch: Array
    """h (...) in m/rad; infinite for a translation, whose screw is (0, e), and zero at rest."""
    magnitude: Array
    """(...) norm of the angular part, or of the linear part of a translation."""


def screw_parameters(X: Array) -> ScrewParameters:
    """Return axis, pitch and magnitude of screws X (..., 6) of floats, such as spatial twists.

    Mueller (dynamics), appendix B.2. A wrench (t, f) is the screw (f, t). An angular part below
    ``TRANSLATION_TOLERANCE`` times the linear part counts as zero.

    :raises ArgumentError: for a wrong shape.
    """
    (X,) = shaped(X=(np.asarray(X, dtype=float), (6,)))
    xi, eta = X[..., :3], X[..., 3:]
    turn, slide = np.linalg.norm(xi, axis=-1), np.linalg.norm(eta, axis=-1)
    translates = turn <= TRANSLATION_TOLERANCE * slide
    magnitude = np.where(translates, slide, turn)
    length = np.where(magnitude == 0.0, 1.0, magnitude)[..., None]
    direction = np.where(translates[..., None], eta, xi) / length
    moment = np.where(translates[..., None], 0.0, eta) / length
    infinite = np.where(translates & (slide > 0.0), np.inf, 0.0)
    pitch = (direction * moment).sum(axis=-1) + infinite
    return ScrewParameters(np.cross(direction, moment), direction, pitch, magnitude)


class InverseAdjoint(NamedTuple):
    """Ad_C^-1 for C = (R, r), applied to a twist without forming the matrix.

    It transforms a twist to the frame with pose C. The transpose ``.T`` transforms a wrench in the
    opposite direction. This needs fewer operations than products with (6, 6) matrices.
    """

    R: Array
    r: Array
    factors: tuple[Array, ...] = ()
    """Rotation matrices with product R, applied in succession; empty if R is applied itself."""

    @property
    def rotations(self) -> tuple[Array, ...]:
        """The factors of R, at least one."""
        return self.factors or (self.R,)

    def after(self, other: InverseAdjoint) -> InverseAdjoint:
        """Return the map that applies ``other`` first: Ad_C^-1 Ad_D^-1 = Ad_(D C)^-1."""
        return InverseAdjoint(other.R @ self.R, other.r + other.R @ self.r)

    def rotated(self, x: Array) -> Array:
        """R^T x of a vector x (3,)."""
        for R in self.rotations:
            x = R.T @ x
        return x

    def back(self, x: Array) -> Array:
        """R x of a vector x (3,)."""
        for R in reversed(self.rotations):
            x = R @ x
        return x

    def __matmul__(self, V: Array) -> Array:
        """Ad_C^-1 V = (R^T omega, R^T (v - r cross omega)) of a twist V (6,)."""
        omega, v = V[:3], V[3:]
        return np.concatenate([self.rotated(omega), self.rotated(v - so3.hat(self.r) @ omega)])

    def undone(self, V: Array) -> Array:
        """Ad_C V = (R omega, R v + r cross R omega) of a twist V (6,): the inverse map."""
        omega = self.back(V[:3])
        return np.concatenate([omega, self.back(V[3:]) + so3.hat(self.r) @ omega])

    def congruence(self, M: Array) -> Array:
        """Ad_C^-T M Ad_C^-1 of a symmetric M (6, 6): transforms an inertia out of the frame."""
        r = so3.hat(self.r)
        A, B, D = self.conjugate(M[:3, :3]), self.conjugate(M[:3, 3:]), self.conjugate(M[3:, 3:])
        B_moved = B + r @ D
        A_moved = symmetric(A - B_moved @ r + r @ B.T)
        return np.block([[A_moved, B_moved], [B_moved.T, symmetric(D)]])

    def conjugate(self, A: Array) -> Array:
        """R A R^T of a matrix A (3, 3)."""
        for R in reversed(self.rotations):
            A = so3.conjugate(R, A)
        return A

    @property
    def T(self) -> InverseAdjointTranspose:
        """Ad_C^-T, which transforms a wrench out of the frame with pose C."""
        return InverseAdjointTranspose(self)


class InverseAdjointTranspose(NamedTuple):
    """Ad_C^-T, applied to a wrench without forming the matrix; see :class:`InverseAdjoint`."""

    of: InverseAdjoint

    def __matmul__(self, W: Array) -> Array:
        """Ad_C^-T W = (R t + r cross R f, R f) of a wrench W (6,) = (t, f)."""
        f = self.of.back(W[3:])
        return np.concatenate([self.of.back(W[:3]) + so3.hat(self.of.r) @ f, f])

    def undone(self, W: Array) -> Array:
        """Ad_C^T W = (R^T (t - r cross f), R^T f) of a wrench W (6,): the inverse map."""
        C, f = self.of, W[3:]
        return np.concatenate([C.rotated(W[:3] - so3.hat(C.r) @ f), C.rotated(f)])


def exp(X: Array) -> Array:
    """Return the pose exp(X^) of a screw of any length: Mueller (kinematics), eqs. (69), (70)."""
    X = np.asarray(X)
    x, y = X[..., :3], X[..., 3:]
    return pose(so3.exp(x), (so3.dexp(x) @ y[..., None])[..., 0])


def exp_screw(X: Array, q: Any) -> Array:
    """Return the pose exp(X^ q) of a joint with constant unit screw X (6,) and position q.

    Entries of X may be symbols; entries that are always zero must be floats. Mueller (kinematics),
    eq. (69) for finite pitch, eq. (70) for a prismatic joint. The form with e e^T = I + e~ e~ keeps
    zeros and ones exact if the axis is a coordinate axis.
    """
    e, m = np.asarray(X[:3]), np.asarray(X[3:])
    if not any(isinstance(x, Symbol) or x for x in e):
        return pose(np.eye(3), m * q)
    e_hat = so3.hat(e)
    across = -(e_hat @ e_hat)
    R = (np.eye(3) - across) + cos(q) * across + sin(q) * e_hat
    h = e @ m
    r = (np.eye(3) - R) @ (e_hat @ m)
    pitched = isinstance(h, Symbol) or abs(h) > PITCH_TOLERANCE
    return pose(R, r + h * q * e if pitched else r)


def log(C: Array) -> Array:
    """Return the screw X (..., 6) with exp(X^) = C and an angle of at most pi."""
    C = np.asarray(C)
    x = so3.log(C[..., :3, :3])
    return np.concatenate([x, (so3.dexp_inv(x) @ C[..., :3, 3:])[..., 0]], axis=-1)


def dexp(X: Array) -> Array:
    """Return dexp_X = sum ad_X^m / (m + 1)! (..., 6, 6), so that V^s = dexp_X Xdot for C = exp(X^).

    Mueller (dynamics), eq. (89). It holds for C = exp(X^), not if exp(X^) is an increment on the
    right of another pose.
    """
    X = np.asarray(X)
    return _lower(so3.dexp(X[..., :3]), _dexp_block(X))


def dexp_inv(X: Array) -> Array:
    """Return the inverse of :func:`dexp` (..., 6, 6), for rotation angles below 2 pi."""
    X = np.asarray(X)
    D = so3.dexp_inv(X[..., :3])
    return _lower(D, -(D @ _dexp_block(X) @ D))


def _dexp_block(X: Array) -> Array:
    """Return the lower left block of dexp_X: the derivative of so3.dexp along the linear part."""
    a, b = so3.hat(X[..., :3]), so3.hat(X[..., 3:])
    angle2 = square(X[..., :3])
    ab, ba = a @ b, b @ a
    aba = ab @ a
    return (
        0.5 * b
        + times(series.sinc3(angle2), ab + ba + aba)
        + times(series.cosc4(angle2), a @ ab + ba @ a - 3.0 * aba)
        + times(series.sinc5(angle2), aba @ a + a @ aba)
    )


def _lower(A: Array, B: Array) -> Array:
    """Return [[A, 0], [B, A]]."""
    return np.block([[A, np.zeros(np.shape(A))], [B, A]])
