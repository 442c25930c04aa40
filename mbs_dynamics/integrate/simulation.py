# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Simulation of a model in joint coordinates."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from mbs_dynamics import checks
from mbs_dynamics.algorithms import kinetic_energy, momenta, potential_energy
from mbs_dynamics.checks import FloatArray
from mbs_dynamics.errors import ArgumentError, SingularError, UnknownMethodError
from mbs_dynamics.integrate.driver import Course, Record, Run
from mbs_dynamics.integrate.events import EventFunction, between_joints
from mbs_dynamics.integrate.inputs import Drive, Inputs, Law, State
from mbs_dynamics.integrate.joint_forces import JointForces
from mbs_dynamics.integrate.joints import METHODS, Problem, RateKernel, joint_scheme
from mbs_dynamics.integrate.results import Event, Motion
from mbs_dynamics.integrate.schemes import tolerances
from mbs_dynamics.model.model import Model


def simulate(
    model: Model,
    q: ArrayLike,
    qd: ArrayLike | None = None,
    *,
    duration: float,
    step: float = 1e-3,
    every: int = 1,
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
    the stiffness; see :mod:`mbs_dynamics.integrate.joints`. In the other two the step must
    resolve them.

    :param q: positions; leading axes are a batch of simulations.
    :param qd: rates, zero if None.
    :param duration: in s; rounded to a number of steps.
    :param every: keep every so manieth state.
    :param control: motor torques: constant (n,), or one value for each step (steps, ..., n), or a
        function of t, q (..., n) and qd that returns them. None for no torques.
    :param wrenches: body-fixed wrenches on the bodies, moment first, (nb, 6), in the same ways.
    :param forces: damping, friction and stops of the joints; none if None.
    :param events: functions of t, q (n,) and qd of one simulation, by name, whose changes of sign
        are recorded as events, of each simulation of a batch for itself.
    :param stop: such a function; the simulation ends where its sign changes. In a batch the
        simulation then rests in the state it had, and the batch ends when all have stopped.
    :param solver: how ``runge_kutta`` and ``dormand_prince`` solve the equations of motion; see
        :func:`mbs_dynamics.forward_dynamics`.
    :param progress: whether to show how far it is on stderr; None for long runs on a terminal.
    :raises ArgumentError: for a wrong shape or value, such as a step that is not positive.
    :raises SimulationError: if the state or a torque becomes infinite or NaN, the mass matrix
        singular, or the tolerances cannot be met. It says when, and its attribute ``motion`` has
        what there is until then.
    """
    if not isinstance(model, Model):
        raise ArgumentError(f"model must be a Model; got {type(model).__name__}")
    course = Course.of(duration, step, every, events, stop, progress)
    start = batched(q=(q, (model.n,)), qd=(np.zeros(model.n) if qd is None else qd, (model.n,)))
    if method not in METHODS:
        raise UnknownMethodError(method, METHODS)
    check_forces(forces)
    accuracy = tolerances(rtol, atol)
    inputs = [Drive("control", control, (model.n,), course.steps)]
    if wrenches is not None:
        inputs.append(Drive("wrenches", wrenches, (model.nb, 6), course.steps))
    problem = Problem(model, forces, Inputs(tuple(inputs)), course.h, backend, solver)
    run = Run(course, problem.inputs, method, start, start[0].shape[:-1], between_joints)
    return run.go(
        lambda: joint_scheme(method, problem, start, accuracy),
        lambda record: _motion(problem, record, method),
    )


def batched(**given: tuple[ArrayLike, tuple[int, ...]]) -> State:
    """Return arrays of these shapes, with the axes of one batch; or raise ArgumentError."""
    arrays, batches = [], []
    for name, (value, shape) in given.items():
        array = checks.numbers(name, value, np.shape(value))
        lead = array.ndim - len(shape)
        if lead < 0 or array.shape[lead:] != shape:
            valid = ", ".join(map(str, shape))
            raise ArgumentError(
                f"{name} has shape {array.shape}; valid is {shape}, or (..., {valid}) for a batch"
            )
        arrays.append(array)
        batches.append(array.shape[:lead])
    try:
        batch = np.broadcast_shapes(*batches)
    except ValueError as error:
        said = " and ".join(f"{name} {x.shape}" for name, x in zip(given, arrays, strict=True))
        raise ArgumentError(f"{said}: {error}") from error
    return tuple(
        np.ascontiguousarray(np.broadcast_to(x, (*batch, *shape)))
        for x, (_, shape) in zip(arrays, given.values(), strict=True)
    )


def check_forces(forces: JointForces | None) -> None:
    """Raise ArgumentError if these are none."""
    if forces is not None and not isinstance(forces, JointForces):
        raise ArgumentError(f"forces must be JointForces or None; got {type(forces).__name__}")


def _motion(problem: Problem, record: Record, method: str) -> Motion:
    model, (q, qd), tau = problem.model, record.state, record.acted[0]
    return Motion(
        t=record.t,
        q=q,
        qd=qd,
        qdd=_accelerations(problem, record),
        tau=tau,
        kinetic=kinetic_energy(model, q, qd),
        potential=np.asarray(potential_energy(model, q)),
        momentum=momenta(model, q, qd, representation="spatial").sum(axis=-2),
        joint_names=model.joint_names,
        events=tuple(
            Event(x.name, x.t, x.state[0], x.state[1], member=x.member) for x in record.events
        ),
        method=method,
    )


def _accelerations(problem: Problem, record: Record) -> FloatArray:
    """Return qdd at all states; NaN at those where the mass matrix is singular."""
    states = np.stack(record.state, axis=-2)
    n = states.shape[-1]
    try:
        rate = RateKernel(problem)
    except SingularError:  # whatever the state
        return np.full(record.state[0].shape, np.nan)
    try:
        return rate(states, record.acted)[..., 1, :]
    except SingularError:
        flat: Any = [states.reshape(-1, 2, n)]
        flat += [
            x.reshape(-1, *drive.shape)
            for x, drive in zip(record.acted, problem.inputs.drives, strict=True)
        ]
        found = np.full((len(flat[0]), n), np.nan)
        for k, (state, *values) in enumerate(zip(*flat, strict=True)):
            try:
                found[k] = rate(state, tuple(values))[1]
            except SingularError:
                continue
        return found.reshape(record.state[0].shape)
