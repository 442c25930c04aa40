# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The inertia of a rigid body: ten parameters, on numbers and on traced symbols alike."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from mbs_dynamics import checks
from mbs_dynamics.checks import FloatArray
from mbs_dynamics.errors import ModelError
from mbs_dynamics.lie import so3
from mbs_dynamics.lie.arrays import Array, symmetric
from mbs_dynamics.model.values import Value, frozen

SEMIDEFINITE_TOLERANCE = 1e-9
"""Size of negative eigenvalues, relative to the largest, that count as rounding."""


@dataclass(frozen=True, eq=False)
class Inertia(Value):
    """Mass, first moment and tensor of a rigid body about the origin of a frame, in SI units.

    The matrix of Mueller (dynamics), eq. (40), is M = [[Theta, m d~], [-m d~, m I]], with the
    centre of mass d and the tensor Theta about the origin of the frame. ``inertia @ V`` is the
    momentum co-screw of a twist V, angular part first.
    """

    mass: Any
    moment: Array
    """(3,) first moment m d, in kg m."""
    tensor: Array
    """(3, 3) symmetric tensor Theta about the origin of the frame, in kg m^2."""

    def __post_init__(self) -> None:
        for name in ("moment", "tensor"):
            object.__setattr__(self, name, frozen(np.array(getattr(self, name))))

    @classmethod
    def zero(cls) -> Inertia:
        """Return zero inertia."""
        return cls(0.0, np.zeros(3), np.zeros((3, 3)))

    @classmethod
    def from_com(
        cls, mass: float, com: ArrayLike, inertia_at_com: ArrayLike, of: str = ""
    ) -> Inertia:
        """Return the inertia from mass, centre of mass (3,) and tensor (3, 3) about that centre.

        The axes of ``inertia_at_com`` are those of the frame. The parallel-axis theorem is Theta =
        Theta_c - m d~ d~, below eq. (40) of Mueller (dynamics). Raises ArgumentError for wrong
        shapes and non-finite numbers, ModelError for a negative mass or a tensor that is not
        symmetric; ``of``, such as ``" of table[0]"``, follows the name of the argument in their
        messages. :meth:`violations` checks whether the tensor is positive semidefinite.
        """
        m = checks.number(f"mass{of}", mass)
        d = checks.numbers(f"com{of}", com, (3,))
        Theta_c = checks.numbers(f"inertia_at_com{of}", inertia_at_com, (3, 3))
        if m < 0.0:
            raise ModelError(f"mass{of} must not be negative; got {m:g} kg")
        if np.abs(Theta_c - Theta_c.T).max() > SEMIDEFINITE_TOLERANCE * np.abs(Theta_c).max():
            raise ModelError(f"inertia_at_com{of} must be symmetric; got {Theta_c.tolist()}")
        d_hat = so3.hat(d)
        return cls(m, m * d, 0.5 * (Theta_c + Theta_c.T) - m * d_hat @ d_hat)

    @classmethod
    def from_matrix(cls, M_body: ArrayLike, name: str = "M_body") -> Inertia:
        """Return the inertia from the matrix of Mueller (dynamics), eq. (40), shape (6, 6).

        Raises ModelError, with the ``name`` of the matrix, if it does not have the structure of
        that equation or is not positive semidefinite.
        """
        M = checks.numbers(name, M_body, (6, 6))
        inertia = cls(float(M[3, 3]), so3.vee(M[:3, 3:]), 0.5 * (M[:3, :3] + M[:3, :3].T))
        scale = max(float(np.abs(M).max()), 1e-300)
        if np.abs(inertia.matrix() - M).max() > SEMIDEFINITE_TOLERANCE * scale:
            raise ModelError(
                f"{name} is not the inertia of a rigid body: it must be symmetric, with blocks "
                f"[[Theta, m d~], [-m d~, m I]]; got {M.tolist()}"
            )
        if inertia.mass < 0.0 or (inertia.mass == 0.0 and inertia.moment.any()):
            raise ModelError(
                f"{name} is not positive semidefinite: its mass is {inertia.mass:g} kg, its first "
                f"moment {inertia.moment.tolist()} kg m"
            )
        violations = inertia.violations()
        if violations and "semidefinite" in violations[0]:
            raise ModelError(f"{name}: {violations[0]}")
        return inertia

    @classmethod
    def from_parameters(cls, parameters: Array) -> Inertia:
        """Return the inertia from the ten :attr:`parameters`, numbers or symbols."""
        m, x, y, z, xx, xy, xz, yy, yz, zz = parameters
        tensor = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
        return cls(m, np.array([x, y, z]), tensor)

    @property
    def parameters(self) -> Array:
        """(10,) m, m d (3), and xx, xy, xz, yy, yz, zz of the tensor about the frame's origin.

        The equations of motion are linear in these ten.
        """
        T = self.tensor
        entries = [T[0, 0], T[0, 1], T[0, 2], T[1, 1], T[1, 2], T[2, 2]]
        return np.array([self.mass, *self.moment, *entries])

    @property
    def com(self) -> FloatArray:
        """(3,) centre of mass in the frame, in m; zero for a massless body."""
        return np.asarray(self.moment / self.mass) if self.mass > 0.0 else np.zeros(3)

    @property
    def tensor_at_com(self) -> FloatArray:
        """(3, 3) tensor about the centre of mass, axes of the frame, in kg m^2."""
        if not self.mass > 0.0:
            return np.asarray(self.tensor)
        d_hat = so3.hat(self.moment)
        return np.asarray(self.tensor + d_hat @ d_hat / self.mass)

    def matrix(self) -> Array:
        """(6, 6) matrix M of Mueller (dynamics), eq. (40)."""
        c = so3.hat(self.moment)
        return np.block([[self.tensor, c], [-c, self.mass * np.eye(3)]])

    @property
    def second_moments(self) -> Array:
        """(3, 3) 1/2 tr(Theta) I - Theta, the integral of x x^T over the mass, in kg m^2."""
        T = self.tensor
        x, y, z = T[0, 0], T[1, 1], T[2, 2]
        S = -T
        S[0, 0], S[1, 1], S[2, 2] = 0.5 * (y + z - x), 0.5 * (x + z - y), 0.5 * (x + y - z)
        return S

    def __add__(self, other: Inertia) -> Inertia:
        return Inertia(
            self.mass + other.mass, self.moment + other.moment, self.tensor + other.tensor
        )

    def __sub__(self, other: Inertia) -> Inertia:
        return Inertia(
            self.mass - other.mass, self.moment - other.moment, self.tensor - other.tensor
        )

    def __matmul__(self, V: Array) -> Array:
        """Momentum co-screw (6,) of the twist V (6,): (Theta w + m d x v, m v - m d x w)."""
        omega, v = V[:3], V[3:]
        c = so3.hat(self.moment)
        return np.concatenate([self.tensor @ omega + c @ v, self.mass * v - c @ omega])

    def rate(self, V: Array) -> Inertia:
        """Return -ad_V^T M - M ad_V, the rate along the twist V (6,), an inertia without mass."""
        omega, v = V[:3], V[3:]
        half = so3.hat(omega) @ self.tensor - so3.hat(self.moment) @ so3.hat(v)
        return Inertia(0.0, (self @ V)[3:], symmetric(half + half.T))

    def rotated(self, R: Array) -> Inertia:
        """Return the same inertia resolved in axes turned by R: Ad_R^-T M Ad_R^-1."""
        return Inertia(self.mass, R @ self.moment, symmetric(so3.conjugate(R, self.tensor)))

    def shifted(self, r: Array) -> Inertia:
        """Return the inertia about the point that is at -r, that is Ad_r^-T M Ad_r^-1.

        ``r`` (3,) is the position of the present origin seen from the new one.
        """
        c_hat, r_hat = so3.hat(self.moment), so3.hat(r)
        moment = self.moment + self.mass * r
        # -m (d+r)~ (d+r)~ + m d~ d~, written without a division by the mass
        change = symmetric(-(r_hat @ c_hat + so3.hat(moment) @ r_hat))
        return Inertia(self.mass, moment, self.tensor + change)

    def transformed(self, C: Array) -> Inertia:
        """Return the inertia seen from the frame in which this one has the pose C (4, 4).

        Ad_C^-T M Ad_C^-1, Mueller (dynamics), eqs. (40) and (71a).
        """
        return self.rotated(C[:3, :3]).shifted(C[:3, 3])

    def violations(self) -> list[str]:
        """Return the worst violation of physical laws as a list; empty for a possible body."""
        lowest, middle, highest = np.linalg.eigvalsh(self.tensor_at_com)
        slack = SEMIDEFINITE_TOLERANCE * max(
            float(np.abs(self.tensor).max()), float(np.abs(self.tensor_at_com).max())
        )
        moments = f"{lowest:.4g}, {middle:.4g}, {highest:.4g} kg m^2"
        if lowest < -slack - 1e-15:
            return [f"inertia is not positive semidefinite (principal moments {moments})"]
        if highest > lowest + middle + slack + 1e-15:
            return [
                "inertia breaks the triangle inequality: no distribution of mass has the "
                f"principal moments {moments}"
            ]
        return []


def spatial_inertia(mass: float, com: ArrayLike, inertia_at_com: ArrayLike) -> FloatArray:
    """Return the (6, 6) inertia matrix about the origin of the body frame, angular part first.

    ``mass`` in kg; ``com`` (3,) in m, in the body frame; ``inertia_at_com`` (3, 3) in kg m^2 about
    the centre of mass, with axes parallel to the body frame. Mueller (dynamics), eq. (40). Raises
    ArgumentError for wrong shapes or non-finite numbers, ModelError for a negative mass or an
    inertia that is not symmetric and positive semidefinite.
    """
    M = np.asarray(Inertia.from_com(mass, com, inertia_at_com).matrix())
    Inertia.from_matrix(M, "inertia_at_com")  # positive semidefinite
    return M
