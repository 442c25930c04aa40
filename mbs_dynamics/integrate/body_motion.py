# Copyright 2026 The mbs_dynamics authors
#
# Licensed under the Apache License, Version 2.0 (the "License");
# you may not use this file except in compliance with the License.
# You may obtain a copy of the License at
#
#     http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS,
# WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
# See the License for the specific language governing permissions and
# limitations under the License.
"""Simulation of a rigid body on SO(3) or SE(3): no coordinates, and so no singularities."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from mbs_dynamics import checks
from mbs_dynamics.checks import FloatArray
from mbs_dynamics.errors import ArgumentError, SimulationError, SingularError, UnknownMethodError
from mbs_dynamics.integrate.group_steps import (
    Alpha,
    Increments,
    generalized_alpha,
    momentum_midpoint,
    munthe_kaas,
)
from mbs_dynamics.integrate.groups import GroupBody
from mbs_dynamics.integrate.progress import Progress
from mbs_dynamics.lie.arrays import Array
from mbs_dynamics.tracing import Kernel, trace

BODY_METHODS = (
    "munthe_kaas_1",
    "munthe_kaas_2",
    "munthe_kaas_3",
    "munthe_kaas_4",
    "momentum_midpoint",
    "generalized_alpha",
)
"""The integrators on Lie groups; the number is the order, and it is 2 for the other two."""

CHUNK = 10000
"""Steps between two looks at whether all is well."""


class BodyStepper:
    """A step of a rigid body as one kernel, on flat states that :meth:`pack` makes.

    :param body: a :class:`GroupBody`.
    :param method: one of :data:`BODY_METHODS`; see :mod:`mbs_dynamics.integrate.group_steps`.
    :param momenta: whether a Munthe-Kaas scheme integrates the spatial momentum instead of the
        twist, so that the momentum is kept where no wrench acts.
    :param increments: ``"right"`` or ``"left"``.
    :param dexp: ``"exact"`` or ``"truncated"``.
    :param rho: damping of infinite frequencies in the generalized-alpha scheme, 0 to 1.
    :param backend: as for :func:`mbs_dynamics.compile`.
    """

    def __init__(
        self,
        body: GroupBody,
        method: str = "munthe_kaas_4",
        *,
        momenta: bool = False,
        increments: str = "right",
        dexp: str = "exact",
        rho: float = 0.9,
        backend: str | None = None,
    ) -> None:
        if not isinstance(body, GroupBody):
            raise ArgumentError(f"body must be a GroupBody; got {type(body).__name__}")
        if method not in BODY_METHODS:
            raise UnknownMethodError(method, BODY_METHODS)
        for name, value, valid in (
            ("increments", increments, ("right", "left")),
            ("dexp", dexp, ("exact", "truncated")),
        ):
            if value not in valid:
                raise ArgumentError(f"{name} must be one of {', '.join(valid)}; got {value!r}")
        if not 0.0 <= checks.number("rho", rho) <= 1.0:
            raise ArgumentError(f"rho must be from 0 to 1; got {rho:g}")
        self.body, self.method = body, method
        self.momenta = bool(momenta) or method == "momentum_midpoint"
        self._kind = Increments(increments == "left", dexp == "truncated")
        self._alpha = Alpha.of(rho)
        self._entries = body.group.size**2
        self._vectors = 3 if method == "generalized_alpha" else 1
        size = self._entries + self._vectors * body.group.dim
        program = trace(self._equations, {"state": (size,), "h": ()}, name=f"{method}_body")
        self.kernel = Kernel(program, backend=backend)
        """``kernel(state, h)`` -> state, both flat."""

    def pack(self, C: ArrayLike, V: ArrayLike) -> FloatArray:
        """Return the state (..., size) for poses and body-fixed twists."""
        size, dim = self.body.group.size, self.body.group.dim
        pose, twist = np.asarray(C, dtype=float), np.asarray(V, dtype=float)
        batch = np.broadcast_shapes(pose.shape[:-2], twist.shape[:-1])
        pose = np.broadcast_to(pose, (*batch, size, size))
        twist = np.broadcast_to(twist, (*batch, dim))
        vectors = [self.body.momentum(pose, twist) if self.momenta else twist]
        if self.method == "generalized_alpha":
            flat = zip(pose.reshape(-1, size, size), twist.reshape(-1, dim), strict=True)
            rates = np.array([self.body.acceleration(c, v) for c, v in flat], dtype=float)
            vectors += [rates.reshape(*batch, dim)] * 2
        return np.concatenate([pose.reshape(*batch, self._entries), *vectors], axis=-1)

    def unpack(self, state: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return poses (..., size, size) and body-fixed twists (..., dim) of states."""
        size, dim, k = self.body.group.size, self.body.group.dim, self._entries
        C = state[..., :k].reshape(*state.shape[:-1], size, size)
        y = state[..., k : k + dim]
        if not self.momenta:
            return C, y
        carried = np.swapaxes(self.body.group.Ad(C), -1, -2) @ y[..., None]
        return C, (self.body.inverse @ carried)[..., 0]

    def run(self, state: FloatArray, h: float, steps: int) -> FloatArray:
        """Return the states (steps + 1, ..., size); a loop in machine code.

        Raises SingularError where an implicit scheme does not converge.
        """
        return self.kernel.iterate(state, h, steps=steps)

    def _equations(self, state: Array, h: Any) -> Array:
        size, dim, k, h = self.body.group.size, self.body.group.dim, self._entries, h[()]
        C = state[:k].reshape(size, size)
        if size == 4:  # the last row is known
            C = np.array(C)
            C[3] = [0.0, 0.0, 0.0, 1.0]
        vectors = [state[k + i * dim : k + (i + 1) * dim] for i in range(self._vectors)]
        after: tuple[Array, ...]
        if self.method == "generalized_alpha":
            V, Vd, a = vectors
            after = generalized_alpha(self.body, C, V, Vd, a, h, self._alpha)
        elif self.method == "momentum_midpoint":
            after = momentum_midpoint(self.body, C, vectors[0], h)
        else:
            order = int(self.method[-1])
            after = munthe_kaas(self.body, C, vectors[0], h, order, self.momenta, self._kind)
        return np.concatenate([np.ravel(x) for x in after])


@dataclass(frozen=True, eq=False, repr=False)
class BodyMotion:
    """The motion of a rigid body at N instants; arrays of a batch have its axes after the first."""

    t: FloatArray
    """(N,) time in s."""
    C: FloatArray
    """(N, ..., 4, 4) poses on SE(3), or (N, ..., 3, 3) rotations on SO(3)."""
    V: FloatArray
    """(N, ..., 6) body-fixed twists, or (N, ..., 3) angular velocities."""
    momentum: FloatArray
    """Spatial momenta, of the shape of V: about the inertial origin, or the fixed point."""
    kinetic: FloatArray
    """(N, ...) kinetic energy."""
    potential: FloatArray
    """(N, ...) potential energy."""
    method: str = ""

    def __len__(self) -> int:
        return len(self.t)

    def __repr__(self) -> str:
        return f"<BodyMotion {self.C.shape}, {self.method}>"

    @property
    def energy(self) -> FloatArray:
        """(N, ...) kinetic and potential energy."""
        return self.kinetic + self.potential

    @property
    def orthogonality(self) -> FloatArray:
        """(N, ...) largest entry of R^T R - I: how well the rotation is one."""
        R = self.C[..., :3, :3]
        defect: FloatArray = np.abs(np.swapaxes(R, -1, -2) @ R - np.eye(3)).max(axis=(-1, -2))
        return defect


def simulate_body(
    body: GroupBody,
    C: ArrayLike,
    V: ArrayLike,
    *,
    duration: float,
    step: float = 1e-3,
    every: int = 1,
    progress: bool | None = None,
    **options: Any,
) -> BodyMotion:
    """Return the motion of a rigid body from a pose and a body-fixed twist on.

    :param C: (..., 4, 4) pose, or (..., 3, 3) rotation for a body on SO(3).
    :param V: (..., 6) body-fixed twist, or (..., 3) angular velocity.
    :param duration: in s; rounded to a number of steps.
    :param every: keep every so manieth state.
    :param progress: whether to show how far it is on stderr; None for long runs on a terminal.
    :param options: ``method``, ``momenta``, ``increments``, ``dexp``, ``rho``, ``backend``; see
        :class:`BodyStepper`.
    :raises ArgumentError: for a wrong shape or value; UnknownMethodError.
    :raises SimulationError: if the state is not finite or an implicit scheme does not converge. It
        says when, and its attribute ``motion`` has what there is until then.
    """
    stepper = BodyStepper(body, **options)
    h, total = checks.number("step", step), checks.number("duration", duration)
    if h <= 0.0 or total < 0.5 * h:
        raise ArgumentError(
            f"step must be positive and duration at least a step; got {h:g} s and {total:g} s"
        )
    if isinstance(every, bool) or not isinstance(every, int) or every < 1:
        raise ArgumentError(f"every must be a positive integer; got {every!r}")
    pose, twist = np.asarray(C), np.asarray(V)
    size, dim = body.group.size, body.group.dim
    for name, array, core in (("C", pose, (size, size)), ("V", twist, (dim,))):
        checks.numbers(name, array, array.shape)
        if array.shape[-len(core) :] != core:
            raise ArgumentError(f"{name} has shape {array.shape}; valid is {core} on the group")
    state = stepper.pack(pose, twist)
    steps, done, kept = max(round(total / h), 1), 0, [state[None]]
    shown = Progress(steps * h, progress)

    def motion() -> BodyMotion:
        return _motion(stepper, np.concatenate(kept), h * every)

    while done < steps:
        count = min(max(CHUNK // every, 1) * every, steps - done)
        try:
            states = stepper.run(state, h, count)
        except SingularError as error:
            found = getattr(error, "trajectory", state[None])
            kept.append(found[every::every])
            t = h * (done + len(found) - 1)
            raise SimulationError(f"at t = {t:.9g} s: {error}", time=t, motion=motion()) from error
        finite = np.isfinite(states).all(axis=tuple(range(1, states.ndim)))
        good = len(states) if finite.all() else int(np.argmin(finite))
        kept.append(states[every:good:every])
        if good < len(states):
            t = h * (done + good - 1)
            raise SimulationError(
                f"{stepper.method}: the state is not finite after the step of {h:g} s from "
                f"t = {t:.9g} s",
                time=t,
                motion=motion(),
            )
        state, done = states[-1], done + count
        shown.update(done * h)
    shown.close()
    return motion()


def _motion(stepper: BodyStepper, states: FloatArray, interval: float) -> BodyMotion:
    C, V = stepper.unpack(states)
    body = stepper.body
    return BodyMotion(
        t=interval * np.arange(len(states), dtype=np.float64),
        C=C,
        V=V,
        momentum=body.momentum(C, V),
        kinetic=body.kinetic_energy(V),
        potential=body.potential_energy(C),
        method=stepper.method,
    )
