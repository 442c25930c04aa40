# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Contact of links with planes, as wrenches of a simulation.

    table = ContactPlanes(arm, [Plane((0.0, 0.0, 1.0), 0.2)], step=1e-3)
    motion = simulate(arm, q, duration=1.0, step=1e-3, wrenches=table)

A point at the depth d under a plane is pushed back along the normal by max(0, k d + c dd/dt). The
plane never pulls, has no friction, and returns at most the energy stored in its spring.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

import mbs_dynamics as mbs
from mbs_dynamics import checks
from mbs_dynamics.checks import FloatArray
from mbs_dynamics.errors import ArgumentError
from mbs_dynamics.model.model import Model, body_wrenches
from mbs_dynamics.model.orders import tools

MARGIN = 0.5
"""Accepted share of the stiffness at which forces that are held over steps become unstable."""


@dataclass(frozen=True)
class Plane:
    """A plane that is solid where normal . x < offset, in the inertial frame.

    ``normal`` (3,) has any length but zero, ``offset`` is in m, ``stiffness`` in N/m and
    ``damping`` in N s/m. Raises ArgumentError for invalid values.
    """

    normal: tuple[float, float, float]
    offset: float
    stiffness: float = 1e4
    damping: float = 1e2

    def __post_init__(self) -> None:
        normal = checks.numbers("normal", self.normal, (3,))
        length = float(np.linalg.norm(normal))
        if not length > 0.0:
            raise ArgumentError(f"normal must not be zero; got {normal.tolist()}")
        object.__setattr__(self, "normal", tuple((normal / length).tolist()))
        checks.number("offset", self.offset)
        checks.positive("stiffness", self.stiffness)
        if checks.number("damping", self.damping) < 0.0:
            raise ArgumentError(f"damping must be >= 0; got {self.damping:g}")


class ContactPlanes:
    """A function of t, q (..., n) and qd that returns the wrenches (..., nb, 6) of planes on links.

    ``links`` are the links whose origins touch the planes, by default the tools or hands. ``step``
    in s is that of methods that hold forces over a step: the depth is then the one expected at its
    end, so that a step takes energy rather than adds some. It is 0 for ``dormand_prince``, which
    evaluates laws at every stage. Raises UnknownBodyError for an unknown link, ModelError for one
    that does not move.
    """

    def __init__(
        self,
        model: Model,
        planes: Sequence[Plane],
        links: Sequence[str] = (),
        *,
        step: float = 0.0,
    ) -> None:
        self.model, self.planes, self.step = model, tuple(planes), step
        self.links = tuple(links) or tools(model)
        body_wrenches(model, dict.fromkeys(self.links, np.zeros(6)))  # raises for an invalid link
        self._normals = np.array([plane.normal for plane in planes]).reshape(-1, 3)
        self._offsets, self._stiffness, self._damping = (
            np.array([getattr(plane, name) for plane in planes])
            for name in ("offset", "stiffness", "damping")
        )
        hybrid = {"bodies": self.links, "representation": "hybrid"}
        self._kernel = mbs.compile_together(
            {"C": (mbs.forward_kinematics, {"bodies": self.links}), "V": (mbs.twists, hybrid)},
            model,
        )

    def __call__(self, t: float, q: FloatArray, qd: FloatArray) -> FloatArray:
        """Return the wrenches (..., nb, 6), body-fixed, moment first."""
        return body_wrenches(self.model, self.by_link(q, qd))

    def by_link(self, q: FloatArray, qd: FloatArray) -> dict[str, FloatArray]:
        """Return the wrench (..., 6) on each link at its origin and in its axes, moment first."""
        C, V = self._kernel(q, qd)
        inward = -V[..., 3:] @ self._normals.T
        depth = self._offsets - C[..., :3, 3] @ self._normals.T + self.step * inward
        pushed = np.maximum(self._stiffness * depth + self._damping * inward, 0.0)
        forces = np.where(depth > 0.0, pushed, 0.0) @ self._normals
        forces = np.einsum("...ji,...j->...i", C[..., :3, :3], forces)
        W = np.concatenate([np.zeros_like(forces), forces], axis=-1)
        return {link: W[..., k, :] for k, link in enumerate(self.links)}

    def check_step(self, q: FloatArray) -> None:
        """Raise ArgumentError if forces that are held over steps would be unstable at q (n,).

        A mass m on a plane is stable where 3 k step^2 + 2 c step < 4 m.
        """
        J = np.stack([mbs.jacobian(self.model, q, x, representation="hybrid") for x in self.links])
        J, h = self._normals @ J[:, 3:], self.step
        mobility = np.einsum("kpi,ij,kpj->kp", J, mbs.inverse_mass_matrix(self.model, q), J)
        for plane, each in zip(self.planes, mobility.max(axis=0), strict=True):
            most = (4.0 * MARGIN / max(each, 1e-9) - 2.0 * plane.damping * h) / (3.0 * h * h)
            if plane.stiffness > most:
                raise ArgumentError(
                    f"stiffness is {plane.stiffness:g} N/m for the plane with normal "
                    f"{list(plane.normal)} and damping {plane.damping:g}; steps of {h:g} s bear at "
                    f"most {max(most, 0.0):.3g}"
                )
