# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Comparison of measured torques with the description, and with the best common masses.

The masses of a description may be wrong, since they are to be identified. Factors of single joints
are therefore found from the consistency of all joints: with them, one set of masses explains all
torques. Only the sign and size of all torques together are compared with the described gravity.
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
    ROUNDED,
    ROUNDING,
    CommonMasses,
    Explained,
    by_chance,
)
from mbs_dynamics.timeseries.series import labelled

MATTERS, LARGE = 0.05, 0.2
"""Gravity torques of a joint, relative to the largest of all joints, above which they are compared
with its torques, and above which its sign in a motion is judged."""

EXPLAINED = 0.5
"""Smallest share of the variance of torques that gravity must explain for a judgement of sign and
factor."""

LACKING, SMALL = 0.25, 0.7
"""Torques are without gravity if their component along the gravity torques of the description is
below the first share of these, and their size below the second."""

CERTAIN = 1e-3
"""A sign is judged if noise would cause it with less than this probability."""

FREE = 0.1
"""Torques below this share of the gravity torques of a joint count as zero."""

FACTOR = 1.5
"""Smallest factor of single joints that is refused."""

DECISIVE, DECISIVE_AT_REST = 4.5, 2.5
"""Least difference of the misfits of two hypotheses, in a motion and at rest. In a motion it covers
errors of the friction model; at rest, friction is noise."""

FREEDOM = 6
"""Smallest number of degrees of freedom for a comparison of torques with common masses."""

SAMPLES, FEWEST = 600, 4
"""Largest number of samples that are checked, and smallest number from which factors are judged."""


class Torques(NamedTuple):
    """Torques of k joints at N instants or still poses, all in N m or N."""

    joints: Sequence[str]
    columns: Sequence[str]
    """Names of their columns in the file."""
    measured: FloatArray
    """(N, k)."""
    described: FloatArray
    """(N, k) torques of the description, gravity included."""
    gravity: FloatArray
    """(N, k) gravity torques of the description."""
    masses: FloatArray
    """(N, k, p) columns of independent inertial parameters."""
    joint_terms: FloatArray | None = None
    """(N, k, m) columns of friction and motor inertia of each joint; None at rest."""

    def named(self, which: NDArray[np.bool_]) -> str:
        """Return the names of the joints of a mask (k,), with their columns in the file."""
        return labelled(self.joints, self.columns, which)

    def part(self, rows: slice | NDArray[np.bool_], joints: NDArray[np.bool_]) -> Torques:
        """Return the torques of a range or mask of samples, and of the joints of a mask (k,)."""
        names = ([x for x, one in zip(each, joints, strict=True) if one] for each in self[:2])
        return Torques(*names, *(None if x is None else x[rows][:, joints] for x in self[2:]))  # type: ignore[arg-type]


class Evidence:
    """Comparison of torques, without joint terms, with the description and with common masses.

    The joint terms are friction, motor inertia and an offset.
    """

    def __init__(self, torques: Torques) -> None:
        step = slice(None, None, -(-len(torques.measured) // SAMPLES))
        torques = torques.part(step, ~(swings_freely(torques) | under_constant_weight(torques)))
        inertial = self._signs_of_inertia(torques)
        if torques.joint_terms is not None and unchanging(torques.gravity).all():
            torques = torques._replace(gravity=torques.described)  # such as a SCARA's
        self.torques, self.at_rest = torques, torques.joint_terms is None
        self.margin = DECISIVE_AT_REST if self.at_rest else DECISIVE
        count, k = torques.measured.shape
        self.ones, self.none = np.ones(k), np.zeros(k, dtype=bool)
        self.tau, self.described, self.gravity, masses = (
            without_joint_terms(torques, x) for x in torques[2:6]
        )
        self.ratios, self.shares, self.sizes = self._gravity()
        terms = 1 if torques.joint_terms is None else 1 + torques.joint_terms.shape[2]
        free = max(count - terms - 2, 1)
        chance = by_chance(free * self.shares / (1.0 - self.shares + 1e-12), 1, free)
        deviations = torques.gravity.std(axis=0)
        judged = (deviations > LARGE * deviations.max()) | self.at_rest
        judged &= (self.shares > EXPLAINED) & (chance < CERTAIN)
        self.signs = np.where(judged, np.sign(self.ratios), inertial)
        enough = count * k - k * terms - masses.shape[2] >= FREEDOM
        self.masses = CommonMasses.of(masses, self.tau, terms) if enough else None

    def _gravity(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return (ratios, shares, sizes), (k,) each, from a fit of the gravity torques.

        Torques are fitted by a factor of the gravity torques of the description. ``ratios`` are the
        factors, ``shares`` the shares of the variance that they explain, and ``sizes`` the norms of
        torques relative to gravity: NaN, zero and NaN for joints with little gravity torque.
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

    @staticmethod
    def _signs_of_inertia(torques: Torques) -> FloatArray:
        """Return the signs (k,) of torques of joints in motion without gravity torques, else zero.

        The inertia of a joint is positive, whatever the masses and motors are. Joints with small
        torques are left out: a centre of mass beside the axis, which the description does not
        know, opposes accelerations.
        """
        if torques.joint_terms is None:
            return np.zeros(torques.measured.shape[1])
        friction = torques._replace(joint_terms=torques.joint_terms[..., :-1])
        tau, inertial = (without_joint_terms(friction, x) for x in torques[2:4])
        shared, size = (tau * inertial).sum(axis=0), np.square(inertial).sum(axis=0)
        shares = shared**2 / np.maximum(np.square(tau).sum(axis=0) * size, 1e-300)
        sizes = torques.described.std(axis=0)
        judged = (
            unchanging(torques.gravity) & (shares > EXPLAINED) & (sizes > MATTERS * sizes.max())
        )
        return np.where(judged, np.sign(shared), 0.0)

    @cached_property
    def factors(self) -> FloatArray:
        """Factors (k,) of torques that common masses need, 1 where none is decisive.

        They are relative to the description, or to most joints if no joint has its scale. With few
        still poses the best factors of all joints together may be wrong; if none of them is
        decisive, factors are tried joint by joint.
        """
        if self.masses is None:
            return self.ones
        factors = self._decisive(self.masses, self._of_all_joints(self.masses))
        if self.at_rest and (factors == 1.0).all():
            factors = self._joint_by_joint(self.masses)
        return factors

    def _of_all_joints(self, masses: CommonMasses) -> FloatArray:
        """Return the factors (k,) with which common masses fit best; those near 1 are 1."""
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
        """Return the decisive factors (k,) of a search joint by joint."""
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
        """Return the necessary ones of factors g (k,), others 1; all 1 if they do not suffice."""
        explained = masses.explained(g)
        for j in np.flatnonzero(g != 1.0):
            one = np.where(np.arange(len(g)) == j, 1.0, g)
            if not explained.decisive(found := masses.explained(one), self.margin):
                g, explained = one, found
        changed = g != 1.0
        count = int(changed.sum())
        if not count or not explained.decisive(self.unchanged, self.margin, count):
            return self.ones
        shown = changed & (explained.freedoms >= 0.5)  # the other joints show the rest
        return g if (explained.shares[shown] < EXPLAINED**2).all() else self.ones

    @cached_property
    def unchanged(self) -> Explained:
        """The fit of common masses to the torques as they are; needs ``masses``."""
        assert self.masses is not None
        return self.masses.explained()

    @property
    def lacking_gravity(self) -> NDArray[np.bool_]:
        """Joints (k,) with hardly any of the gravity torques of the description."""
        return np.asarray((np.abs(self.ratios) < LACKING) & (self.sizes < SMALL))


def without_joint_terms(torques: Torques, x: FloatArray) -> FloatArray:
    """Return columns x (N, k, ...) with the joint terms and the mean projected out."""
    count, k = x.shape[:2]
    rest = np.empty_like(x)
    for j in range(k):
        terms = np.ones((count, 1))
        if torques.joint_terms is not None:
            terms = np.column_stack([terms, torques.joint_terms[:, j]])
        terms = scaled(terms)
        given = x[:, j].reshape(count, -1)
        given = given - terms @ np.linalg.lstsq(terms, given, rcond=1e-9)[0]
        rest[:, j] = given.reshape(rest[:, j].shape)
    return rest


def swings_freely(torques: Torques) -> NDArray[np.bool_]:
    """Return a mask (k,) of joints that swing freely without torques, as in simulations.

    The torques of the description are then almost those of friction and motor inertia alone.
    """
    silent = np.asarray(~torques.measured.any(axis=0))
    if not silent.any():
        return silent
    left = without_joint_terms(torques, torques.described).std(axis=0)
    return np.asarray(silent & (left <= FREE * torques.gravity.std(axis=0)))


def unchanging(columns: FloatArray) -> NDArray[np.bool_]:
    """Return a mask (k,) of columns (N, k), such as gravity torques, that do not change."""
    return np.asarray(np.ptp(columns, axis=0) <= ROUNDED * np.abs(columns).max(initial=0.0))


def under_constant_weight(torques: Torques) -> NDArray[np.bool_]:
    """Return a mask (k,) of joints at rest with the same gravity torque in all poses, as vertical
    rails have. An offset explains it.
    """
    carry = np.abs(torques.gravity).max(axis=0) > ROUNDING * np.abs(torques.gravity).max()
    return np.asarray(unchanging(torques.gravity) & carry & (torques.joint_terms is None))


def none_explain(evidence: Evidence, share: float) -> bool:
    """Return whether common masses certainly leave more than this share of the variance."""
    if evidence.masses is None:
        return False
    whole = (evidence.torques.measured.var(axis=0) / evidence.unchanged.variances).mean()
    ratio = evidence.unchanged.variance / max(share * float(whole), 1e-300)
    return bool(by_chance(ratio, evidence.unchanged.freedoms.sum()) < CHANCE)


def scaled(columns: FloatArray) -> FloatArray:
    """Return the columns scaled to length 1; columns of zeros are unchanged."""
    lengths = np.linalg.norm(columns, axis=0)
    return np.asarray(columns / np.where(lengths > 0.0, lengths, 1.0))
