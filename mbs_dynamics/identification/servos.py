# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Identification of position servos, which measure no torques.

A servo with proportional control is a spring between its goal and its position. At equal filters,

    k (goal(t - delay) - q) = tau(q, qd, qdd) + c tanh(qd / v) + d qd + I qdd + o

with the torques tau of the description. Divided by k it is linear in 1/k, c/k, d/k, I/k and o/k,
and the measured quantity, which has the noise, is on the left. Masses and stiffness have one scale:
that of the description, or that of a second recording with a known load.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

import mbs_dynamics as mbs
from mbs_dynamics.checks import FloatArray
from mbs_dynamics.identification.data import FRICTION_SPEEDS
from mbs_dynamics.identification.identify import Identification, identify
from mbs_dynamics.identification.preparation import stretches_of
from mbs_dynamics.identification.signals import Signals, cutoff_of, filtered, low_pass
from mbs_dynamics.identification.torque_model import TorqueModel, joint_columns
from mbs_dynamics.model.model import Model
from mbs_dynamics.timeseries import TimeSeries, TimeSeriesError

DELAYS = np.arange(0.0, 0.301, 0.005)
"""Delays in s that are tried."""

STEADY = (0.5, 2.0)
"""Slopes of positions over goals of a servo that follows them."""

MOVES = 0.02
"""Motion in rad or m below which a joint is at rest."""

REPEATED = 1e-6
"""Distance of goals from positions, as a share of the motion, that no servo has."""

SATURATED = 0.9
"""Share of the effort limit from which on a servo may not be a spring."""

MOST_SATURATED = 0.5
"""Largest share of saturated samples."""

WORST = 0.5
"""Largest relative error of the distances to the goals."""

KNOWN = 0.1
"""Relative standard error of a stiffness from which on it is not told from the masses."""


class Servo(NamedTuple):
    """A position servo of a joint, as a spring with friction."""

    stiffness: float
    """N m/rad or N/m."""
    damping: float
    """N m s/rad or N s/m, with that of the joint."""
    friction: float
    """Coulomb friction in N m or N."""
    inertia: float
    """Inertia of the motor in kg m^2 or kg."""
    offset: float
    """Difference of goal and position in rad or m at which there is no torque."""
    delay: float
    """Time in s from a goal to its effect."""
    deviation: float
    """Relative standard error of the stiffness."""
    error: float
    """Relative error of the distances to the goals."""


class ServoIdentification(NamedTuple):
    """Result of :func:`identify_servos`."""

    servos: dict[str, Servo]
    """Servos by joint name."""
    identification: Identification | None
    """Masses at true scale, from a recording with a known load; None without one."""
    notes: tuple[str, ...]

    @property
    def springs(self) -> dict[str, dict[str, float]]:
        """``stiffness``, ``damping``, ``friction`` and ``offset`` by joint, as
        :class:`mbs_dynamics.control.PositionArm` takes them."""
        return {
            term: {name: getattr(servo, term) for name, servo in self.servos.items()}
            for term in ("stiffness", "damping", "friction", "offset")
        }


def identify_servos(
    model: Model,
    recordings: Sequence[TimeSeries],
    loaded: TimeSeries | None = None,
    *,
    link: str = "",
    mass: float = 0.0,
    com: Sequence[float] = (0.0, 0.0, 0.0),
) -> ServoIdentification:
    """Return stiffness, damping, friction and delay of servos, from goals and positions.

    The scale is that of the masses of the model. With ``loaded``, a recording in which ``link``
    carries a load of ``mass`` in kg at ``com`` (3,) in m in its frame, it is that of the load, and
    masses are identified as well.

    Raises UnknownBodyError; TimeSeriesError for recordings without goals, or with goals that are
    not those of the servos.
    """
    model = model.loaded()
    carrying = model if loaded is None else model.with_payload(link, mass, com)
    notes: list[str] = []
    parts: list[_Part] = []
    for series in [*recordings, *([] if loaded is None else [loaded])]:
        own = _with_goals(series, model)
        found, remarks = _parts(own, model, carrying if series is loaded else None)
        parts += found
        notes += remarks
    joints = parts[0].joints
    servos = {}
    for j, name in enumerate(joints):
        servos[name], remarks = _servo(parts, j, model, scaled=loaded is not None)
        notes += remarks
    identification = None
    if loaded is not None:
        torques = [_with_torques(_with_goals(x, model), servos) for x in recordings]
        identification = identify(model, torques)
    return ServoIdentification(servos, identification, tuple(notes))


# -- goals -----------------------------------------------------------------------------------------


def _with_goals(series: TimeSeries, model: Model) -> TimeSeries:
    """Return the joints that have goals, which are those of servos by a plain check."""
    own = series.of(model)
    if own.goal is None or np.isnan(own.goal).all():
        raise own.error(
            "holds neither efforts nor goals; a servo needs columns goal_<joint>, the positions "
            "that it was told to go to"
        )
    own = own.of_joints([own.joints[k] for k in np.flatnonzero(~np.isnan(own.goal).any(axis=0))])
    assert own.goal is not None
    for name, goal, q in zip(own.joints, own.goal.T, own.q.T, strict=True):
        column = own.column(f"goal_{name}")
        moves, told = float(np.ptp(q)), float(np.ptp(goal))
        if moves > MOVES and told < 0.1 * moves:
            raise own.error(
                f"{column} changes by {told:.3g} while {name} moves by {moves:.3g}: it does not "
                f"hold the goals of this servo. Declare what it is, or {column}=none"
            )
        if moves < MOVES or told < MOVES:
            continue
        if np.abs(goal - q).max() < REPEATED * moves:
            raise own.error(
                f"{column} repeats the positions of {name}: a servo that moves is apart from its "
                f"goals. Record the goals that were sent, or declare {column}=none"
            )
        slope = float(np.polyfit(goal, q, 1)[0])
        lag = float(np.median(goal - q))
        if not STEADY[0] < slope < STEADY[1] or abs(lag) > max(told, 0.3):
            raise own.error(
                f"{name} does not follow {column}: its position changes by {slope:.3g} for each "
                f"unit of the goal, at a distance of {lag:.3g}. Is the goal in another unit, as in "
                f"--columns goal=[deg], of another joint, or of another time?"
            )
    return own


def _with_torques(series: TimeSeries, servos: Mapping[str, Servo]) -> TimeSeries:
    """Return a recording with the torques of the servos, which have no friction here."""
    assert series.goal is not None
    columns = []
    for name, goal, q in zip(series.joints, series.goal.T, series.q.T, strict=True):
        one = servos[name]
        delayed = np.interp(series.t - one.delay, series.t, goal)
        columns.append(one.stiffness * (delayed - q - one.offset))
    tau = np.column_stack(columns)
    return replace(series, tau=tau, goal=None, declared=series.declared | {"tau"})


# -- equations -------------------------------------------------------------------------------------


class _Part(NamedTuple):
    """A motion, filtered, and all that the equation of a servo contains, (N, k) each."""

    joints: tuple[str, ...]
    signals: Signals
    """With the goals in place of torques."""
    described: FloatArray
    """Torques of the description, in N m or N."""
    load: FloatArray
    """Torques of the known load, in N m or N."""
    terms: FloatArray
    """(N, k, 4) Coulomb friction, rates, their rates, and one."""
    cutoff: float
    name: str


def _parts(
    series: TimeSeries, model: Model, carrying: Model | None
) -> tuple[list[_Part], list[str]]:
    stretches, notes = stretches_of(replace(series, tau=series.goal), model)
    cutoff = cutoff_of(stretches)
    torque_model = TorqueModel(model, stretches[0].series.joints, FRICTION_SPEEDS[0])
    parts = []
    for stretch in stretches:
        signals = filtered(stretch, cutoff)
        equations, rigid = torque_model.equations(signals, cutoff), torque_model.rigid
        load = np.zeros_like(equations.b)
        if carrying is not None:
            motion = [
                torque_model.whole(signals.q, at_rest=True, rest=signals.rest),
                torque_model.whole(signals.qd),
                torque_model.whole(signals.qdd),
            ]
            more = mbs.inverse_dynamics(carrying, *motion) - mbs.inverse_dynamics(model, *motion)
            load = low_pass(more[:, torque_model.places], signals.rate, cutoff)
        parts.append(
            _Part(
                torque_model.joints,
                signals,
                equations.A[..., :rigid] @ torque_model.described()[:rigid],
                load,
                joint_columns(equations.A),
                cutoff,
                series.name,
            )
        )
    return parts, notes


class _Fit(NamedTuple):
    """Solution of the equation of a servo for one delay."""

    delay: float
    x: FloatArray
    deviations: FloatArray
    error: float
    """Relative error of the distances to the goals."""
    distances: FloatArray
    """Distances to the goals of all samples, in rad or m."""


def _fit(parts: Sequence[_Part], j: int, delay: float, scaled: bool, used: Any = ...) -> _Fit:
    """Return 1/k, c/k, d/k, I/k and o/k, and with ``scaled`` that of the described torques.

    ``used`` are the samples, by default all.
    """
    from scipy.optimize import lsq_linear

    distances, rows, freedoms = [], [], 0.0
    for part in parts:
        one = part.signals
        goal = np.interp(one.t - delay, one.t, one.tau[:, j])
        distances.append(low_pass(goal - one.q[:, j], one.rate, part.cutoff))
        torques = (part.load[:, j], part.described[:, j])
        known = torques if scaled else (sum(torques),)
        rows.append(np.column_stack([known[0], part.terms[:, j], *known[1:]]))
        freedoms += 2.0 * part.cutoff * (one.t[-1] - one.t[0])
    every = np.concatenate(distances)
    b, A = every[used], np.vstack(rows)[used]
    scale = np.maximum(np.linalg.norm(A, axis=0) / np.sqrt(len(A)), 1e-12)
    low = np.zeros(A.shape[1])
    low[4] = -np.inf  # the offset
    x = lsq_linear(A / scale, b, bounds=(low, np.inf)).x / scale
    left = b - A @ x
    freedoms = max(freedoms * len(b) / len(every) - len(x), 1.0)
    variance = float(np.sum(left**2)) / freedoms
    deviations = np.sqrt(variance * np.diag(np.linalg.pinv((A / scale).T @ (A / scale)))) / scale
    error = float(np.sqrt(np.mean(left**2)) / max(float(np.std(b)), 1e-9))
    return _Fit(delay, x, deviations, error, every)


def _servo(
    parts: Sequence[_Part], j: int, model: Model, *, scaled: bool
) -> tuple[Servo, list[str]]:
    """Return the servo of joint j, and notes."""
    name, source = parts[0].joints[j], parts[0].name
    most = float(model.effort_limits[model.joint_names.index(name)])

    def best(used: Any = ...) -> _Fit:
        fits = [_fit(parts, j, float(delay), scaled, used) for delay in DELAYS]
        return min(fits, key=lambda fit: fit.error)

    first = best()
    used = np.abs(first.distances) <= SATURATED * most * max(float(first.x[0]), 1e-12)
    saturated = 1.0 - float(used.mean())
    if saturated > MOST_SATURATED:
        raise TimeSeriesError(
            f"{source}: the servo of {name} is likely saturated: {100.0 * saturated:.0f} % of "
            f"the samples are beyond {SATURATED:g} times its effort limit of {most:g}. Record "
            "slower motions or a lighter load, or correct the limit in the description"
        )
    fit = best(used) if saturated else first
    delay = fit.delay
    if delay == DELAYS[-1]:
        raise TimeSeriesError(
            f"{source}: {name} follows its goals by {delay:g} s or more: are goals and positions "
            "of one clock?"
        )
    compliance = float(fit.x[0])
    deviation = float(fit.deviations[0]) / compliance if compliance > 0.0 else np.inf
    if fit.error > WORST:
        raise TimeSeriesError(
            f"{source}: goals of {name} do not explain its motion, with a relative error of "
            f"{fit.error:.2g}: are they the goals of this servo, and did nothing else move the arm?"
        )
    notes = []
    if saturated:
        notes.append(f"{name}: {100.0 * saturated:.0f} % of the samples are near saturation")
    if deviation > KNOWN:
        notes.append(
            f"{name}: the recording does not tell its stiffness from masses and friction (standard "
            f"error {100.0 * min(deviation, 9.99):.0f} %): gravity or accelerations must change "
            "its torque more"
        )
    stiffness = 1.0 / max(compliance, 1e-12)
    friction, damping, inertia = (stiffness * fit.x[1:4]).tolist()
    offset = float(fit.x[4])
    return Servo(stiffness, damping, friction, inertia, offset, delay, deviation, fit.error), notes
