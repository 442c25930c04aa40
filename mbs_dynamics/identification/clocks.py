# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Whether the clock and the velocities of a recording are in SI units.

Four independent pieces of evidence; a prime is a derivative by the number of the sample, h the
period in s:

1. the period, within PERIODS;
2. the speed q' / h over the velocity limits of the description;
3. the torques, if they have gravity in them: tau = G(q) x + F x + h^-2 I(q, q', q'') x has its
   least residual over all base parameters x at the true h, since moments of mass are in gravity G
   and in inertial torques I. A factor of tau changes nothing;
4. the velocities: the ratio rho of q to their integral over the clock. A clock that is right and
   rho = pi/180 are velocities in deg/s; rho = 1e-3 and a clock that cannot be in s is one in ms.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mbs_dynamics.checks import FloatArray
from mbs_dynamics.identification.estimation import least_squares_residual, weighed
from mbs_dynamics.identification.recording import STILL, Recording, RecordingError
from mbs_dynamics.identification.signals import MULTIPLE, SHARE, filtered, motion_frequency
from mbs_dynamics.identification.torque_checks import EXPLAINED, Torques, gravity_ratios
from mbs_dynamics.identification.torque_model import TorqueModel
from mbs_dynamics.model.model import Model

PERIODS = (1e-4, 0.5)
"""Periods in s at which motions of robots are recorded."""

TOO_FAST = 5.0
"""Ratio of speed to velocity limit that no recording in s has, however wrong the limits."""

GAP = 5.0
"""Pause, in periods, that ends a stretch of samples."""

RATIO, DEVIATIONS = 1.5, 4.0
"""Ratio of the clock's period to that of the torques that refutes a clock, and least significance
in standard deviations of its logarithm."""

BIAS = 0.1
"""Error of the logarithm of the torques' period by what the model of torques lacks."""

AGREE = 0.02
"""Relative difference of ratios that are equal."""

ALIKE = 0.95
"""Least coefficient of determination between positions and integrated velocities."""

SLOW = np.array([0.02, 0.06, 0.2, 0.6])
"""Speeds at which friction reaches 76 %, as shares of the root mean square speed."""

SAMPLES, BLOCKS = 1200, 8
"""Largest number of samples for the evidence of torques, and of blocks of its jackknife."""

CLOCKS = {"ms": 1e-3, "us": 1e-6, "ns": 1e-9, "minutes": 60.0, "hours": 3600.0}
"""Units of clocks in s."""

VELOCITIES = {
    "deg/s": 180.0 / np.pi,
    "rpm": 30.0 / np.pi,
    "revolutions/s": 0.5 / np.pi,
    "mrad/s or mm/s": 1e3,
}
"""Units of velocities in one rad/s or m/s."""


class Evidence(NamedTuple):
    """Speeds and torques of a recording, by the sample."""

    speed: float
    """Largest ratio of q' to the velocity limit of a joint."""
    fastest: str
    """The joint that has it."""
    period: float
    """Period h in s at which the torques are explained best."""
    deviation: float
    """Standard deviation of its logarithm; infinite if the torques do not show it."""

    def doubts(self, period: float) -> list[str]:
        """Return the evidence against a period in s; none if it is plausible."""
        return [*self.beyond(period), *self.torques(period)]

    def beyond(self, period: float) -> list[str]:
        """Return the evidence of period and speeds."""
        reasons = []
        if not PERIODS[0] <= period <= PERIODS[1]:
            reasons.append(
                f"a period of {period:.4g} s (valid are {PERIODS[0]:g} to {PERIODS[1]:g} s)"
            )
        if self.speed > TOO_FAST * period:
            reasons.append(f"{self.fastest} at {self.speed / period:.3g} times its velocity limit")
        return reasons

    def torques(self, period: float) -> list[str]:
        """Return the evidence of inertial torques."""
        apart = abs(np.log(period / self.period))
        if apart > max(np.log(RATIO), DEVIATIONS * self.deviation):
            return [f"inertial torques {(self.period / period) ** 2:.3g} times those measured"]
        return []

    def likely(self, period: float) -> list[str]:
        """Return the units of a clock in which a period, as if in s, is plausible."""
        return [unit for unit, s in CLOCKS.items() if not self.doubts(s * period)]


def checked(
    recording: Recording,
    model: Model,
    notes: list[str],
    jumps: Sequence[int] | NDArray[np.intp] = (),
    *,
    currents: bool = False,
) -> Recording:
    """Return a recording with its clock in s, and without velocities in other units.

    With ``currents`` the torques are no evidence, as they have unknown factors. Raises
    RecordingError if the clock is in another unit, with the units that are likely. ``jumps`` are
    samples before which others were lost.
    """
    t, name = recording.t, recording.name
    period = float(np.median(np.diff(t)))
    evidence = evidence_of(recording, model, jumps, currents=currents)
    ratios = velocity_ratios(recording)
    common = _common(ratios)
    doubts = evidence.beyond(period)
    # Torques may be unlike those of any clock for other reasons.
    if doubts or evidence.likely(period) or (common is not None and abs(common - 1.0) > AGREE):
        doubts += evidence.torques(period)
    if doubts:
        scale = common or 1.0
        scale = next((s for s in CLOCKS.values() if abs(scale / s - 1.0) < AGREE), scale)
        if evidence.doubts(scale * period):
            raise RecordingError(f"{name}: {_not_seconds(t, period, doubts, evidence)}")
        notes.append(
            f"the clock is not that of the velocities: a period of {period:.4g} is taken for "
            f"{scale * period:.6g} s"
        )
        recording, ratios = replace(recording, t=scale * (t - t[0])), ratios / scale
    elif common is not None and abs(common - 1.0) > AGREE:
        near, far = (abs(np.log(s * period / evidence.period)) for s in (common, 1.0))
        if near + max(BIAS, DEVIATIONS * evidence.deviation) < far:
            raise RecordingError(
                f"{name}: by its velocities and torques its period is {common * period:.4g} s, by "
                f"its clock {period:.4g} s: correct the clock"
            )
    return _with_velocities_in_si(recording, ratios, notes)


def _not_seconds(t: FloatArray, period: float, doubts: Sequence[str], evidence: Evidence) -> str:
    """Return the error of a clock that is not in s, with the likely units."""
    likely = evidence.likely(period)
    message = f"its clock is not in s. In s there would be {', and '.join(doubts)}. "
    if np.isfinite(evidence.deviation):
        message += f"The torques show a period of about {evidence.period:.2g} s. "
    if np.array_equal(np.diff(t), np.ones(len(t) - 1)):
        likely.append("samples of unknown period")
    message += f"It may be in {' or '.join(likely)}: c" if likely else "C"
    return f"{message}onvert it to s, or state its unit as in --columns NAME=t[ms]"


def velocity_ratios(recording: Recording) -> FloatArray:
    """Return the ratios rho (k,) of positions to integrated velocities, by the clock as it is.

    Integrals have less noise than differences. NaN without velocities, infinite where velocities
    are not the rates of the positions, zero where they are all zero, one for joints at rest.
    """
    t, q, qd = recording.t, recording.q, recording.qd
    ratios: FloatArray = np.full(q.shape[1], np.nan)
    if qd is None:
        return ratios
    steps = np.diff(t)
    together = (steps < GAP * np.median(steps))[:, None]  # no gap between
    trend = np.stack([np.ones_like(t), np.linspace(-1.0, 1.0, len(t))], axis=1)

    def summed(increments: FloatArray) -> FloatArray:
        total = np.concatenate(
            [np.zeros((1, q.shape[1])), np.cumsum(increments * together, axis=0)]
        )
        return np.asarray(total - trend @ np.linalg.lstsq(trend, total, rcond=None)[0])

    x = summed(0.5 * (qd[1:] + qd[:-1]) * steps[:, None])
    y = summed(np.diff(q, axis=0))
    for j in range(q.shape[1]):
        if np.ptp(q[:, j]) < STILL:
            ratios[j] = 1.0 if np.isfinite(qd[:, j]).all() else np.nan
        elif not qd[:, j].any():
            ratios[j] = 0.0
        elif np.isfinite(x[:, j]).all():
            xx, xy, yy = x[:, j] @ x[:, j], x[:, j] @ y[:, j], y[:, j] @ y[:, j]
            ratios[j] = xy / xx if xy**2 > ALIKE * xx * yy else np.inf
    return ratios


def _common(ratios: FloatArray) -> float | None:
    """Return the ratio of most joints, if there is one that is not that of joints at rest."""
    known = ratios[np.isfinite(ratios) & (ratios > 0.0) & (ratios != 1.0)]
    if not len(known):
        return None
    middle = float(np.median(known))
    same = np.abs(known / middle - 1.0) < 2.0 * AGREE
    return middle if 2 * same.sum() > len(known) else None


def _with_velocities_in_si(recording: Recording, ratios: FloatArray, notes: list[str]) -> Recording:
    """Return the recording without velocities that are not the rates of its positions."""
    qd = recording.qd
    if qd is None:
        return recording
    reasons: dict[str, list[str]] = {}
    unused = np.isnan(ratios)
    for j, rho in enumerate(ratios):
        if np.isnan(rho) or abs(rho - 1.0) <= AGREE:
            continue
        unused[j] = True
        if rho == 0.0:
            reason = "are zero throughout"
        elif np.isinf(rho):
            reason = "are not the rates of the positions"
        else:
            unit = next((u for u, f in VELOCITIES.items() if abs(rho * f - 1.0) < AGREE), "")
            reason = f"are {1.0 / rho:.3g} times the rates of the positions"
            reason += f", as if in {unit}" if unit else ""
        reasons.setdefault(reason, []).append(recording.joints[j])
    for reason, joints in reasons.items():
        every = len(joints) == len(ratios)
        whose = "" if every else f" of {', '.join(joints)}"
        notes.append(f"velocities{whose} {reason}, and are not used")
    if unused.all():
        return replace(recording, qd=None)
    return replace(recording, qd=np.where(unused, np.nan, qd))


def evidence_of(
    recording: Recording,
    model: Model,
    jumps: Sequence[int] | NDArray[np.intp] = (),
    *,
    currents: bool = False,
) -> Evidence:
    """Return the evidence of speeds and torques, from the longest stretch without gaps and jumps.

    Torques without the gravity torques of the description are no evidence of the clock.
    """
    steps = np.diff(recording.t)
    ends = np.union1d(np.flatnonzero(steps > GAP * np.median(steps)) + 1, jumps).astype(int)
    rows = max(np.split(np.arange(len(recording.t)), ends), key=len)
    part = replace(recording.samples(rows), t=np.arange(len(rows), dtype=float), qd=None)
    cutoff = min(MULTIPLE * max(motion_frequency(part), 1.0 / len(rows)), SHARE)
    signals = filtered(part, cutoff)
    torque_model = TorqueModel(model.loaded(), part.joints, SLOW[0])
    limits = model.velocity_limits[torque_model.places]
    speeds = np.quantile(np.abs(signals.qd), 0.99, axis=0) / np.where(limits > 0.0, limits, np.inf)
    fastest = int(np.argmax(speeds))
    none = Evidence(float(speeds[fastest]), part.joints[fastest], 1.0, np.inf)
    size = float(np.sqrt(np.square(signals.qd).mean()))
    if currents or size == 0.0:
        return none
    step = -(-len(signals.t) // SAMPLES)
    q, v, a, tau = (x[::step] for x in (signals.q, signals.qd, signals.qdd, signals.tau))
    v, a = v / size, a / size**2  # h is in units of 1 / size then
    A, still = torque_model.regressor(q, v, a), torque_model.regressor(q, 0.0 * v, 0.0 * a)
    if not _with_gravity(torque_model, A, still, v, a, tau):
        return none
    A, still = (_with_friction(x, u) for x, u in ((A, v), (still, 0.0 * v)))
    period, deviation = _torque_period(torque_model, A, still, tau, size)
    return none._replace(period=period, deviation=deviation)


def _with_gravity(
    torque_model: TorqueModel,
    A: FloatArray,
    still: FloatArray,
    v: FloatArray,
    a: FloatArray,
    tau: FloatArray,
) -> bool:
    """Return whether gravity, as described, explains the torques of most joints with much of it."""
    x, rigid = torque_model.described(), torque_model.rigid
    described, gravity = (rows[..., :rigid] @ x[:rigid] for rows in (A, still))
    friction = np.stack([np.tanh(v / SLOW[0]), v], axis=-1)
    torques = Torques(torque_model.joints, tau, described, gravity, friction, a[..., None])
    _, shares = gravity_ratios(torques)
    known = shares[np.isfinite(shares)]
    return len(known) > 0 and bool(np.median(known) > EXPLAINED)


def _with_friction(A: FloatArray, v: FloatArray) -> FloatArray:
    """Return regressors (N, k, p) with columns of friction at more speeds, for rates v (N, k)."""
    count, k = v.shape
    more = np.zeros((count, k, len(SLOW) - 1, k))
    for j in range(k):
        more[:, j, :, j] = np.tanh(v[:, j, None] / SLOW[1:])
    return np.concatenate([A, more.reshape(count, k, -1)], axis=-1)


def _torque_period(
    torque_model: TorqueModel, A: FloatArray, still: FloatArray, tau: FloatArray, size: float
) -> tuple[float, float]:
    """Return the h with the least residual of tau = (G + F + h^-2 I) x, and its deviation.

    ``A`` has the columns G + I + F for rates and accelerations over ``size`` and its square,
    ``still`` those for none. The deviation of ln h is that of the jackknife over blocks.
    """
    from scipy.optimize import minimize_scalar

    columns = [k for k in torque_model.independent().columns if k < torque_model.rigid]
    own = A[..., torque_model.rigid :]
    inertial = np.concatenate([(A - still)[..., columns], 0.0 * own], axis=-1)
    fixed = np.concatenate([still[..., columns], own], axis=-1)
    A = np.concatenate([A[..., columns], own], axis=-1)
    weighing = weighed(A, tau, least_squares_residual(A, tau))
    p = A.shape[-1]
    rows = np.concatenate([fixed, inertial, tau[..., None]], axis=-1)
    rows *= (np.sqrt(weighing.rows) / weighing.joints)[..., None]
    blocks = [x.reshape(-1, 2 * p + 1) for x in np.array_split(rows, BLOCKS)]
    grams = [x.T @ x for x in blocks]

    def residual(gram: FloatArray, x: float) -> float:
        """Return the share of the torques that h = exp(x) does not explain."""
        T = np.zeros((p + 1, 2 * p + 1))
        T[:p, :p], T[:p, p:-1], T[p, -1] = np.eye(p), np.exp(-2.0 * x) * np.eye(p), 1.0
        H = T @ gram @ T.T
        lengths = np.sqrt(np.maximum(np.diag(H), 1e-300))
        H = H / np.outer(lengths, lengths)
        values, vectors = np.linalg.eigh(H[:p, :p])
        seen = values > 1e-9 * values[-1]
        return float(1.0 - (np.square(vectors.T @ H[:p, p])[seen] / values[seen]).sum())

    def least(gram: FloatArray, grid: FloatArray) -> float:
        best = int(np.argmin([residual(gram, x) for x in grid]))
        if best in (0, len(grid) - 1):
            return np.inf
        bounds = grid[best - 1], grid[best + 1]
        minimum = minimize_scalar(
            lambda x: residual(gram, x), bounds=bounds, method="bounded", options={"xatol": 1e-3}
        )
        return float(minimum.x)

    total: FloatArray = np.sum(grams, axis=0)
    low, high = np.log(0.1 * PERIODS[0] / size), np.log(10.0 * PERIODS[1] / size)
    x = least(total, np.arange(low, high, 0.25))
    if not np.isfinite(x):
        return 1.0, np.inf
    parts = np.array([least(total - gram, x + np.linspace(-1.0, 1.0, 9)) for gram in grams])
    spread = parts.var() if np.isfinite(parts).all() else np.inf
    return size * float(np.exp(x)), float(np.sqrt((BLOCKS - 1) * spread))
