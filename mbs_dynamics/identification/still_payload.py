# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Mass and centre of mass of a load from still poses, with NumPy alone."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

import mbs_dynamics as mbs
from mbs_dynamics.checks import FloatArray
from mbs_dynamics.errors import ArgumentError
from mbs_dynamics.model.body import Frame
from mbs_dynamics.model.coordinates import check_single
from mbs_dynamics.model.inertia import Inertia
from mbs_dynamics.model.model import Model

FRICTION = 0.02
"""Least unknown friction of a joint at rest, as a share of the largest torque."""

POSES = 3
"""Least number of poses."""

LIGHTEST = 0.01
"""Least load in kg."""


class StillPayload(NamedTuple):
    """A load in the frame of its link, from still poses."""

    mass: float
    """In kg."""
    com: FloatArray
    """(3,) in m."""
    mass_deviation: float
    com_deviation: FloatArray


class StillPoses:
    """Poses of an arm at rest with a load on a link.

    The torques of the arm alone are those of the model. Raises UnknownBodyError, ModelError for a
    link that does not move.
    """

    def __init__(self, model: Model, link: str) -> None:
        check_single(model.joints, "StillPoses", instead="a model with a fixed base")
        self.model, self.link = model, link
        frame = model.with_payload(link, 0.0).frames[link]  # or an error
        self._body, self._to_body = frame.body, to_body(frame)[:, :4]
        self._rows: list[FloatArray] = []
        self._torques: list[FloatArray] = []

    def __len__(self) -> int:
        return len(self._rows)

    def take(self, q: FloatArray, tau: FloatArray) -> None:
        """Add a pose q (n,) with measured torques tau (n,), NaN where unknown."""
        if not np.isfinite(tau).any():
            raise ArgumentError("tau holds no torque that is finite")
        rest = np.zeros(self.model.n)
        Y = mbs.inverse_dynamics_regressor(self.model, q, rest, rest)
        part = Y[:, 10 * self._body : 10 * self._body + 10] @ self._to_body
        known = np.isfinite(tau)
        self._rows.append(part[known])
        self._torques.append((tau - mbs.gravity_torques(self.model, q))[known])

    def estimate(self) -> StillPayload:
        """Return the load that best explains the torques.

        Raises ArgumentError while the poses do not determine it: too few, too similar, or too light
        a load.
        """
        if len(self) < POSES:
            raise ArgumentError(f"{len(self)} pose(s); at least {POSES} different ones are needed")
        A, b = np.concatenate(self._rows), np.concatenate(self._torques)
        singular = np.linalg.svd(A, compute_uv=False)
        if singular[-1] < 1e-3 * singular[0]:
            raise ArgumentError(
                "the poses are too much alike to show the centre of mass: turn the load about a "
                "horizontal axis between them"
            )
        x = np.linalg.lstsq(A, b, rcond=None)[0]
        residual = b - A @ x
        noise = max(
            float(np.square(residual).sum()) / max(len(b) - 4, 1),
            (FRICTION * float(np.abs(b).max())) ** 2,
        )
        spread = noise * np.linalg.inv(A.T @ A)
        mass = float(x[0])
        if mass < LIGHTEST:
            raise ArgumentError(f"the torques show a load of {mass:.3g} kg, which is none")
        com: FloatArray = np.asarray(x[1:] / mass, dtype=np.float64)
        return StillPayload(mass, com, *deviations(mass, com, spread))


def to_body(frame: Frame) -> FloatArray:
    """Return (10, 10) from inertial parameters in a frame to those in the frame of its body."""
    moved = (Inertia.from_parameters(unit).transformed(frame.placement) for unit in np.eye(10))
    return np.stack([each.parameters for each in moved], axis=1).astype(float)


def deviations(mass: float, com: FloatArray, spread: FloatArray) -> tuple[float, FloatArray]:
    """Return the deviations of mass and centre of mass for a covariance of m and m com (4, 4)."""
    slopes = np.column_stack([-com / mass, np.eye(3) / mass])
    return float(np.sqrt(spread[0, 0])), np.sqrt(np.diag(slopes @ spread @ slopes.T))
