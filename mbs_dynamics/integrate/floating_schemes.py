# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The integrators of a mechanism on a floating base, on SE(3) x R^m: no singularities.

The state is the pose C of the base, the positions q of the m joints, the body-fixed twist V of the
base and the rates qd of the joints, flat in this order.

**Steps in canonical coordinates of the second kind.** The Euler schemes and rk4 are those in joint
coordinates. Each step begins with the coordinates of the free joint at zero, Mueller (kinematics),
Remark 4, and ends by taking them into C, so that their singularity is never near. The order is that
of the scheme. On request the twist of the base then follows from the spatial momentum of the whole,
by the momentum form of the equations of motion, Mueller (dynamics), eq. (79): M_i^s J_i^s qd =
Pi_i^s, projected by the columns of J^s that belong to the base. Nothing but gravity acts from
outside, so that this momentum is known in advance.

**Munthe-Kaas steps.** runge_kutta and dormand_prince integrate the increment X of the pose, C = C_0
exp(X), with Xdot = dexp_{-X}^-1 V, eqs. (88), (89), beside q, V and qd.

**The implicit midpoint rule** has the spatial momentum Pi of the whole and the momenta p of the
joints as its state, and finds V and the rates v of the joints in the middle of the step:

    C_m = C_0 exp(h V / 2),    q_m = q_0 + h v / 2,
    M(q_m) (V, v) = (Ad_{C_m}^T Pi_0 + h W / 2,  p_0 + h f / 2),
    Pi_1 = Pi_0 + h Ad_{C_m}^-T W,    p_1 = p_0 + h f,
    C_1 = C_0 exp(h V),    q_1 = q_0 + h v.

W is the wrench of all applied forces in the frame of the base, and f the rate of the momenta of the
joints. For a body without joints this is momentum_midpoint, and for joints without a base the
variational midpoint scheme. It is symmetric and of order 2; where nothing acts from outside, Pi is
kept to the last bit.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np

from mbs_dynamics.algorithms import accelerations, forward_dynamics, mass_matrix
from mbs_dynamics.algorithms.kernels import compiled_on
from mbs_dynamics.checks import FloatArray
from mbs_dynamics.compiler import Kernel
from mbs_dynamics.integrate.charts import GroupChart, pose_of
from mbs_dynamics.integrate.drive import State
from mbs_dynamics.integrate.floating_base import BASE, Base
from mbs_dynamics.integrate.group_steps import Increments, eliminated
from mbs_dynamics.integrate.groups import SE3
from mbs_dynamics.integrate.joint_forces import joint_torques
from mbs_dynamics.integrate.joint_schemes import (
    Problem,
    applied_force,
    inertial_force,
    solve_mass,
)
from mbs_dynamics.integrate.joint_steps import STEPS, Step
from mbs_dynamics.integrate.runge_kutta import TABLEAUS
from mbs_dynamics.integrate.schemes import (
    Adaptive,
    Arguments,
    Explicit,
    Held,
    Layout,
    Midpoint,
    Scheme,
    Task,
)
from mbs_dynamics.lie import se3
from mbs_dynamics.lie.arrays import Array
from mbs_dynamics.representation.tree import Tree

Shapes = Mapping[str, tuple[int, ...]]

POSE = 16
"""Entries of a pose."""


class FloatingLayout(Layout):
    """Flat arrays of C, q, V, qd; and of the momentum and first moment if momentum is kept."""

    def __init__(self, base: Base, keep_momentum: bool) -> None:
        self.base, self.keep_momentum = base, keep_momentum
        self._ends = [int(k) for k in np.cumsum([POSE, base.m, 6, base.m])]

    def pack(self, *state: FloatArray) -> FloatArray:
        """Return the array of C, V, q, qd."""
        C, V, q, qd = state
        parts = [C.reshape(*C.shape[:-2], POSE), q, V, qd]
        if self.keep_momentum:
            parts += self.base.quantities(*state)[2:]
        return np.concatenate(parts, axis=-1)

    def seen(self, x: FloatArray) -> State:
        """Return C, V, q, qd."""
        a, b, c, d = self._ends
        C = x[..., :a].reshape(*x.shape[:-1], 4, 4)
        return C, x[..., b:c], x[..., a:b], x[..., c:d]


class FloatingMidpointLayout(FloatingLayout):
    """Flat arrays of C, q, V, qd, then Pi and p, and V and v to begin the iteration with."""

    def __init__(self, base: Base) -> None:
        super().__init__(base, False)

    def pack(self, *state: FloatArray) -> FloatArray:
        """Return the array of C, V, q, qd."""
        C, V, q, qd = state
        x, u = self.base.coordinates(V, q, qd)
        p = (mass_matrix(self.base.model, x) @ u[..., None])[..., 0]
        mu = p[..., :6] @ self.base.rates
        Pi = (np.swapaxes(se3.Ad(se3.inverse(C)), -1, -2) @ mu[..., None])[..., 0]
        return np.concatenate([super().pack(*state), Pi, p[..., 6:], V, qd], axis=-1)


def floating_scheme(
    method: str,
    problem: Problem,
    start: State,
    tolerances: tuple[float, float],
    keep_momentum: bool,
) -> Scheme:
    """Return the integrator of one of the methods of :func:`simulate` from C, V, q, qd on."""
    base = Base(problem.model)
    equations = Equations(base, problem, keep_momentum)
    implicit = method == "implicit_midpoint"
    layout = FloatingMidpointLayout(base) if implicit else FloatingLayout(base, keep_momentum)
    task = Task(layout, problem.inputs, problem.h, layout.pack(*start))
    if method in STEPS:
        return Held(task, *equations.step_kernel(method))
    if implicit:
        problem.refuse_stiff()
        return Midpoint(task, equations.midpoint_kernels(), np.s_[..., -(6 + base.m) :])
    rate, arguments = equations.rate_kernel()
    chart = GroupChart(SE3, 6 + 2 * base.m, Increments(), 5, problem.backend)

    def field(x: FloatArray, values: State) -> FloatArray:
        found: FloatArray = rate.call(x, *arguments(values))
        return found

    if method == "runge_kutta":
        return Explicit(task, field, TABLEAUS[4], chart)
    return Adaptive(task, field, tolerances, chart)


class Equations:
    """The kernels of a floating mechanism under all that acts."""

    def __init__(self, base: Base, problem: Problem, keep_momentum: bool) -> None:
        self.base, self.problem, self.keep_momentum = base, problem, keep_momentum
        self.size = POSE + 6 + 2 * base.m

    def step_kernel(self, method: str) -> tuple[Kernel, Arguments]:
        """Return the kernel of a step by one of STEPS, and its arguments."""
        features, keep = self.problem.features, self.keep_momentum

        def equations(
            model: Tree,
            x: Array,
            effort: Array,
            h: Any,
            wrenches: Array | None = None,
            joints: Array | None = None,
        ) -> Array:
            at = self.base.local(model, *self._parts(x))
            tau = self._whole(effort)
            step = Step(
                at.model, features, "body_fixed", effort=tau, wrenches=wrenches, joints=joints
            )
            after = self.base.moved(at, *STEPS[method](step, at.q, at.qd, h[()]))
            return self._kept(model, x, after, h[()]) if keep else _flat(after)

        size = self.size + 9 * keep
        return self._kernel(f"{method}_floating", equations, {"x": (size,)}, key=(features, keep))

    def rate_kernel(self) -> tuple[Kernel, Arguments]:
        """Return the kernel of (V, qd, Vdot, qdd), and its arguments."""
        features, solver = self.problem.features, self.problem.solver

        def equations(
            model: Tree, x: Array, effort: Array, wrenches: Any = None, joints: Any = None
        ) -> Array:
            C, q, V, qd = self._parts(x)
            at = self.base.local(model, C, q, V, qd)
            tau = self._whole(effort)
            if joints is not None:
                tau = tau + joint_torques(joints, features, at.q, at.qd)
            form = "body_fixed"
            qdd = forward_dynamics(
                at.model, at.q, at.qd, tau, wrenches, method=solver, representation=form
            )
            Vd = np.asarray(accelerations(at.model, at.q, at.qd, qdd, representation=form))
            return np.concatenate([V, qd, Vd[BASE], qdd[6:]])

        inputs: Shapes = {"x": (self.size,)}
        key = features, solver
        return self._kernel("floating_rate", equations, inputs, key=key, step=False)

    def midpoint_kernels(self) -> tuple[tuple[Kernel, Arguments], tuple[Kernel, Arguments]]:
        """Return the kernels of the next iterate of V and v, and of the state after the step."""
        n = 6 + self.base.m
        inputs: Shapes = {"x": (self.size + 2 * n,), "v": (n,)}
        return (
            self._kernel(
                "floating_midpoint_rates", partial(self._midpoint, finished=False), inputs
            ),
            self._kernel("floating_midpoint_step", partial(self._midpoint, finished=True), inputs),
        )

    def _kernel(
        self,
        name: str,
        function: Any,
        inputs: Shapes,
        *,
        key: Any = (),
        step: bool = True,
    ) -> tuple[Kernel, Arguments]:
        problem = self.problem
        every = {**inputs, **problem.shapes(step)}
        kernel = compiled_on(
            problem.model, (key, tuple(every)), function, every, name=name, backend=problem.backend
        )
        return kernel, problem.arguments(kernel, step)

    # -- parts of the equations --------------------------------------------------------------------

    def _parts(self, x: Array) -> list[Array]:
        """Return C, q, V, qd."""
        m = self.base.m
        _, q, V, qd, _ = np.split(x, np.cumsum([POSE, m, 6, m]))
        return [pose_of(SE3, x), q, V, qd]

    def _whole(self, effort: Array) -> Array:
        """Return the efforts (6 + m,), those of the base zero."""
        return np.concatenate([np.zeros(6), effort])

    def _kept(self, model: Tree, x: Array, after: tuple[Array, ...], h: Any) -> Array:
        """Return the state after a step with the twist that the momentum demands, D (79)."""
        P, moment = x[-9:-3], x[-3:]
        g, mass = np.asarray(model.gravity), sum(body.inertia.mass for body in model.bodies)
        turned = np.cross(h * moment + (0.5 * h * h) * P[3:], g)
        P_new = P + np.concatenate([turned, (h * mass) * g])
        moment = moment + h * P[3:] + (0.5 * h * h * mass) * g
        C, q, V, qd = after
        at = self.base.local(model, C, q, V, qd)
        M = np.asarray(mass_matrix(at.model, at.q, representation="body_fixed"))
        J = self.base.jacobian
        rates = eliminated(M[:6, :6], J.T @ (se3.Ad(C).T @ P_new) - M[:6, 6:] @ qd)
        return np.concatenate([_flat((C, q, J @ rates, qd)), P_new, moment])

    def _solved(self, at: Any, mu: Array, p: Array) -> Array:
        """Return V and v with the momenta mu, in the frame of the base, and p."""
        J = self.base.jacobian
        rates = solve_mass(at.model, at.q, np.concatenate([J.T @ mu, p]))
        return np.concatenate([J @ rates[:6], rates[6:]])

    def _midpoint(
        self,
        model: Tree,
        x: Array,
        v: Array,
        effort: Array,
        h: Any,
        wrenches: Any = None,
        joints: Any = None,
        *,
        finished: bool,
    ) -> Array:
        """Return the next iterate of V and v; or, if they are final, the array after the step."""
        C, q, V, qd = self._parts(x)
        Pi, p, _ = np.split(x[self.size :], [6, 6 + self.base.m])
        h = h[()]
        half = se3.exp((0.5 * h) * v[:6])
        C_middle = C @ half
        at = self.base.local(model, C_middle, q + (0.5 * h) * v[6:], v[:6], v[6:])
        effort = self._whole(effort)
        force = applied_force(at.model, at.q, at.qd, effort, wrenches, joints)
        W = self.base.rates.T @ force[:6]
        f = (force + inertial_force(at.model, at.q, at.qd))[6:]
        if not finished:
            mu = se3.Ad(C).T @ Pi  # its rounding is the same in each iteration
            return self._solved(at, se3.Ad(half).T @ mu + (0.5 * h) * W, p + (0.5 * h) * f)
        Pi, p = Pi + h * (se3.Ad(se3.inverse(C_middle)).T @ W), p + h * f
        C, q = SE3.product(C, se3.exp(h * v[:6])), q + h * v[6:]
        rates = self._solved(self.base.local(model, C, q, V, qd), se3.Ad(C).T @ Pi, p)
        return np.concatenate([_flat((C, q, rates[:6], rates[6:])), Pi, p, v])


def _flat(state: tuple[Array, ...]) -> Array:
    return np.concatenate([np.ravel(x) for x in state])
