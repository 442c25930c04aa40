# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Identification of position servos, which measure no torques.

A servo with proportional control is a spring between its goal and its position. With the same
filter on both sides,

    k (goal(t - delay) - q) = tau(q, qd, qdd) + c tanh(qd / v) + d qd + I qdd + o

with the torques tau of the description. Divided by k, the equation is linear in 1/k, c/k, d/k, I/k
and o/k, and the noisy measured quantity is on the left. Masses and stiffness are known up to one
common factor, which the description sets, or a second recording with a known load.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

import mbs_dynamics as mbs
from mbs_dynamics.checks import FloatArray
from mbs_dynamics.identification.data import FRICTION_SPEEDS
from mbs_dynamics.identification.estimation import nonnegative
from mbs_dynamics.identification.identify import Identification, identify
from mbs_dynamics.identification.preparation import stretches_of
from mbs_dynamics.identification.signals import cutoff_of, filtered, low_pass, rate_of
from mbs_dynamics.identification.torque_model import TorqueModel, joint_columns
from mbs_dynamics.model.model import Model
from mbs_dynamics.timeseries import TimeSeries, TimeSeriesError

DELAYS = np.arange(0.0, 0.301, 0.005)
"""Delays in s that are tried."""

FOLLOWS = (0.5, 2.0)
"""Range of slopes of positions over goals for a servo that follows them."""

MOVES = 0.02
"""Motion in rad or m below which a joint is at rest."""

REPEATED = 1e-6
"""Distance of goals from positions, as a share of the motion, that no servo has."""

SATURATED, MOST_SATURATED = 0.9, 50.0
"""Share of the effort limit above which a servo may saturate, and largest percentage of such
samples."""

WORST = 0.5
"""Largest relative error of the differences of goals and positions."""

KNOWN = 0.1
"""Largest relative standard error of a stiffness that the recording determines."""


class Servo(NamedTuple):
    """A position servo of a joint, as a spring with friction."""

    stiffness: float
    """N m/rad or N/m."""
    damping: float
    """N m s/rad or N s/m, of servo and joint together."""
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
    """Relative error of the differences of goals and positions."""


class ServoIdentification(NamedTuple):
    """Result of :func:`identify_servos`."""

    servos: dict[str, Servo]
    """Servos by joint name."""
    identification: Identification | None
    """Masses in kg, if there was a recording with a known load; otherwise None."""
    notes: tuple[str, ...]

    @property
    def springs(self) -> dict[str, dict[str, float]]:
        """``stiffness``, ``damping``, ``friction`` and ``offset`` by joint, for
        :class:`mbs_dynamics.control.PositionArm`."""
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

    The masses of the model set the scale. With ``loaded``, a recording in which ``link`` carries a
    load of ``mass`` in kg at ``com`` (3,) in m in its frame, the load sets it, and masses are
    identified as well.

    Raises UnknownBodyError; TimeSeriesError for recordings without goals, or with goals that are
    not those of the servos.
    """
    model = model.loaded()
    notes: list[str] = []
    parts: list[_Part] = []
    given = [(series, model) for series in recordings]
    if loaded is not None:
        given.append((loaded, model.with_payload(link, mass, com).loaded()))
    for series, carrying in given:
        found, remarks = _parts(series, model, carrying)
        parts += found
        notes += remarks
    servos = {}
    for j, name in enumerate(parts[0].joints):
        servos[name], remarks = _servo(parts, j, model, scaled=loaded is not None)
        notes += remarks
    identification = None
    if loaded is not None:
        torques = [_with_torques(_with_goals(x, model), servos) for x in recordings]
        identification = identify(model, torques)
    return ServoIdentification(servos, identification, tuple(notes))


# -- goals -----------------------------------------------------------------------------------------


def _with_goals(series: TimeSeries, model: Model) -> TimeSeries:
    """Return the joints that have goals. Raises TimeSeriesError if they do not follow these."""
    series = series.of(model)
    if series.goal is None or np.isnan(series.goal).all():
        raise series.error(
            "holds neither efforts nor goals; a servo needs columns goal_<joint>, its commanded "
            "positions"
        )
    series = series.of_joints(
        [series.joints[k] for k in np.flatnonzero(~np.isnan(series.goal).any(axis=0))]
    )
    assert series.goal is not None
    for name, goal, q in zip(series.joints, series.goal.T, series.q.T, strict=True):
        column, moves, commanded = series.column(f"goal_{name}"), np.ptp(q), np.ptp(goal)
        if moves < MOVES:
            continue
        if np.abs(goal - q).max() < REPEATED * moves:
            raise series.error(
                f"{column} repeats the positions of {name}: a servo that moves is apart from its "
                f"goals. Record the goals that were sent, or declare {column}=none"
            )
        slope = float(np.cov(goal, q)[0, 1] / max(float(np.var(goal)), 1e-12))
        lag = float(np.median(goal - q))
        if not FOLLOWS[0] < slope < FOLLOWS[1] or abs(lag) > max(commanded, 0.3):
            raise series.error(
                f"{name} does not follow {column}: its position changes by {slope:.3g} for each "
                f"unit of the goal, at a distance of {lag:.3g}. Are these the goals of this servo, "
                "at the same time, and in the same unit? Declare another unit, as in --columns "
                f"goal=[deg], or {column}=none"
            )
    return series


def _with_torques(series: TimeSeries, servos: Mapping[str, Servo]) -> TimeSeries:
    """Return a recording with the spring torques of the servos."""
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
    """The terms of the equations of servos for one stretch of a recording."""

    joints: tuple[str, ...]
    signals: TimeSeries
    """The filtered motion, with the goals in place of torques."""
    described: FloatArray
    """(N, k) torques of the description, in N m or N."""
    load: FloatArray
    """(N, k) torques of the known load, in N m or N."""
    terms: FloatArray
    """(N, k, 4) joint terms: tanh(qd / v), qd, qdd and 1."""
    cutoff: float


def _parts(series: TimeSeries, model: Model, carrying: Model) -> tuple[list[_Part], list[str]]:
    """Return the stretches of a recording, and notes; ``carrying`` has the known load."""
    series = _with_goals(series, model)
    stretches, notes = stretches_of(replace(series, tau=series.goal), model)
    cutoff = cutoff_of(stretches)
    torque_model = TorqueModel(model, stretches[0].joints, FRICTION_SPEEDS[0])
    described, loaded = (
        mbs.inertial_parameters(x)[: torque_model.rigid] for x in (model, carrying)
    )
    parts = []
    for stretch in stretches:
        signals = filtered(stretch, cutoff)
        A = torque_model.equations(signals, cutoff).A
        rigid, terms = A[..., : torque_model.rigid], joint_columns(A)
        load = rigid @ (loaded - described)
        parts.append(_Part(torque_model.joints, signals, rigid @ described, load, terms, cutoff))
    return parts, notes


def _distances(parts: Sequence[_Part], j: int, delay: float) -> FloatArray:
    """Return the filtered differences (N,) of delayed goals and positions of joint j."""
    distances = []
    for part in parts:
        one = part.signals
        assert one.tau is not None
        goal = np.interp(one.t - delay, one.t, one.tau[:, j])
        distances.append(low_pass(goal - one.q[:, j], rate_of(one), part.cutoff))
    return np.concatenate(distances)


def _fit(parts: Sequence[_Part], j: int, delay: float, scaled: bool, used: Any = ...) -> Servo:
    """Return the servo of joint j with a delay, by the samples ``used``, by default all.

    The unknowns are 1/k, c/k, d/k, I/k and o/k; ``scaled``, where a known load sets the scale, also
    the factor of the described torques.
    """
    rows, freedoms = [], 0.0
    for part in parts:
        load, described, terms = part.load[:, j], part.described[:, j], part.terms[:, j]
        columns = [load, terms, described] if scaled else [load + described, terms]
        rows.append(np.column_stack(columns))
        freedoms += 2.0 * part.cutoff * (part.signals.t[-1] - part.signals.t[0])
    every = _distances(parts, j, delay)
    b, A = every[used], np.vstack(rows)[used]
    x = nonnegative(A, b, but=4)  # only the offset may be negative
    left = b - A @ x
    variance = float(np.sum(left**2)) / max(freedoms * len(b) / len(every) - len(x), 1.0)
    scale = np.maximum(np.linalg.norm(A, axis=0), 1e-12)
    spread = np.linalg.pinv((A / scale).T @ (A / scale))[0, 0] / scale[0] ** 2
    compliance = max(float(x[0]), 1e-12)
    friction, damping, inertia = (x[1:4] / compliance).tolist()
    return Servo(
        1.0 / compliance,
        damping,
        friction,
        inertia,
        offset=float(x[4]),
        delay=delay,
        deviation=float(np.sqrt(variance * spread)) / compliance,
        error=float(np.sqrt(np.mean(left**2)) / max(float(np.std(b)), 1e-9)),
    )


def _servo(
    parts: Sequence[_Part], j: int, model: Model, *, scaled: bool
) -> tuple[Servo, list[str]]:
    """Return the servo of joint j, and notes."""
    name, source = parts[0].joints[j], parts[0].signals.name
    most = float(model.effort_limits[model.joint_names.index(name)])

    def best(used: Any = ...) -> Servo:
        fits = [_fit(parts, j, float(delay), scaled, used) for delay in DELAYS]
        return min(fits, key=lambda servo: servo.error)

    servo, notes = best(), list[str]()
    torques = servo.stiffness * np.abs(_distances(parts, j, servo.delay))
    used = torques <= SATURATED * most
    saturated = 100.0 * (1.0 - float(used.mean()))
    if saturated > MOST_SATURATED:
        raise TimeSeriesError(
            f"{source}: the servo of {name} is likely saturated: {saturated:.0f} % of the samples "
            f"are beyond {SATURATED:g} times its effort limit of {most:g}. Record slower motions "
            "or a lighter load, or correct the limit in the description"
        )
    if saturated:
        servo = best(used)
        notes.append(f"{name}: {saturated:.0f} % of the samples are near saturation")
    if servo.delay == DELAYS[-1] or servo.error > WORST:
        raise TimeSeriesError(
            f"{source}: the goals of {name} do not explain its motion: the relative error is "
            f"{servo.error:.2g}, at a delay of {servo.delay:g} s. Are they the goals of this "
            "servo, by the same clock as its positions, and did nothing else move the arm?"
        )
    if servo.deviation > KNOWN:
        notes.append(
            f"{name}: the recording does not separate stiffness from masses and friction (standard "
            f"error {100.0 * min(servo.deviation, 9.99):.0f} %): gravity or accelerations must "
            "change its torque more"
        )
    return servo, notes
