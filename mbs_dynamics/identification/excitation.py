# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Motions that excite the parameters: periodic, within limits, at rest at both ends.

They are finite Fourier series (Swevers, Ganseman, Tukel, De Schutter and Van Brussel 1997) whose
rates and accelerations vanish at the start of a period. The coefficients maximise the determinant
of the information about the base parameters, which minimises their volume of uncertainty.
Collisions are not checked.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

import mbs_dynamics as mbs
from mbs_dynamics.checks import FloatArray
from mbs_dynamics.errors import ArgumentError
from mbs_dynamics.identification.estimation import column_lengths
from mbs_dynamics.identification.torque_model import TorqueModel
from mbs_dynamics.model.body import Frame
from mbs_dynamics.model.model import Model
from mbs_dynamics.timeseries import TimeSeries
from mbs_dynamics.timeseries.trajectories import trajectory_yaml

FASTEST = 0.5
"""Frequency in Hz of the fastest wave."""

SAMPLES = 12
"""Samples per period of the fastest wave, at which limits and information are evaluated."""

STARTS, STEPS = 60, 400
"""Number of random motions, and of steps that improve the best one."""

BETWEEN = 1.0 / math.cos(math.pi / SAMPLES)
"""Bound of a sum of waves between the samples, relative to its largest sample: Ehlich and Zeller,
Schwankung von Polynomen zwischen Gitterpunkten (1964)."""

KNOTS = 10
"""Largest number of points per second of a trajectory."""

UNLIMITED = np.pi
"""Range in rad or m to either side of zero for a joint without position limits."""


class Box(NamedTuple):
    """Region in which the origin of a frame must stay, in the root link's frame."""

    frame: str
    low: tuple[float, float, float]
    high: tuple[float, float, float]


@dataclass(frozen=True)
class MotionLimits:
    """Limits of a motion."""

    position: float = 0.9
    """Share of the range of each joint."""
    velocity: float = 0.5
    """Share of the velocity limit of each joint."""
    acceleration: float = 3.0
    """Largest acceleration in rad/s^2 or m/s^2."""
    torque: float = 0.8
    """Share of the effort limit of each joint, by the description."""
    boxes: tuple[Box, ...] = ()


class Excitation(NamedTuple):
    """One period of a motion of all joints."""

    motion: TimeSeries
    """Positions, rates and accelerations."""
    condition: float
    """Condition number of the equations of base parameters, columns of length 1."""
    approach: float
    """Time in s to reach the first position from anywhere within the limits."""

    def to_trajectory(self) -> str:
        """Return a trajectory_msgs/JointTrajectory as YAML.

        Its first point is due after the time of the approach. There are up to KNOTS points per
        second, between which controllers interpolate by quintic polynomials.
        """
        motion, last = self.motion, len(self.motion) - 1
        every = max(1, round(last / motion.t[-1] / KNOTS))
        points = motion.rows(np.append(np.arange(0, last, every), last))
        return trajectory_yaml(points, self.approach)


def plan_excitation(
    model: Model,
    duration: float,
    *,
    limits: MotionLimits | None = None,
    rate: float = 100.0,
    seed: int = 0,
    progress: Callable[[float], None] = lambda share: None,
) -> Excitation:
    """Return a motion of ``duration`` s that excites the parameters of a model.

    ``rate`` is the number of samples per second of the result. The same ``seed`` yields the same
    motion. ``progress`` is called with the share of the completed work. Raises ArgumentError for a
    duration that is too short, or if no motion within the limits was found.
    """
    if not duration >= 4.0 / FASTEST:
        raise ArgumentError(f"duration is {duration:g} s; must be at least {4.0 / FASTEST:g}")
    search = _Search(
        model.loaded(), duration, limits or MotionLimits(), np.random.default_rng(seed)
    )
    candidate, rows = search.run(progress)
    t = np.linspace(0.0, duration, round(duration * rate) + 1)
    q, qd, qdd = search.motion(candidate, t)
    condition = float(np.linalg.cond(rows / column_lengths(rows)))
    motion = TimeSeries(t, model.joint_names, q, qd=qd, qdd=qdd)
    return Excitation(motion, condition, search.approach(q[0]))


class _Search:
    """Search for the most informative motion of a model.

    A candidate (2 waves + 1, n) has the coefficients of the sines and cosines of the rates, and the
    mean position of each joint.
    """

    def __init__(
        self, model: Model, duration: float, limits: MotionLimits, rng: np.random.Generator
    ) -> None:
        self._model, self._limits, self._rng = model, limits, rng
        waves = int(FASTEST * duration)
        self._w = 2.0 * np.pi / duration * np.arange(1, waves + 1)
        self._t = np.linspace(0.0, duration, SAMPLES * waves, endpoint=False)
        self._torque_model = TorqueModel(model, model.joint_names, 0.05)
        self._columns = list(self._torque_model.independent().columns)
        bounded = np.isfinite(model.lower) & np.isfinite(model.upper)
        self._middle = np.where(bounded, 0.5 * (model.lower + model.upper), 0.0)
        self._half = np.where(bounded, 0.5 * (model.upper - model.lower), UNLIMITED)
        self._reach = limits.position * self._half
        self._speed = limits.velocity * model.velocity_limits

    def run(self, progress: Callable[[float], None]) -> tuple[FloatArray, FloatArray]:
        """Return the best candidate and its equations: random ones, improved by random changes.

        The size of the changes follows the one-fifth rule of Rechenberg (1973).
        """
        best, rows = np.zeros((2 * len(self._w) + 1, self._model.n)), np.zeros(0)
        most, step = -np.inf, 0.3
        for k in range(STARTS + STEPS):
            candidate = self._rng.normal(size=best.shape)
            if k < STARTS:
                mean = 0.3 * self._reach * self._rng.uniform(-1.0, 1.0, self._model.n)
                candidate[-1] = self._middle + mean
            else:
                candidate = best + step * candidate * np.abs(best).mean(axis=0)
            candidate = self._scaled(candidate)
            found = self._equations(candidate)
            # the log determinant of the information matrix
            gained = -np.inf if found is None else float(np.linalg.slogdet(found.T @ found)[1])
            if found is not None and gained > most:
                best, rows, most = candidate, found, gained
            if k >= STARTS:
                step *= 1.3 if best is candidate else 0.935
            elif k + 1 == STARTS and most == -np.inf:
                raise ArgumentError(
                    "no motion within the limits was found: is a box too narrow, or are torques "
                    "too large for the description?"
                )
            progress((k + 1) / (STARTS + STEPS))
        return best, rows

    def motion(
        self, candidate: FloatArray, t: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return q, qd, qdd (N, n) at some times."""
        a, b = np.split(candidate[:-1], 2)
        phase = t[:, None] * self._w
        s, c = np.sin(phase), np.cos(phase)
        q = candidate[-1] + s @ (a / self._w[:, None]) - c @ (b / self._w[:, None])
        return q, c @ a + s @ b, (c * self._w) @ b - (s * self._w) @ a

    def approach(self, q: FloatArray) -> float:
        """Return the time in s to a position from anywhere within the limits.

        The mean speed is half the allowed one, for profiles with acceleration phases.
        """
        way = np.abs(q - self._middle) + self._half
        return float(np.ceil((2.0 * way / np.minimum(self._speed, UNLIMITED)).max()))

    def _scaled(self, candidate: FloatArray) -> FloatArray:
        """Return a candidate at rest at both ends, scaled to the limits of positions and rates."""
        a, b = np.split(candidate[:-1], 2)
        a = a - a.mean(axis=0)  # zero rates at the ends: sum a = 0
        w = self._w[:, None]
        b = b - w * (w * b).sum(axis=0) / np.square(w).sum()  # zero accelerations: sum w b = 0
        half = 0.5 * self._reach
        middle = np.clip(candidate[-1], self._middle - half, self._middle + half)
        scaled = np.concatenate([a, b, middle[None]])
        q, qd, qdd = self.motion(scaled, self._t)
        used = [
            np.abs(q - middle).max(axis=0) / (self._reach - np.abs(middle - self._middle)),
            np.abs(qd).max(axis=0) / self._speed,
            np.abs(qdd).max(axis=0) / self._limits.acceleration,
        ]
        scaled[:-1] /= BETWEEN * np.max(used, axis=0)
        return scaled

    def _equations(self, candidate: FloatArray) -> FloatArray | None:
        """Return the equations (N n, b) of base parameters, None if they exceed limits.

        A candidate whose torques or frames exceed their limits is shrunk in place.
        """
        for _ in range(9):
            q, qd, qdd = self.motion(candidate, self._t)
            A = self._torque_model.regressor(q, qd, qdd)
            tau = np.abs(A @ self._torque_model.described()).max(axis=0)
            allowed = bool((tau <= self._limits.torque * self._model.effort_limits).all())
            for box in self._limits.boxes:
                at = mbs.forward_kinematics(self._model, q, bodies=[box.frame])[:, 0, :3, 3]
                allowed = allowed and bool(((box.low <= at) & (at <= box.high)).all())
            if allowed:
                return A[..., self._columns].reshape(-1, len(self._columns))
            candidate[:-1] *= 0.8
        return None


def box_of(text: str, frames: Mapping[str, Frame]) -> Box:
    """Return the box that a text FRAME:xmin,xmax,ymin,ymax,zmin,zmax states.

    Raises ArgumentError for another form, UnknownBodyError for an unknown frame.
    """
    frame, colon, numbers = text.rpartition(":")
    try:
        x = [float(word) for word in numbers.split(",")]
    except ValueError:
        x = []
    if not colon or len(x) != 6 or any(x[k] >= x[k + 1] for k in (0, 2, 4)):
        raise ArgumentError(f"{text!r} is not a box; must be FRAME:xmin,xmax,ymin,ymax,zmin,zmax")
    return Box(frames[frame].name, (x[0], x[2], x[4]), (x[1], x[3], x[5]))
