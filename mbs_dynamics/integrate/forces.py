# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Forces of a simulation: torques and wrenches over time, and those of the joints themselves.

Motor torques and applied wrenches are drives: arrays or control laws. Joints add

    tau_joint = - d qd - F sign(qd) - k (q - bound) - c qd

with viscous damping d, dry friction that holds a joint under torques of up to F, see
:mod:`mbs_dynamics.integrate.friction`, and beyond a bound of the joint a spring k with a damper c
that acts while the joint moves further in. All refer to coordinates: contributions of mimic joints
are described in :mod:`mbs_dynamics.model.coordinates`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from mbs_dynamics import checks
from mbs_dynamics.algorithms import mass_matrix
from mbs_dynamics.checks import FloatArray
from mbs_dynamics.compiler import less, select
from mbs_dynamics.errors import ArgumentError, SimulationError
from mbs_dynamics.lie.arrays import Array
from mbs_dynamics.model.coordinates import middle, with_singles
from mbs_dynamics.model.model import Model

Law = Callable[..., ArrayLike]
"""A control law: time, q and qd to torques or wrenches."""

Arrays = tuple[FloatArray, ...]
"""Positions and rates, or the values of all drives."""


class Drive:
    """Torques or wrenches over time: zero, a constant, one value per step, or a law."""

    def __init__(
        self, name: str, given: ArrayLike | Law | None, shape: tuple[int, ...], steps: int
    ) -> None:
        self.name, self.shape = name, shape
        self.law: Law | None = given if callable(given) else None
        self.rows: FloatArray | None = None
        if self.law is None:
            self.rows = self._checked(np.zeros(shape) if given is None else given, steps)

    def _checked(self, given: ArrayLike | Any, steps: int) -> FloatArray:
        array = checks.real(self.name, given)
        lead = array.ndim - len(self.shape)
        if lead < 0 or array.shape[lead:] != self.shape:
            raise ArgumentError(
                f"{self.name} has shape {array.shape}; must be {self.shape}, or one value for "
                f"each step, {(steps, *self.shape)}, or a function of t, q, qd"
            )
        if lead and len(array) != steps:
            raise ArgumentError(
                f"{self.name} has {len(array)} rows; must be one for each of the {steps} steps"
            )
        checks.numbers(self.name, array, self.shape, batch=True)  # finite
        return array if lead else array[None]

    def rows_from(self, k: int, count: int) -> FloatArray:
        """Return the values of steps k to k + count: (count, ...), or (1, ...) for a constant."""
        assert self.rows is not None
        return self.rows if len(self.rows) == 1 else self.rows[k : k + count]

    def at(self, k: int, t: float, state: Arrays, batch: tuple[int, ...]) -> FloatArray:
        """Return the value at time t in step k, for a state with the axes of a batch.

        Raises SimulationError if a law returns a value that is not finite, ArgumentError for a
        wrong shape.
        """
        if self.rows is not None:
            row: FloatArray = self.rows[min(k, len(self.rows) - 1)]
            return row
        assert self.law is not None
        value = checks.real(f"the value of {self.name} at t = {t:g} s", self.law(t, *state))
        wanted = (*batch, *self.shape)
        if value.shape not in (wanted, self.shape):
            raise ArgumentError(
                f"{self.name} returned the shape {value.shape} at t = {t:g} s; must be {wanted}"
            )
        if not finite(value):
            raise SimulationError(f"{self.name} returned {value.tolist()} at t = {t:.9g} s", time=t)
        return value if value.shape == wanted else np.broadcast_to(value, wanted)


def finite(x: FloatArray) -> bool:
    """Return whether all entries are finite; faster than NumPy for few."""
    few = x.size < 256  # many would wake the threads of a BLAS
    return (few and math.isfinite(np.vdot(x, x))) or bool(np.isfinite(x).all())


FRICTION_SPEED = 0.01
"""Speed in rad/s or m/s within which :meth:`JointForces.resistance` is smooth."""

STOP_TIME = 0.01
"""Time constant T in s of the joint stops."""


@dataclass(frozen=True, eq=False)
class JointForces:
    """Forces in the n joints in addition to the motors; each (n,), SI units. See :meth:`of`."""

    damping: FloatArray
    """Viscous damping d, N m s/rad or N s/m."""
    friction: FloatArray
    """Coulomb friction F, N m or N."""
    lower: FloatArray
    """Lower bound in rad or m; -inf for none."""
    upper: FloatArray
    """Upper bound in rad or m; inf for none."""
    stiffness: FloatArray
    """Stiffness k of the stops, N m/rad or N/m."""
    stop_damping: FloatArray
    """Damping c of the stops, N m s/rad or N s/m."""

    def __post_init__(self) -> None:
        shape = np.shape(self.damping)[-1:]
        for field in fields(self):
            name, given = field.name, getattr(self, field.name)
            if name in ("lower", "upper"):
                value = checks.real(name, given)
                if value.shape != shape or np.isnan(value).any():
                    raise ArgumentError(f"{name} must be {shape} numbers; got {value.tolist()}")
            else:
                value = checks.not_negative(name, checks.numbers(name, given, shape), shape)
            value.flags.writeable = False
            object.__setattr__(self, name, value)
        if (self.lower > self.upper).any():
            k = int(np.argmax(self.lower > self.upper))
            raise ArgumentError(
                f"lower must not exceed upper; joint {k} has {self.lower[k]:g} > {self.upper[k]:g}"
            )

    @classmethod
    def of(
        cls,
        model: Model,
        *,
        damping: ArrayLike | None = None,
        friction: ArrayLike | None = None,
        stops: bool = False,
    ) -> JointForces:
        """Return the joint forces of a model; by default those of its description.

        ``damping`` and ``friction`` are numbers or arrays (n,); None selects those of the
        description, mimic joints included. ``stops`` adds stops at the position limits, as springs
        with critical damping: k = M_jj / T^2, c = 2 M_jj / T with T = 0.01 s and the inertia M_jj
        at the motor in the middle of the range. Raises ArgumentError for a wrong shape or type, or
        negative values.
        """
        lower, upper = np.full(model.n, -np.inf), np.full(model.n, np.inf)
        inertia = np.zeros(model.n)
        if stops:
            lower, upper = model.lower, model.upper
            q = with_singles(model.joints, model.neutral(), middle(lower, upper))
            inertia = np.diag(mass_matrix(model, q)).copy()
        return cls(
            _each(model, "damping", model.damping if damping is None else damping),
            _each(model, "friction", model.friction if friction is None else friction),
            lower,
            upper,
            inertia / STOP_TIME**2,
            2.0 * inertia / STOP_TIME,
        )

    def resistance(self, qd: FloatArray) -> FloatArray:
        """Return the torques (..., n) of damping and friction at rates qd (..., n), without stops.

        They are zero at rest, where friction is indeterminate.
        """
        return np.asarray(-(self.damping * qd + self.friction * np.tanh(qd / FRICTION_SPEED)))

    @property
    def features(self) -> Features:
        """Which forces are nonzero."""
        bounded = np.isfinite(self.lower).any() or np.isfinite(self.upper).any()
        return Features(bool(self.damping.any()), bool(self.friction.any()), bool(bounded))

    @property
    def table(self) -> FloatArray:
        """(6, n) all parameters, in the order of the fields: an input of the kernels."""
        return np.array([getattr(self, field.name) for field in fields(self)])


class Features(NamedTuple):
    """Which forces a step computes."""

    damping: bool = False
    friction: bool = False
    stops: bool = False


def check_forces(forces: JointForces | None, model: Model) -> None:
    """Raise ArgumentError unless these are forces of the joints of a model, or None."""
    if forces is None:
        return
    if not isinstance(forces, JointForces):
        raise ArgumentError(f"forces must be JointForces or None; got {type(forces).__name__}")
    if forces.damping.size != model.n:
        raise ArgumentError(f"forces are of {forces.damping.size} joints; the model has {model.n}")


def _each(model: Model, name: str, value: ArrayLike) -> FloatArray:
    given = np.full(model.n, value) if np.ndim(value) == 0 else value
    return checks.numbers(name, given, (model.n,))


Implicit = tuple[Array, Array]
"""Joint forces at the end of a step, -tau - armature a for an acceleration a during it, (n,)."""


def implicit_forces(stops: Stops, damping: Array, weight: Any, v: Array, h: Any) -> Implicit:
    """Return the forces of stops and damping in a step of h that begins with the rates v.

    Damping acts at v + ``weight`` h a, all else at the end of the step.
    """
    d, spring, out = stops
    tau = (d + damping) * v + spring * out
    return tau, h * (d + weight * damping) + (h * h) * spring


RESOLVED = 2.0
"""Sum of h d / inertia over the joints up to which explicit Runge-Kutta steps resolve damping: they
are stable below 2.78, and the sum bounds the largest eigenvalue of h M^-1 D."""


def weight_of_end(z: Any) -> Any:
    """Return the share of the rate at the end of a step at which damping acts: 1/2 to 1.

    With z = h d / inertia a rate then decays by 1 / (1 + z + z^2/2 + z^3/6), the Pade approximation
    of exp(-z) that is positive for any z, and the rate at which damping balances a torque is exact.
    """
    return (3.0 + 2.0 * z + z * z) / (6.0 + 3.0 * z + z * z)


Stops = tuple[Array, Array, Array]
"""Joint stops as -d v - k out: d, k, and the distance beyond the bound without them, (n,)."""


def stop_forces(joints: Array | None, features: Features, qd: Array, ahead: Array) -> Stops:
    """Return the stops, linearised for rates ``qd`` and expected positions ``ahead``.

    ``joints`` is :attr:`JointForces.table`.
    """
    if joints is None or not features.stops:
        zero = np.zeros(len(qd))
        return zero, zero, zero
    lower, upper, stiffness, damping = joints[2:6]
    below = select(less(ahead, lower), ahead - lower, 0.0)
    out = select(less(upper, ahead), ahead - upper, below)
    spring = select(less(0.0, out * out), stiffness, 0.0)
    return select(less(0.0, qd * out), damping, 0.0), spring, out


def passive_torques(joints: Array, features: Features, q: Array, qd: Array) -> Array:
    """Return the torques (n,) of damping and stops at a state."""
    damping = joints[0] if features.damping else np.zeros(len(qd))
    tau, _ = implicit_forces(stop_forces(joints, features, qd, q), damping, 1.0, qd, 0.0)
    return np.asarray(-1.0 * tau)
