# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Removes the bias and the weight of the tool from the readings of a wrist force-torque sensor.

The result is the wrench of the surroundings on the tool. Wrenches (6,) have the moment first, in
N m and N. Times are of one steady clock, in s, and stamps in ns, 0 for none.
"""

from __future__ import annotations

import math
from collections import deque

import numpy as np
from numpy.typing import ArrayLike

from mbs_dynamics import algorithms, checks
from mbs_dynamics.checks import FloatArray
from mbs_dynamics.control.force_calibration import Calibration, Fit, fit
from mbs_dynamics.control.joint_states import LARGEST, Rejection
from mbs_dynamics.control.turns import nearest, turning
from mbs_dynamics.errors import ArgumentError, ModelError, listed
from mbs_dynamics.lie import se3
from mbs_dynamics.model.body import GROUND
from mbs_dynamics.model.inertia import Inertia
from mbs_dynamics.model.model import Model

__all__ = ["Calibration", "Fit", "ForceSensor", "Rejection", "fit"]

STALE_TIMEOUT = 0.5
"""Time in s without valid messages after which input is stale: many periods of any driver."""

STAMP_DIFFERENCE = 0.1
"""Largest difference in s of the stamps of wrenches and joint positions: an arm moves little in it.
"""

ZERO_TIME = 1.0
"""Time in s over which a change of bias, tool or loads takes effect on the output."""

STILL, STILL_SHARE, STILL_POSITION = 0.5, 0.8, 0.003
"""Time in s over which the readings of a still arm are averaged, the share of it that they must
cover, and the range of positions in rad or m within which an arm is still."""


class ForceSensor:
    """Removes bias and weights from the readings of a sensor on an arm, and checks them.

    Parameters: ``model``, under its gravity and with its loads; the link of the ``sensor``, and
    that of the ``tool``, which is fixed to it, by default the same. ``limits`` (6,), moment first,
    are the ranges beyond which a component is saturated; inf for none. When bias, tool or loads
    change, the output moves linearly from its present to its new value over ZERO_TIME.

    Raises UnknownBodyError; ModelError for links that do not move, or move against the sensor;
    ArgumentError for invalid limits.
    """

    def __init__(
        self, model: Model, sensor: str, tool: str = "", *, limits: ArrayLike = (math.inf,) * 6
    ) -> None:
        self.limits = checked_limits(limits)
        self.model, self.link, self.tool = model, sensor, tool or sensor
        if model.frames[sensor].body == GROUND:
            raise ModelError(f"the sensor's link {sensor!r} does not move: its bias is not seen")
        self._to_tool = np.linalg.inv(self._to_sensor(self.tool))
        self.calibration: Calibration | None = None
        self.poses: list[tuple[FloatArray, FloatArray]] = []
        """Gravity (3,) in the sensor's axes and reading (6,) without known loads of each pose."""
        self.gravity, self._loads = model.gravity, self._loads_of(model)
        """Gravity (3,) in the root's axes, and known loads in the sensor's frame."""
        self._turning = turning(model)
        self._q, self._gravity = np.zeros(model.n), np.zeros(3)
        self._moved, self._moved_at = 0, -math.inf
        """Stamp and time of the latest positions."""
        self._stamp, self._received = 0, -math.inf
        self._still: deque[tuple[float, FloatArray, FloatArray, FloatArray]] = deque()
        """The latest times, readings, gravities and positions, the newest last."""
        self._latest: tuple[FloatArray, FloatArray] | None = None
        """The latest valid reading, and gravity then."""
        self._fade, self._faded_from = np.zeros(6), -math.inf

    # -- the arm -----------------------------------------------------------------------------------

    def _to_sensor(self, link: str) -> FloatArray:
        """Return the matrix (6, 6) that transforms wrenches from the frame of a link."""
        frame, sensor = self.model.frames[link], self.model.frames[self.link]
        if frame.body != sensor.body:
            frames = self.model.frames.values()
            valid = [each.name for each in frames if each.body == sensor.body]
            raise ModelError(
                f"link {link!r} is not fixed to the sensor's link {self.link!r}; valid: "
                f"{listed(valid)}"
            )
        return np.asarray(se3.Ad(se3.inverse(frame.placement) @ sensor.placement).T)

    def _loads_of(self, model: Model) -> Inertia:
        """Return the loads of a model that the sensor carries, in its frame."""
        total, sensor = Inertia.zero(), model.frames[self.link]
        for load in model.payloads:
            body = load.body
            while body not in (GROUND, sensor.body):
                body = model.parents[body]
            if body == sensor.body and load.body != body:
                raise ModelError(f"the load on {load.link!r} moves against the sensor")
            if body == sensor.body:
                total += Inertia.from_parameters(load.parameters)
        return total.transformed(se3.inverse(sensor.placement))

    def set_model(self, model: Model, now: float) -> None:
        """Use the gravity and the loads of a model that is the same otherwise.

        Raises ModelError for loads that the sensor carries and that move against it.
        """
        self._change(self.calibration, self._loads_of(model), now)
        self.gravity = model.gravity

    def move(self, q: ArrayLike, stamp: int, now: float) -> None:
        """Store positions (n,) of the joints in rad or m.

        Angles of joints without limits are unwrapped. Raises ArgumentError for a wrong shape, and
        for numbers that are not finite.
        """
        q = checks.numbers("q", q, (self.model.n,))
        if self._moved_at > -math.inf:
            q = nearest(q, self._q, self._turning)
        C = algorithms.forward_kinematics(self.model, q, bodies=[self.link])[0]
        self._q, self._gravity = q, C[:3, :3].T @ self.gravity
        self._moved, self._moved_at = stamp, now

    # -- readings ----------------------------------------------------------------------------------

    def read(self, W: ArrayLike, stamp: int, now: float) -> FloatArray | Rejection:
        """Return the wrench (6,) of the surroundings on the tool, or the reason for its absence.

        ``W`` (6,) is a reading. Raises ArgumentError for a wrong shape or type.
        """
        W = checks.real("W", W)
        if W.shape != (6,):
            raise ArgumentError(f"W has shape {W.shape}; must be (6,)")
        if now - self._received > STALE_TIMEOUT:
            self._stamp = 0
            self._still.clear()
        if stamp and stamp == self._stamp:
            return Rejection("repeated", f"the stamp {1e-9 * stamp:.6f} s again")
        if stamp and stamp < self._stamp:
            late = f"{1e-9 * (self._stamp - stamp):.6f} s"
            return Rejection("time_backwards", f"the stamp is {late} before that of the latest")
        wrong = self._rejection(W, stamp, now)
        if wrong is not None:
            self._still.clear()
            return wrong
        self._stamp, self._received, self._latest = stamp, now, (W, self._gravity)
        self._still.append((now, W, self._gravity, self._q))
        while now - self._still[0][0] > STILL:
            self._still.popleft()
        if self.calibration is None:
            return Rejection("uncalibrated", "bias and weight of the tool are not known")
        return self._contact(W, self._gravity) + self._fading(now)

    def _rejection(self, W: FloatArray, stamp: int, now: float) -> Rejection | None:
        """Return why a reading (6,) cannot be used; None if it can."""
        if not np.isfinite(W).all():
            return Rejection("not_finite", f"the reading is not finite: {W.tolist()}")
        if np.abs(W).max() >= LARGEST:
            return Rejection("too_large", f"the reading is too large to be true: {W.tolist()}")
        over = np.abs(W) >= self.limits
        if over.any():
            k = int(over.argmax())
            name, unit = ("moment", "N m") if k < 3 else ("force", "N")
            reached = f"{W[k]:.4g} {unit}, at its limit {self.limits[k]:.4g}"
            return Rejection("saturated", f"{name} {'xyz'[k % 3]} is {reached}")
        if now - self._moved_at > STALE_TIMEOUT:
            return Rejection("no_pose", f"no joint positions within {STALE_TIMEOUT:g} s")
        apart = 1e-9 * (stamp - self._moved)
        if stamp and self._moved and abs(apart) > STAMP_DIFFERENCE:
            word = "after" if apart > 0.0 else "before"
            message = f"the stamp is {abs(apart):.3f} s {word} that of the joint positions"
            return Rejection("stamps_apart", f"{message}; must be within {STAMP_DIFFERENCE:g} s")
        return None

    def to_sensor(self, link: str, W: FloatArray) -> FloatArray:
        """Return a wrench (6,) given in the frame of a link that is fixed to the sensor.

        Raises UnknownBodyError, ModelError.
        """
        return W if link == self.link else np.asarray(self._to_sensor(link) @ W)

    def to_tool(self, W: FloatArray) -> FloatArray:
        """Return a wrench (6,) at the origin and in the axes of the tool's link."""
        return np.asarray(self._to_tool @ W)

    def _contact(self, W: FloatArray, gravity: FloatArray) -> FloatArray:
        """Return a reading (6,) without bias, tool and loads under gravity (3,)."""
        assert self.calibration is not None
        return np.asarray(W - self.calibration.reading(gravity) - _weight(self._loads, gravity))

    def _fading(self, now: float) -> FloatArray:
        done = (now - self._faded_from) / ZERO_TIME
        return np.asarray(self._fade * (1.0 - min(max(done, 0.0), 1.0)))

    # -- changes of calibration and loads ----------------------------------------------------------

    def calibrate(self, calibration: Calibration, now: float) -> None:
        """Use a calibration from now on."""
        self._change(calibration, self._loads, now)

    def zero(self, now: float) -> FloatArray:
        """Make the present mean output zero; return the wrench (6,) that is added to the bias.

        The output then goes linearly to zero over ZERO_TIME. Raises ArgumentError for an arm that
        moves, or a sensor that is not calibrated.
        """
        if self.calibration is None:
            raise ArgumentError("bias and weight of the tool are not known yet: fit them first")
        extra = self._contact(*self._at_rest(now))
        self.calibrate(self.calibration._replace(bias=self.calibration.bias + extra), now)
        return extra

    def _change(self, calibration: Calibration | None, loads: Inertia, now: float) -> None:
        """Use a calibration and loads, without a jump of the output."""
        known = self.calibration is not None and now - self._received <= STALE_TIMEOUT
        latest = self._latest if known else None
        before = self._contact(*latest) + self._fading(now) if latest else np.zeros(6)
        self.calibration, self._loads = calibration, loads
        if latest:
            self._fade, self._faded_from = before - self._contact(*latest), now

    # -- still poses -------------------------------------------------------------------------------

    def _at_rest(self, now: float) -> tuple[FloatArray, FloatArray]:
        """Return the mean reading (6,) and gravity (3,); ArgumentError unless the arm is still."""
        latest = [one for one in self._still if now - one[0] <= STILL]
        covered = latest[-1][0] - latest[0][0] if latest else 0.0
        if covered < STILL_SHARE * STILL:
            raise ArgumentError(
                f"valid readings cover {covered:.2g} s of the latest {STILL:g} s; needed are "
                f"{STILL_SHARE * STILL:g} s"
            )
        _, readings, gravities, positions = zip(*latest, strict=True)
        moved = np.ptp(positions, axis=0).max()
        if moved > STILL_POSITION:
            raise ArgumentError(
                f"the arm moves: a joint by {moved:.3g} within {STILL:g} s; must be at most "
                f"{STILL_POSITION:g} rad or m"
            )
        return np.mean(readings, axis=0), np.mean(gravities, axis=0)

    def take_pose(self, now: float) -> str:
        """Add a pose, the mean reading of the still arm; return the estimate in words.

        Raises ArgumentError for an arm that moves, or has not been read long enough.
        """
        W, gravity = self._at_rest(now)
        self.poses.append((gravity, W - _weight(self._loads, gravity)))
        try:
            return f"{len(self.poses)} pose(s) taken: {self._estimate()}"
        except ArgumentError as error:
            return f"{len(self.poses)} pose(s) taken, but {error}"

    def _estimate(self) -> Fit:
        gravities, readings = ([one[k] for one in self.poses] for k in range(2))
        return fit(np.reshape(gravities, (-1, 3)), np.reshape(readings, (-1, 6)))

    def fit(self, now: float) -> Fit:
        """Return the fit to all poses, and use its calibration from now on.

        Raises what :func:`fit` raises; the calibration before then stays.
        """
        result = self._estimate()
        self.calibrate(result.calibration, now)
        return result


def checked_limits(limits: ArrayLike) -> FloatArray:
    """Return limits (6,) of a sensor, inf for none. Raises ArgumentError."""
    checked = checks.real("limits", limits)
    if checked.shape != (6,) or not (checked > 0.0).all():
        raise ArgumentError(f"limits must be 6 positive numbers; got {checked.tolist()}")
    return checked


def _weight(load: Inertia, gravity: FloatArray) -> FloatArray:
    """Return the wrench (6,) of a load at rest under gravity (3,), both in the sensor's axes."""
    return np.concatenate([np.cross(load.moment, gravity), load.mass * gravity])
