# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The free joint at the root of a model: its local coordinates, and what follows from its pose.

With the pose C and body-fixed twist V of the base in place of the six coordinates of the free joint
and their rates, the configuration of a mechanism is an element of SE(3) x R^m. Its equations are
those of the model with the base at the origin of its coordinates, seen from the frame G = C C_0^-1
that makes it so: in G nothing changes but the direction of gravity.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from mbs_dynamics.algorithms import (
    center_of_mass,
    forward_kinematics,
    jacobian,
    kinetic_energy,
    momenta,
    twists,
)
from mbs_dynamics.checks import FloatArray
from mbs_dynamics.errors import ArgumentError, ModelError
from mbs_dynamics.integrate.drive import State
from mbs_dynamics.integrate.groups import SE3
from mbs_dynamics.lie import se3
from mbs_dynamics.lie.arrays import Array
from mbs_dynamics.model.body import GROUND
from mbs_dynamics.model.model import Model
from mbs_dynamics.representation.tree import Tree

FACTORS = ("/x", "/y", "/z", "/rx", "/ry", "/rz")
"""Ends of the names of the joints that make up a free joint, in their order."""

BASE = 5
"""Index of the body that is the base."""


class Local(NamedTuple):
    """A state in the local coordinates of the base, all zero."""

    model: Tree
    """Under gravity as it is seen from G."""
    q: Array
    qd: Array
    G: Array


def has_floating_base(model: Model) -> bool:
    """Return whether :func:`simulate_floating` takes a model."""
    try:
        Base(model)
    except ModelError:
        return False
    return True


class Base:
    """The free joint at the root of a model.

    Raises ModelError if there is none, or more stands on the ground.
    """

    def __init__(self, model: Model) -> None:
        if not isinstance(model, Model):
            raise ArgumentError(f"model must be a Model; got {type(model).__name__}")
        names = model.joint_names[:6]
        roots = sum(parent == GROUND for parent in model.parents)
        chained = model.parents[:6] == (GROUND, 0, 1, 2, 3, 4)
        ends = all(name.endswith(end) for name, end in zip(names, FACTORS, strict=False))
        if len(names) < 6 or roots != 1 or not chained or not ends:
            raise ModelError(
                "the base must be a free joint on the ground, coordinates 0 to 5, and the only "
                f"root; the first joints are {', '.join(names)}, and there are {roots} roots"
            )
        self.model, self.m = model, model.n - 6
        zero = np.zeros(model.n)
        self.jacobian: FloatArray = jacobian(model, zero, model.body_names[BASE])[:, :6]
        """(6, 6) rates of the coordinates at zero to the body-fixed twist."""
        self.rates: FloatArray = np.asarray(np.linalg.inv(self.jacobian), dtype=np.float64)
        home = forward_kinematics(model, zero)[BASE]
        self._from_home: FloatArray = se3.inverse(home)

    # -- equations, on numbers and on symbols ------------------------------------------------------

    def local(self, model: Tree, C: Array, q: Array, V: Array, qd: Array) -> Local:
        """Return a state as a model sees it that is traced, or the own one."""
        G = C @ self._from_home
        turned = model.under(G[:3, :3].T @ np.asarray(model.gravity))
        zero = np.zeros(6)
        return Local(turned, np.concatenate([zero, q]), np.concatenate([self.rates @ V, qd]), G)

    def moved(self, at: Local, q: Array, qd: Array) -> tuple[Array, Array, Array, Array]:
        """Return C, q, V, qd of other coordinates and rates, seen from the same G."""
        C = SE3.product(at.G, np.asarray(forward_kinematics(at.model, q))[BASE])
        V = np.asarray(twists(at.model, q, qd, representation="body_fixed"))[BASE]
        return C, q[6:], V, qd[6:]

    # -- of many states at once --------------------------------------------------------------------

    def poses(self, C: FloatArray, q: FloatArray) -> FloatArray:
        """Return the poses of all bodies (..., nb, 4, 4)."""
        x = np.concatenate([np.zeros((*q.shape[:-1], 6)), q], axis=-1)
        found: FloatArray = (C @ self._from_home)[..., None, :, :] @ forward_kinematics(
            self.model, x
        )
        return found

    def coordinates(self, V: FloatArray, q: FloatArray, qd: FloatArray) -> State:
        """Return local coordinates and rates (..., 6 + m)."""
        zero = np.zeros((*q.shape[:-1], 6))
        rates = (self.rates @ V[..., None])[..., 0]
        return np.concatenate([zero, q], axis=-1), np.concatenate([rates, qd], axis=-1)

    def quantities(self, C: FloatArray, V: FloatArray, q: FloatArray, qd: FloatArray) -> Any:
        """Return kinetic and potential energy (...), spatial momentum and first moment (..., 3)."""
        model, (x, u) = self.model, self.coordinates(V, q, qd)
        G = C @ self._from_home
        mass = model.total_mass
        c = (G[..., :3, :3] @ center_of_mass(model, x)[..., None])[..., 0] + G[..., :3, 3]
        local = momenta(model, x, u, representation="spatial").sum(axis=-2)
        P = (np.swapaxes(se3.Ad(se3.inverse(G)), -1, -2) @ local[..., None])[..., 0]
        potential = -mass * (c @ np.asarray(model.gravity))
        return kinetic_energy(model, x, u), potential, P, mass * c
