# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Steps in joint coordinates, as equations and as one kernel.

The state is x = (q, qd), (2, n), or (nq + n,) if q moves on groups. Motor torques and applied
wrenches are held over a step of h. Damping and stops are stiff: a stop is a hard spring, and
fingers of 1e-6 kg m^2 have damping as well. They are therefore taken at the end of the step and
linearised: the acceleration a during the step obeys

    (M + h D + h^2 K) a = f - D v - K (ahead - bound) + r,

where ``ahead`` is the position at which the spring is evaluated, minus h^2 a, and r dry friction,
see :mod:`mbs_dynamics.integrate.friction`. A joint at a stop thus comes to rest in two steps for
any stiffness, if M is constant, and remains where the forces balance.

===================  ====================================================  =====  ============
method               the step                                              order  ahead
===================  ====================================================  =====  ============
semi_implicit_euler  q + h (v + h a),  v + h a                             1      q + h v
rk4                  the classical Runge-Kutta scheme, with M and f of     4      q + 1.5 h v
                     each stage, and D, K, v, ahead of the first
===================  ====================================================  =====  ============

The sum q + u is :func:`mbs_dynamics.displaced`, and rk4 of Munthe-Kaas: see
:mod:`mbs_dynamics.integrate.charts`.

While stops act, rk4 is of order 1. While joints slide under Coulomb friction its order is 4; where
they start, stop or reverse, an error of h^2 remains. Viscous damping acts at each stage if the step
resolves it, and the order remains 4; else it acts between the middle and the end of the step, so
that rates decay without a change of sign.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from mbs_dynamics import checks
from mbs_dynamics.algorithms import displaced, forward_dynamics, inverse_mass_matrix, mass_matrix
from mbs_dynamics.algorithms.factorization import factorize, locked_inertias
from mbs_dynamics.algorithms.kernels import compiled_on, model_inputs
from mbs_dynamics.algorithms.newton_euler import Loads, newton_euler
from mbs_dynamics.checks import FloatArray
from mbs_dynamics.compiler import Kernel, less, select
from mbs_dynamics.errors import ArgumentError, SingularError, UnknownMethodError
from mbs_dynamics.integrate.charts import Arrangement, by_velocity, chart_of
from mbs_dynamics.integrate.forces import (
    RESOLVED,
    Arrays,
    Features,
    Implicit,
    JointForces,
    check_forces,
    implicit_forces,
    stop_forces,
    weight_of_end,
)
from mbs_dynamics.integrate.friction import FEW, LARGE, PROJECTIONS, Friction
from mbs_dynamics.integrate.runge_kutta import CLASSICAL, runge_kutta_step
from mbs_dynamics.lie.arrays import Array
from mbs_dynamics.model.model import Model
from mbs_dynamics.representation import BodyFixed, checked, convert_wrench
from mbs_dynamics.representation.tree import Tree

Forces = tuple[Array | None, Implicit | None]
"""Forces of the joints in a step: damping (n,) at the rates of each stage, and implicit ones."""


@dataclass
class Step:
    """The equations of one step of a model, over symbols or numbers."""

    model: Tree
    features: Features
    effort: Array
    wrenches: Array | None
    joints: Array | None
    algorithm: str = "body_fixed"
    solver: str = "auto"
    friction: Friction | None = None

    def find_friction(self, q: Array, v: Array, h: Any, forces: Forces = (None, None)) -> None:
        """Find the dry friction of a step of h from q, v, with these forces of the joints."""
        if not self.features.friction:
            return
        assert self.joints is not None
        signs = select(less(0.0, v), 1.0, select(less(v, 0.0), -1.0, 0.0))
        friction = Friction(v, signs, self.joints[1], self._inertia(), h)
        model, wrenches = self.model, Loads(self.wrenches)
        M = np.asarray(mass_matrix(model, q, representation="body_fixed"))
        bias = newton_euler(model, q, v, np.zeros(model.n), "body_fixed", wrenches)
        tau, armature = self.actuation(v, forces)
        for _ in range(PROJECTIONS if model.n <= LARGE else FEW):
            factors = factorize(model, M + np.diag(armature + friction.hold))
            ahead = v + h * factors.solution(tau - bias + friction.torque)
            friction = friction.projected(ahead)
        self.friction = friction

    def actuation(self, v: Array, forces: Forces) -> tuple[Array, Array]:
        """Return the torques of motors and joints (n,) without friction, and their armature."""
        tau, armature = self.effort, np.zeros(self.model.n)
        damping, implicit = forces
        if damping is not None:
            tau = tau - damping * v
        if implicit is not None:
            tau, armature = tau - implicit[0], implicit[1]
        return tau, armature

    def _inertia(self) -> Array:
        """Return the inertia (n,) that each joint moves in the reference configuration."""
        diagonal = locked_inertias(self.model.model)
        least = np.where(diagonal > 0.0, diagonal, diagonal.max() or 1.0)
        return np.asarray(least + self.model.armature if self.model.has_armature else least)

    def acceleration(self, q: Array, v: Array, forces: Forces = (None, None)) -> Array:
        """Return qdd (n,) under motors, wrenches, gravity and the forces of the joints."""
        tau, armature = self.actuation(v, forces)
        if self.friction is not None:
            tau, armature = tau + self.friction.torque, armature + self.friction.hold
        implicit = forces[1] is not None or self.friction is not None
        model: Any = self.model.with_armature(armature) if implicit else self.model
        how = {"method": self.solver, "representation": self.algorithm}
        return np.asarray(forward_dynamics(model, q, v, tau, self.wrenches_at(q), **how))

    def velocity(self, v: Array) -> Array:
        """Return the rate of q for the rates v of a stage."""
        return v if self.friction is None else self.friction.velocity(v)

    def stopped(self, v: Array) -> Array:
        """Return the rates after the step, where it ends with the rates v without a stop."""
        return v if self.friction is None else self.friction.stopped(v)

    def wrenches_at(self, q: Array) -> Array | None:
        """Return the wrenches on the bodies at q, in the representation of the recursions."""
        if self.wrenches is None or self.algorithm == "body_fixed":
            return self.wrenches
        rep, frames = BodyFixed(self.model, q), {"source": "body_fixed", "target": self.algorithm}
        return np.array(
            [convert_wrench(W, rep.C(i), **frames) for i, W in enumerate(self.wrenches)]
        )

    def joint_forces(self, q: Array, v: Array, h: Any, *, order: int = 4) -> Forces:
        """Return the joint forces in all stages of a step of a scheme of order 1 or 4."""
        if self.joints is None:
            return None, None
        reach = by_velocity(self.model, q) + (h if order == 1 else 1.5 * h) * v
        stops = stop_forces(self.joints, self.features, v, reach)
        damping = self.joints[0] if self.features.damping else np.zeros(self.model.n)
        if order == 1 or not self.features.damping:
            return None, implicit_forces(stops, damping, 1.0, v, h)
        z = steps_per_decay(self.model, q, damping, h)
        resolved, weight = less(sum(z), RESOLVED), np.array([weight_of_end(x) for x in z])
        later = select(resolved, 0.0, damping)
        return damping - later, implicit_forces(stops, later, weight, v, h)


def steps_per_decay(model: Tree, q: Array, damping: Array, h: Any) -> Array:
    """Return h over the time constants (n,) of damping at q, all other joints being free."""
    inverse = inverse_mass_matrix(model, q, representation="body_fixed")
    return np.asarray(h * damping * np.diag(inverse))


def semi_implicit_euler(step: Step, q: Array, v: Array, h: Any) -> tuple[Array, Array]:
    """Return q and qd after a step with the rates of its end; symplectic if M is constant."""
    forces = step.joint_forces(q, v, h, order=1)
    step.find_friction(q, v, h, forces)
    v = step.stopped(v + h * step.acceleration(q, v, forces))
    return displaced(step.model, q, h * v), v


def rk4(step: Step, q: Array, v: Array, h: Any) -> tuple[Array, Array]:
    """Return q and qd after a step of the classical Runge-Kutta scheme."""
    forces, states = step.joint_forces(q, v, h), Arrangement(step.model.model)
    step.find_friction(q, v, h, forces)

    def rate(_t: float, x: Array) -> Array:
        q, v = states.parts(x)
        return states.joined(step.velocity(v), step.acceleration(q, v, forces))

    chart = chart_of(step.model, states)
    q, v = states.parts(runge_kutta_step(CLASSICAL, rate, 0.0, states.joined(q, v), h, chart))
    return q, step.stopped(v)


STEPS: dict[str, Callable[[Step, Array, Array, Any], tuple[Array, Array]]] = {
    "semi_implicit_euler": semi_implicit_euler,
    "rk4": rk4,
}
"""Schemes with a fixed step whose whole step is one kernel."""


def inputs_of_step(model: Model, features: Features, wrenches: bool) -> dict[str, tuple[int, ...]]:
    """Return the shapes of the inputs of a kernel after those of states."""
    shapes: dict[str, tuple[int, ...]] = {"effort": (model.n,), "h": ()}
    if wrenches:
        shapes["wrenches"] = (model.nb, 6)
    if any(features):
        shapes["joints"] = (6, model.n)
    return shapes


def parameters_of(model: Model, forces: JointForces | None, kernel: Kernel) -> Arrays:
    """Return the last inputs of such a kernel: joint parameters, then those of the model."""
    joints = () if forces is None or not any(forces.features) else (forces.table,)
    return (*joints, *model_inputs(model, kernel))


class Stepper:
    """Advances the state (q, qd) of a model by fixed steps of one compiled kernel each.

    The state has the shape (2, n), or (nq + n,) if a joint moves on a group.

        stepper = Stepper(arm, method="rk4", forces=JointForces.of(arm, stops=True))
        state = stepper.step(state, effort, 1e-3)

    :param method: ``"semi_implicit_euler"`` or ``"rk4"``; the module states
        their orders and the treatment of friction and stops.
    :param forces: damping, friction and stops of the joints; None means none.
    :param wrenches: whether wrenches on the bodies, body-fixed, are an input.
    :param algorithm: representation of the recursions, which changes no result.
    :param backend: as for :func:`mbs_dynamics.compile`.
    :raises UnknownMethodError: for another method; UnknownRepresentationError, UnknownBackendError.

    Gravity, payloads and joint parameters are inputs of the kernel: nothing is compiled for another
    Stepper of a model that shares the kernels of this one (see :class:`mbs_dynamics.Model`) and of
    forces with the same features.
    """

    def __init__(
        self,
        model: Model,
        *,
        method: str = "semi_implicit_euler",
        forces: JointForces | None = None,
        wrenches: bool = False,
        algorithm: str = "body_fixed",
        backend: str | None = None,
    ) -> None:
        if not isinstance(model, Model):
            raise ArgumentError(f"model must be a Model; got {type(model).__name__}")
        if method not in STEPS:
            raise UnknownMethodError(method, STEPS)
        self.method = method
        self.takes_wrenches = bool(wrenches)
        self.algorithm = checked(algorithm)
        check_forces(forces, model)
        self.model, self.forces = model, forces
        self._features = Features() if forces is None else forces.features
        key = method, self._features, self.takes_wrenches, self.algorithm
        states = Arrangement(model)
        inputs = {"state": states.shape()}
        inputs |= inputs_of_step(model, self._features, self.takes_wrenches)
        self.kernel = compiled_on(
            model, key, self._equations, inputs, name=f"{method}_step", backend=backend
        )
        """``kernel(state, effort, h, [wrenches], *stepper.parameters)`` -> state."""
        self.parameters = parameters_of(model, forces, self.kernel)
        """Last inputs of the kernel: joint parameters, then those of the model that it takes."""

    def step(
        self, state: ArrayLike, effort: ArrayLike, h: ArrayLike, wrenches: ArrayLike | None = None
    ) -> FloatArray:
        """Return the state after h seconds under constant ``effort`` (..., n).

        ``wrenches`` (..., nb, 6) act on the bodies, moment first, if the stepper takes them. All
        arrays may have batch axes. For speed it is not checked that h is positive and the state
        finite; ``simulate`` does. Raises ArgumentError for a wrong shape or type; SingularError,
        which names the joint, if the mass matrix is not positive definite.
        """
        dt = np.asarray(h, dtype=float)  # the fast way into the kernel takes arrays only
        loads = self._loads(wrenches)
        advanced: FloatArray = self.kernel(state, effort, dt, *loads, *self.parameters)
        return advanced

    def run(
        self,
        state: ArrayLike,
        effort: ArrayLike,
        h: float,
        steps: int,
        wrenches: ArrayLike | None = None,
    ) -> FloatArray:
        """Return the states (steps + 1, ...), the first one included.

        From one state, with efforts and wrenches without further axes, the loop is machine code.
        ``effort`` is constant, (n,), or has a leading axis with one value per step, or 1, followed
        by axes that broadcast with those of the state; likewise ``wrenches`` (nb, 6). Raises
        ArgumentError for a step or number of steps that is not positive, and the errors of
        :meth:`step`; SingularError carries the states so far as its attribute ``trajectory``.
        """
        count, dt = checks.count("steps", steps), np.asarray(checks.positive("h", h))
        now = checks.real("state", state)
        rows = [_per_step("effort", effort, 1, count)]
        rows += [_per_step("wrenches", x, 2, count) for x in self._loads(wrenches)]
        cores = [port.shape for port in self.kernel.inputs]
        if now.shape == cores[0] and all(
            x.shape[1:] == shape for x, shape in zip(rows, (cores[1], *cores[3:]), strict=False)
        ):
            return self.kernel.iterate(now, rows[0], dt, *rows[1:], *self.parameters, steps=count)
        states = now[None]
        for k, (effort_k, *loads) in enumerate(zip(*rows, strict=True)):
            try:
                after = self.kernel(now, effort_k, dt, *loads, *self.parameters)
            except SingularError as error:
                error.trajectory = states[: k + 1].copy()
                raise
            if k == 0:  # efforts may have more axes than the state
                states = np.empty((count + 1, *after.shape))
                states[0] = now
            states[k + 1] = now = after
        return states

    def _loads(self, wrenches: ArrayLike | None) -> tuple[ArrayLike, ...]:
        if self.takes_wrenches:
            return (np.zeros((self.model.nb, 6)) if wrenches is None else wrenches,)
        if wrenches is not None:
            raise ArgumentError("this Stepper was made without wrenches=True")
        return ()

    def _equations(
        self,
        model: Tree,
        state: Array,
        effort: Array,
        h: Any,
        wrenches: Array | None = None,
        joints: Array | None = None,
    ) -> Array:
        step = Step(model, self._features, effort, wrenches, joints, algorithm=self.algorithm)
        states = Arrangement(model.model)
        q, qd = states.parts(state)
        return states.joined(*STEPS[self.method](step, q, qd, h[()]))


def _per_step(name: str, value: ArrayLike, axes: int, steps: int) -> FloatArray:
    """Return values with a leading axis of steps, from those of one step or of all."""
    x = checks.real(name, value)
    if x.ndim <= axes or len(x) == 1:
        x = x if x.ndim <= axes else x[0]
        return np.broadcast_to(x, (steps, *x.shape))
    if len(x) != steps:
        raise ArgumentError(
            f"{name} has {len(x)} entries along its first axis; must be one value for all steps, "
            f"or one for each of the {steps} steps"
        )
    return x
