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
"""Simulation of a model in joint coordinates."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from mbs_dynamics import checks
from mbs_dynamics.algorithms import kinetic_energy, momenta, potential_energy
from mbs_dynamics.checks import FloatArray
from mbs_dynamics.errors import ArgumentError, SimulationError, SingularError, UnknownMethodError
from mbs_dynamics.integrate.drive import Drive, Law
from mbs_dynamics.integrate.events import STOP, EventFunction, Watch, interpolated
from mbs_dynamics.integrate.joint_forces import JointForces
from mbs_dynamics.integrate.joint_schemes import (
    Adaptive,
    Compiled,
    Integrator,
    Midpoint,
    Problem,
    RateKernel,
    RungeKutta,
)
from mbs_dynamics.integrate.joint_steps import STEPS
from mbs_dynamics.integrate.motion import Event, Motion
from mbs_dynamics.integrate.progress import Progress
from mbs_dynamics.model.tree import Model

METHODS = (*STEPS, "runge_kutta", "dormand_prince", "implicit_midpoint")
"""The integrators of :func:`simulate`."""

SMALLEST_RTOL = 1e-14
"""Relative tolerances as small as this are rounding."""

CHUNK = 1000
"""Steps between two looks at whether all is well."""


def simulate(
    model: Model,
    q: ArrayLike,
    qd: ArrayLike | None = None,
    *,
    duration: float,
    step: float = 1e-3,
    method: str = "rk4",
    control: ArrayLike | Law | None = None,
    wrenches: ArrayLike | Law | None = None,
    forces: JointForces | None = None,
    events: Mapping[str, EventFunction] | None = None,
    stop: EventFunction | None = None,
    rtol: float = 1e-8,
    atol: float = 1e-8,
    solver: str = "articulated_body",
    progress: bool | None = None,
    backend: str | None = None,
) -> Motion:
    """Return the motion of a model from q, qd (..., n) on, at intervals of ``step`` seconds.

    Methods, with their orders:

    - ``explicit_euler`` (1), ``semi_implicit_euler`` (1), ``rk4`` (4): one kernel a step, motor
      torques held over it, as a digital controller does. Without a control law and events the loop
      is machine code.
    - ``runge_kutta`` (4): control laws act at every instant. So they do in
    - ``dormand_prince`` (5): steps as the tolerances ``rtol`` and ``atol`` demand, states every
      ``step`` by interpolation of order 4.
    - ``implicit_midpoint`` (2): variational; keeps energy within a bound, and the momenta that
      symmetries keep. Neither friction nor stops. Torques are held.

    Euler's schemes and rk4 take friction and stops implicitly, so that they stay stable whatever
    the stiffness; see :mod:`mbs_dynamics.integrate.joint_steps`. In the other two the step must
    resolve them.

    :param q: positions; leading axes are a batch of simulations.
    :param qd: rates, zero if None.
    :param duration: in s; rounded to a number of steps.
    :param control: motor torques: constant (n,), or one value for each step (steps, ..., n), or a
        function of t, q (..., n) and qd that returns them. None for no torques.
    :param wrenches: body-fixed wrenches on the bodies, moment first, (nb, 6), in the same ways.
    :param forces: damping, friction and stops of the joints; none if None.
    :param events: functions of t, q, qd by name, whose changes of sign are recorded as events.
    :param stop: such a function; the simulation ends where its sign changes.
    :param solver: how ``runge_kutta`` and ``dormand_prince`` solve the equations of motion; see
        :func:`mbs_dynamics.forward_dynamics`.
    :param progress: whether to show how far it is on stderr; None for long runs on a terminal.
    :raises ArgumentError: for a wrong shape or value, such as a step that is not positive.
    :raises SimulationError: if the state or a torque becomes infinite or NaN, the mass matrix
        singular, or the tolerances cannot be met. It says when, and its attribute ``motion`` has
        what there is until then.
    """
    start, steps, h = _checked(model, q, qd, duration, step)
    batched = start.ndim > 2
    if method not in METHODS:
        raise UnknownMethodError(method, METHODS)
    watch = Watch(events, stop)
    if watch and batched:
        raise ArgumentError("events and stop are for one simulation, not for a batch")
    effort = Drive("control", control, (model.n,), steps)
    loads = None if wrenches is None else Drive("wrenches", wrenches, (model.nb, 6), steps)
    if forces is not None and not isinstance(forces, JointForces):
        raise ArgumentError(f"forces must be JointForces or None; got {type(forces).__name__}")
    problem = Problem(model, forces, effort, loads, h, backend, solver)
    run = _Run(problem, start, method, watch, Progress(steps * h, progress))
    with np.errstate(over="ignore", invalid="ignore"):  # said by an error of our own
        try:
            run.go(lambda: _integrator(method, problem, start, rtol, atol), steps)
        except SimulationError as error:
            error.motion = run.motion()
            raise
        finally:
            run.progress.close()
        return run.motion()


def _checked(
    model: Model, q: ArrayLike, qd: ArrayLike | None, duration: float, step: float
) -> tuple[FloatArray, int, float]:
    """Return the first state (..., 2, n), the number of steps, and the step."""
    if not isinstance(model, Model):
        raise ArgumentError(f"model must be a Model; got {type(model).__name__}")
    h, total = checks.number("step", step), checks.number("duration", duration)
    if h <= 0.0:
        raise ArgumentError(f"step must be positive; got {h:g} s")
    if not 0.5 * h <= total <= 1e9 * h:
        raise ArgumentError(
            f"duration must be at least a step of {h:g} s and at most 1e9; got {total:g} s"
        )
    positions, rates = np.asarray(q), np.zeros(model.n) if qd is None else np.asarray(qd)
    for name, array in (("q", positions), ("qd", rates)):
        checks.numbers(name, array, array.shape)
        if array.shape[-1:] != (model.n,):
            raise ArgumentError(
                f"{name} has shape {array.shape}; valid is {(model.n,)}, or (..., {model.n}) for "
                "a batch"
            )
    try:
        positions, rates = np.broadcast_arrays(positions, rates)
    except ValueError as error:
        raise ArgumentError(f"q {positions.shape} and qd {rates.shape}: {error}") from error
    start = np.ascontiguousarray(np.stack([positions, rates], axis=-2), dtype=float)
    return start, max(round(total / h), 1), h


def _integrator(
    method: str, problem: Problem, start: FloatArray, rtol: float, atol: float
) -> Integrator:
    if method in STEPS:
        return Compiled(problem, start, method)
    if method == "runge_kutta":
        return RungeKutta(problem, start)
    if method == "implicit_midpoint":
        return Midpoint(problem, start)
    for name, value, least in (("rtol", rtol, SMALLEST_RTOL), ("atol", atol, 0.0)):
        if checks.number(name, value) <= least:
            raise ArgumentError(f"{name} must be more than {least:g}; got {value:g}")
    return Adaptive(problem, start, float(rtol), float(atol))


class _Run:
    """A simulation as far as it is."""

    def __init__(
        self, problem: Problem, start: FloatArray, method: str, watch: Watch, progress: Progress
    ) -> None:
        self.problem, self.method, self.watch, self.progress = problem, method, watch, progress
        self.states, self.efforts = (
            [start[None]],
            [np.empty((0, *start.shape[:-2], start.shape[-1]))],
        )
        self.steps, self.events = 0, list[Event]()
        self.end: float | None = None

    def go(self, made: Callable[[], Integrator], steps: int) -> None:
        """Make the integrator and let it advance by as many steps."""
        h = self.problem.h
        try:
            integrator = made()
            self.watch.begin(0.0, self.states[0][0])
            while self.steps < steps and self.end is None:
                count = 1 if self.watch else min(CHUNK, steps - self.steps)
                self._append(*integrator.advance(count))
                self.progress.update(self.steps * h)
        except SingularError as error:
            found = getattr(error, "trajectory", None)
            if found is not None and len(found) > 1:
                self._append(np.array(found[1:]), self._efforts_of(len(found) - 1))
            t = self.steps * h
            raise SimulationError(f"at t = {t:.9g} s: {error}", time=t) from error

    def _efforts_of(self, count: int) -> FloatArray:
        t, state = self.steps * self.problem.h, self.states[-1][-1]
        effort = self.problem.effort
        rows = effort.rows_from(self.steps, count) if effort.law is None else None
        return effort.at(self.steps, t, state)[None] if rows is None else rows

    def _append(self, states: FloatArray, efforts: FloatArray) -> None:
        """Keep states as far as they are finite, and look for events."""
        finite = np.isfinite(states).all(axis=tuple(range(1, states.ndim)))
        good = len(states) if finite.all() else int(np.argmin(finite))
        shape = (len(states), *states.shape[1:-2], states.shape[-1])
        batch = (1,) * (len(shape) - efforts.ndim)  # one effort for all
        efforts = efforts.reshape(len(efforts), *batch, *efforts.shape[1:])
        before = self.states[-1][-1]
        if good:
            self.states.append(states[:good])
            self.efforts.append(np.broadcast_to(efforts, shape)[:good])
        h = self.problem.h
        self.steps += good
        if good < len(states):
            t = self.steps * h
            raise SimulationError(
                f"{self.method}: the state is not finite after the step of {h:g} s from "
                f"t = {t:.9g} s; take smaller steps, or see what accelerates",
                time=t,
            )
        if self.watch:
            self._look(before, states[0])

    def _look(self, before: FloatArray, after: FloatArray) -> None:
        t, h = (self.steps - 1) * self.problem.h, self.problem.h
        found = self.watch.between(t, before, h, after)
        self.events += found
        if found and found[-1].name == STOP:
            self.end = found[-1].t
            share = (self.end - t) / h
            self.states[-1] = np.array(interpolated(before, after, h, share))[None]

    def motion(self) -> Motion:
        """Return all there is."""
        problem = self.problem
        states = np.concatenate(self.states)
        t: FloatArray = problem.h * np.arange(len(states), dtype=np.float64)
        if self.end is not None:
            t[-1] = self.end
        q, qd = states[..., 0, :], states[..., 1, :]
        tau = np.concatenate([*self.efforts, self._last_effort(states[-1], float(t[-1]))])
        loads = self._loads(t, states)
        return Motion(
            t=t,
            q=q,
            qd=qd,
            qdd=_accelerations(problem, states, tau, loads),
            tau=tau,
            kinetic=kinetic_energy(problem.model, q, qd),
            potential=np.asarray(potential_energy(problem.model, q)),
            momentum=_momentum(problem.model, q, qd),
            joint_names=problem.model.joint_names,
            events=tuple(self.events),
            method=self.method,
        )

    def _last_effort(self, state: FloatArray, t: float) -> FloatArray:
        try:
            effort = self.problem.effort.at(self.steps, t, state)
        except SimulationError:  # the law of an arm that is lost may return anything
            effort = np.full(state.shape[-1], np.nan)
        return np.broadcast_to(effort, (1, *state.shape[:-2], state.shape[-1]))

    def _loads(self, t: FloatArray, states: FloatArray) -> FloatArray | None:
        loads = self.problem.wrenches
        if loads is None:
            return None
        acted = [
            loads.at(k, float(now), x) for k, (now, x) in enumerate(zip(t, states, strict=True))
        ]
        batch = states.shape[1:-2]
        shaped = np.array([np.broadcast_to(x, (*batch, *x.shape[-2:])) for x in acted])
        return shaped


def _accelerations(
    problem: Problem, states: FloatArray, tau: FloatArray, loads: FloatArray | None
) -> FloatArray:
    """Return qdd at all states; NaN at those where the mass matrix is singular."""
    try:
        rate = RateKernel(problem)
    except SingularError:  # whatever the state
        return np.full(tau.shape, np.nan)
    try:
        return rate(states, tau, loads)[..., 1, :]
    except SingularError:
        shape = states.shape
        rows: Any = states.reshape(-1, *shape[-2:]), tau.reshape(-1, shape[-1])
        flat = None if loads is None else loads.reshape(-1, *loads.shape[-2:])
        found = np.full((len(rows[0]), shape[-1]), np.nan)
        for k, (state, effort) in enumerate(zip(*rows, strict=True)):
            try:
                found[k] = rate(state, effort, None if flat is None else flat[k])[1]
            except SingularError:
                continue
        return found.reshape(*shape[:-2], shape[-1])


def _momentum(model: Model, q: FloatArray, qd: FloatArray) -> FloatArray:
    found: FloatArray = momenta(model, q, qd, representation="spatial").sum(axis=-2)
    return found
