# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The integrators in joint coordinates; a state is (q, qd), (..., 2, n)."""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import numpy as np

from mbs_dynamics.algorithms import (
    coriolis_matrix,
    forward_dynamics,
    gravity_torques,
    mass_matrix,
)
from mbs_dynamics.algorithms.kernels import compiled_on, model_inputs
from mbs_dynamics.algorithms.mass_matrix import factorize, solve
from mbs_dynamics.algorithms.newton_euler import Loads, newton_euler
from mbs_dynamics.checks import FloatArray
from mbs_dynamics.compiler import Kernel
from mbs_dynamics.errors import ArgumentError
from mbs_dynamics.integrate.drive import Inputs, State
from mbs_dynamics.integrate.joint_forces import Features, JointForces, joint_torques
from mbs_dynamics.integrate.joint_steps import STEPS
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
from mbs_dynamics.integrate.stepper import Stepper
from mbs_dynamics.lie.arrays import Array
from mbs_dynamics.model.model import Model
from mbs_dynamics.representation.tree import Tree

METHODS = (*STEPS, "runge_kutta", "dormand_prince", "implicit_midpoint")
"""The integrators of :func:`simulate` and :func:`simulate_floating`."""


class Problem(NamedTuple):
    """A model, and what acts on it."""

    model: Model
    forces: JointForces | None
    inputs: Inputs
    """Motor torques, and wrenches on the bodies if there are any."""
    h: float
    backend: str | None
    solver: str = "articulated_body"
    """Method of :func:`mbs_dynamics.forward_dynamics`, where the whole step is no kernel."""

    @property
    def features(self) -> Features:
        """Which forces there are in the joints."""
        return Features() if self.forces is None else self.forces.features

    @property
    def wrenches(self) -> bool:
        """Whether there are wrenches."""
        return len(self.inputs.drives) > 1

    def shapes(self, step: bool = True) -> dict[str, tuple[int, ...]]:
        """Return the inputs of kernels after the state: efforts, h, wrenches, joints."""
        n, nb = self.model.n, self.model.nb
        found: dict[str, tuple[int, ...]] = {"effort": self.inputs.drives[0].shape}
        if step:
            found["h"] = ()
        if self.wrenches:
            found["wrenches"] = (nb, 6)
        if any(self.features):
            found["joints"] = (7, n)
        return found

    def arguments(self, kernel: Kernel, step: bool = True) -> Arguments:
        """Return what gives a kernel with the inputs of :meth:`shapes` all after its state."""
        table = () if self.forces is None or not any(self.features) else (self.forces.table,)
        constants = (*table, *model_inputs(self.model, kernel))
        h = (np.array(self.h),) if step else ()
        return lambda values: (values[0], *h, *values[1:], *constants)

    def refuse_stiff(self) -> None:
        """Raise ArgumentError for forces that the midpoint scheme does not take."""
        if self.features.friction or self.features.stops:
            raise ArgumentError(
                "implicit_midpoint takes damping, but neither friction nor joint stops; take "
                "semi_implicit_euler or rk4"
            )


class RateKernel:
    """The rate (qd, qdd) of the state under all that acts, (..., 2, n), as one kernel."""

    def __init__(self, problem: Problem) -> None:
        features = problem.features

        def equations(
            model: Tree, state: Array, effort: Array, wrenches: Any = None, joints: Any = None
        ) -> Array:
            q, qd = state
            tau = effort if joints is None else effort + joint_torques(joints, features, q, qd)
            qdd = forward_dynamics(
                model, q, qd, tau, wrenches, method=problem.solver, representation="body_fixed"
            )
            return np.array([qd, qdd])

        model = problem.model
        inputs = {"state": (2, model.n), **problem.shapes(step=False)}
        key = features, not problem.wrenches, problem.solver
        self.kernel = compiled_on(
            model, key, equations, inputs, name="state_rate", backend=problem.backend
        )
        self.arguments = problem.arguments(self.kernel, step=False)

    def __call__(self, state: FloatArray, values: State) -> FloatArray:
        """Return the rate of a state under efforts (..., n) and wrenches (..., nb, 6)."""
        found: FloatArray = self.kernel.call(state, *self.arguments(values))
        return found


class JointLayout(Layout):
    """Arrays (..., 2, n) of q and qd."""

    axes = 2

    def pack(self, *state: FloatArray) -> FloatArray:
        """Return the array of q and qd."""
        return np.stack(state, axis=-2)

    def seen(self, x: FloatArray) -> State:
        """Return q and qd."""
        return x[..., 0, :], x[..., 1, :]


class MidpointLayout(JointLayout):
    """Arrays (..., 4, n) of q, qd, the momenta p, and rates to begin the iteration with."""

    def __init__(self, model: Model) -> None:
        self.model = model

    def pack(self, *state: FloatArray) -> FloatArray:
        """Return the array of q and qd."""
        q, qd = np.broadcast_arrays(*state)
        p = (mass_matrix(self.model, q) @ qd[..., None])[..., 0]
        return np.stack([q, qd, p, qd], axis=-2)


def joint_scheme(
    method: str, problem: Problem, start: State, tolerances: tuple[float, float]
) -> Scheme:
    """Return the integrator of one of :data:`METHODS` from q and qd on."""
    layout = MidpointLayout(problem.model) if method == "implicit_midpoint" else JointLayout()
    task = Task(layout, problem.inputs, problem.h, layout.pack(*start))
    if method in STEPS:
        stepper = Stepper(
            problem.model,
            method=method,
            forces=problem.forces,
            wrenches=problem.wrenches,
            backend=problem.backend,
        )
        return Held(task, stepper.kernel, problem.arguments(stepper.kernel))
    if method == "implicit_midpoint":
        problem.refuse_stiff()
        kernels = (_midpoint_kernel(problem, False), _midpoint_kernel(problem, True))
        return Midpoint(task, kernels, np.s_[..., 3, :])
    rate = RateKernel(problem)
    if method == "runge_kutta":
        return Explicit(task, rate, TABLEAUS[4])
    return Adaptive(task, rate, tolerances)


# -- the variational midpoint scheme ---------------------------------------------------------------
#
# It is symplectic, of order 2, implicit. The discrete Lagrangian h L((q0 + q1) / 2, (q1 - q0) / h)
# gives, with v = (q1 - q0) / h, the point between qm = q0 + h v / 2, and momenta p,
#
#     M(qm) v = p0 + h f / 2,    p1 = p0 + h f,    f = C(qm, v)^T v - g(qm) + tau,
#
# which is the implicit midpoint rule for Hamilton's equations. It keeps momenta that symmetries
# keep, and the energy within a bound over any time. v is found by iteration.


def _midpoint_kernel(problem: Problem, finished: bool) -> tuple[Kernel, Arguments]:
    """Return the kernel of the next iterate of v, or of the state after the step."""
    model = problem.model
    inputs = {"x": (4, model.n), "v": (model.n,), **problem.shapes()}
    name = "midpoint_step" if finished else "midpoint_rates"
    equations = partial(_midpoint, finished=finished)
    key = tuple(inputs)
    kernel = compiled_on(model, key, equations, inputs, name=name, backend=problem.backend)
    return kernel, problem.arguments(kernel)


def applied_force(
    model: Tree, q: Array, v: Array, effort: Array, wrenches: Any, joints: Any
) -> Array:
    """Return the generalized force (n,) of motors, gravity, wrenches and damping."""
    gravity = gravity_torques(model, q, representation="body_fixed")
    f = effort - gravity
    if wrenches is not None:
        rest = np.zeros(model.n)
        loaded = newton_euler(model, q, rest, rest, "body_fixed", Loads(wrenches))
        f = f - loaded + gravity
    if joints is not None:
        f = f - joints[0] * v
    return np.asarray(f)


def inertial_force(model: Tree, q: Array, v: Array) -> Array:
    """Return C^T v (n,): with what is applied, the rate of the momenta M v."""
    return np.asarray(coriolis_matrix(model, q, v)).T @ v


def _midpoint(
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
    """Return the next iterate of v; or, if v is final, q, qd, p and v at the end of the step."""
    q, p, h = x[0], x[2], h[()]
    qm = q + (0.5 * h) * v
    f = inertial_force(model, qm, v) + applied_force(model, qm, v, effort, wrenches, joints)
    if not finished:
        return solve_mass(model, qm, p + (0.5 * h) * f)
    q, p = q + h * v, p + h * f
    return np.array([q, solve_mass(model, q, p), p, v])


def solve_mass(model: Tree, q: Array, p: Array) -> Array:
    """Return M(q)^-1 p."""
    return solve(*factorize(model, mass_matrix(model, q, representation="body_fixed")), p)
