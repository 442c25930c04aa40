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
"""The integrators in joint coordinates, behind one interface: they advance a state to a time.

The state is (q, qd), (..., 2, n). Every integrator has ``advance(steps)``, which returns the states
after that many further steps of ``h``, and the efforts that acted.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, NamedTuple, Protocol

import numpy as np

from mbs_dynamics.algorithms import (
    algorithm_of,
    coriolis_matrix,
    forward_dynamics,
    gravity_torques,
    mass_matrix,
)
from mbs_dynamics.algorithms.mass_matrix import factorize, solve
from mbs_dynamics.algorithms.newton_euler import Loads, newton_euler
from mbs_dynamics.checks import FloatArray
from mbs_dynamics.errors import ArgumentError, SimulationError, SingularError
from mbs_dynamics.integrate.drive import Drive
from mbs_dynamics.integrate.joint_forces import Features, JointForces, joint_torques
from mbs_dynamics.integrate.runge_kutta import TABLEAUS, DormandPrince, runge_kutta_step
from mbs_dynamics.integrate.stepper import Stepper
from mbs_dynamics.integrate.traced import model_inputs, model_kernel
from mbs_dynamics.lie.arrays import Array
from mbs_dynamics.model.tree import Model

_forward_dynamics = algorithm_of(forward_dynamics).equations
_mass_matrix = algorithm_of(mass_matrix).equations
_gravity_torques = algorithm_of(gravity_torques).equations
_coriolis_matrix = algorithm_of(coriolis_matrix).equations


class Problem(NamedTuple):
    """What is integrated."""

    model: Model
    forces: JointForces | None
    effort: Drive
    wrenches: Drive | None
    h: float
    backend: str | None
    solver: str = "articulated_body"
    """Method of :func:`mbs_dynamics.forward_dynamics`, where the whole step is no kernel."""


class Integrator(Protocol):
    """Advances a state."""

    def advance(self, steps: int) -> tuple[FloatArray, FloatArray]:
        """Return the next states (steps, ..., 2, n) and the efforts (steps or 1, ..., n)."""


class RateKernel:
    """The rate (qd, qdd) of the state under all that acts, (..., 2, n), as one kernel."""

    def __init__(self, problem: Problem) -> None:
        model, forces = problem.model, problem.forces
        features = Features() if forces is None else forces.features
        n = model.n
        inputs: dict[str, tuple[int, ...]] = {"state": (2, n), "effort": (n,)}
        if problem.wrenches is not None:
            inputs["wrenches"] = (model.nb, 6)
        if any(features):
            inputs["joints"] = (7, n)

        def equations(
            model: Model, state: Array, effort: Array, wrenches: Any = None, joints: Any = None
        ) -> Array:
            q, qd = state
            tau = effort if joints is None else effort + joint_torques(joints, features, q, qd)
            qdd = _forward_dynamics(
                model, q, qd, tau, wrenches, method=problem.solver, representation="body_fixed"
            )
            return np.array([qd, qdd])

        key = features, problem.wrenches is None, problem.solver
        self.kernel = model_kernel(
            model, key, equations, inputs, name="state_rate", backend=problem.backend
        )
        joints = () if forces is None or not any(features) else (forces.table,)
        self.constants = (*joints, *model_inputs(model, self.kernel))

    def __call__(
        self, state: FloatArray, effort: FloatArray, wrenches: FloatArray | None = None
    ) -> FloatArray:
        """Return the rate of a state under efforts (..., n) and wrenches (..., nb, 6)."""
        loads = () if wrenches is None else (wrenches,)
        found: FloatArray = self.kernel.call(state, effort, *loads, *self.constants)
        return found


class _OneByOne(Protocol):
    problem: Problem
    state: FloatArray
    k: int

    def once(self, t: float, effort: FloatArray) -> FloatArray:
        """Return the state after the step that begins at t."""


def _in_turn(scheme: _OneByOne, steps: int) -> tuple[FloatArray, FloatArray]:
    """Return the next states and efforts; fewer where a step fails, so that those are not lost.

    The step that failed is then the first one of the next call, and its error is raised.
    """
    states, acted = [], []
    for i in range(steps):
        t = scheme.k * scheme.problem.h
        try:
            effort = scheme.problem.effort.at(scheme.k, t, scheme.state)
            state = scheme.once(t, effort)
        except (SimulationError, SingularError):
            if i == 0:
                raise
            break
        states.append(state)
        acted.append(effort)
        scheme.state, scheme.k = state, scheme.k + 1
        if not np.isfinite(state).all():
            break
    return np.array(states), np.array(acted)


class Compiled:
    """Steps that are one kernel each, motors held; a loop in machine code where no law decides."""

    def __init__(self, problem: Problem, state: FloatArray, method: str) -> None:
        self.problem, self.state, self.k = problem, state, 0
        self.stepper = Stepper(
            problem.model,
            method=method,
            forces=problem.forces,
            wrenches=problem.wrenches is not None,
            backend=problem.backend,
        )

    def advance(self, steps: int) -> tuple[FloatArray, FloatArray]:
        """Return the next states and the efforts."""
        effort, wrenches, h = self.problem.effort, self.problem.wrenches, self.problem.h
        k = self.k
        if effort.law is None and (wrenches is None or wrenches.law is None):
            torques = effort.rows_from(k, steps)
            loads = None if wrenches is None else wrenches.rows_from(k, steps)
            states = self.stepper.run(self.state, torques, h, steps, loads)
            self.state, self.k = states[-1], k + steps
            return states[1:], torques
        return _in_turn(self, steps)

    def once(self, t: float, effort: FloatArray) -> FloatArray:
        """Return the state after the step that begins at t."""
        wrenches = self.problem.wrenches
        load = None if wrenches is None else wrenches.at(self.k, t, self.state)
        return self.stepper.step(self.state, effort, self.problem.h, load)


class Continuous(ABC):
    """Base of the schemes for which control laws act at every instant, not once a step."""

    def __init__(self, problem: Problem, state: FloatArray) -> None:
        self.problem, self.state, self.k = problem, state, 0
        self.kernel = RateKernel(problem)

    def rate(self, t: float, state: FloatArray) -> FloatArray:
        """Return the rate of the state."""
        k = min(int(t / self.problem.h * (1.0 + 1e-12)), max(self.k, 0))
        wrenches = self.problem.wrenches
        loads = None if wrenches is None else wrenches.at(k, t, state)
        return self.kernel(state, self.problem.effort.at(k, t, state), loads)

    def advance(self, steps: int) -> tuple[FloatArray, FloatArray]:
        """Return the next states and the efforts."""
        return _in_turn(self, steps)

    @abstractmethod
    def once(self, t: float, effort: FloatArray) -> FloatArray:
        """Return the state after the step that begins at t."""


class RungeKutta(Continuous):
    """Explicit Runge-Kutta of order 1 to 4, with control laws evaluated at every stage."""

    def __init__(self, problem: Problem, state: FloatArray, order: int = 4) -> None:
        super().__init__(problem, state)
        self.tableau = TABLEAUS[order]

    def once(self, t: float, effort: FloatArray) -> FloatArray:
        """Return the state after the step that begins at t."""
        return runge_kutta_step(self.tableau, self.rate, t, self.state, self.problem.h)


class Adaptive(Continuous):
    """Dormand and Prince's pair; the steps of ``h`` are read off its dense output.

    Torques given row by row would make it stop at every row: they need a law, or a constant.
    """

    def __init__(self, problem: Problem, state: FloatArray, rtol: float, atol: float) -> None:
        super().__init__(problem, state)
        for drive in (problem.effort, problem.wrenches):
            if drive is not None and drive.rows is not None and len(drive.rows) > 1:
                raise ArgumentError(
                    f"dormand_prince takes {drive.name} as a constant or as a function of t, q, "
                    "qd, not row by row"
                )
        self.pair = DormandPrince(self.rate, 0.0, state, rtol=rtol, atol=atol)

    def once(self, t: float, effort: FloatArray) -> FloatArray:
        """Return the state after the step that begins at t."""
        return self.pair.at((self.k + 1) * self.problem.h)


class Midpoint:
    """The variational midpoint scheme: symplectic, of order 2, implicit.

    The discrete Lagrangian h L((q0 + q1) / 2, (q1 - q0) / h) gives, with v = (q1 - q0) / h, the
    point between qm = q0 + h v / 2, and momenta p,

        M(qm) v = p0 + h f / 2,    p1 = p0 + h f,    f = C(qm, v)^T v - g(qm) + tau,

    which is the implicit midpoint rule for Hamilton's equations. It keeps momenta that symmetries
    keep, and the energy within a bound over any time. v is found by iteration.
    """

    TOLERANCE = 1e-13
    """Change of v relative to its size at which the iteration ends."""

    ITERATIONS = 60

    LARGEST = 1e100
    """Rates beyond this are those of an iteration that runs away."""

    def __init__(self, problem: Problem, state: FloatArray) -> None:
        forces = problem.forces
        if forces is not None and (forces.features.friction or forces.features.stops):
            raise ArgumentError(
                "implicit_midpoint takes damping, but neither friction nor joint stops; take "
                "semi_implicit_euler or rk4"
            )
        self.problem, self.state, self.k = problem, state, 0
        self.damped = forces is not None and forces.features.damping
        self._implicit, self._explicit, self._momentum, self._rates = self._kernels()
        self.q = np.ascontiguousarray(state[..., 0, :])
        self.v = np.ascontiguousarray(state[..., 1, :])
        self.p: FloatArray = self._momentum[0].call(self.q, self.v, *self._momentum[1])

    def advance(self, steps: int) -> tuple[FloatArray, FloatArray]:
        """Return the next states and the efforts."""
        return _in_turn(self, steps)

    def once(self, t: float, effort: FloatArray) -> FloatArray:
        """Return the state after the step that begins at t."""
        self._step(t, effort)
        state = np.empty(self.state.shape)
        state[..., 0, :] = self.q
        state[..., 1, :] = self._rates[0].call(self.q, self.p, *self._rates[1])
        return state

    def _step(self, t: float, effort: FloatArray) -> None:
        h = np.array(self.problem.h)
        load = self.problem.wrenches
        loads = () if load is None else (load.at(self.k, t, self.state),)
        given = (effort, h, *loads, *self._implicit[1])
        v, change, size = self.v, np.inf, 0.0
        for _ in range(self.ITERATIONS):
            before, v = v, self._implicit[0].call(self.q, self.p, v, *given)
            change, size = float(np.abs(v - before).max()), float(np.abs(v).max())
            if not change > self.TOLERANCE * (1.0 + size) or size > self.LARGEST:
                break
        if not change <= self.TOLERANCE * (1.0 + size):
            raise SimulationError(
                f"the midpoint scheme does not converge at t = {t:.9g} s with steps of {h:g} s; "
                "take smaller ones",
                time=t,
            )
        given = (effort, h, *loads, *self._explicit[1])
        self.q, self.p = self._explicit[0].call(self.q, self.p, v, *given)
        self.v = v

    def _kernels(self) -> list[tuple[Any, tuple[FloatArray, ...]]]:
        problem, model = self.problem, self.problem.model
        n = model.n
        state = {"q": (n,), "p": (n,), "v": (n,), "effort": (n,), "h": ()}
        loads = {} if problem.wrenches is None else {"wrenches": (model.nb, 6)}
        joints = {"joints": (7, n)} if self.damped else {}
        table = (problem.forces.table,) if self.damped and problem.forces is not None else ()
        made = []
        for name, function, inputs, constants in (
            ("midpoint_rates", _midpoint_rates, {**state, **loads, **joints}, table),
            ("midpoint_step", _midpoint_step, {**state, **loads, **joints}, table),
            ("joint_momenta", _joint_momenta, {"q": (n,), "v": (n,)}, ()),
            ("rates_of_momenta", _rates_of_momenta, {"q": (n,), "p": (n,)}, ()),
        ):
            key = tuple(inputs)
            kernel = model_kernel(model, key, function, inputs, name=name, backend=problem.backend)
            made.append((kernel, (*constants, *model_inputs(model, kernel))))
        return made


def _midpoint_force(
    model: Model, qm: Array, v: Array, effort: Array, wrenches: Any, joints: Any
) -> Array:
    """Return f (n,): the rate of the momenta at the midpoint."""
    gravity = _gravity_torques(model, qm, representation="body_fixed")
    f = effort - gravity + np.asarray(_coriolis_matrix(model, qm, v)).T @ v
    if wrenches is not None:
        rest = np.zeros(model.n)
        loaded = newton_euler(model, qm, rest, rest, "body_fixed", Loads(wrenches))
        f = f - loaded + gravity
    if joints is not None:
        f = f - joints[0] * v
    return np.asarray(f)


def _midpoint_rates(
    model: Model,
    q: Array,
    p: Array,
    v: Array,
    effort: Array,
    h: Any,
    wrenches: Any = None,
    joints: Any = None,
) -> Array:
    """Return the next iterate of v."""
    qm = q + (0.5 * h[()]) * v
    f = _midpoint_force(model, qm, v, effort, wrenches, joints)
    M = _mass_matrix(model, qm, representation="body_fixed")
    return solve(*factorize(model, M), p + (0.5 * h[()]) * f)


def _midpoint_step(
    model: Model,
    q: Array,
    p: Array,
    v: Array,
    effort: Array,
    h: Any,
    wrenches: Any = None,
    joints: Any = None,
) -> dict[str, Array]:
    """Return q and p at the end of the step with the rates v."""
    f = _midpoint_force(model, q + (0.5 * h[()]) * v, v, effort, wrenches, joints)
    return {"q": q + h[()] * v, "p": p + h[()] * f}


def _joint_momenta(model: Model, q: Array, v: Array) -> Array:
    return np.asarray(_mass_matrix(model, q, representation="body_fixed")) @ v


def _rates_of_momenta(model: Model, q: Array, p: Array) -> Array:
    return solve(*factorize(model, _mass_matrix(model, q, representation="body_fixed")), p)
