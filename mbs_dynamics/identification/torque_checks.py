# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Checks of measured torques: missing, reversed, without gravity, scaled, exchanged, foreign.

The masses of a description may be wrong, since they are to be identified. Two comparisons decide:

1. with common masses: one set of masses explains the torques of all joints, whatever it is;
2. with the gravity torques of the description, where the first does not show which of other torques
   are right, such as those of the opposite sign in all joints.

Torques are refused if others, such as reversed ones, agree far better. Unless their unit was
stated, they are also refused if the unit is more likely wrong than the masses.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from mbs_dynamics.algorithms.regressor import BaseParameters
from mbs_dynamics.checks import FloatArray
from mbs_dynamics.identification.common_masses import EXPLAINED, ROUNDING, CommonMasses, scaled
from mbs_dynamics.identification.torque_model import (
    JOINT_TERMS,
    Equations,
    TorqueModel,
    joint_columns,
    stacked,
)
from mbs_dynamics.model.coordinates import bounded
from mbs_dynamics.model.orders import tools
from mbs_dynamics.timeseries import TimeSeries, TimeSeriesError
from mbs_dynamics.timeseries.columns import UNITS

SAMPLES = 600
"""Largest number of samples that are checked."""

MATTERS, LARGE = 0.05, 0.2
"""Gravity torques of a joint, relative to the largest of all joints, above which they are compared
with its torques, and above which its sign in a motion is judged."""

LACKING, SMALL = 0.25, 0.7
"""Torques are without gravity if their component along the gravity torques of the description is
below the first share of these, and their size below the second."""

AGREES = 0.5
"""Smallest share of the variance of torques that gravity must explain for a judgement of sign and
factor."""

COMMON, DOUBTFUL, COMPARED = 4.5, 2.5, 0.1
"""Smallest factor of the torques of all joints in a motion that is refused, since smaller ones may
be errors of the masses; the same for single joints at rest, if their gravity torque is at least the
last share of the largest."""

DECISIVE, DECISIVE_AT_REST = 4.5, 2.5
"""Least difference of the misfits of two hypotheses, in a motion and at rest. In a motion it covers
errors of the friction model; at rest, friction is noise."""

NOT_OF_LOAD, CERTAIN = 0.02, 3.0
"""Least share of the gravity torques that no load explains, for a decision between weight and load,
and number of standard errors by which the weight must be small."""

FOREIGN, REFUTES, APPARENT = 0.4, 2.5, 0.05
"""The torques of a joint are foreign above all three: the share of the variance that common masses
leave, the ratio of this residual to that of separate masses, and the share with friction included.
On real arms the ratio is 1 to 2 for joints where friction is most of the torque, since the error of
the friction model is larger than the effect of the masses."""

FREE = 0.1
"""Share of the gravity torques of a joint below which torques count as zero."""

FOREIGN_MOTION = 0.09
"""Mean share of the variance of large torques that masses and friction leave, above which the
torques belong to another motion. In 120 simulated recordings it is at most 0.06, with noise as
large as the torques, and at least 0.12 for torques of other motions."""

CLOSE = 1.45
"""Largest ratio of a factor to a suggested unit, since described masses are rarely exact."""

ADVICE = (
    "State their unit, as in --columns tau=[mN m], or tau=[N m] if the masses are wrong, or give "
    "factors by --gains, 1 if they are in N m"
)
"""Advice on how to state the unit of torques."""

Joints = NDArray[np.bool_]
"""A mask (k,) of joints."""


class Torques:
    """Measured torques of k joints in N samples, with what the description says of them."""

    def __init__(
        self, torque_model: TorqueModel, equations: Sequence[Equations], own: BaseParameters
    ) -> None:
        A, tau = stacked(equations)
        gravity = np.concatenate([one.gravity for one in equations])
        step = slice(None, None, -(-len(tau) // SAMPLES))
        self.A, self.tau, self.gravity = A[step], tau[step], gravity[step]
        self.described = self.A @ torque_model.described()
        terms, inertia = joint_columns(self.A), JOINT_TERMS.index("inertia")
        self.at_rest = not terms[..., inertia].any()
        self.margin = DECISIVE_AT_REST if self.at_rest else DECISIVE
        used = [place for place in own.columns if place < torque_model.rigid]
        columns = self.A[..., used]
        self.show_masses = not unchanging(columns.reshape(len(columns), -1)).all()
        self.masses = CommonMasses(columns, terms)
        self.fit = self.masses.fit(self.tau)
        self.constant = unchanging(self.gravity)
        if self.constant.all() and not self.at_rest:  # such as a SCARA's
            self.gravity = self.described
        inertial, sizes = self.described - self.gravity, self.gravity.std(axis=0)
        inertial = np.where(inertial.std(axis=0) > ROUNDING * sizes, inertial, 0.0)
        others = np.concatenate([terms, inertial[..., None]], axis=-1)
        self.ratios, self.shares, self.sizes = self._compared(self.gravity, others)
        judged = (self.shares > AGREES) & (self.at_rest | (sizes > LARGE * sizes.max()))
        self.signs = np.where(judged, np.sign(self.ratios), 0.0)
        if not self.at_rest:
            # a joint without gravity torques has a positive inertia, whatever the masses are
            ratios, shares, _ = self._compared(self.described, np.delete(terms, inertia, axis=-1))
            judged = self.constant & (shares > AGREES)
            self.signs = np.where(judged, np.sign(ratios), self.signs)

    def _compared(self, g: FloatArray, others: FloatArray) -> tuple[FloatArray, ...]:
        """Return (ratios, shares, sizes), (k,) each, from a fit of torques by a factor of g (N, k).

        Columns ``others`` (N, k, m) are projected out first. ``ratios`` are the factors, ``shares``
        the shares of the variance that they explain, and ``sizes`` the norms of the torques
        relative to g: NaN, zero and NaN for joints with little of g.
        """
        whole = g.std(axis=0)
        project = CommonMasses(np.zeros((*g.shape, 0)), others).without_terms
        tau, g = project(self.tau), project(g)
        size = np.linalg.norm(g, axis=0)
        least = np.maximum(MATTERS * size.max(), ROUNDING * whole * np.sqrt(len(g)))
        size = np.where((size > np.maximum(least, 1e-9)) & (len(g) >= 4), size, np.nan)
        shared, squares = (tau * g).sum(axis=0), np.square(tau).sum(axis=0)
        shares = np.nan_to_num(shared**2 / np.maximum(size**2 * squares, 1e-300))
        return shared / size**2, shares, np.sqrt(squares) / size

    def worse(self, other: FloatArray) -> bool:
        """Return whether masses explain the torques far better than other torques (N, k)."""
        return self.fit.decisive(self.masses.fit(other), self.margin)


def check_torques(
    torque_model: TorqueModel,
    recordings: Sequence[TimeSeries],
    equations: Sequence[Equations],
    equations_of: Callable[[TimeSeries], Equations],
    own: BaseParameters,
) -> list[str]:
    """Return notes on torques; raise TimeSeriesError for torques that cannot be those of the arm.

    ``equations_of`` returns the equations of a recording, and ``own`` are the parameters that such
    recordings determine.
    """
    torques = Torques(torque_model, equations, own)
    recordings = [one.of_joints(torque_model.joints) for one in recordings]
    name = ", ".join(dict.fromkeys(one.name for one in recordings))
    declared = frozenset.intersection(*(one.declared for one in recordings))
    _check_changes(name, torques, recordings[0])
    q = np.concatenate([one.q for one in recordings])
    for text, zero, unit in shares_of_ranges(torque_model, q, stated="q" in declared):
        converted = [replace(one, q=zero + unit * one.q, qd=None) for one in recordings]
        other = Torques(torque_model, [equations_of(one) for one in converted], own)
        better = other.fit.decisive(torques.fit, torques.margin, len(torque_model.joints))
        if better and not foreign(other)[0].any():
            raise TimeSeriesError(
                f"{name}: the torques do not belong to the positions as declared. They would if "
                f"these are {text}"
            )
    stated = "tau" in declared
    for finding in findings_by_masses(torques, stated=stated):
        _refuse(name, recordings[0], finding)
    check_arm(name, torque_model, torques, stated=stated)
    for finding in findings_by_description(torques, stated=stated):
        _refuse(name, recordings[0], finding)
    if not (torques.signs < 0.0).any():
        return []
    opposite = recordings[0].named(torques.signs < 0.0)
    return [f"gravity torques of {opposite} have the opposite sign in the description"]


Finding = tuple[Joints, FloatArray, str]
"""The joints with wrong torques, the numbers (k,) that the message quotes, and the message."""


def _refuse(name: str, series: TimeSeries, finding: Finding) -> None:
    """Raise TimeSeriesError with the message of a finding, if it concerns any joint."""
    joints, values, sentence = finding
    if not joints.any():
        return
    names, at = series.joints, np.flatnonzero(joints)
    columns, named = [series.column(f"tau_{x}") for x in names], series.named(joints)
    factor = float(np.exp(np.median(np.log(np.abs(values[joints]) + 1e-300))))
    text = sentence.format(
        joints=f"all joints ({named})" if joints.all() else named,
        values=", ".join(f"{names[k]} {values[k]:.3g}" for k in at),
        declared="tau=" if joints.all() else f"{columns[at[0]]}=tau_{names[at[0]]}",
        exchange=" ".join(
            f"{columns[a]}=tau_{names[b]}" for a, b in zip(at, at[::-1], strict=True)
        ),
        factor=factor,
        likely=_likely(factor),
        advice=ADVICE,
    )
    raise TimeSeriesError(f"{name}: {text}")


def findings_by_masses(torques: Torques, *, stated: bool) -> Iterator[Finding]:
    """Yield the joints whose torques common masses explain far better if they are changed."""
    tau, ratios = torques.tau, torques.ratios
    sizes = torques.masses.without_terms(torques.described).std(axis=0)
    tried = (sizes > MATTERS * sizes.max()) | (not torques.at_rest)
    known = np.where(torques.shares > AGREES, ratios, np.nan)
    factors = torques.masses.factors(tau, known, tried, torques.margin)
    changed = factors != 1.0
    unchanged = [torques.fit, torques.masses.fit(tau * factors)]
    exchanged = torques.masses.exchanged(tau, unchanged, torques.margin)
    yield (
        exchanged,
        factors,
        "the torques of {joints} are exchanged: common masses explain them far better the other "
        "way round. Declare their joints, as in --columns {exchange}",
    )
    yield (
        changed & bool((factors[changed] < 0.0).all()),
        factors,
        "the torques of {joints} have the opposite sign of the other torques: no masses explain "
        "both. Reverse them, as in --columns {declared}[-1 N m], or check the joint axes",
    )
    yield (
        changed,
        1.0 / factors,
        "no masses explain the torques of all joints. They would with the torques of {joints} "
        "divided by a factor, if the others are right: {values}. Are these in another unit, or "
        "currents? State the unit, as in --columns {declared}[mN m], or give factors by --gains",
    )
    lacking = (np.abs(ratios) < LACKING) & (torques.sizes < SMALL) & tau.any(axis=0)
    put_back = torques.masses.fit(np.where(lacking, tau + torques.gravity, tau))
    better = put_back.decisive(torques.fit, torques.margin, max(int(lacking.sum()), 1))
    yield (
        lacking & better & (not stated),
        ratios,
        "the torques of {joints} are without gravity: shares of the description's gravity torques "
        "in them are {values}. They are not the torques about the axes of these joints, or the "
        "driver subtracts gravity, or the description is wrong. {advice}",
    )


def findings_by_description(torques: Torques, *, stated: bool) -> Iterator[Finding]:
    """Yield the joints whose torques disagree with the description, and others as above."""
    tau, ratios = torques.tau, torques.ratios
    wrong = torques.signs < 0.0
    if wrong.any() and not (torques.signs > 0.0).any():
        wrong = wrong | True
    reversed_back = np.where(wrong, -tau, tau)
    yield (
        wrong & (not torques.worse(reversed_back)),
        ratios,
        "the torques of {joints} have the opposite sign of the description's torques. Reverse "
        "them, as in --columns {declared}[-1 N m], or check the joint axes",
    )
    used, sizes = torques.shares > AGREES, torques.gravity.std(axis=0)
    common = float(np.exp(np.median(np.log(np.abs(ratios[used]))))) if used.any() else 1.0
    off = (sizes > COMPARED * sizes.max()) & (torques.shares > EXPLAINED) & torques.at_rest
    off &= ~((np.abs(ratios) < DOUBTFUL) & (np.abs(ratios) > 1.0 / DOUBTFUL))
    off &= not torques.worse(np.where(off, tau / np.where(off, ratios, 1.0), tau))
    off |= used & (not 1.0 / COMMON < common < COMMON)
    yield (
        off & (not stated),
        ratios,
        "the torques of {joints} do not agree with the description; ratios to it are {values}: "
        "either the masses of the description are wrong by a factor of {factor:.3g}, or the "
        "torques are not in N m{likely}. {advice}",
    )
    yield (
        *foreign(torques),
        "no masses explain the measured torques. Those of {joints} do not belong to these "
        "positions; in per cent of their variance, this is left: {values}. Check the unit and zero "
        "of the positions, and that both are of the same joints, in the same order",
    )


def foreign(torques: Torques) -> tuple[Joints, FloatArray]:
    """Return the joints (k,) whose torques no masses explain, and what masses leave in per cent."""
    shares = torques.fit.shares
    moving = torques.masses.without_terms(torques.tau).std(axis=0)
    whole = shares * np.square(moving / np.maximum(torques.tau.std(axis=0), 1e-300))
    sizes = np.maximum(torques.tau.std(axis=0), torques.described.std(axis=0))
    some = (shares > FOREIGN) & (torques.fit.ratios > REFUTES) & torques.fit.refuted
    some &= (sizes > MATTERS * sizes.max()) & (whole > APPARENT)
    sizes = torques.described.std(axis=0)
    large = whole[sizes > LARGE * sizes.max()]
    if not some.any() and len(large):
        every = (large > EXPLAINED).all() if torques.at_rest else large.mean() > FOREIGN_MOTION
        some = some | every
    return some, 100.0 * shares


def _check_changes(name: str, torques: Torques, series: TimeSeries) -> None:
    """Raise TimeSeriesError for constant torques, and for poses that show no masses.

    Joints that swing freely, as in simulations, need no torques: those of the description are then
    almost those of friction and motor inertia alone.
    """
    constant, changes = np.ptp(torques.tau, axis=0) == 0.0, torques.described.std(axis=0)
    if torques.at_rest:
        steps = np.abs(np.diff(np.sort(torques.tau, axis=0), axis=0))
        finest = float(min(steps[steps > 0.0], default=0.0))  # of a coarse sensor
        must = changes >= max(2.0 * finest, ROUNDING * changes.max(initial=0.0))
    else:
        left = torques.masses.without_terms(torques.described).std(axis=0)
        must = constant.all() | (left > FREE * torques.gravity.std(axis=0))
    if (constant & must).any() and len(torques.tau) > 2:
        raise TimeSeriesError(
            f"{name}: holds no efforts of {series.named(constant & must)}: they do not change, "
            "although the load changes"
        )
    if torques.at_rest and not torques.show_masses:
        raise TimeSeriesError(
            f"{name}: gravity torques are the same in all poses, so that these show no masses"
        )


def shares_of_ranges(
    torque_model: TorqueModel, q: FloatArray, *, stated: bool
) -> Iterator[tuple[str, FloatArray, FloatArray]]:
    """Yield meanings that positions q (N, k) may have as shares of the ranges of joints.

    Each is a text, and the positions of zero (k,) and of a unit more (k,) in rad or m. There are
    none if joints have no ranges. Per cent are considered only if the unit of positions was
    ``stated``, as degrees: read as rad, they would be far beyond the limits.
    """
    model, places = torque_model.model, torque_model.places
    low, high = model.lower[places], model.upper[places]
    kinds = [(1.0, 1.0, "shares of the ranges of the joints")]
    if stated:
        text = "per cent of the ranges of the joints that were declared as degrees"
        kinds.append((100.0, 100.0 * np.pi / 180.0, text))
    for last, read, text in kinds if bounded(low, high).all() else ():
        for zero, first, part in (
            (0.5 * (low + high), -last, f"(p + {last:g}) / {2.0 * last:g}"),
            (low, 0.0, f"p / {last:g}"),
        ):
            if ((q >= read * first / last) & (q <= read)).all():
                how = f"convert them to rad, as lower + (upper - lower) {part}"
                yield f"{text}, {first:g} to {last:g}: {how}", zero, (high - zero) / read


def unchanging(columns: FloatArray) -> Joints:
    """Return a mask (k,) of columns (N, k), such as gravity torques, that do not change."""
    return np.asarray(np.ptp(columns, axis=0) <= 1e-12 * np.abs(columns).max(initial=0.0))


def check_arm(name: str, torque_model: TorqueModel, torques: Torques, *, stated: bool) -> None:
    """Raise TimeSeriesError for torques without the weight of the arm, with a load or without.

    If a load on a tool may have caused all changes of gravity torques, as on a gantry, the mean
    torques must tell it from the arm, such as those of a vertical rail. See :func:`check_weight`.
    """
    A, g, rigid = torques.A, torques.gravity, torque_model.rigid
    if torques.constant.all():
        return
    tau = torques.tau - torques.described + g
    offsets = np.zeros(A.shape[-1], dtype=bool)
    offsets[rigid + JOINT_TERMS.index("offset") :: len(JOINT_TERMS)] = True
    for tool in tools(torque_model.model):
        load = np.zeros_like(offsets)
        body = 10 * torque_model.model.frames[tool].body
        load[body : body + 10], load[rigid:] = True, True
        if check_weight(name, tool, A[..., load], tau, g):
            continue
        told = check_weight(name, tool, A[..., load & ~offsets], tau, g)
        share = float((tau * g).sum() / max(np.square(g).sum(), 1e-300))
        if not told and abs(share) < (LACKING if stated else 1.0 / DOUBTFUL):
            raise _without_weight(name, tool, share)


def check_weight(name: str, link: str, load: FloatArray, tau: FloatArray, g: FloatArray) -> bool:
    """Raise TimeSeriesError for torques without the weight of the arm, whatever load they have.

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
    small = np.linalg.norm(left) < SMALL * np.sqrt(size)
    if small and abs(share) + CERTAIN * deviation < LACKING:
        raise _without_weight(name, link, share if abs(share) > CERTAIN * deviation else 0.0)
    return True


def _without_weight(name: str, link: str, share: float) -> TimeSeriesError:
    """Return the error for torques with only a share of the described weight of the arm."""
    return TimeSeriesError(
        f"{name}: friction or a load on {link!r} alone explains the torques, with only "
        f"{100.0 * share:.0f} % of the described weight of the arm: they are without gravity, or "
        "in another unit"
        f"{_likely(share)}. Either this driver subtracts gravity, so that masses cannot be "
        "identified, or a counterbalance carries the arm, or it is mounted in another way, see "
        f"--gravity. {ADVICE}"
    )


def _likely(ratio: float) -> str:
    """Return, for a message, declarations of torque units with about this ratio to N m."""
    near = [
        f"tau=[{unit}]"
        for unit, x in UNITS["tau"].items()
        if unit[-1] in "mnt" and 1.0 / CLOSE < ratio * x < CLOSE
    ]
    return f", but likely --columns {' or '.join(near)}" if near else ""
