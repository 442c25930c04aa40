# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Contact of links with planes, as wrenches of a simulation.

    table = ContactPlanes(arm, [Plane((0.0, 0.0, 1.0), 0.2)])
    motion = simulate(arm, q, duration=1.0, wrenches=table, method="runge_kutta")

A point at the depth d under a plane is pushed back along the normal by max(0, k d + c dd/dt). The
plane never pulls, has no friction, and returns at most the energy that its spring has stored.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

import mbs_dynamics as mbs
from mbs_dynamics import checks
from mbs_dynamics.checks import FloatArray
from mbs_dynamics.errors import ArgumentError
from mbs_dynamics.model.model import Model
from mbs_dynamics.model.orders import tools

MARGIN = 0.5
"""Share of the stiffness, or damping, at which held forces become unstable that is accepted."""


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
            raise ArgumentError(f"normal is {normal.tolist()}; valid is a direction")
        object.__setattr__(self, "normal", tuple((normal / length).tolist()))
        checks.number("offset", self.offset)
        checks.positive("stiffness", self.stiffness)
        if checks.number("damping", self.damping) < 0.0:
            raise ArgumentError(f"damping is {self.damping:g}; valid is >= 0")


class ContactPlanes:
    """A function of t, q (..., n) and qd that returns the wrenches (..., nb, 6) of planes on links.

    ``links`` are the links whose origins touch the planes, by default the tools or hands. Where
    forces are held over a step, as by the method ``rk4``, ``step`` is half the step: the force of
    the middle of a step keeps the energy. It is 0 for methods that evaluate laws at every stage,
    and for ``semi_implicit_euler``.

    Raises UnknownBodyError for an unknown link, ModelError for one that does not move.
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
        model.wrenches({link: np.zeros(6) for link in self.links})  # raises for an invalid link
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
        forces, R = self.forces(q, qd)
        moments = np.zeros_like(forces)
        W = np.concatenate([moments, np.einsum("...ji,...j->...i", R, forces)], axis=-1)
        return self.model.wrenches({link: W[..., k, :] for k, link in enumerate(self.links)})

    def forces(self, q: FloatArray, qd: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return forces (..., k, 3) in N in the inertial axes, and orientations (..., k, 3, 3)."""
        C, V = self._kernel(q, qd)
        inward = -V[..., 3:] @ self._normals.T
        begin = self._offsets - C[..., :3, 3] @ self._normals.T
        end = begin + self.step * inward
        low, high = np.minimum(begin, end), np.maximum(begin, end)
        share = np.divide(
            high.clip(0.0) - low.clip(0.0), high - low, where=high > low, out=1.0 * (low > 0.0)
        )
        pushed = self._stiffness * 0.5 * (low.clip(0.0) + high.clip(0.0)) + self._damping * inward
        return (share * pushed.clip(0.0)) @ self._normals, C[..., :3, :3]

    def check_step(self, q: FloatArray, step: float) -> None:
        """Raise ArgumentError if forces that are held over steps would be unstable at q (n,).

        A mass m on the plane is stable below k = 4 m / step^2 and c = 2 m / step.
        """
        J = np.stack([mbs.jacobian(self.model, q, x, representation="hybrid") for x in self.links])
        mobility = J[:, 3:] @ mbs.inverse_mass_matrix(self.model, q) @ J[:, 3:].transpose(0, 2, 1)
        along = np.einsum("pi,kij,pj->pk", self._normals, mobility, self._normals)
        for plane, each in zip(self.planes, along.max(axis=1, initial=0.0), strict=True):
            for name, order, unit in (("stiffness", 2, "N/m"), ("damping", 1, "N s/m")):
                most = MARGIN * 2.0**order / (max(each, 1e-12) * step**order)
                if getattr(plane, name) > most:
                    raise ArgumentError(
                        f"the {name} {getattr(plane, name):g} of the plane with normal "
                        f"{list(plane.normal)} is more than a step of {step:g} s can bear; valid "
                        f"is at most {most:.3g} {unit}, or a shorter step"
                    )
