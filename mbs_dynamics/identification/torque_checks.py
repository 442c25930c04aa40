# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Checks of measured torques against a description: missing, reversed, without gravity, scaled.

Torques are refused for what right torques cannot show, however wrong the masses of the description
are, see :mod:`mbs_dynamics.identification.torque_evidence`; unless their unit was stated, also
where it is more likely wrong than the masses. :data:`CHECKS` lists what is looked for, and what is
said then.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
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
    without_own,
)
from mbs_dynamics.timeseries import TimeSeriesError
from mbs_dynamics.timeseries.columns import UNITS

NOT_OF_LOAD, CERTAIN = 0.02, 3.0
"""Share of the gravity torques that no load explains, from which on they are told from a load, and
number of standard errors by which their share must be small."""

CLOSE = 1.45
"""Ratio of a factor to that of a unit that is named: described masses are rarely exact."""

COMMON = 4.5
"""Smallest factor of all joints that is refused, since masses may be wrong."""

DOUBTFUL, COMPARED = 2.5, 0.1
"""Ratio to gravity torques of the description at rest from which on their unit is asked for, of
joints whose gravity torque has this share of the largest. None of 2304 simulated sound sets of six
to twenty poses is asked, with loads of a tenth of the arm's masses and these wrong by half."""

NOTHING = 0.1
"""Size of torques, as a share of gravity, below which there are none where few poses are known."""

FOREIGN = 0.3
"""Share of the torques that no masses and no friction explain, above which they are of another
motion. Of 120 simulated recordings the right torques have at most 0.08, with as much noise as
torque 0.25, and those of other motions at least 0.35."""

LEFT_AT_REST = 0.25
"""Share of the variance that common masses leave of all large torques, above which they are those
of other poses. None of 48 simulated sets of other poses has less, and none of 256 sound ones more,
with noise of up to a twentieth of the largest torque."""

REFUTED, REFUTES, APPARENT = 0.4, 2.5, 0.05
"""Share of the variance of a joint that common masses leave, ratio to what masses of its own leave,
and share with friction included, above which its torques are foreign. On real arms the ratio of
such joints is 1 to 2; a model of friction that is most of a torque leaves more than its masses."""

ADVICE = (
    "State their unit, as in --columns tau=[mN m], or tau=[N m] if the masses are wrong, or give "
    "factors by --gains, 1 if they are in N m"
)
"""How to state the unit of torques."""


def no_efforts(torques: Torques) -> NDArray[np.bool_]:
    """Return a mask (k,) of joints whose torques do not change as they must."""
    measured, changes = torques.measured, torques.described.std(axis=0)
    constant = np.asarray(np.ptp(measured, axis=0) == 0.0)
    if len(measured) < 3 or not constant.any():
        return constant & False
    if constant.all():
        return constant
    if torques.own is not None:
        must = (np.ptp(torques.own, axis=0) > 0.0).any(axis=-1) | (changes > 0.0)
    else:  # of coarse sensors the smallest torques may be equal
        steps = np.abs(np.diff(np.sort(measured, axis=0), axis=0))
        finest = float(steps[steps > 0.0].min(initial=np.inf))
        must = changes >= np.maximum(2.0 * finest, ROUNDING * changes.max(initial=0.0))
    return np.asarray(constant & must & ~swings_freely(torques))


Found = tuple[NDArray[np.bool_], FloatArray]
"""Joints (k,) that a check has found, and numbers (k,) that show it."""


def reversed_by_masses(seen: Evidence) -> Found:
    """Find joints whose torques fit those of the others with the opposite sign."""
    other = seen.factors != 1.0
    return other & bool((seen.factors[other] < 0.0).all()), seen.factors


def reversed_by_description(seen: Evidence) -> Found:
    """Find joints of the opposite sign of gravity, unless masses explain it: all if none agrees."""
    wrong, fit = seen.signs < 0.0, seen.masses
    if not (seen.signs > 0.0).any() and (fit is not None or wrong.sum() > 1):
        return (seen.ones > 0.0) & wrong.any(), seen.signs
    if fit is not None and wrong.any():
        wrong &= not seen.given.decisive(fit.explained(np.where(wrong, -1.0, 1.0)), seen.least)
    return wrong, seen.signs


def without_gravity(seen: Evidence) -> Found:
    """Find torques without gravity in all joints that have any."""
    lacking = np.abs(seen.ratios) < LACKING
    every = (lacking | np.isnan(seen.ratios)).all() and seen.absent.any()
    return lacking & every, seen.ratios


def scaled_everywhere(seen: Evidence) -> Found:
    """Find torques that are many times those of the description in all joints."""
    used = seen.shares > EXPLAINED
    if used.sum() < min(2, len(used)):
        return used & False, seen.ratios
    return used & (not 1.0 / COMMON < _common(seen.ratios[used]) < COMMON), seen.ratios


def exchanged(seen: Evidence) -> Found:
    """Find two joints whose torques fit those of the others far better the other way round."""
    given, fit, found = seen.torques, seen.masses, seen.ones < 0.0
    if fit is None or given.masses is None:
        return found, seen.ones
    best, least = (seen.given, fit.explained(seen.factors)), np.inf
    tau = without_own(given, np.repeat(given.measured[:, None], len(found), axis=1))
    columns = without_own(given, given.masses)
    for i, j in itertools.combinations(range(len(found)), 2):
        other = fit.exchanged(i, j, columns, tau).explained()
        explains = (other.shares[[i, j]] < EXPLAINED**2).any()
        better = all(other.decisive(one, seen.least, 2) for one in best)
        if explains and better and other.misfit < least:
            least, found = other.misfit, np.isin(np.arange(len(found)), (i, j))
    return found, seen.ones


def scaled_by_masses(seen: Evidence) -> Found:
    """Find joints whose torques fit those of the others divided by a factor."""
    return seen.factors != 1.0, 1.0 / seen.factors


def joints_without_gravity(seen: Evidence) -> Found:
    """Find joints without gravity, if masses explain the others far better without them."""
    lacking, fit = seen.absent, seen.masses
    if lacking.all() or not lacking.any():
        return lacking & False, seen.ratios
    if fit is None:
        return lacking & bool((seen.sizes[lacking] < NOTHING).all()), seen.ratios
    alone = fit.without(lacking).explained()
    better = alone.decisive(seen.given.of(~lacking), seen.least, int(lacking.sum()))
    return lacking & better, seen.ratios


def perhaps_scaled(seen: Evidence) -> Found:
    """Find joints at rest whose torques may be in another unit as well as their masses wrong."""
    sizes, ratios = seen.torques.gravity.std(axis=0), np.abs(seen.ratios)
    other = (sizes > COMPARED * sizes.max()) & ~((ratios < DOUBTFUL) & (ratios > 1.0 / DOUBTFUL))
    other &= seen.shares > EXPLAINED**2
    if seen.torques.own is not None or not other.any():
        return other & False, seen.ratios
    if seen.masses is not None:
        scaled_back = seen.masses.explained(np.where(other, 1.0 / seen.ratios, 1.0))
        other &= not seen.given.decisive(scaled_back, seen.least)
    return other, seen.ratios


def foreign(seen: Evidence) -> Found:
    """Find torques that no masses explain, of single joints or of all."""
    fit, given = seen.masses, seen.torques
    if fit is None:
        return seen.ones < 0.0, seen.ones
    left = seen.given.squares / np.maximum(seen.given.freedoms, 1e-300)
    ratios = left / fit.variances
    certain = by_chance(ratios, seen.given.freedoms, fit.freedoms) < CHANCE
    sizes = np.maximum(given.measured.std(axis=0), given.described.std(axis=0))
    some = (seen.given.shares > REFUTED) & (ratios > REFUTES) & certain
    some &= (sizes > MATTERS * sizes.max()) & (left > APPARENT * given.measured.var(axis=0))
    if given.own is None:
        every = bool((seen.given.shares[sizes > LARGE * sizes.max()] > LEFT_AT_REST).all())
    else:
        every = none_explain(seen, FOREIGN**2)
    found = some if some.any() else (seen.ones > 0.0) & every
    return found, 100.0 * seen.given.shares


class Check(NamedTuple):
    """What is looked for, and the sentence of joints and numbers if it was found."""

    find: Callable[[Evidence], Found]
    sentence: str
    unless_stated: bool = False
    """Whether it is left out if the unit of the torques was stated."""


CHECKS = (
    Check(
        exchanged,
        "the torques of {joints} are exchanged: common masses explain them far better the other "
        "way round. Declare whose they are, as by --columns {exchange}",
    ),
    Check(
        reversed_by_masses,
        "the torques of {joints} have the opposite sign of those of the other joints: no masses "
        "explain all of them; reverse them, as by --columns {declared}[-1 N m], or "
        "check the joints' axes",
    ),
    Check(
        without_gravity,
        "the measured torques are without gravity, or in another unit: shares of the description's "
        "gravity torques in them are {values}. Either this driver subtracts gravity, so that "
        "masses cannot be identified, or the arm is mounted otherwise, see --gravity, or the "
        "torques are not in N m{likely}. {advice}",
    ),
    Check(
        reversed_by_description,
        "the torques of {joints} have the opposite sign of those of the description; reverse them, "
        "as by --columns {declared}[-1 N m], or check the joints' axes",
    ),
    Check(
        scaled_everywhere,
        "the torques are not those of the description; ratios to it are {values}: either all "
        "masses of the description are wrong by a factor of {factor:.3g}, or the torques are not "
        "in N m{likely}. {advice}",
        unless_stated=True,
    ),
    Check(
        scaled_by_masses,
        "no masses explain the torques of all joints. They would with torques of {joints} divided "
        "by a factor, beside those of the others: {values}. Are these in another unit, or "
        "currents? State the unit, as in --columns {declared}[mN m], or give factors by "
        "--gains",
    ),
    Check(
        joints_without_gravity,
        "the torques of {joints} are without gravity, those of other joints have it: shares of the "
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
        "the torques of {joints} are not those of the description; ratios to it are {values}. "
        "These poses do not show whether its masses are wrong or the torques are in another unit. "
        "Record more poses. {advice}",
        unless_stated=True,
    ),
)


def check_torques(name: str, torques: Torques, *, stated: bool = False) -> list[str]:
    """Return notes on torques; raise TimeSeriesError for torques that cannot be those of the arm.

    ``name`` is that of the recording. With ``stated`` their unit was stated.
    """
    if (wrong := no_efforts(torques)).any():
        held = ", ".join(f"{x:g}" for x in torques.measured[0][wrong])
        raise TimeSeriesError(
            f"{name}: holds no efforts of {torques.named(wrong)}: they are {held} throughout, "
            "although the load changes"
        )
    seen = Evidence(torques)
    torques = seen.torques
    for check in CHECKS:
        joints, values = check.find(seen)
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
    if not (seen.signs < 0.0).any():
        return []
    named = torques.named(seen.signs < 0.0)
    return [f"gravity torques of {named} have the opposite sign in the description"]


def check_ranges(name: str, declared: Torques, others: Torques, meaning: str) -> None:
    """Raise TimeSeriesError if torques belong to positions that are shares of the joints' ranges.

    ``declared`` and ``others`` are the torques by positions as declared, and as such shares.
    ``meaning`` says how to convert these.
    """
    one, other = Evidence(declared), Evidence(others)
    if one.masses is None or other.masses is None or len(one.ones) != len(other.ones):
        return
    if other.given.decisive(one.given, one.least, len(one.ones)) and not none_explain(
        other, (0.5 * FOREIGN) ** 2
    ):
        raise TimeSeriesError(
            f"{name}: the torques do not belong to the positions as declared. They would if these "
            f"are {meaning}"
        )


def check_weight(name: str, link: str, load: FloatArray, tau: FloatArray, g: FloatArray) -> None:
    """Raise TimeSeriesError for torques of a load on a link without the weight of the arm.

    A factor of the described gravity torques g (N, k) is fitted to torques (N, k) without inertial
    ones, beside columns ``load`` (N, k, p) of a load and of joints. It is near zero where the
    driver subtracts the weight that it knows, which is without the load.
    """
    columns = scaled(load.reshape(g.size, -1))
    both = np.column_stack([g.ravel(), tau.ravel()])
    rest, left = (both - columns @ np.linalg.lstsq(columns, both, rcond=1e-9)[0]).T
    freedom, size = g.size - columns.shape[1] - 1, float(rest @ rest)
    if freedom <= 0 or size <= NOT_OF_LOAD**2 * np.square(g).sum():
        return  # as of an arm that is a load itself
    share = float(left @ rest) / size
    deviation = float(np.linalg.norm(left - share * rest)) / float(np.sqrt(freedom * size))
    if abs(share) + CERTAIN * deviation < LACKING:
        raise TimeSeriesError(
            f"{name}: a load on {link!r} alone explains the torques; only {100.0 * share:.0f} % of "
            "the described weight of the arm is in them: they are without gravity. This driver "
            "subtracts gravity, so that masses cannot be identified"
        )


def _common(ratios: FloatArray) -> float:
    """Return the geometric median of the sizes of ratios (m,)."""
    return float(np.exp(np.median(np.log(np.abs(ratios) + 1e-300))))


def _likely(ratio: float) -> str:
    """Return declarations of units of torques with about this ratio to N m, for a message."""
    near = [
        f"tau=[{unit}]"
        for unit, x in UNITS["tau"].items()
        if unit[-1] in "mnt" and 1.0 / CLOSE < ratio * x < CLOSE
    ]
    return f", but likely --columns {' or '.join(near)}" if near else ""
