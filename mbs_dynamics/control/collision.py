# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Collisions of an arm with its surroundings, from the efforts of its joints.

External torques are compared with thresholds by joint, which grow with speed and are tuned from a
recording of free motion. Errors of masses and friction change as slowly as the arm moves, so that
two torques are compared: the residual of the momentum observer, and its sudden change.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import mbs_dynamics as mbs
from mbs_dynamics.algorithms import GeneralizedMomentum
from mbs_dynamics.algorithms.kernels import model_inputs
from mbs_dynamics.checks import FloatArray, number
from mbs_dynamics.control.contact import MomentumObserver, tool_wrench
from mbs_dynamics.control.environment import in_force
from mbs_dynamics.control.input_checks import largest_step
from mbs_dynamics.control.motor_table import check_keys, coordinate_of, line_of
from mbs_dynamics.errors import ArgumentError, listed
from mbs_dynamics.files import parsed_yaml
from mbs_dynamics.integrate import JointForces
from mbs_dynamics.model.model import Model
from mbs_dynamics.model.orders import tools

GAIN = 100.0
"""Gain of the observer and of the low-pass filter behind it, in 1/s. A step of torque is seen to a
half after 17 ms; a filter of second order suppresses the noise of velocities."""

DRIFT = 0.1
"""Time constant in s of the two high-pass filters that take off the errors of the model: these
change steadily as the arm moves. An impact is faster."""

SETTLING = 5.0 * DRIFT
"""Time in s from the first state on in which nothing is detected."""

LONGEST = 0.1
"""Time in s between two states after which detection starts anew."""

MARGIN, SUSTAINED_MARGIN = 1.6, 2.0
"""Thresholds over the largest torques of the recording. Those of the second kind contain errors of
the model, which depend on the posture."""

DAMPING = 0.1
"""Of the estimated wrench, see :func:`tool_wrench`."""

NOISE = 1e-3
"""Smallest threshold, in N m or N."""

SHORTEST, SHORT = 10.0, 50.0
"""Times of motion in s: the shortest that is tuned from, and the shortest without a remark."""

MOVED = 0.1
"""Motion in rad or m from which on a joint is watched."""

UNEXPLAINED = 0.7
"""Share of the measured torques from which on they are those of another robot."""

OUTLIER = 3.0
"""A torque so many times as large as 99.9 % of all is taken for a contact in the recording."""


ON_COLLISION = ("stop", "float", "yield")
"""Reactions to a collision."""

YIELDING, YIELDING_SHARE = 0.5, 0.25
"""Time in s in which an arm that yields goes along with a contact, and the share of the velocity
limits up to which it does."""


class Threshold(NamedTuple):
    """Thresholds of a joint at rest, and what the fastest motion of the recording adds."""

    impact: float
    """Of sudden external torques, in N m or N."""
    impact_speed: float
    sustained: float
    """Of external torques with the errors of the model, in N m or N."""
    sustained_speed: float
    fastest: float
    """Largest speed in the recording, in rad/s or m/s."""


class Thresholds:
    """Thresholds of collisions by joint; those without are not watched.

    A threshold is its value at rest plus ``_speed`` times the largest share of the joints' fastest
    speeds; beyond these speeds it grows with that share.

    Raises UnknownJointError for other joints, ArgumentError for invalid values.
    """

    def __init__(self, model: Model, by_joint: Mapping[str, Threshold]) -> None:
        self.by_joint = {name: Threshold(*map(float, row)) for name, row in by_joint.items()}
        self.places = [coordinate_of(model, name) for name in by_joint]
        for name, row in self.by_joint.items():
            for key, value in row._asdict().items():
                least = 0.0 if key.endswith("_speed") else NOISE
                if not least <= value < math.inf:
                    raise ArgumentError(
                        f"{name}: {key} is {value:g}; valid are finite numbers from {least:g} on"
                    )
        self.table = np.array([*self.by_joint.values()]).reshape(-1, 5).T
        """(5, m) in the order of the fields."""

    @classmethod
    def read(cls, path: str | Path, model: Model) -> Thresholds:
        """Return the thresholds of a file that :meth:`yaml` has written."""

        def made(table: Any) -> Thresholds:
            check_keys("the file", table, ("joints",))
            check_keys("joints", table["joints"], (), model.joint_names)
            found = {}
            for name, row in table["joints"].items():
                check_keys(name, row, Threshold._fields)
                values = (number(f"{name}: {key}", row[key]) for key in Threshold._fields)
                found[name] = Threshold(*values)
            return cls(model, found)

        return parsed_yaml(path, made)

    def yaml(self, source: str) -> str:
        """Return a text that :meth:`read` reads."""
        rows = [
            line_of(name, {key: float(f"{x:.4g}") for key, x in row._asdict().items()})
            for name, row in self.by_joint.items()
        ]
        head = (
            f"# Thresholds of collisions in N m or N, tuned from {source!r}; speeds in rad/s or m/s"
        )
        return "\n".join([head, "joints:", *rows, ""])


class Collision(NamedTuple):
    """A detected contact."""

    joint: str
    """The joint whose external torque exceeds its threshold most."""
    time: float
    """Of the measurement, in s."""
    torque: float
    """External torque of this joint, in N m or N."""
    threshold: float
    torques: FloatArray
    """(n,) external torques in N m or N; 0 at joints that are not watched."""
    link: str
    wrench: FloatArray
    """(6,) estimate of the wrench on this link in its frame, moment first, in N m and N.

    It grows for some 30 ms after the detection."""

    def __str__(self) -> str:
        return (
            f"the external torque of {self.joint} is {self.torque:.3g}, beyond its threshold of "
            f"{self.threshold:.3g}"
        )


class ContactTorques:
    """External torques of an arm, apart from the errors of its model.

    ``sustained`` is the filtered residual of a :class:`MomentumObserver`, ``impact`` the same
    behind two high-pass filters. Friction is that of the description.
    """

    def __init__(self, model: Model, places: Sequence[int]) -> None:
        self._model = in_force(model, np.asarray(model.gravity), np.zeros((model.nb, 10)))
        self._kernel = mbs.compile(mbs.generalized_momentum, self._model)
        self._of_model = model_inputs(self._model, self._kernel)
        self._observer = MomentumObserver(
            gain=GAIN, longest=LONGEST, friction=JointForces.of(model)
        )
        self._places = list(places)
        self.frozen = False
        """Whether the torques are those since a time, at which this was set."""
        self.restart()

    def restart(self) -> None:
        """Forget all states."""
        self._observer.restart()
        self._begin = self._stamp = 0
        self.sustained = self._mean = self._trend = np.zeros(len(self._places))
        """(m,) residuals, filtered."""

    @property
    def impact(self) -> FloatArray:
        """External torques (m,) of sudden contacts, in N m or N."""
        return self.sustained - self._mean - self._trend

    def update(
        self,
        stamp: int,
        q: FloatArray,
        qd: FloatArray,
        tau: FloatArray,
        model: Model | None = None,
    ) -> bool:
        """Process a state, as :meth:`MomentumObserver.update`; return whether torques are known.

        ``model`` is the one in force, see :func:`~mbs_dynamics.control.environment.in_force`; None:
        it has not changed.
        """
        if model is not None and model is not self._model:
            self._model, self._of_model = model, model_inputs(model, self._kernel)
        momentum = GeneralizedMomentum(*self._kernel(q, qd, *self._of_model))
        self._observer.update(stamp, q, qd, tau, momentum)
        if self._observer.residual is None:
            self._begin = self._stamp = 0
            return False
        r = self._observer.residual[self._places]
        if not np.isfinite(r).all():
            self.restart()
            return False
        elapsed = 1e-9 * (stamp - self._stamp)
        if not self._stamp:
            self._begin, self.sustained, self._mean, self._trend = stamp, r, r, 0.0 * r
        elif elapsed > 0.0:
            kept = math.exp(-GAIN * elapsed)
            self.sustained = kept * self.sustained + (1.0 - kept) * r
            if not self.frozen:
                kept = math.exp(-elapsed / DRIFT)
                self._mean = kept * self._mean + (1.0 - kept) * self.sustained
                rest = self.sustained - self._mean
                self._trend = kept * self._trend + (1.0 - kept) * rest
        self._stamp = stamp
        return 1e-9 * (stamp - self._begin) >= SETTLING


class Collisions:
    """Compares external torques of an arm with thresholds.

    See :class:`ContactTorques` and :class:`Thresholds`. The wrench is estimated at ``link``, by
    default the tool. After a collision nothing is detected before :meth:`restart`.
    """

    def __init__(self, model: Model, thresholds: Thresholds, link: str = "") -> None:
        self.model, self.thresholds = model, thresholds
        self.link = link or tools(model)[0]
        self.torques = ContactTorques(model, thresholds.places)
        self.found: Collision | None = None
        """The latest collision since :meth:`restart`."""

    def restart(self) -> None:
        """Forget the collision, and settle anew."""
        self.found, self.torques.frozen = None, False
        self.torques.restart()

    def update(
        self,
        stamp: int,
        q: FloatArray,
        qd: FloatArray,
        tau: FloatArray,
        model: Model | None = None,
    ) -> Collision | None:
        """Return a collision that begins with this state, or None; see ContactTorques.update."""
        known = self.torques.update(stamp, q, qd, tau, model)
        if not known or self.found is not None:
            return None
        at_rest, at_speed, sustained, with_speed, fastest = self.thresholds.table
        places, impact = self.thresholds.places, self.torques.impact
        share = np.abs(qd[places] / fastest).max()
        bounds = np.array([at_rest + share * at_speed, sustained + share * with_speed])
        bounds *= max(1.0, share)
        both = np.array([impact, self.torques.sustained])
        ratios = np.abs(both) / bounds
        if ratios.max() <= 1.0:
            return None
        kind, k = divmod(int(ratios.argmax()), len(places))
        torques = np.zeros(self.model.n)
        torques[places] = both[kind]
        J = mbs.jacobian(self.model, q, self.link, representation="body_fixed")
        W = tool_wrench(J[:, places], both[kind], DAMPING).W
        name, torque, bound = self.model.joint_names[places[k]], both[kind, k], bounds[kind, k]
        self.torques.frozen = True
        self.found = Collision(
            name, 1e-9 * stamp, float(torque), float(bound), torques, self.link, W
        )
        return self.found

    @property
    def beyond(self) -> FloatArray:
        """(n,) sudden external torques beyond the thresholds at rest, in N m or N."""
        torques, impact = np.zeros(self.model.n), self.torques.impact
        beyond = np.maximum(np.abs(impact) - self.thresholds.table[0], 0.0)
        torques[self.thresholds.places] = np.copysign(beyond, impact)
        return torques


def tune(model: Model, stretches: Sequence[Any]) -> tuple[Thresholds, list[str]]:
    """Return thresholds of collisions from recordings of free motion, and what these do not show.

    A stretch has the names ``joints``, times ``t`` (N,), and ``q``, ``qd`` and ``tau`` (N, k) in SI
    units, as recordings do. A threshold is a line over speed, a margin above all external torques.
    Joints that never move are not watched.

    Raises ArgumentError for recordings that jump, without velocities, of another robot, or with
    less than SHORTEST of motion.
    """
    joints = stretches[0].joints
    found = [_external(model, each) for each in stretches]
    impact, sustained, rates = (np.concatenate(parts) for parts in zip(*found, strict=True))
    moved = np.max([np.ptp(each.q, axis=0) for each in stretches], axis=0) > MOVED
    seconds = sum(float(each.t[-1] - each.t[0]) for each in stretches)
    if seconds < SHORTEST or not moved.any():
        named = listed(joints) if not moved.any() else ""
        raise ArgumentError(
            f"the recording has {seconds:.3g} s of motion; valid is at least {SHORTEST:g} s"
            + (f", in which {named} move by {MOVED:g} rad or m" if named else "")
        )
    tau = np.concatenate([each.tau for each in stretches])
    unexplained = math.sqrt(float((sustained**2).mean() / (tau**2).mean()))
    if unexplained > UNEXPLAINED:
        raise ArgumentError(
            f"the description leaves {100.0 * unexplained:.0f} % of the torques unexplained; valid "
            f"is at most {100.0 * UNEXPLAINED:.0f} %. Is the recording of another robot?"
        )
    notes = [] if seconds >= SHORT else [f"{seconds:.3g} s are short: record {SHORT:g} s or more"]
    fastest = np.abs(rates).max(axis=0)
    share = (np.abs(rates[:, moved]) / fastest[moved]).max(axis=1)
    rows = {}
    for k, name in enumerate(joints):
        if not moved[k]:
            notes.append(f"{name} did not move: it is not watched")
            continue
        limit = float(model.velocity_limits[coordinate_of(model, name)])
        if fastest[k] < 0.9 * limit < math.inf:
            notes.append(
                f"{name} reached {fastest[k]:.3g} of its velocity limit of {limit:.3g}: thresholds "
                "of faster motion are extrapolated"
            )
        usual = float(np.quantile(np.abs(impact[:, k]), 0.999))
        if np.abs(impact[:, k]).max() > OUTLIER * usual + NOISE:
            notes.append(
                f"the torque of {name} jumps by {np.abs(impact[:, k]).max():.3g}, where 99.9 % of "
                f"all are below {usual:.3g}: was the arm touched?"
            )
        rows[name] = Threshold(
            *_above(share, np.abs(impact[:, k]), MARGIN),
            *_above(share, np.abs(sustained[:, k]), SUSTAINED_MARGIN),
            float(fastest[k]),
        )
    return Thresholds(model, rows), notes


def _external(model: Model, part: Any) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return external torques without and with drift (N, k) after settling, and velocities."""
    places = [coordinate_of(model, name) for name in part.joints]
    qd = np.full_like(part.q, np.nan) if part.qd is None else part.qd
    unknown = [name for name, x in zip(part.joints, qd.T, strict=True) if not np.isfinite(x).all()]
    if unknown:
        raise ArgumentError(f"the recording has no valid velocities of {listed(unknown)}")
    fastest = model.velocity_limits[places]
    moved = np.abs(np.diff(part.q, axis=0))
    jumps = moved > largest_step(fastest, np.diff(part.t)[:, None])
    if jumps.any():
        row, k = np.argwhere(jumps)[0]
        raise ArgumentError(
            f"{part.joints[k]} jumps by {moved[row, k]:.3g} at {part.t[row]:.4g} s; its "
            f"velocity limit is {fastest[k]:.3g}"
        )
    torques, rows = ContactTorques(model, places), []
    full: FloatArray = np.zeros((3, len(part.t), model.n))
    full[:, :, places] = part.q, qd, part.tau
    for k, stamp in enumerate((1e9 * part.t + 1e9).round().astype(int).tolist()):
        if torques.update(stamp, *full[:, k]):
            rows.append((torques.impact, torques.sustained, qd[k]))
    found = np.array(rows).reshape(-1, 3, len(places))
    return found[:, 0], found[:, 1], found[:, 2]


def _above(share: FloatArray, torques: FloatArray, margin: float) -> tuple[float, float]:
    """Return a line over shares of speed (N,), ``margin`` above all torques (N,)."""
    bins = np.minimum((10.0 * share).astype(int), 9)
    used = np.unique(bins)
    most = np.array([torques[bins == one].max() for one in used])
    slope = float(np.polyfit(0.1 * used + 0.05, most, 1)[0]) if len(used) > 1 else 0.0
    slope = min(max(slope, 0.0), 0.5 * float(torques.max()))  # arms are seldom recorded at rest
    return margin * max(NOISE, float((torques - slope * share).max())), margin * slope
