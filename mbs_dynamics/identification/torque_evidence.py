# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""What the description and common masses explain of measured torques.

A description may be wrong, since it is to be identified. Factors of single joints are therefore
those with which one set of masses explains the torques of all joints. The sign and size of all
torques are compared with the gravity of the description.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mbs_dynamics.checks import FloatArray
from mbs_dynamics.identification.common_masses import (
    CHANCE,
    ROUNDING,
    CommonMasses,
    Explained,
    by_chance,
)
from mbs_dynamics.timeseries.series import labelled

MATTERS, LARGE = 0.05, 0.2
"""Shares of the largest gravity torque above which that of a joint is compared with its torques,
and above which its sign is judged in a motion."""

EXPLAINED = 0.5
"""Least share of the variance of torques that gravity explains where sign and factor are judged."""

LACKING, SMALL = 0.25, 0.7
"""Shares of the gravity torques of the description: below the first torques are without gravity, if
they are smaller than the second."""

CERTAIN = 1e-3
"""Probability of a sign by chance below which it is judged."""

FREE = 0.1
"""Share of the gravity torques of a joint below which what is left of its torques is nothing."""

FACTOR = 1.5
"""Smallest factor of single joints that is refused."""

DECISIVE, DECISIVE_AT_REST = 4.5, 2.5
"""Sum of logarithms of residual variances of joints by which a hypothesis must be better. Models of
friction in motions are so wrong; the friction of joints at rest is noise."""

FREEDOM = 6
"""Least degrees of freedom with which common masses are compared with torques."""

SAMPLES, FEWEST = 600, 4
"""Largest number of samples that are checked, and least number from which factors are judged."""


class Torques(NamedTuple):
    """Torques of k joints at N instants or still poses, all in N m or N."""

    joints: Sequence[str]
    columns: Sequence[str]
    """Names of their columns in the file."""
    measured: FloatArray
    """(N, k)."""
    described: FloatArray
    """(N, k) torques by the masses of the description, gravity included."""
    gravity: FloatArray
    """(N, k) the part of gravity in them."""
    own: FloatArray | None = None
    """(N, k, m) columns of friction and motor inertia of each joint; None at rest."""
    masses: FloatArray | None = None
    """(N, k, p) columns of independent parameters of the bodies."""

    def named(self, which: NDArray[np.bool_]) -> str:
        """Return the names of the joints of a mask (k,), with their columns in the file."""
        return labelled(self.joints, self.columns, which)

    def part(self, rows: slice | NDArray[np.bool_], joints: NDArray[np.bool_]) -> Torques:
        """Return the torques of a range or mask of samples, and of the joints of a mask (k,)."""
        names = ([x for x, one in zip(each, joints, strict=True) if one] for each in self[:2])
        return Torques(*names, *(None if x is None else x[rows][:, joints] for x in self[2:]))  # type: ignore[arg-type]


class Evidence:
    """Torques without what the own columns of joints explain, and what explains the rest.

    Own columns are friction, motor inertia and an offset.
    """

    def __init__(self, torques: Torques) -> None:
        step = slice(None, None, -(-len(torques.measured) // SAMPLES))
        self.torques = torques.part(step, ~swings_freely(torques))
        self.least = DECISIVE_AT_REST if torques.own is None else DECISIVE
        self.ones, given = np.ones(len(self.torques.joints)), self.torques
        self.tau, self.described, self.gravity = (without_own(given, x) for x in given[2:5])
        self.ratios, self.shares, self.sizes = self._gravity()
        deviations = given.gravity.std(axis=0)
        judged = (deviations > LARGE * deviations.max()) | (given.own is None)
        terms = 1 if given.own is None else 1 + given.own.shape[2]
        count, k = given.measured.shape
        free = max(count - terms - 2, 1)
        chance = by_chance(free * self.shares / (1.0 - self.shares + 1e-12), 1, free)
        judged &= (self.shares > EXPLAINED) & (chance < CERTAIN)
        self.signs = np.where(judged, np.sign(self.ratios), 0.0)
        self.masses: CommonMasses | None = None
        if given.masses is not None and count * k - k * terms - given.masses.shape[2] >= FREEDOM:
            self.masses = CommonMasses.of(without_own(given, given.masses), self.tau, terms)

    def _gravity(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return how much of the gravity torques of the description is in torques, of k joints.

        These are the factors of gravity torques, the shares of the variance that they explain, and
        the sizes of the torques over those of gravity: NaN, zero and NaN where gravity is little.
        """
        tau, g, a = self.tau, self.gravity, self.described - self.gravity
        inertial = np.linalg.norm(a, axis=0) > ROUNDING * np.linalg.norm(g, axis=0)
        a = np.where(inertial, a, 0.0) / np.maximum(np.linalg.norm(a, axis=0), 1e-300)
        tau, g = (x - a * (a * x).sum(axis=0) for x in (tau, g))
        size, whole = np.linalg.norm(g, axis=0), self.torques.gravity.std(axis=0)
        least = np.maximum(MATTERS * size.max(), ROUNDING * whole * np.sqrt(len(g)))
        known = (size > np.maximum(least, 1e-9)) & (len(g) >= FEWEST)
        size, shared = np.where(known, size, np.nan), (tau * g).sum(axis=0)
        squares = np.square(tau).sum(axis=0)
        shares = np.nan_to_num(shared**2 / np.maximum(size**2 * squares, 1e-300))
        return shared / size**2, shares, np.sqrt(squares) / size

    @cached_property
    def factors(self) -> FloatArray:
        """Factors (k,) of torques that common masses need, 1 where there is no decisive one.

        The scale is that of the description, or of most joints if it is that of none. In few still
        poses the best factors of all joints may be wrong; then they are tried joint by joint.
        """
        if self.masses is None:
            return self.ones
        factors = self._decisive(self.masses, self._of_all_joints(self.masses))
        if self.torques.own is None and (factors == 1.0).all():
            factors = self._joint_by_joint(self.masses)
        return factors

    def _of_all_joints(self, masses: CommonMasses) -> FloatArray:
        """Return the factors (k,) with which common masses explain most, 1 where they are near."""
        factors = masses.factors()
        some = factors != 0.0
        known = some & (self.shares > EXPLAINED)
        scaled = (factors * self.ratios)[known] if known.any() else factors[some]
        if not len(scaled) or not (common := float(np.median(np.abs(scaled)))) > 1e-9:
            return self.ones
        factors = factors / (common if (scaled > 0.0).mean() >= 0.5 else -common)
        same = some & (factors > 1.0 / FACTOR) & (factors < FACTOR)
        factors = factors / np.median(factors[same if same.any() else some])
        other = some & ((factors < 1.0 / FACTOR) | (factors > FACTOR))
        return np.where(other, factors, 1.0)

    def _joint_by_joint(self, masses: CommonMasses) -> FloatArray:
        """Return decisive factors (k,) that were found joint by joint."""
        sizes = self.described.std(axis=0)
        strong = sizes > MATTERS * sizes.max()
        g = self._decisive(masses, masses.factors_joint_by_joint(np.flatnonzero(strong).tolist()))
        scaled = (g * self.ratios)[strong & (self.shares > EXPLAINED)]
        common = float(np.median(scaled)) if len(scaled) else 1.0
        if 1.0 / FACTOR < common < FACTOR or (g == 1.0).all():
            return g
        g = np.where(strong, g / common, 1.0)
        return np.where((g > 1.0 / FACTOR) & (g < FACTOR), 1.0, g)

    def _decisive(self, masses: CommonMasses, g: FloatArray) -> FloatArray:
        """Return factors (k,) without those not needed; all 1 if the others are not decisive."""
        explained = masses.explained(g)
        for j in np.flatnonzero(g != 1.0):
            one = np.where(np.arange(len(g)) == j, 1.0, g)
            if not explained.decisive(found := masses.explained(one), self.least):
                g, explained = one, found
        changed = g != 1.0
        if not changed.any() or not explained.decisive(self.given, self.least, int(changed.sum())):
            return self.ones
        shown = changed & (explained.freedoms >= 0.5)  # the other joints show the rest
        return g if (explained.shares[shown] < EXPLAINED**2).all() else self.ones

    @cached_property
    def given(self) -> Explained:
        """What common masses explain of the torques as they are; only with ``masses``."""
        assert self.masses is not None
        return self.masses.explained()

    @property
    def absent(self) -> NDArray[np.bool_]:
        """Joints (k,) with hardly any of the gravity torques of the description."""
        return np.asarray((np.abs(self.ratios) < LACKING) & (self.sizes < SMALL))


def without_own(torques: Torques, x: FloatArray) -> FloatArray:
    """Return columns (N, k, ...) of joints without what their own columns and offsets explain."""
    count, k = x.shape[:2]
    rest = np.empty_like(x)
    for j in range(k):
        own = np.ones((count, 1))
        if torques.own is not None:
            own = np.column_stack([own, torques.own[:, j]])
        own = scaled(own)
        given = x[:, j].reshape(count, -1)
        given = given - own @ np.linalg.lstsq(own, given, rcond=1e-9)[0]
        rest[:, j] = given.reshape(rest[:, j].shape)
    return rest


def swings_freely(torques: Torques) -> NDArray[np.bool_]:
    """Return a mask (k,) of joints that gravity moves without torques, as in simulations.

    The torques of the description are then those of friction and motor inertia alone.
    """
    silent = np.asarray(~torques.measured.any(axis=0))
    if not silent.any():
        return silent
    left = without_own(torques, torques.described).std(axis=0)
    return np.asarray(silent & (left < FREE * torques.gravity.std(axis=0)))


def none_explain(seen: Evidence, share: float) -> bool:
    """Return whether masses surely leave more than a share of all torques, friction included."""
    if seen.masses is None:
        return False
    whole = (seen.torques.measured.var(axis=0) / seen.given.variances).mean()
    ratio = seen.given.variance / max(share * float(whole), 1e-300)
    return bool(by_chance(ratio, seen.given.freedoms.sum()) < CHANCE)


def scaled(columns: FloatArray) -> FloatArray:
    """Return columns of length 1; those that are zero remain."""
    lengths = np.linalg.norm(columns, axis=0)
    return np.asarray(columns / np.where(lengths > 0.0, lengths, 1.0))
