# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Checks of measured torques against a description: missing, reversed, without gravity, scaled.

A description may be wrong, since it is to be identified. Torques are therefore refused only for
what right torques cannot show, however wrong the masses are:

- torques that do not change although the joint moves or its load changes;
- the torques of the description, or those of other joints, with the opposite sign;
- motions without any of the gravity torques;
- factors of single joints with which common masses explain the torques far better;
- torques that no masses explain.

A factor that all joints have is that of the torques' unit or that of the described masses, which
torques alone do not tell: it is refused unless the unit of the torques was stated.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mbs_dynamics.checks import FloatArray
from mbs_dynamics.timeseries import TimeSeriesError
from mbs_dynamics.timeseries.columns import UNITS

MATTERS = 0.05
"""Share of the largest gravity torque above which the gravity torque of a joint is judged."""

LARGE = 0.2
"""The same where the signs of smaller ones follow from masses common to all joints."""

OPPOSITE = 0.7
"""Ratio of the residuals of both signs below which the sign with the smaller one is taken."""

SMALL = 0.5
"""Share of the gravity torques of the description below which torques are small beside them."""

NOTHING = 0.1
"""Share of the gravity torques of the description below which poses show none of them."""

FREE = 0.1
"""Share of the gravity torques of a joint below which what is left of its torques is nothing."""

LACKING = 0.25
"""Share of the gravity torques of the description below which torques are without gravity."""

EXPLAINED = 0.5
"""Least share of the variance of torques that gravity explains where a factor is judged."""

COMMON, SPREAD = 4.5, 1.6
"""Smallest factor of all joints that is refused, and largest ratio between equal factors."""

CLOSE = 0.1
"""Relative difference between a factor and that of a unit that is named."""

FACTOR = 1.5
"""Smallest factor of single joints that is refused."""

FOREIGN = 0.2
"""Share of the torques that no masses explain above which they are of another motion."""

DECISIVE = 4.5
"""Sum of logarithms of squared residuals of joints by which factors or another order must explain
torques better: of two joints, a third of each residual."""

ROUNDING = 1e-3
"""Residual, as a share of the torques, that counts as none."""

ROUNDED = 1e-12
"""Share of the largest eigenvalue of scaled normal equations that counts as zero."""

SAMPLES = 600
"""Largest number of samples that are checked, of those given."""

FEWEST = 4
"""Least number of samples from which signs and factors are judged."""


@dataclass(frozen=True)
class Torques:
    """Torques of k joints at N instants or still poses, all in N m or N."""

    joints: Sequence[str]
    measured: FloatArray
    """(N, k)."""
    described: FloatArray
    """(N, k) torques by the masses of the description, gravity included."""
    gravity: FloatArray
    """(N, k) the part of gravity in them."""
    friction: FloatArray | None = None
    """(N, k, m) columns of friction of each joint, whose factors are nonnegative; None at rest."""
    free: FloatArray | None = None
    """(N, k, m) columns of each joint with factors of any sign, such as of motor inertia."""
    masses: FloatArray | None = None
    """(N, k, p) columns of independent parameters of the bodies."""

    def thinned(self) -> Torques:
        """Return at most SAMPLES of the samples, evenly spread."""
        step = slice(None, None, -(-len(self.measured) // SAMPLES))
        arrays = (self.measured, self.described, self.gravity, self.friction, self.free)
        kept = [None if x is None else x[step] for x in (*arrays, self.masses)]
        return Torques(self.joints, *kept)  # type: ignore[arg-type]

    def driven(self) -> Torques:
        """Return the torques of the joints that do not swing freely."""
        places = [j for j in range(len(self.joints)) if not swings_freely(self, j)]
        arrays = (self.measured, self.described, self.gravity, self.friction, self.free)
        kept = [None if x is None else x[:, places] for x in (*arrays, self.masses)]
        return Torques([self.joints[j] for j in places], *kept)  # type: ignore[arg-type]

    def own(self, j: int) -> FloatArray:
        """Return the columns (N, m) of friction, others and the offset of a joint."""
        columns = [np.ones((len(self.measured), 1))]
        columns += [x[:, j] for x in (self.friction, self.free) if x is not None]
        return np.concatenate(columns, axis=1)

    def rest(self, j: int, *others: FloatArray) -> list[FloatArray]:
        """Return columns (N,) without what the own columns of a joint explain."""
        own = _scaled(self.own(j))
        given = np.stack(others, axis=1)
        return list((given - own @ np.linalg.lstsq(own, given, rcond=1e-9)[0]).T)

    def named(self, which: Any) -> str:
        """Return the names of the joints of a mask (k,), separated by commas."""
        return ", ".join(name for name, one in zip(self.joints, which, strict=True) if one)


def check_torques(name: str, torques: Torques, *, stated: bool = False) -> list[str]:
    """Return notes on torques; raise TimeSeriesError for torques that cannot be those of the arm.

    ``name`` is that of the recording. With ``stated`` their unit was stated, and a factor that all
    joints have is not refused.
    """
    check_measured(name, torques)
    torques = torques.thinned().driven()
    notes = check_order(name, torques)
    notes += check_signs(name, torques)
    check_gravity(name, torques)
    if not stated:
        check_common_factor(name, torques)
    check_single_factors(name, torques)
    check_gravity_of_joints(name, torques, stated=stated)
    check_explained(name, torques)
    return notes


def check_measured(name: str, torques: Torques) -> None:
    """Raise TimeSeriesError for joints whose torques are NaN, or do not change as they must."""
    measured, described = torques.measured, torques.described
    absent = np.isnan(measured).all(axis=0)
    if absent.any():
        raise TimeSeriesError(f"{name}: holds no efforts of {torques.named(absent)}")
    if not np.isfinite(measured).all():
        bad = ~np.isfinite(measured).all(axis=0)
        row = int(np.flatnonzero(~np.isfinite(measured).all(axis=1))[0])
        raise TimeSeriesError(
            f"{name}: the efforts of {torques.named(bad)} must be finite, got "
            f"{measured[row][~np.isfinite(measured[row])][0]} in sample {row + 1}"
        )
    constant = np.ptp(measured, axis=0) == 0.0
    changes = described.std(axis=0)
    if torques.friction is not None:
        constant &= (np.ptp(torques.friction, axis=0) > 0.0).any(axis=-1) | (changes > 0.0)
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


def check_signs(name: str, torques: Torques) -> list[str]:
    """Raise TimeSeriesError for reversed torques; return notes on joints that cannot be judged."""
    if len(torques.measured) < FEWEST:
        return []
    verdicts = [_sign(torques, j) for j in range(len(torques.joints))]
    wrong, right = (np.array([one == sign for one in verdicts]) for sign in (-1, 1))
    unknown = ~wrong & ~right
    small = f"the torques of {torques.named(unknown)} are too small to judge their sign"
    turned = [np.where(reverse, -1.0, 1.0) for reverse in (wrong, wrong | unknown)]
    if wrong.any():  # with either sign of the small ones
        right_signed = [replace(torques, measured=signs * torques.measured) for signs in turned]
        check_explained(name, min(right_signed, key=unexplained_share))
    if not wrong.any():
        return [small] if unknown.any() else []
    fit = _fit(torques)
    alone = fit is not None and (
        fit.misfit(range(len(wrong)), turned[0])
        < fit.misfit(range(len(wrong)), turned[1]) - DECISIVE
    )
    if not right.any() and not alone:
        more = f" ({small}; reverse them as well)" if unknown.any() else ""
        raise TimeSeriesError(
            f"{name}: the torques of all joints ({', '.join(torques.joints)}) have the opposite "
            f"sign of those of the description{more}: reverse all of them"
        )
    raise TimeSeriesError(
        f"{name}: the torques of {torques.named(wrong)} have the opposite sign of those of the "
        "description; reverse them, or check the joints' axes"
        + (f"; {small}" if unknown.any() else "")
    )


def _sign(torques: Torques, j: int) -> int:
    """Return the sign of the torques of a joint, or 0 if it cannot be judged.

    It is judged by the torques of the description where gravity is large, as the description of
    small ones may be wrong.
    """
    sizes = torques.gravity.std(axis=0)
    if not sizes[j] > (MATTERS if torques.friction is None else LARGE) * sizes.max():
        return 0
    tau = torques.measured[:, j]
    free = np.ones((len(tau), 1))
    if torques.free is not None:
        free = np.column_stack([free, torques.free[:, j]])
    columns = torques.described[:, j, None]
    if torques.friction is not None:
        columns = np.column_stack([torques.friction[:, j], columns])
    return _fitting_sign(tau, free, columns)


def _fitting_sign(tau: FloatArray, free: FloatArray, columns: FloatArray) -> int:
    """Return the sign with which nonnegative factors of columns fit far better; 0 if neither does.

    The columns ``free`` have factors of any sign.
    """
    from scipy.optimize import nnls

    free = _scaled(free)
    both = np.column_stack([_scaled(columns), tau])
    both = both - free @ np.linalg.lstsq(free, both, rcond=1e-9)[0]
    plus, minus = (float(nnls(both[:, :-1], sign * both[:, -1])[1]) for sign in (1.0, -1.0))
    floor = ROUNDING * float(np.linalg.norm(tau - tau.mean())) + 1e-300
    plus, minus = max(plus, floor), max(minus, floor)
    return -1 if minus < OPPOSITE * plus else 1 if plus < OPPOSITE * minus else 0


def gravity_ratios(torques: Torques) -> tuple[FloatArray, FloatArray]:
    """Return ratios (k,) of torques to the gravity torques of the description, and shares (k,).

    The shares are those of the variance of the torques that gravity explains. Both are NaN for
    joints with little gravity. Inertial torques, friction and offsets are fitted and left out.
    """
    ratios, shares, _ = _gravity_ratios(torques)
    return ratios, shares


def _gravity_ratios(torques: Torques) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return ratios and shares of gravity, and the size of the torques beside it, each (k,)."""
    count = len(torques.joints)
    ratios, shares, sizes = np.full((3, count), np.nan)
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
    return ratios, shares, sizes


def check_gravity(name: str, torques: Torques) -> None:
    """Raise TimeSeriesError for torques of all joints from which gravity was taken off."""
    lacking, known, ratios, _ = _lacking(torques)
    if lacking.any() and (lacking == known).all():
        raise TimeSeriesError(
            f"{name}: the measured torques are without gravity: shares of the description's "
            f"gravity torques in them are {_per_cent(torques, ratios, lacking)}. This driver "
            "subtracts gravity, so that masses cannot be identified, or the arm is mounted "
            "otherwise, see --gravity"
        )


def check_gravity_of_joints(name: str, torques: Torques, *, stated: bool = False) -> None:
    """Raise TimeSeriesError for joints whose torques are without gravity, unlike those of others.

    With ``stated`` torques of single joints may be small, since the description may be wrong.
    """
    lacking, _, ratios, sizes = _lacking(torques)
    if stated or not lacking.any():
        return
    without_masses = torques.masses is None and bool((sizes[lacking] < NOTHING).all())
    if unexplained_share(torques) > 0.5 * FOREIGN or without_masses:  # or are these masses wrong?
        raise TimeSeriesError(
            f"{name}: the torques of {torques.named(lacking)} are without gravity, those of other "
            "joints have it: shares of the description's gravity torques in them are "
            f"{_per_cent(torques, ratios, lacking)}. They are not the torques about the axes of "
            "these joints, or the driver subtracts gravity there, or the description is wrong. "
            f"{ADVICE}"
        )


def _lacking(
    torques: Torques,
) -> tuple[NDArray[np.bool_], NDArray[np.bool_], FloatArray, FloatArray]:
    """Return the joints without gravity (k,), those with known ratios, the ratios and sizes."""
    ratios, _, sizes = _gravity_ratios(torques)
    with np.errstate(invalid="ignore"):
        lacking = (np.abs(ratios) < LACKING) & (sizes < SMALL)
    return np.asarray(lacking), np.isfinite(ratios), ratios, sizes


def _per_cent(torques: Torques, ratios: FloatArray, used: NDArray[np.bool_]) -> str:
    rows = zip(torques.joints, ratios, used, strict=True)
    return ", ".join(f"{name} {100.0 * ratio:.0f} %" for name, ratio, one in rows if one)


def check_common_factor(name: str, torques: Torques) -> None:
    """Raise TimeSeriesError for torques that are many times those of the description."""
    ratios, shares = gravity_ratios(torques)
    with np.errstate(invalid="ignore"):
        used = shares > EXPLAINED
    if used.sum() < min(2, len(torques.joints)):
        return
    middle = float(np.exp(np.median(np.log(np.abs(ratios[used])))))
    if 1.0 / COMMON < middle < COMMON:
        return
    listed = _listed(torques, ratios, used)
    spread = float(np.abs(np.log(np.abs(ratios[used]) / middle)).max())
    if spread < np.log(SPREAD):
        cause = (
            f"either all masses of the description are wrong by a factor of {middle:.3g}, or the "
            f"torques are not in N m{_likely(middle)}"
        )
    else:
        cause = "the torques are not in N m (currents?), or most masses are wrong"
    raise TimeSeriesError(
        f"{name}: the torques are not those of the description; ratios to it are {listed}: "
        f"{cause}. {ADVICE}"
    )


ADVICE = (
    "State their unit, as in --columns NAME=tau_joint1[mN m], or [N m] if the masses are wrong, "
    "or give factors by --gains, 1 if they are in N m"
)
"""How to state the unit of torques."""


def _likely(ratio: float) -> str:
    """Return the units of torques with this ratio to N m, for a message."""
    factors = {
        unit: 1.0 / x for unit, x in UNITS["tau"].items() if unit.endswith((" m", "in", "cm"))
    }
    near = [unit for unit, x in factors.items() if abs(ratio / x - 1.0) < CLOSE]
    return f", but likely in {' or '.join(near)}" if near else ""


def _listed(torques: Torques, values: FloatArray, used: NDArray[np.bool_]) -> str:
    rows = zip(torques.joints, values, used, strict=True)
    return ", ".join(f"{name} {value:.3g}" for name, value, one in rows if one)


def check_single_factors(name: str, torques: Torques) -> None:
    """Raise TimeSeriesError for joints whose torques have another factor than those of the others.

    Each body acts on several joints. Factors of joints with which one set of masses explains the
    torques far better than without do not depend on the masses of the description; only their
    common scale does.
    """
    fit = _fit(torques)
    if fit is None:
        return
    factors = fit.factors()
    ratios, shares = gravity_ratios(torques)
    with np.errstate(invalid="ignore"):
        used = shares > EXPLAINED
    if not used.any():
        used, ratios = np.ones(len(factors), dtype=bool), np.ones(len(factors))
    scaled = (factors * ratios)[used]
    common = np.exp(np.median(np.log(np.abs(scaled) + 1e-300)))
    factors = factors / (common * (1.0 if (scaled > 0.0).mean() >= 0.5 else -1.0))
    other = (factors < 1.0 / FACTOR) | (factors > FACTOR)
    other &= np.abs(factors) > 1e-3  # which no masses explain, whatever the factor
    same = ~other & (np.abs(factors) > 1e-3)
    if same.any():  # these are right, whatever the masses of the description
        factors = factors / np.median(factors[same])
    k = len(factors)
    g = np.where(other, factors, 1.0)
    for j in np.flatnonzero(other):  # without those that need no factor
        without = np.where(np.arange(k) == j, 1.0, g)
        if fit.misfit(range(k), without) < fit.misfit(range(k), g) + DECISIVE:
            other[j], g = False, without
    if 2 * other.sum() > k:  # the scale is that of most joints
        g = np.where(other, g / np.median(g[other]), 1.0 / np.median(g[other]))
        other = (g < 1.0 / FACTOR) | (g > FACTOR)
        g = np.where(other, g, 1.0)
    explained = bool((fit.shares(range(k), g)[other] < EXPLAINED**2).all())
    if not explained or not fit.misfit(range(k), g) < fit.misfit(range(k)) - DECISIVE:
        return
    if (g[other] < 0.0).all():
        raise TimeSeriesError(
            f"{name}: the torques of {torques.named(other)} have the opposite sign of those of the "
            "other joints: no masses explain all of them; reverse them, or check the joints' axes"
        )
    listed = _listed(torques, 1.0 / g, other)
    raise TimeSeriesError(
        f"{name}: no masses explain the torques of all joints. They would with torques of "
        f"{torques.named(other)} divided by a factor, beside those of the others: {listed}. Are "
        "these in another unit, or currents? State the unit, as in --columns "
        "NAME=tau_joint1[mN m], or give factors by --gains"
    )


def check_order(name: str, torques: Torques) -> list[str]:
    """Return notes on exchanged torques; raise TimeSeriesError if other joints explain them better.

    Joints of single exchanges are compared, one exchange after the other. Torques that factors of
    single joints explain better are left to the check of these.
    """
    fit = _fit(torques)
    if fit is None:
        return []
    k = len(torques.joints)
    order = list(range(k))
    right = best = fit.misfit(order)
    alike = np.zeros(k, dtype=bool)
    while True:
        trials = []
        for i, j in itertools.combinations(range(k), 2):
            trial = list(order)
            trial[i], trial[j] = trial[j], trial[i]
            trials.append((fit.misfit(trial), trial))
            if best == right and trials[-1][0] < right + DECISIVE:
                alike[[i, j]] = True
        least, trial = min(trials, default=(best, order))
        if not least < best - 1.0:
            break
        best, order = least, trial
    changed = np.array(order) != np.arange(k)
    explained = bool((fit.shares(order)[changed] < EXPLAINED**2).all())
    if explained and best < min(right - DECISIVE, fit.misfit(range(k), fit.factors())):
        pairs = zip(order, torques.joints, changed, strict=True)
        listed = ", ".join(f"{torques.joints[i]} of {joint}" for i, joint, one in pairs if one)
        raise TimeSeriesError(
            f"{name}: the torques of {torques.named(changed)} are exchanged: masses explain them "
            f"far better if those called {listed}. Correct the columns, or state which are which, "
            "as in --columns NAME=tau_joint1"
        )
    if not alike.any():
        return []
    return [
        f"the torques of {torques.named(alike)} are too small to tell whether they are exchanged"
    ]


def check_explained(name: str, torques: Torques) -> None:
    """Raise TimeSeriesError for torques that no masses explain."""
    share = unexplained_share(torques)
    if share > FOREIGN:
        raise TimeSeriesError(
            f"{name}: no masses explain the measured torques: {100.0 * share:.0f} % of them are "
            "left. They do not belong to these positions: check the unit and zero of the "
            "positions, and that both are of the same joints, in the same order"
        )


def unexplained_share(torques: Torques) -> float:
    """Return the share of the torques that no masses and no friction explain; 0 if unknown."""
    fit = _fit(torques)
    return 0.0 if fit is None else fit.share(range(len(torques.joints)))


class _Fit(NamedTuple):
    """Normal equations of the torques of k joints in p parameters that all of them share.

    Columns of single joints are eliminated. The torques l may be those of each joint j.
    """

    samples: int
    """Number of samples."""
    A: FloatArray
    """(k, p, p) normal matrices of the joints."""
    c: FloatArray
    """(k, k, p) right sides of joint j with the torques l."""
    d: FloatArray
    """(k, k) squares of the torques l beside the columns of joint j."""
    left: FloatArray
    """(k, k) the mean of these that parameters of joint j alone do not explain."""

    def unexplained(self, order: Sequence[int]) -> tuple[FloatArray, FloatArray]:
        """Return (G, D): torques with factors g of joints leave g' G g of g' D g unexplained.

        The torques of joint j are those of ``order[j]``. Each joint has the weight of the residual
        that its torques have by parameters of its own.
        """
        k = len(order)
        weights = 1.0 / self.left[range(k), order]
        right = (weights[:, None] * self.c[range(k), order]).T
        left = right.T @ _solved(np.tensordot(weights, self.A, 1), right)
        D = np.diag(weights * self.d[range(k), order])
        return np.asarray(D - left), D

    def factors(self) -> FloatArray:
        """Return the factors (k,) of torques with which common masses explain most of them."""
        G, D = self.unexplained(range(len(self.A)))
        scale = np.sqrt(np.maximum(np.diag(D), 1e-300))
        return np.asarray(np.linalg.eigh(G / np.outer(scale, scale))[1][:, 0] / scale)

    def misfit(self, order: Sequence[int], factors: FloatArray | float = 1.0) -> float:
        """Return the sum of the logarithms of the unexplained shares of variance of the joints.

        It does not depend on the sizes of the torques of joints.
        """
        return float(np.log(self.shares(order, factors)).sum())

    def shares(self, order: Sequence[int], factors: FloatArray | float = 1.0) -> FloatArray:
        """Return the unexplained shares of variance of the joints (k,), at most 1."""
        k = len(order)
        g = factors * np.ones(k)
        least, d, c = (x[range(k), order] for x in (self.left, self.d, self.c))
        weights = 1.0 / (np.maximum(np.square(g), 1e-12) * least)
        right = (weights * g) @ c
        x = _solved(np.tensordot(weights, self.A, 1), right[:, None])[:, 0]
        rest = g**2 * d - 2.0 * g * (c @ x) + np.einsum("p,jpq,q->j", x, self.A, x)
        rest = np.maximum(rest / np.maximum(g**2, 1e-12), self.samples * least)
        return np.asarray(np.minimum(rest / np.maximum(d, self.samples * least), 1.0))

    def share(self, order: Sequence[int]) -> float:
        """Return the share of the torques that is unexplained."""
        G, D = self.unexplained(order)
        return float(np.sqrt(max(float(G.sum()), 0.0) / max(float(np.trace(D)), 1e-300)))


def _fit(torques: Torques) -> _Fit | None:
    """Return the normal equations; None without columns of masses or with too few samples."""
    if torques.masses is None:
        return None
    tau, (count, k) = torques.measured, torques.measured.shape
    own = [_scaled(torques.own(j)) for j in range(k)]
    if 2 * (torques.masses.shape[2] + sum(x.shape[1] for x in own)) > tau.size:
        return None
    As: list[FloatArray] = []
    cs: list[FloatArray] = []
    ds: list[FloatArray] = []
    lefts: list[FloatArray] = []
    least = max((ROUNDING * float(tau.std())) ** 2, 1e-300)
    for j in range(k):
        both = np.concatenate([torques.masses[:, j], tau], axis=1)
        both = both - own[j] @ np.linalg.lstsq(own[j], both, rcond=1e-9)[0]
        X, T = both[:, :-k], both[:, -k:]
        A, c, d = X.T @ X, T.T @ X, np.square(T).sum(axis=0)
        rest = d - np.einsum("lp,pl->l", c, _solved(A, c.T))
        As, cs, ds = [*As, A], [*cs, c], [*ds, d]
        lefts.append(np.maximum(rest / count, least))
    return _Fit(count, np.array(As), np.array(cs), np.array(ds), np.array(lefts))


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
