# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Stribeck's effect and friction that depends on load, where the data show them.

    F = (coulomb + load |g|) tanh(qd / v) + kappa tanh(qd / v) / (1 + (qd / v_s)^2)

with the gravity torque g of the identified arm and kappa = stribeck coulomb: the law of
:func:`mbs_dynamics.model.friction.friction_bound`, linear in its coefficients. For each joint the
terms are fitted beside all others of its equation, and beside sharper Coulomb friction, so that too
large a v does not count as Stribeck's effect. A term is kept if it predicts stretches that were
left out better, in the mean and beyond the scatter over stretches, with a positive coefficient.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

import mbs_dynamics as mbs
from mbs_dynamics.checks import FloatArray
from mbs_dynamics.identification.signals import Signals, low_pass
from mbs_dynamics.identification.torque_model import Equations, TorqueModel, stacked

STRIBECK_SPEEDS = (0.1, 0.2)
"""Candidates of v_s in rad/s or m/s."""

COULOMB_SPEEDS = (1e-4, 0.01, 0.02)
"""Speeds v of Coulomb friction beside which the terms are fitted: as sharp as data may show."""

FOLDS = 10
"""Stretches of which each is left out once."""

LEAST_GAIN = 0.05
"""Least share of the squared residuals by which a term must improve the stretches left out."""

LEAST_SHARE = 0.15
"""Least Stribeck's effect over Coulomb friction: reversals between two samples look like less."""

SIGNIFICANT = 4.0
"""Least mean improvement of a stretch over its standard error: chance has this once in 600."""


class FrictionTerms(NamedTuple):
    """Terms of the joints, each (k,), zero where the data do not show one."""

    stribeck: FloatArray
    """kappa in N m or N."""
    stribeck_speed: float
    load: FloatArray
    notes: tuple[str, ...]
    """Comparisons that were made, with the errors."""

    @property
    def any(self) -> bool:
        """Whether there are any."""
        return bool(self.stribeck.any() or self.load.any())

    def torques(self, columns: FloatArray) -> FloatArray:
        """Return the torques (N, k) of the terms, from :func:`columns_of`."""
        which = len(COULOMB_SPEEDS) + STRIBECK_SPEEDS.index(self.stribeck_speed)
        return columns[..., which] * self.stribeck + columns[..., -1] * self.load

    def of_joint(self, j: int, coulomb: float) -> dict[str, float]:
        """Return the terms of a joint, under the names of the law of friction."""
        share = float(self.stribeck[j]) / coulomb if coulomb > 0.0 else 0.0
        speed = self.stribeck_speed
        return {"stribeck": share, "stribeck_speed": speed, "load": float(self.load[j])}

    def refused(self, without: float, with_them: float) -> FrictionTerms:
        """Return no terms, because of the cross-validated errors without and with them."""
        note = (
            "Stribeck's effect and load-dependent friction are left out: cross-validated with them "
            f"the error is {100.0 * with_them:.2f} %, without {100.0 * without:.2f} %"
        )
        return FrictionTerms(0.0 * self.stribeck, self.stribeck_speed, 0.0 * self.load, (note,))


def columns_of(
    torque_model: TorqueModel, signals: Signals, cutoff: float, x: FloatArray
) -> Equations:
    """Return the columns A (N, k, m) of a motion: Coulomb friction, Stribeck's effect, load.

    Each of the first two at all candidate speeds. ``x`` are parameters that give the load. b is
    zero.
    """
    v, whole = signals.qd, torque_model.whole(signals.q, at_rest=True, rest=signals.rest)
    rest = np.zeros_like(whole)
    Y = mbs.inverse_dynamics_regressor(torque_model.model, whole, rest, rest)
    load = np.abs(Y[:, torque_model.places, : torque_model.rigid] @ x[: torque_model.rigid])
    sliding = np.tanh(v / torque_model.friction_speed)
    columns = [np.tanh(v / speed) for speed in COULOMB_SPEEDS]
    columns += [sliding / (1.0 + (v / speed) ** 2) for speed in STRIBECK_SPEEDS]
    A = low_pass(np.stack([*columns, load * sliding], axis=-1), signals.rate, cutoff)
    none = np.zeros_like(v)
    return Equations(A, none, none, none, none, signals.rate)


def friction_terms(
    torque_model: TorqueModel,
    known: Sequence[Equations],
    columns: Sequence[FloatArray],
    coulomb_friction: FloatArray,
) -> FrictionTerms:
    """Return the terms that the equations show, with their columns.

    ``coulomb_friction`` (k,) is what was identified without them, in N m or N.
    """
    A, b = stacked(known)
    C = np.concatenate(columns)
    coulomb, load = len(COULOMB_SPEEDS), len(COULOMB_SPEEDS) + len(STRIBECK_SPEEDS)
    k = len(torque_model.joints)
    own = [_Comparison(np.hstack([A[:, j], C[:, j, :coulomb]]), C[:, j], b[:, j]) for j in range(k)]
    loads = [joint.shows((), load) for joint in own]
    given = [(load,) if gain > 0.0 else () for gain in loads]
    gains = np.array(
        [
            [one.shows(more, i) for i in range(coulomb, load)]
            for one, more in zip(own, given, strict=True)
        ]
    )
    for j, i in np.argwhere(gains > 0.0):
        kappa = own[j].coefficients([coulomb + i, *given[j]], (coulomb + i,))[0]
        gains[j, i] *= kappa > LEAST_SHARE * coulomb_friction[j]
    best = int(np.argmax(gains.sum(axis=0)))
    coefficients, notes = np.zeros((2, k)), []
    for j, joint in enumerate(torque_model.joints):
        kept = [coulomb + best] * bool(gains[j, best] > 0.0) + list(given[j])
        coefficients[:, j] = own[j].coefficients(kept, (coulomb + best, load))
        for what, gain in (
            ("Stribeck's effect", gains[j, best]),
            ("load-dependent friction", loads[j]),
        ):
            if gain > 0.0:
                notes.append(
                    f"{joint}: {what} predicts left-out stretches better by {100.0 * gain:.1f} % "
                    "of the squared residuals"
                )
    if not notes:
        gain, errors = max(tried for one in own for tried in one.tried)
        notes = [
            "Stribeck's effect and load-dependent friction are left out: the best changes the "
            f"squared residuals of left-out stretches by {-100.0 * gain:.1f} % in the mean, which "
            f"is {errors:.1f} standard errors over the stretches; required are {SIGNIFICANT:g}, "
            f"{100.0 * LEAST_GAIN:g} %, and a Stribeck's effect of {100.0 * LEAST_SHARE:g} % of "
            "Coulomb friction"
        ]
    return FrictionTerms(coefficients[0], STRIBECK_SPEEDS[best], coefficients[1], tuple(notes))


class _Comparison:
    """The equation of one joint, with and without candidate columns, by left-out stretches."""

    def __init__(self, base: FloatArray, candidates: FloatArray, b: FloatArray) -> None:
        used = np.abs(base).max(axis=0) > 0.0
        # an orthonormal basis of what explains b anyhow; beyond rounding only
        U, s, _ = np.linalg.svd(
            base[:, used] / np.linalg.norm(base[:, used], axis=0), full_matrices=False
        )
        self.base = U[:, s > 1e-6 * s[0]]
        self.candidates, self.b = candidates, b
        self.tried: list[tuple[float, float]] = []
        """Share saved by each column, and the standard errors that this is."""
        self._errors: dict[tuple[int, ...], FloatArray] = {}

    def shows(self, more: tuple[int, ...], column: int) -> float:
        """Return the share of the squared residuals that a column saves, zero if it is not kept."""
        before, after = self._left_out(more), self._left_out((*more, column))
        saved = np.log(before / after)  # stretches count alike, however large their residuals are
        gain = float(1.0 - np.exp(-saved.mean()))
        errors = float(saved.mean() * np.sqrt(FOLDS) / max(saved.std(ddof=1), 1e-12))
        self.tried.append((gain, errors))
        kept = gain > LEAST_GAIN and errors > SIGNIFICANT
        return gain if kept and self.coefficients([*more, column], (column,))[0] > 0.0 else 0.0

    def coefficients(self, columns: Sequence[int], wanted: Sequence[int]) -> FloatArray:
        """Return the coefficients of the wanted columns, zero for those that are not fitted."""
        z = self._fit(list(columns), np.ones(len(self.b), dtype=bool))[self.base.shape[1] :]
        by = dict(zip(columns, z, strict=True))
        return np.array([by.get(column, 0.0) for column in wanted])

    def _left_out(self, columns: tuple[int, ...]) -> FloatArray:
        if columns not in self._errors:
            A = np.hstack([self.base, self.candidates[:, list(columns)]])
            edges, errors = np.linspace(0, len(self.b), FOLDS + 1).astype(int), []
            for begin, end in pairwise(edges):
                rows = np.ones(len(self.b), dtype=bool)
                rows[begin:end] = False
                residual = self.b[begin:end] - A[begin:end] @ self._fit(list(columns), rows)
                errors.append(max(float(residual @ residual), 1e-300))
            self._errors[columns] = np.array(errors)
        return self._errors[columns]

    def _fit(self, columns: list[int], rows: FloatArray) -> FloatArray:
        A = np.hstack([self.base, self.candidates[:, columns]])[rows]
        return np.asarray(np.linalg.lstsq(A.T @ A, A.T @ self.b[rows], rcond=1e-12)[0])
