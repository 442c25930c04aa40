# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Checks of measured torques: missing, reversed, without gravity, scaled, exchanged.

Torques are refused if no masses of the arm could cause them; see
:mod:`mbs_dynamics.identification.torque_evidence`. Unless their unit was stated, they are also
refused if the unit is more likely wrong than the masses. :data:`CHECKS` lists the checks and their
messages.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mbs_dynamics.checks import FloatArray
from mbs_dynamics.identification.common_masses import CHANCE, ROUNDING, by_chance
from mbs_dynamics.identification.torque_evidence import (
    EXPLAINED,
    LACKING,
    LARGE,
    MATTERS,
    Evidence,
    Torques,
    none_explain,
    scaled,
    swings_freely,
    unchanging,
    without_joint_terms,
)
from mbs_dynamics.timeseries import TimeSeriesError
from mbs_dynamics.timeseries.columns import UNITS

NOT_OF_LOAD, CERTAIN = 0.02, 3.0
"""Least share of the gravity torques that no load explains, for a decision between weight and load,
and number of standard errors by which the weight must be small."""

CLOSE = 1.45
"""Largest ratio of a factor to a suggested unit, since described masses are rarely exact."""

COMMON = 4.5
"""Smallest factor of all joints that is refused. Smaller ones may be errors of the masses."""

DOUBTFUL, COMPARED = 2.5, 0.1
"""Ratio to gravity torques of the description at rest from which on the unit must be stated, for
joints whose gravity torque is at least this share of the largest. None of 2304 simulated sound sets
of six to twenty poses reaches it, with loads of a tenth of the arm's masses, and masses wrong by
half."""

NOTHING = 0.1
"""Size of torques, as a share of gravity, below which they count as zero in few poses."""

FOREIGN = 0.3
"""Share of the torques that masses and friction leave, above which the torques belong to another
motion. In 120 simulated recordings it is at most 0.08 for the right torques, 0.25 for noise as
large as the torques, and at least 0.35 for torques of other motions."""

LEFT_AT_REST = 0.25
"""Share of the variance of all large torques that common masses leave, above which the torques
belong to other poses. None of 48 simulated sets of other poses has less, and none of 256 sound sets
more, with noise of up to a twentieth of the largest torque."""

REFUTED, REFUTES, APPARENT = 0.4, 2.5, 0.05
"""The torques of a joint are foreign above all three: the share of the variance that common masses
leave, the ratio of this residual to that of separate masses, and the share with friction included.
On real arms the ratio is 1 to 2 for joints where friction is most of the torque, since the error of
the friction model is larger than the effect of the masses."""

ADVICE = (
    "State their unit, as in --columns tau=[mN m], or tau=[N m] if the masses are wrong, or give "
    "factors by --gains, 1 if they are in N m"
)
"""Advice on how to state the unit of torques."""


def no_efforts(torques: Torques) -> NDArray[np.bool_]:
    """Return a mask (k,) of joints with constant torques although their load changes."""
    measured, changes = torques.measured, torques.described.std(axis=0)
    constant = np.asarray(np.ptp(measured, axis=0) == 0.0)
    if len(measured) < 3 or not constant.any():
        return constant & False
    if constant.all():
        return constant
    if torques.joint_terms is not None:
        must = (np.ptp(torques.joint_terms, axis=0) > 0.0).any(axis=-1) | (changes > 0.0)
    else:  # small torques of a coarse sensor may be constant
        steps = np.abs(np.diff(np.sort(measured, axis=0), axis=0))
        finest = float(steps[steps > 0.0].min(initial=np.inf))
        must = changes >= np.maximum(2.0 * finest, ROUNDING * changes.max(initial=0.0))
    return np.asarray(constant & must & ~swings_freely(torques))


Found = tuple[NDArray[np.bool_], FloatArray]
"""Mask (k,) of the joints that fail a check, and the numbers (k,) that its message quotes."""


def reversed_by_masses(evidence: Evidence) -> Found:
    """Find joints whose torques agree with the other joints if their signs are reversed."""
    changed = evidence.factors != 1.0
    return changed & bool((evidence.factors[changed] < 0.0).all()), evidence.factors


def reversed_by_description(evidence: Evidence) -> Found:
    """Find joints with the opposite sign of described gravity that common masses do not explain.

    If no joint has the sign of the description, all of them are found.
    """
    wrong, fit = evidence.signs < 0.0, evidence.masses
    if not (evidence.signs > 0.0).any() and (fit is not None or wrong.sum() > 1):
        return ~evidence.none & wrong.any(), evidence.signs
    if fit is not None and wrong.any():
        reversed_back = fit.explained(np.where(wrong, -1.0, 1.0))
        wrong &= not evidence.unchanged.decisive(reversed_back, evidence.margin)
    return wrong, evidence.signs


def without_gravity(evidence: Evidence) -> Found:
    """Find torques without gravity, if this holds for all joints with gravity torques."""
    lacking = np.abs(evidence.ratios) < LACKING
    every = (lacking | np.isnan(evidence.ratios)).all() and evidence.lacking_gravity.any()
    return lacking & every, evidence.ratios


def scaled_everywhere(evidence: Evidence) -> Found:
    """Find torques that are in all joints far larger or smaller than described."""
    used = evidence.shares > EXPLAINED
    if used.sum() < np.clip(np.isfinite(evidence.ratios).sum(), 1, 2):
        return evidence.none, evidence.ratios
    return used & (not 1.0 / COMMON < _common(evidence.ratios[used]) < COMMON), evidence.ratios


def exchanged(evidence: Evidence) -> Found:
    """Find two joints whose torques agree far better with the other joints if exchanged."""
    torques, fit, found = evidence.torques, evidence.masses, evidence.none
    if fit is None:
        return found, evidence.ones
    best, least = (evidence.unchanged, fit.explained(evidence.factors)), np.inf
    tau = without_joint_terms(torques, np.repeat(torques.measured[:, None], len(found), axis=1))
    columns = without_joint_terms(torques, torques.masses)
    for i, j in itertools.combinations(range(len(found)), 2):
        other = fit.exchanged(i, j, columns, tau).explained()
        explains = (other.shares[[i, j]] < EXPLAINED**2).any()
        better = all(other.decisive(one, evidence.margin, 2) for one in best)
        if explains and better and other.misfit < least:
            least, found = other.misfit, np.isin(np.arange(len(found)), (i, j))
    return found, evidence.ones


def scaled_by_masses(evidence: Evidence) -> Found:
    """Find joints whose torques agree with the other joints if divided by a factor."""
    return evidence.factors != 1.0, 1.0 / evidence.factors


def joints_without_gravity(evidence: Evidence) -> Found:
    """Find joints without gravity, if masses explain the other joints far better alone."""
    lacking, fit = evidence.lacking_gravity, evidence.masses
    if lacking.all() or not lacking.any():
        return evidence.none, evidence.ratios
    if fit is None:
        return lacking & bool((evidence.sizes[lacking] < NOTHING).all()), evidence.ratios
    others = fit.without(lacking).explained()
    better = others.decisive(evidence.unchanged.of(~lacking), evidence.margin, int(lacking.sum()))
    return lacking & better, evidence.ratios


def perhaps_scaled(evidence: Evidence) -> Found:
    """Find joints at rest whose torques may have another unit, or else wrong masses."""
    sizes, ratios = evidence.torques.gravity.std(axis=0), np.abs(evidence.ratios)
    scaled = (sizes > COMPARED * sizes.max()) & ~((ratios < DOUBTFUL) & (ratios > 1.0 / DOUBTFUL))
    scaled &= evidence.shares > EXPLAINED**2
    if not evidence.at_rest or not scaled.any():
        return evidence.none, evidence.ratios
    if evidence.masses is not None:
        scaled_back = evidence.masses.explained(np.where(scaled, 1.0 / evidence.ratios, 1.0))
        scaled &= not evidence.unchanged.decisive(scaled_back, evidence.margin)
    return scaled, evidence.ratios


def foreign(evidence: Evidence) -> Found:
    """Find torques of single joints, or of all, that no masses explain."""
    fit, torques = evidence.masses, evidence.torques
    if fit is None:
        return evidence.none, evidence.ones
    shares, freedoms, squares, _ = evidence.unchanged
    left = squares / np.maximum(freedoms, 1e-300)
    ratios = left / fit.variances
    certain = by_chance(ratios, freedoms, fit.freedoms) < CHANCE
    sizes = np.maximum(torques.measured.std(axis=0), torques.described.std(axis=0))
    some = (shares > REFUTED) & (ratios > REFUTES) & certain
    some &= (sizes > MATTERS * sizes.max()) & (left > APPARENT * torques.measured.var(axis=0))
    if some.any():
        return some, 100.0 * shares
    if evidence.at_rest:
        every = bool((shares[sizes > LARGE * sizes.max()] > LEFT_AT_REST).all())
    else:
        every = none_explain(evidence, FOREIGN**2)
    return ~evidence.none & every, 100.0 * shares


class Check(NamedTuple):
    """A check, and the message about the joints that fail it."""

    find: Callable[[Evidence], Found]
    sentence: str
    unless_stated: bool = False
    """Whether the check is omitted if the unit of the torques was stated."""


CHECKS = (
    Check(
        exchanged,
        "the torques of {joints} are exchanged: common masses explain them far better the other "
        "way round. Declare their joints, as in --columns {exchange}",
    ),
    Check(
        reversed_by_masses,
        "the torques of {joints} have the opposite sign of the other torques: no masses explain "
        "both. Reverse them, as in --columns {declared}[-1 N m], or check the joint axes",
    ),
    Check(
        without_gravity,
        "the measured torques are without gravity, or in another unit: shares of the description's "
        "gravity torques in them are {values}. Either this driver subtracts gravity, so that "
        "masses cannot be identified, or the arm is mounted in another way, see --gravity, or the "
        "torques are not in N m{likely}. {advice}",
    ),
    Check(
        reversed_by_description,
        "the torques of {joints} have the opposite sign of the description's torques. Reverse "
        "them, as in --columns {declared}[-1 N m], or check the joint axes",
    ),
    Check(
        scaled_everywhere,
        "the torques do not agree with the description; ratios to it are {values}: either all "
        "masses of the description are wrong by a factor of {factor:.3g}, or the torques are not "
        "in N m{likely}. {advice}",
        unless_stated=True,
    ),
    Check(
        scaled_by_masses,
        "no masses explain the torques of all joints. They would with the torques of {joints} "
        "divided by a factor, if the others are right: {values}. Are these in another unit, or "
        "currents? State the unit, as in --columns {declared}[mN m], or give factors by --gains",
    ),
    Check(
        joints_without_gravity,
        "the torques of {joints} are without gravity, unlike the other torques: shares of the "
        "description's gravity torques in them are {values}. They are not the torques about the "
        "axes of these joints, or the driver subtracts gravity there, or the description is wrong. "
        "{advice}",
        unless_stated=True,
    ),
    Check(
        foreign,
        "no masses explain the measured torques. Those of {joints} do not belong to these "
        "positions; in per cent of their variance, this is left: {values}. Check the unit and zero "
        "of the positions, and that both are of the same joints, in the same order",
    ),
    Check(
        perhaps_scaled,
        "the torques of {joints} do not agree with the description; ratios to it are {values}. "
        "These poses do not show whether its masses are wrong or the torques are in another unit. "
        "Record more poses. {advice}",
        unless_stated=True,
    ),
)


def check_torques(name: str, torques: Torques, *, stated: bool = False) -> list[str]:
    """Return notes on torques; raise TimeSeriesError for torques that cannot be those of the arm.

    ``name`` is the name of the recording; ``stated`` tells that the unit of torques was stated.
    """
    if (wrong := no_efforts(torques)).any():
        held = ", ".join(f"{x:g}" for x in torques.measured[0][wrong])
        raise TimeSeriesError(
            f"{name}: holds no efforts of {torques.named(wrong)}: they are {held} throughout, "
            "although the load changes"
        )
    still = torques.joint_terms is None
    if still and unchanging(torques.masses.reshape(len(torques.masses), -1)).all():
        raise TimeSeriesError(
            f"{name}: gravity torques are the same in all poses, so that these show no masses"
        )
    evidence = Evidence(torques)
    torques = evidence.torques
    for check in CHECKS:
        joints, values = check.find(evidence)
        if joints.any() and not (stated and check.unless_stated):
            at, factor = np.flatnonzero(joints).tolist(), _common(values[joints])
            taus = [f"tau_{joint}" for joint in torques.joints]
            named = torques.named(joints)
            sentence = check.sentence.format(
                joints=f"all joints ({named})" if joints.all() else named,
                values=", ".join(f"{torques.joints[k]} {values[k]:.3g}" for k in at),
                declared="tau=" if joints.all() else f"{torques.columns[at[0]]}={taus[at[0]]}",
                exchange=" ".join(
                    f"{torques.columns[a]}={taus[b]}" for a, b in zip(at, at[::-1], strict=True)
                ),
                factor=factor,
                likely=_likely(factor),
                advice=ADVICE,
            )
            raise TimeSeriesError(f"{name}: {sentence}")
    if not (evidence.signs < 0.0).any():
        return []
    named = torques.named(evidence.signs < 0.0)
    return [f"gravity torques of {named} have the opposite sign in the description"]


def check_ranges(name: str, declared: Torques, others: Torques, meaning: str) -> None:
    """Raise TimeSeriesError if torques belong to positions that are shares of the joints' ranges.

    ``declared`` and ``others`` are the torques by positions as declared, and as such shares.
    ``meaning`` says how to convert these.
    """
    one, other = Evidence(declared), Evidence(others)
    if one.masses is None or other.masses is None or len(one.ones) != len(other.ones):
        return
    if other.unchanged.decisive(one.unchanged, one.margin, len(one.ones)) and not none_explain(
        other, (0.5 * FOREIGN) ** 2
    ):
        raise TimeSeriesError(
            f"{name}: the torques do not belong to the positions as declared. They would if these "
            f"are {meaning}"
        )


def check_arm(
    name: str,
    link: str,
    parts: Sequence[FloatArray],
    tau: FloatArray,
    g: FloatArray,
    *,
    stated: bool,
) -> None:
    """Raise TimeSeriesError for torques of a load on a link without the weight of the arm.

    The columns of ``parts`` (N, k, p) are those of the load, of friction and motor inertia, and of
    offsets. If the load may have caused all changes of gravity torques, as on a gantry, the mean
    torques must tell it from the arm, such as those of a vertical rail. See :func:`check_weight`.
    """
    if unchanging(g).all() or check_weight(name, link, np.concatenate(parts, axis=-1), tau, g):
        return
    told = check_weight(name, link, np.concatenate(parts[:-1], axis=-1), tau, g)
    share = float((tau * g).sum() / max(np.square(g).sum(), 1e-300))
    if not told and not stated and abs(share) < 1.0 / DOUBTFUL:
        raise TimeSeriesError(
            f"{name}: a load on {link!r} alone explains the torques, with only "
            f"{100.0 * share:.0f} % of the described weight of the arm. Either this driver "
            "subtracts gravity, so that masses cannot be identified, or a counterbalance carries "
            f"it. {ADVICE}"
        )


def check_weight(name: str, link: str, load: FloatArray, tau: FloatArray, g: FloatArray) -> bool:
    """Raise TimeSeriesError for torques that have the weight of a load but not that of the arm.

    ``tau`` (N, k) are torques without inertial ones, ``load`` (N, k, p) the columns of a load on
    the link and of joint terms. The described gravity torques g (N, k) are fitted with a factor
    beside these columns. A factor near zero means that the driver subtracts the weight of the arm.
    Returns whether the two can be told apart; they cannot if these columns explain the gravity
    torques of the arm.
    """
    columns = scaled(load.reshape(g.size, -1))
    both = np.column_stack([g.ravel(), tau.ravel()])
    rest, left = (both - columns @ np.linalg.lstsq(columns, both, rcond=1e-9)[0]).T
    freedom, size = g.size - columns.shape[1] - 1, float(rest @ rest)
    if freedom <= 0 or size <= NOT_OF_LOAD**2 * np.square(g).sum():
        return False
    share = float(left @ rest) / size
    deviation = float(np.linalg.norm(left - share * rest)) / float(np.sqrt(freedom * size))
    if abs(share) + CERTAIN * deviation < LACKING:
        raise TimeSeriesError(
            f"{name}: a load on {link!r} alone explains the torques; only {100.0 * share:.0f} % of "
            "the described weight of the arm is in them: they are without gravity. This driver "
            "subtracts gravity, so that masses cannot be identified"
        )
    return True


def _common(ratios: FloatArray) -> float:
    """Return the median magnitude of ratios (m,), on a logarithmic scale."""
    return float(np.exp(np.median(np.log(np.abs(ratios) + 1e-300))))


def _likely(ratio: float) -> str:
    """Return, for a message, declarations of torque units with about this ratio to N m."""
    near = [
        f"tau=[{unit}]"
        for unit, x in UNITS["tau"].items()
        if unit[-1] in "mnt" and 1.0 / CLOSE < ratio * x < CLOSE
    ]
    return f", but likely --columns {' or '.join(near)}" if near else ""
