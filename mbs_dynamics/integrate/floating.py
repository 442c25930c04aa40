# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Simulation of mechanisms on a floating base, without the singularities of three angles."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike

from mbs_dynamics.errors import ArgumentError, UnknownMethodError
from mbs_dynamics.integrate.body_motion import check_poses
from mbs_dynamics.integrate.drive import Drive, Inputs, Law, State
from mbs_dynamics.integrate.events import Between, EventFunction, between_joints, between_poses
from mbs_dynamics.integrate.floating_base import Base
from mbs_dynamics.integrate.floating_schemes import floating_scheme
from mbs_dynamics.integrate.groups import SE3
from mbs_dynamics.integrate.joint_forces import JointForces
from mbs_dynamics.integrate.joint_schemes import METHODS, Problem
from mbs_dynamics.integrate.joint_steps import STEPS
from mbs_dynamics.integrate.motion import Event, FloatingMotion
from mbs_dynamics.integrate.run import Course, Record, Run
from mbs_dynamics.integrate.schemes import tolerances
from mbs_dynamics.integrate.simulation import batched, check_forces
from mbs_dynamics.model.model import Model

SEEN = "C, V, q, qd"
"""What laws see after t."""


def simulate_floating(
    model: Model,
    C: ArrayLike,
    V: ArrayLike,
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
    keep_momentum: bool = False,
    rtol: float = 1e-8,
    atol: float = 1e-8,
    solver: str = "articulated_body",
    progress: bool | None = None,
    backend: str | None = None,
) -> FloatingMotion:
    """Return the motion of a mechanism whose base is a free joint, whatever way the base turns.

    The methods are those of :func:`simulate`, and so is what they do with laws, friction and stops;
    see :mod:`mbs_dynamics.integrate.floating_schemes` for how they move the base.

    :param model: its first six coordinates are a free joint on the ground, and nothing else stands
        on the ground.
    :param C: (..., 4, 4) pose of the base, the body that the free joint moves; leading axes are a
        batch of simulations.
    :param V: (..., 6) body-fixed twist of the base.
    :param q: (..., m) positions of the other joints.
    :param qd: (..., m) their rates, zero if None.
    :param control: torques (m,) of the other joints: constant, or one value for each step (steps,
        ..., m), or a law ``control(t, C, V, q, qd)``. None for none.
    :param wrenches: body-fixed wrenches on the bodies of the model, moment first, (nb, 6), in the
        same ways. The base is body 5; the five before it have no mass.
    :param forces: damping, friction and stops of all joints, (6 + m,) each; those of the base must
        be none.
    :param events: functions of t, C, V, q, qd of one simulation, by name, whose changes of sign are
        recorded as events, of each simulation of a batch for itself.
    :param stop: such a function; the simulation ends where its sign changes. In a batch the
        simulation then rests in the state it had, and the batch ends when all have stopped.
    :param keep_momentum: keep the spatial momentum of the whole to rounding, and not only to the
        order of the method; for ``"explicit_euler"``, ``"semi_implicit_euler"`` and ``"rk4"``,
        without wrenches. ``"implicit_midpoint"`` keeps it anyway.
    :raises ModelError: if the model has no such base.
    :raises ArgumentError: for a wrong shape or value; UnknownMethodError.
    :raises SimulationError: if the state or a torque is not finite, the mass matrix singular, or
        the tolerances cannot be met; its attribute ``motion`` has what there is until then.

    ``every``, ``solver``, ``rtol``, ``atol``, ``progress`` and ``backend`` are those of
    :func:`simulate`.
    """
    base = Base(model)
    course, n = Course.of(duration, step, every, events, stop, progress), (base.m,)
    if method not in METHODS:
        raise UnknownMethodError(method, METHODS)
    rates = np.zeros(base.m) if qd is None else qd
    start = batched(C=(C, (4, 4)), V=(V, (6,)), q=(q, n), qd=(rates, n))
    check_poses("C", start[0])
    _check_base(forces)
    if keep_momentum and (wrenches is not None or method not in STEPS):
        raise ArgumentError(
            f"keep_momentum takes no wrenches, and one of the methods {', '.join(STEPS)}; got "
            f"{method!r}" + " and wrenches" * (wrenches is not None)
        )
    accuracy = tolerances(rtol, atol)
    drives = [Drive("control", control, n, course.steps, SEEN)]
    if wrenches is not None:
        drives.append(Drive("wrenches", wrenches, (model.nb, 6), course.steps, SEEN))
    problem = Problem(model, forces, Inputs(tuple(drives)), course.h, backend, solver)
    run = Run(course, problem.inputs, method, start, start[2].shape[:-1], _between)
    return run.go(
        lambda: floating_scheme(method, problem, start, accuracy, bool(keep_momentum)),
        lambda record: _motion(base, record, method),
    )


def _check_base(forces: JointForces | None) -> None:
    check_forces(forces)
    if forces is None:
        return
    bounds = np.isfinite(forces.lower[:6]) | np.isfinite(forces.upper[:6])
    if forces.damping[:6].any() or forces.friction[:6].any() or bounds.any():
        raise ArgumentError("forces must leave the base free: the first six entries must be none")


def _between(before: State, after: State, h: float) -> Between:
    """Return C and V by the cubic in the algebra, q and qd by that of the joints."""
    poses = between_poses(SE3, before[:2], after[:2], h)
    joints = between_joints(before[2:], after[2:], h)
    return lambda s: (*poses(s), *joints(s))


def _motion(base: Base, record: Record, method: str) -> FloatingMotion:
    C, V, q, qd = record.state
    kinetic, potential, momentum, _ = base.quantities(C, V, q, qd)
    return FloatingMotion(
        t=record.t,
        C=C,
        V=V,
        q=q,
        qd=qd,
        kinetic=kinetic,
        potential=potential,
        momentum=momentum,
        joint_names=base.model.joint_names[6:],
        tau=record.acted[0],
        events=tuple(
            Event(x.name, x.t, x.state[2], x.state[3], x.state[0], x.state[1], x.member)
            for x in record.events
        ),
        method=method,
    )
