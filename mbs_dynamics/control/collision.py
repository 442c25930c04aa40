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
from mbs_dynamics.control.motor_table import check_keys, coordinate_of, line_of
from mbs_dynamics.errors import ArgumentError
from mbs_dynamics.integrate import JointForces
from mbs_dynamics.model.model import Model
from mbs_dynamics.model.orders import tools
from mbs_dynamics.yaml_files import parsed_yaml

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

DAMPING = 0.1
"""Of the estimated wrench, see :func:`tool_wrench`."""

NOISE = 1e-3
"""Smallest threshold, in N m or N."""


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
            by_joint = {}
            for name, row in table["joints"].items():
                check_keys(name, row, Threshold._fields)
                values = (number(f"{name}: {key}", row[key]) for key in Threshold._fields)
                by_joint[name] = Threshold(*values)
            return cls(model, by_joint)

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
    stamp: int
    """Of the measurement, in ns."""
    torque: float
    """External torque of this joint, in N m or N."""
    threshold: float
    torques: FloatArray
    """(n,) external torques in N m or N; 0 at joints that are not watched."""
    link: str
    wrench: FloatArray
    """(6,) estimate of the wrench on this link in its frame, moment first, in N m and N.

    It grows for some 30 ms after the detection."""

    @property
    def time(self) -> float:
        """Of the measurement, in s."""
        return 1e-9 * self.stamp

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
        self.forget()

    def forget(self) -> None:
        """Forget all states, and settle anew."""
        self._observer.restart()
        self.settled = False
        """Whether torques are known."""
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
    ) -> None:
        """Process a state, as :meth:`MomentumObserver.update`.

        ``model`` is the one in force, see :func:`~mbs_dynamics.control.environment.in_force`; None:
        it has not changed.
        """
        if model is not None and model is not self._model:
            self._model, self._of_model = model, model_inputs(model, self._kernel)
        momentum = GeneralizedMomentum(*self._kernel(q, qd, *self._of_model))
        self._observer.update(stamp, q, qd, tau, momentum)
        self.settled = False
        if self._observer.residual is None:
            self._begin = self._stamp = 0
            return
        r = self._observer.residual[self._places]
        if not np.isfinite(r).all():
            self.forget()
            return
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
        self.settled = 1e-9 * (stamp - self._begin) >= SETTLING


class CollisionDetector(ContactTorques):
    """Compares external torques of an arm with thresholds.

    The wrench is estimated at ``link``, by default the tool. After a collision nothing is detected
    before :meth:`restart`.
    """

    def __init__(self, model: Model, thresholds: Thresholds, link: str = "") -> None:
        super().__init__(model, thresholds.places)
        self.model, self.thresholds = model, thresholds
        self.link = link or tools(model)[0]
        self.latest: Collision | None = None
        """The latest collision since :meth:`restart`."""

    def restart(self) -> None:
        """Forget the collision and all states."""
        self.latest, self.frozen = None, False
        self.forget()

    def detect(self, stamp: int, q: FloatArray, qd: FloatArray) -> Collision | None:
        """Return a collision that begins with the state of the latest update, or None."""
        if not self.settled or self.latest is not None:
            return None
        at_rest, at_speed, sustained, with_speed, fastest = self.thresholds.table
        places = self.thresholds.places
        share = np.abs(qd[places] / fastest).max()
        bounds = np.array([at_rest + share * at_speed, sustained + share * with_speed])
        bounds *= max(1.0, share)
        both = np.array([self.impact, self.sustained])
        ratios = np.abs(both) / bounds
        if ratios.max() <= 1.0:
            return None
        kind, k = divmod(int(ratios.argmax()), len(places))
        torques = np.zeros(self.model.n)
        torques[places] = both[kind]
        J = mbs.jacobian(self.model, q, self.link, representation="body_fixed")
        W = tool_wrench(J[:, places], both[kind], DAMPING).W
        name, torque, bound = self.model.joint_names[places[k]], both[kind, k], bounds[kind, k]
        self.frozen = True
        self.latest = Collision(name, stamp, float(torque), float(bound), torques, self.link, W)
        return self.latest

    @property
    def beyond(self) -> FloatArray:
        """(n,) sudden external torques beyond the thresholds at rest, in N m or N."""
        torques, impact = np.zeros(self.model.n), self.impact
        beyond = np.maximum(np.abs(impact) - self.thresholds.table[0], 0.0)
        torques[self.thresholds.places] = np.copysign(beyond, impact)
        return torques
