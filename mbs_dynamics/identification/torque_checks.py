# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Checks of measured torques against a description: missing, reversed, without gravity, scaled.

A description may be wrong, since it is to be identified. Torques are therefore refused only for
what right torques cannot show, however wrong the masses are:

- torques that do not change although the joint moves or its load changes;
- the torques of the description, or those of other joints, with the opposite sign;
- motions without any of the gravity torques;
- factors of single joints with which common masses explain the torques far better;
- torques that no masses explain, such as those of another motion or of exchanged joints.

A factor that all joints have is that of the torques' unit or that of the described masses, which
torques alone do not tell: it is refused unless the unit of the torques was stated.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mbs_dynamics.checks import FloatArray
from mbs_dynamics.timeseries import TimeSeriesError
from mbs_dynamics.timeseries.columns import UNITS
from mbs_dynamics.timeseries.series import labelled

MATTERS, LARGE = 0.05, 0.2
"""Shares of the largest gravity torque above which the ratio of a joint to the description is
computed, and above which its sign is judged in a motion."""

EXPLAINED = 0.5
"""Least share of the variance of torques that gravity explains where sign and factor are judged."""

LACKING, SMALL, NOTHING = 0.25, 0.7, 0.1
"""Shares of the gravity torques of the description: below the first torques are without gravity,
below the second they are small, and below the third there are none of them."""

NOT_OF_LOAD = 0.02
"""Share of the gravity torques that no load explains, from which on they are told from a load."""

FREE = 0.1
"""Share of the gravity torques of a joint below which what is left of its torques is nothing."""

COMMON, SPREAD = 4.5, 1.6
"""Smallest factor of all joints that is refused, and largest ratio between equal factors."""

CLOSE = 1.45
"""Ratio of a factor to that of a unit that is named: described masses are rarely exact."""

FACTOR = 1.5
"""Smallest factor of single joints that is refused."""

FOREIGN = 0.3
"""Share of the torques that no masses and no friction explain, above which they are of another
motion. Of 120 simulated recordings the right torques have at most 0.08, with as much noise as
torque 0.25, and those of other motions at least 0.35."""

REFUTED, REFUTES = 0.4, 2.5
"""Share of the variance of a joint that common masses leave, and ratio to what masses of its own
leave, above which its torques are foreign, if they or those of the description matter. On real
arms the ratio of such joints is 1 to 2."""

APPARENT = 0.05
"""Least share of the variance of a joint that foreign torques leave, friction included: where it is
most of the torque, its model leaves more than the masses explain."""

DECISIVE = 4.5
"""Sum of logarithms of squared residuals of joints by which factors must explain torques better: of
two joints, a third of each residual."""

ROUNDING, ROUNDED = 1e-3, 1e-12
"""Residual, as a share of the torques, that counts as none, and share of the largest eigenvalue of
scaled normal equations that counts as zero."""

SAMPLES, FEWEST = 600, 4
"""Largest number of samples that are checked, and least number from which factors are judged."""

ADVICE = (
    "State their unit, as in --columns tau=[mN m], or tau=[N m] if the masses are wrong, or give "
    "factors by --gains, 1 if they are in N m"
)
"""How to state the unit of torques."""


@dataclass(frozen=True)
class Torques:
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

    def part(self, rows: Any, joints: Sequence[int]) -> Torques:
        """Return the torques of some samples and joints."""
        measured, described, gravity = (
            x[rows][:, joints] for x in (self.measured, self.described, self.gravity)
        )
        own, masses = (None if x is None else x[rows][:, joints] for x in (self.own, self.masses))
        names, columns = ([each[j] for j in joints] for each in (self.joints, self.columns))
        return Torques(names, columns, measured, described, gravity, own, masses)

    def driven(self) -> Torques:
        """Return at most SAMPLES samples of the joints that do not swing freely, evenly spread."""
        step = slice(None, None, -(-len(self.measured) // SAMPLES))
        thinned = self.part(step, range(len(self.joints)))
        free = [swings_freely(thinned, j) for j in range(len(self.joints))]
        return thinned.part(slice(None), [j for j, one in enumerate(free) if not one])

    def terms(self, j: int) -> FloatArray:
        """Return the own columns (N, m) of a joint, with that of an offset, of length 1."""
        offset = np.ones((len(self.measured), 1))
        return _scaled(offset if self.own is None else np.column_stack([offset, self.own[:, j]]))

    def rest(self, j: int, *others: FloatArray) -> list[FloatArray]:
        """Return columns (N,) without what the own columns of a joint explain."""
        own = self.terms(j)
        given = np.stack(others, axis=1)
        return list((given - own @ np.linalg.lstsq(own, given, rcond=1e-9)[0]).T)

    def named(self, which: Any) -> str:
        """Return the names of the joints of a mask (k,), with their columns in the file."""
        return labelled(self.joints, self.columns, which)


def check_torques(name: str, torques: Torques, *, stated: bool = False) -> list[str]:
    """Return notes on torques; raise TimeSeriesError for torques that cannot be those of the arm.

    ``name`` is that of the recording. With ``stated`` their unit was stated, and a factor that all
    joints have is not refused.
    """
    check_measured(name, torques)
    torques = torques.driven()
    seen, fit = gravity_in(torques), _fit(torques)
    notes = check_signs(name, torques, seen, fit)
    absent = np.abs(seen.ratios) < LACKING
    lacking = absent & (seen.sizes < SMALL)
    if lacking.any() and (absent | np.isnan(seen.ratios)).all():
        raise TimeSeriesError(
            f"{name}: the measured torques are without gravity: shares of the description's "
            f"gravity torques in them are {_listed(torques, seen.ratios, absent)}. This driver "
            "subtracts gravity, so that masses cannot be identified, or the arm is mounted "
            "otherwise, see --gravity"
        )
    if not stated:
        check_common_factor(name, torques, seen)
    if fit is not None:
        check_single_factors(name, torques, seen, fit)
    if fit is None:
        wrong = bool((seen.sizes[lacking] < NOTHING).all())
    else:
        wrong = fit.contradicted(lacking)
    if lacking.any() and not stated and wrong:  # or else the described masses are wrong
        raise TimeSeriesError(
            f"{name}: the torques of {torques.named(lacking)} are without gravity, those of other "
            "joints have it: shares of the description's gravity torques in them are "
            f"{_listed(torques, seen.ratios, lacking)}. They are not the torques about the axes of "
            "these joints, or the driver subtracts gravity there, or the description is wrong. "
            f"{ADVICE}"
        )
    if fit is not None:
        check_explained(name, torques, fit)
    return notes


def check_measured(name: str, torques: Torques) -> None:
    """Raise TimeSeriesError for joints whose torques do not change as they must."""
    measured, described = torques.measured, torques.described
    constant = np.ptp(measured, axis=0) == 0.0
    changes = described.std(axis=0)
    if torques.own is not None:
        constant &= (np.ptp(torques.own, axis=0) > 0.0).any(axis=-1) | (changes > 0.0)
        needed = np.zeros(len(changes))
    else:  # of coarse sensors the smallest torques may be equal
        steps = np.abs(np.diff(np.sort(measured, axis=0), axis=0))
        finest = float(steps[steps > 0.0].min(initial=np.inf))
        needed = np.maximum(2.0 * finest, ROUNDING * changes.max(initial=0.0))
    wrong = constant & (changes >= needed) & (len(measured) > 2)
    wrong &= ~np.array([swings_freely(torques, j) for j in range(len(wrong))])
    if constant.all() and len(measured) > 2:
        wrong = constant
    if wrong.any():
        values = ", ".join(f"{x:g}" for x in measured[0][wrong])
        raise TimeSeriesError(
            f"{name}: holds no efforts of {torques.named(wrong)}: they are {values} throughout, "
            "although the load changes"
        )


def swings_freely(torques: Torques, j: int) -> bool:
    """Return whether the motion of a joint is one without torque: its gravity moves it.

    As of a passive joint of a simulation. The torques of the description are then those of its
    friction and motor inertia alone.
    """
    if torques.measured[:, j].any():
        return False
    (left,) = torques.rest(j, torques.described[:, j])
    return bool(left.std() < FREE * torques.gravity[:, j].std())


class Gravity(NamedTuple):
    """How much of the gravity torques of the description is in torques, of k joints.

    NaN for joints with little gravity. Inertial torques, friction and offsets are left out.
    """

    ratios: FloatArray
    """(k,) factors of the gravity torques."""
    shares: FloatArray
    """(k,) shares of the variance that gravity explains, zero where it is unknown."""
    sizes: FloatArray
    """(k,) sizes of the torques over those of gravity."""
    signs: FloatArray
    """(k,) 1, -1 for the opposite sign, and 0 where that cannot be judged."""


def gravity_in(torques: Torques) -> Gravity:
    """Return the gravity of the description in torques."""
    count = len(torques.joints)
    ratios, sizes = np.full((2, count), np.nan)
    shares = np.zeros(count)
    moving = torques.described - torques.gravity
    rests = []
    for j in range(count):
        tau, g, a = torques.rest(j, torques.measured[:, j], torques.gravity[:, j], moving[:, j])
        if np.linalg.norm(a) > ROUNDING * np.linalg.norm(g):
            unit = a / np.linalg.norm(a)
            tau, g = tau - unit * (unit @ tau), g - unit * (unit @ g)
        rests.append((tau, g))
    largest = max(float(np.linalg.norm(g)) for _, g in rests)
    for j, (tau, g) in enumerate(rests):
        size = float(np.linalg.norm(g))
        whole = float(np.linalg.norm(torques.gravity[:, j] - torques.gravity[:, j].mean()))
        if size > max(MATTERS * largest, ROUNDING * whole, 1e-9) and len(tau) >= FEWEST:
            ratios[j] = tau @ g / size**2
            shares[j] = (tau @ g) ** 2 / max(size**2 * float(tau @ tau), 1e-300)
            sizes[j] = float(np.linalg.norm(tau)) / size
    deviations = torques.gravity.std(axis=0)
    large = torques.own is None or deviations > LARGE * deviations.max()
    judged = (shares > EXPLAINED) & large
    return Gravity(ratios, shares, sizes, np.where(judged, np.sign(ratios), 0.0))


def check_signs(name: str, torques: Torques, seen: Gravity, fit: _Fit | None) -> list[str]:
    """Raise TimeSeriesError for reversed torques; return notes on joints that cannot be judged."""
    wrong, unknown = seen.signs < 0.0, seen.signs == 0.0
    if not wrong.any():
        few = len(torques.measured) < FEWEST or not unknown.any()
        named = torques.named(unknown)
        return [] if few else [f"the torques of {named} are too small to judge their sign"]
    if fit is not None:  # joints without much gravity have the sign with which masses explain them
        factors = fit.factors()
        same = np.sign(factors) == np.sign(np.median(factors[wrong]))
        signs = np.where(wrong | (unknown & same), -1.0, 1.0)
        reversing = min(fit.misfit(signs), fit.misfit(np.where(wrong, -1.0, 1.0)))
        same_sign = fit.misfit(np.ones(len(signs))) < reversing - DECISIVE
        if same_sign and torques.gravity.std(axis=0) @ seen.signs > 0.0:
            named = torques.named(wrong)
            return [f"gravity torques of {named} have the opposite sign in the description"]
        signs = np.where(same_sign, -1.0, signs)
        check_explained(name, torques, fit, signs)
        wrong = signs < 0.0
    if not (seen.signs > 0.0).any() and (wrong | unknown if fit is None else wrong).all():
        raise TimeSeriesError(
            f"{name}: the torques of all joints ({', '.join(torques.joints)}) have the opposite "
            "sign of those of the description: reverse all of them"
        )
    raise TimeSeriesError(
        f"{name}: the torques of {torques.named(wrong)} have the opposite sign of those of the "
        "description; reverse them, or check the joints' axes"
    )


def check_common_factor(name: str, torques: Torques, seen: Gravity) -> None:
    """Raise TimeSeriesError for torques that are many times those of the description."""
    used = seen.shares > EXPLAINED
    if used.sum() < min(2, len(torques.joints)):
        return
    middle = float(np.exp(np.median(np.log(np.abs(seen.ratios[used])))))
    if 1.0 / COMMON < middle < COMMON:
        return
    spread = float(np.abs(np.log(np.abs(seen.ratios[used]) / middle)).max())
    if spread < np.log(SPREAD):
        cause = (
            f"either all masses of the description are wrong by a factor of {middle:.3g}, or the "
            f"torques are not in N m{_likely(middle)}"
        )
    else:
        cause = "the torques are not in N m (currents?), or most masses are wrong"
    raise TimeSeriesError(
        f"{name}: the torques are not those of the description; ratios to it are "
        f"{_listed(torques, seen.ratios, used)}: {cause}. {ADVICE}"
    )


def _likely(ratio: float) -> str:
    """Return declarations of units of torques with about this ratio to N m, for a message."""
    near = [
        f"tau=[{unit}]"
        for unit, x in UNITS["tau"].items()
        if unit[-1] in "mnt" and abs(np.log(ratio * x)) < np.log(CLOSE)
    ]
    return f", but likely --columns {' or '.join(near)}" if near else ""


def _listed(torques: Torques, values: FloatArray, used: Any) -> str:
    rows = zip(torques.joints, values, used, strict=True)
    return ", ".join(f"{name} {value:.3g}" for name, value, one in rows if one)


def check_single_factors(name: str, torques: Torques, seen: Gravity, fit: _Fit) -> None:
    """Raise TimeSeriesError for joints whose torques have another factor than those of the others.

    Each body acts on several joints. Factors of joints with which one set of masses explains the
    torques far better than without do not depend on the masses of the description; only their
    common scale does.
    """
    factors, used = fit.factors(), seen.shares > EXPLAINED
    scaled = factors * np.where(used, seen.ratios, 1.0) if used.any() else factors
    scaled = scaled[used] if used.any() else scaled
    common = np.exp(np.median(np.log(np.abs(scaled) + 1e-300)))
    factors = factors / (common * (1.0 if (scaled > 0.0).mean() >= 0.5 else -1.0))
    explains = np.abs(factors) > 1e-3  # or else no masses explain it, whatever the factor
    other = ((factors < 1.0 / FACTOR) | (factors > FACTOR)) & explains
    if (~other & explains).any():  # these are right, whatever the masses of the description
        factors = factors / np.median(factors[~other & explains])
    k = len(factors)
    g = np.where(other, factors, 1.0)
    for j in np.flatnonzero(other):  # without those that need no factor
        without = np.where(np.arange(k) == j, 1.0, g)
        if fit.misfit(without) < fit.misfit(g) + DECISIVE:
            other[j], g = False, without
    if 2 * other.sum() > k:  # the scale is that of most joints
        g = np.where(other, g / np.median(g[other]), 1.0 / np.median(g[other]))
        other = (g < 1.0 / FACTOR) | (g > FACTOR)
        g = np.where(other, g, 1.0)
    explained = bool((fit.shares(g)[other] < EXPLAINED**2).all())
    if not explained or not fit.misfit(g) < fit.misfit(np.ones(k)) - DECISIVE:
        return
    if (g[other] < 0.0).all():
        raise TimeSeriesError(
            f"{name}: the torques of {torques.named(other)} have the opposite sign of those of the "
            "other joints: no masses explain all of them; reverse them, or check the joints' axes"
        )
    raise TimeSeriesError(
        f"{name}: no masses explain the torques of all joints. They would with torques of "
        f"{torques.named(other)} divided by a factor, beside those of the others: "
        f"{_listed(torques, 1.0 / g, other)}. Are these in another unit, or currents? State the "
        f"unit, as in --columns {torques.columns[int(np.argmax(other))]}=[mN m], or give factors "
        "by --gains"
    )


def check_explained(
    name: str, torques: Torques, fit: _Fit, factors: FloatArray | None = None
) -> None:
    """Raise TimeSeriesError for torques, multiplied by factors (k,), that no masses explain."""
    g = np.ones(len(torques.joints)) if factors is None else factors
    share, shares = fit.share(g), fit.shares(g)
    sizes = np.maximum(torques.measured.std(axis=0), torques.described.std(axis=0))
    foreign = (shares > REFUTED) & (shares > REFUTES * fit.own) & (sizes > MATTERS * sizes.max())
    foreign &= shares * fit.d > APPARENT * fit.whole
    if share > FOREIGN or foreign.any():
        which = torques.named(foreign) if foreign.any() else "the joints"
        raise TimeSeriesError(
            f"{name}: no masses explain the measured torques: {100.0 * share:.0f} % of them are "
            f"left. Those of {which} do not belong to these positions: check the unit and zero of "
            "the positions, and that both are of the same joints, in the same order"
        )


def check_unit(name: str, declared: Torques, other: Torques, unit: str) -> None:
    """Raise TimeSeriesError if masses explain torques far better by positions in another unit.

    ``declared`` and ``other`` are the torques by the positions as declared, and in this ``unit``.
    """
    fit, better = (_fit(torques.driven()) for torques in (declared, other))
    if fit is None or better is None or len(fit.d) != len(better.d):
        return
    g = np.ones(len(fit.d))
    if fit.misfit(g) - better.misfit(g) > DECISIVE and better.share() < 0.5 * FOREIGN:
        raise TimeSeriesError(
            f"{name}: the torques do not belong to the positions as declared. They would if these "
            f"are {unit}"
        )


def weight_share(columns: FloatArray, tau: FloatArray, g: FloatArray) -> tuple[float, float] | None:
    """Return the share of gravity torques g (m,) in torques tau (m,), and its standard error.

    ``columns`` (m, p), such as those of a load, are fitted beside them. None where these explain
    the gravity torques as well, as those of an arm that is a load itself.
    """
    columns = _scaled(columns)
    both = np.column_stack([g, tau])
    rest, left = (both - columns @ np.linalg.lstsq(columns, both, rcond=1e-9)[0]).T
    freedom = len(tau) - columns.shape[1] - 1
    if freedom <= 0 or np.linalg.norm(rest) < NOT_OF_LOAD * np.linalg.norm(g):
        return None
    size = float(rest @ rest)
    share = float(left @ rest) / size
    return share, float(np.linalg.norm(left - share * rest)) / float(np.sqrt(freedom * size))


class _Fit(NamedTuple):
    """Normal equations of the torques of k joints in p parameters that all of them share.

    Columns of single joints are eliminated. Each joint has the weight of the residual that its
    torques have by parameters of its own.
    """

    samples: int
    """Number of samples."""
    A: FloatArray
    """(k, p, p) normal matrices."""
    c: FloatArray
    """(k, p) right sides."""
    d: FloatArray
    """(k,) squares of the torques."""
    whole: FloatArray
    """(k,) the same before columns of single joints, such as friction, were eliminated."""
    left: FloatArray
    """(k,) the mean of the squares that parameters of the joint alone do not explain."""

    @property
    def own(self) -> FloatArray:
        """Shares of variance (k,) that parameters of each joint alone leave unexplained."""
        return np.asarray(self.samples * self.left / np.maximum(self.d, self.samples * self.left))

    def unexplained(self) -> tuple[FloatArray, FloatArray]:
        """Return (G, D): torques with factors g of joints leave g' G g of g' D g unexplained."""
        weights = 1.0 / self.left
        right = (weights[:, None] * self.c).T
        D = np.diag(weights * self.d)
        return np.asarray(D - right.T @ _solved(np.tensordot(weights, self.A, 1), right)), D

    def factors(self) -> FloatArray:
        """Return the factors (k,) of torques with which common masses explain most of them."""
        G, D = self.unexplained()
        scale = np.sqrt(np.maximum(np.diag(D), 1e-300))
        return np.asarray(np.linalg.eigh(G / np.outer(scale, scale))[1][:, 0] / scale)

    def misfit(self, g: FloatArray) -> float:
        """Return the sum of the logarithms of the unexplained shares of the joints.

        It does not depend on the sizes of the torques of joints.
        """
        return float(np.log(self.shares(g)).sum())

    def shares(self, g: FloatArray) -> FloatArray:
        """Return the unexplained shares of variance of the joints (k,), at most 1."""
        least = self.samples * self.left
        weights = 1.0 / (np.maximum(np.square(g), 1e-12) * self.left)
        x = _solved(np.tensordot(weights, self.A, 1), ((weights * g) @ self.c)[:, None])[:, 0]
        squares = np.einsum("p,jpq,q->j", x, self.A, x)
        rest = g**2 * self.d - 2.0 * g * (self.c @ x) + squares
        rest = np.maximum(rest / np.maximum(g**2, 1e-12), least)
        return np.asarray(np.minimum(rest / np.maximum(self.d, least), 1.0))

    def contradicted(self, some: NDArray[np.bool_]) -> bool:
        """Return whether masses explain the torques of other joints far better without ``some``."""
        others = _Fit(self.samples, *(x[~some] for x in self[1:]))
        if not some.any() or some.all():
            return False
        shares = self.shares(np.ones(len(some)))[~some], others.shares(np.ones((~some).sum()))
        return bool(np.log(shares[0] / shares[1]).sum() > DECISIVE)

    def share(self, g: FloatArray | float = 1.0) -> float:
        """Return the share of the torques, multiplied by factors (k,), that is unexplained.

        Friction is a part of these torques.
        """
        G, g = self.unexplained()[0], g * np.ones(len(self.d))
        whole = float((self.whole / self.left).sum())
        return float(np.sqrt(max(float(g @ G @ g), 0.0) / max(whole, 1e-300)))


def _fit(torques: Torques) -> _Fit | None:
    """Return the normal equations; None without columns of masses or with too few samples."""
    if torques.masses is None:
        return None
    tau, (count, k) = torques.measured, torques.measured.shape
    own = [torques.terms(j) for j in range(k)]
    if 2 * (torques.masses.shape[2] + sum(x.shape[1] for x in own)) > tau.size:
        return None
    parts = []
    least = max((ROUNDING * float(tau.std())) ** 2, 1e-300)
    for j in range(k):
        both = np.column_stack([torques.masses[:, j], tau[:, j]])
        both = both - own[j] @ np.linalg.lstsq(own[j], both, rcond=1e-9)[0]
        X, b = both[:, :-1], both[:, -1]
        A, c, d = X.T @ X, b @ X, float(b @ b)
        whole = count * float(tau[:, j].var())
        rest = d - float(c @ _solved(A, c[:, None])[:, 0])
        parts.append((A, c, d, whole, max(rest / count, least)))
    return _Fit(count, *(np.array(x) for x in zip(*parts, strict=True)))


def _solved(A: FloatArray, right: FloatArray) -> FloatArray:
    """Return the solution (p, m) of normal equations, without what they do not determine."""
    lengths = np.sqrt(np.maximum(np.diag(A), 1e-300))
    values, vectors = np.linalg.eigh(A / np.outer(lengths, lengths))
    vectors = vectors[:, values > ROUNDED * values[-1]]
    seen = values[values > ROUNDED * values[-1]]
    return (
        np.asarray((vectors / seen) @ (vectors.T @ (right / lengths[:, None]))) / lengths[:, None]
    )


def _scaled(columns: FloatArray) -> FloatArray:
    """Return columns of length 1; those that are zero remain."""
    lengths = np.linalg.norm(columns, axis=0)
    return np.asarray(columns / np.where(lengths > 0.0, lengths, 1.0))
