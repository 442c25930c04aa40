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
"""Mechanisms on a floating base, without the singularities of three angles.

The base of the model is a free joint, six joints in a row (``macro_joint("free")``, or a joint of
type floating in a URDF), whose three angles are singular at pi/2 of the second one. They serve as
local coordinates only: the pose of the base is G C(q), with G in SE(3), and before the angles grow
large the present pose is taken into G and they begin at zero again. Seen from G,
nothing changes but the direction of gravity, which is an input of the kernels, so that no kernel is
compiled for it. This is integration on SE(3) in canonical coordinates of the second kind, Mueller
(kinematics), Remark 4, of the order of the scheme in joint coordinates.

Nothing but gravity acts on the whole from outside, so that its spatial momentum is known in
advance. On request the rates of the base follow from it at every step, by the momentum form of the
equations of motion, Mueller (dynamics), eq. (79): M_i^s J_i^s qd = Pi_i^s, projected by the columns
of J^s that belong to the base.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from mbs_dynamics import checks
from mbs_dynamics.algorithms import (
    center_of_mass,
    forward_kinematics,
    jacobian,
    kinetic_energy,
    mass_matrix,
    momenta,
    potential_energy,
    twists,
)
from mbs_dynamics.checks import FloatArray
from mbs_dynamics.errors import ArgumentError, ModelError, SimulationError, SingularError
from mbs_dynamics.integrate.groups import SE3
from mbs_dynamics.integrate.joint_forces import JointForces
from mbs_dynamics.integrate.progress import Progress
from mbs_dynamics.integrate.stepper import Stepper
from mbs_dynamics.lie import se3
from mbs_dynamics.model.body import GROUND
from mbs_dynamics.model.tree import Model

FACTORS = ("/x", "/y", "/z", "/rx", "/ry", "/rz")
"""Ends of the names of the joints that make up a free joint, in their order."""

TURN = 0.5
"""Angle in rad that the base is meant to turn before its pose is taken into G."""

SINGULAR = 1.3
"""Second angle in rad at which the local coordinates are too close to their singularity."""

CHUNK = 500
"""Steps at most between two changes of G."""

Law = Callable[[float, FloatArray, FloatArray, FloatArray, FloatArray], ArrayLike]
"""A control law: t, pose and body-fixed twist of the base, q, qd to torques of the joints."""


@dataclass(frozen=True, eq=False, repr=False)
class FloatingMotion:
    """The motion of a mechanism on a floating base at N instants, with m joints beside the base."""

    t: FloatArray
    """(N,) time in s."""
    C: FloatArray
    """(N, 4, 4) pose of the base."""
    V: FloatArray
    """(N, 6) body-fixed twist of the base."""
    q: FloatArray
    """(N, m) positions of the joints."""
    qd: FloatArray
    """(N, m) rates of the joints."""
    kinetic: FloatArray
    """(N,) kinetic energy."""
    potential: FloatArray
    """(N,) potential energy in the field of gravity."""
    momentum: FloatArray
    """(N, 6) momentum of all bodies about the inertial origin, angular part first."""
    joint_names: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.t)

    @property
    def energy(self) -> FloatArray:
        """(N,) kinetic and potential energy."""
        return self.kinetic + self.potential


def simulate_floating(
    model: Model,
    C: ArrayLike,
    V: ArrayLike,
    q: ArrayLike,
    qd: ArrayLike | None = None,
    *,
    duration: float,
    step: float = 1e-3,
    method: str = "rk4",
    control: ArrayLike | Law | None = None,
    forces: JointForces | None = None,
    keep_momentum: bool = False,
    progress: bool | None = None,
    backend: str | None = None,
) -> FloatingMotion:
    """Return the motion of a mechanism whose base is a free joint, whatever way the base turns.

    :param model: its first six coordinates are a free joint on the ground, and nothing else stands
        on the ground.
    :param C: (4, 4) pose of the base, the body that the free joint moves.
    :param V: (6,) body-fixed twist of the base.
    :param q: (m,) positions of the other joints.
    :param qd: (m,) their rates, zero if None.
    :param control: torques (m,) of the other joints, or a law ``control(t, C, V, q, qd)``; held
        over a step. None for none.
    :param method: ``"explicit_euler"``, ``"semi_implicit_euler"`` or ``"rk4"``.
    :param forces: damping, friction and stops of all joints, (6 + m,) each; those of the base must
        be none.
    :param keep_momentum: keep the spatial momentum of the whole to rounding, and not only to the
        order of the method; each step then passes through Python.
    :raises ModelError: if the model has no such base.
    :raises ArgumentError: for a wrong shape or value; UnknownMethodError.
    :raises SimulationError: if the state is not finite or the mass matrix singular; its attribute
        ``motion`` has what there is until then.
    """
    base = Base(model)
    pose, twist = checks.pose("C", C), checks.numbers("V", V, (6,))
    n = model.n - 6
    positions = checks.numbers("q", q, (n,))
    rates = np.zeros(n) if qd is None else checks.numbers("qd", qd, (n,))
    h, total = checks.number("step", step), checks.number("duration", duration)
    if h <= 0.0 or total < 0.5 * h:
        raise ArgumentError(
            f"step must be positive and duration at least a step; got {h:g} s and {total:g} s"
        )
    law, torque = None, np.zeros(n)
    if callable(control):
        law = control
    elif control is not None:
        torque = checks.numbers("control", control, (n,))
    if forces is not None and (forces.damping[:6].any() or forces.friction[:6].any()):
        raise ArgumentError("forces must leave the base free: the first six entries must be zero")
    stepper = Stepper(model, method=method, forces=forces, backend=backend)
    run = _Run(base, stepper, h)
    run.begin(pose, twist, positions, rates)
    if keep_momentum:
        run.keep_momentum()
    shown, steps = Progress(total, progress), max(round(total / h), 1)
    with np.errstate(over="ignore", invalid="ignore"):  # said by an error of our own
        try:
            while run.steps < steps:
                run.advance(steps - run.steps, law, torque)
                shown.update(run.steps * h)
        except SimulationError as error:
            error.motion = run.motion()
            raise
        finally:
            shown.close()
        return run.motion()


class Base:
    """The free joint at the root of a model, and its local coordinates."""

    def __init__(self, model: Model) -> None:
        if not isinstance(model, Model):
            raise ArgumentError(f"model must be a Model; got {type(model).__name__}")
        names = model.joint_names[:6]
        roots = sum(parent == GROUND for parent in model.parents)
        chained = model.parents[:6] == (GROUND, 0, 1, 2, 3, 4)
        ends = all(name.endswith(end) for name, end in zip(names, FACTORS, strict=False))
        if len(names) < 6 or roots != 1 or not chained or not ends:
            raise ModelError(
                "the base must be a free joint on the ground, coordinates 0 to 5, and the only "
                f"root; the first joints are {', '.join(names)}, and there are {roots} roots"
            )
        self.model, self.name = model, model.body_names[5]
        zero = np.zeros(model.n)
        self.home: FloatArray = forward_kinematics(model, zero)[5]
        self._rates = np.linalg.inv(jacobian(model, zero, self.name)[:, :6])

    def local_state(self, V: FloatArray, q: FloatArray, qd: FloatArray) -> FloatArray:
        """Return the state (2, n) with the base at the origin of its coordinates."""
        zero = np.zeros(6)
        return np.array([np.concatenate([zero, q]), np.concatenate([self._rates @ V, qd])])

    def global_state(self, G: FloatArray, states: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return poses (..., 4, 4) and body-fixed twists (..., 6) of the base."""
        q, qd = states[..., 0, :], states[..., 1, :]
        pose: FloatArray = G @ forward_kinematics(self.model, q)[..., 5, :, :]
        twist: FloatArray = twists(self.model, q, qd)[..., 5, :]
        return pose, twist


class _Run:
    """A simulation as far as it is, in pieces with one G each."""

    def __init__(self, base: Base, stepper: Stepper, h: float) -> None:
        self.base, self.stepper, self.h, self.steps = base, stepper, h, 0
        self.gravity = np.asarray(base.model.gravity)
        self.mass = sum(body.inertia.mass for body in base.model.loaded().bodies)
        self.pieces: list[tuple[FloatArray, FloatArray]] = []
        self.last: tuple[FloatArray, ...] = ()
        self.invariants: tuple[FloatArray, ...] = ()

    def keep_momentum(self) -> None:
        """From now on let the rates of the base follow from the momentum of the whole."""
        model, (G, state) = self.base.model, self.last
        P = momenta(model, *state, representation="spatial").sum(axis=0)
        c = G[:3, :3] @ center_of_mass(model, state[0]) + G[:3, 3]
        self.invariants = se3.Ad(se3.inverse(G)).T @ P, self.mass * c

    def _momentum(self, t: float) -> FloatArray:
        """Return the spatial momentum (6,) of the whole after t: it falls freely."""
        P, mass_moment = self.invariants
        turned = np.cross(mass_moment * t + 0.5 * t**2 * P[3:], self.gravity)
        return np.asarray(P + np.concatenate([turned, self.mass * t * self.gravity]))

    def _corrected(self, G: FloatArray, state: FloatArray) -> FloatArray:
        """Return a state with the rates of the base that its momentum demands, D (79)."""
        model, (q, qd) = self.base.model, state
        P = np.asarray(se3.Ad(G)).T @ self._momentum((self.steps + 1) * self.h)
        M = mass_matrix(model, q)[:6]
        J = jacobian(model, q, self.base.name, representation="spatial")[:, :6]
        rates = np.linalg.solve(M[:, :6], J.T @ P - M[:, 6:] @ qd[6:])
        return np.array([q, np.concatenate([rates, qd[6:]])])

    def begin(self, C: FloatArray, V: FloatArray, q: FloatArray, qd: FloatArray) -> None:
        """Start, or go on with another G."""
        G = SE3.product(C, se3.inverse(self.base.home))
        self.stepper.model = self.base.model.with_gravity(G[:3, :3].T @ self.gravity)
        state = self.base.local_state(V, q, qd)
        self.last = G, state
        if not self.pieces:
            self.pieces.append((G, state[None]))

    def advance(self, steps: int, law: Law | None, torque: FloatArray) -> None:
        """Make some steps with the present G, and then choose another one."""
        G, state = self.last
        speed = float(np.abs(state[1, 3:6]).max())
        count = int(np.clip(TURN / max(speed * self.h, 1e-300), 1, min(steps, CHUNK)))
        if law is not None:
            C, V = self.base.global_state(G, state)
            time = self.steps * self.h
            returned = law(time, C, V, state[0, 6:], state[1, 6:])
            torque, count = np.asarray(returned, dtype=float), 1
            if torque.shape != (self.base.model.n - 6,) or not np.isfinite(torque).all():
                raise SimulationError(
                    f"control returned {returned!r} at t = {time:.9g} s", time=time
                )
        if self.invariants:
            count = 1
        effort = np.concatenate([np.zeros(6), torque])
        while True:
            states, failure = self._run(state, effort, count)
            if count == 1 or np.abs(states[:, 0, 4]).max(initial=0.0) < SINGULAR:
                break
            count = max(count // 4, 1)  # it turned faster and faster
        if len(states):
            if self.invariants:
                states = self._corrected(G, states[0])[None]
            self.pieces.append((G, states))
            self.steps += len(states)
            C, V = self.base.global_state(G, states[-1])
            self.begin(C, V, states[-1, 0, 6:], states[-1, 1, 6:])
        if failure:
            time = self.steps * self.h
            raise SimulationError(f"at t = {time:.9g} s: {failure}", time=time)

    def _run(self, state: FloatArray, effort: FloatArray, count: int) -> tuple[FloatArray, str]:
        """Return the states after the first one as far as they are finite, and what failed."""
        try:
            states, failure = self.stepper.run(state, effort, self.h, count)[1:], ""
        except SingularError as error:
            states, failure = np.array(getattr(error, "trajectory", state[None]))[1:], str(error)
        finite = np.isfinite(states).all(axis=(1, 2))
        if not finite.all():
            return states[: int(np.argmin(finite))], "the state is not finite; take smaller steps"
        return states, failure

    def motion(self) -> FloatingMotion:
        """Return all there is."""
        model, rows = self.base.model, []
        for G, states in self.pieces:
            q, qd = np.ascontiguousarray(states[:, 0]), np.ascontiguousarray(states[:, 1])
            C, V = self.base.global_state(G, states)
            turned = model.with_gravity(G[:3, :3].T @ self.gravity)
            potential = potential_energy(turned, q) - self.mass * (self.gravity @ G[:3, 3])
            momentum = momenta(model, q, qd, representation="spatial").sum(axis=-2)
            momentum = momentum @ se3.Ad(se3.inverse(G))
            rows.append(
                (C, V, q[:, 6:], qd[:, 6:], kinetic_energy(model, q, qd), potential, momentum)
            )
        C, V, q, qd, kinetic, potential, momentum = map(np.concatenate, zip(*rows, strict=True))
        t = self.h * np.arange(len(C), dtype=np.float64)
        names = model.joint_names[6:]
        return FloatingMotion(t, C, V, q, qd, kinetic, potential, momentum, names)
