# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Simulation of a model.

implicit_midpoint is variational: symplectic, of order 2, implicit. The discrete Lagrangian
h L((q0 + q1) / 2, (q1 - q0) / h) gives, with v = (q1 - q0) / h, the midpoint qm = q0 + h v / 2 and
momenta p,

    M(qm) v = p0 + h f / 2,    p1 = p0 + h f,    f = C(qm, v)^T v - g(qm) + tau,

which is the implicit midpoint rule for Hamilton's equations. It conserves the momenta of symmetries
and keeps the energy within a bound over any time. v is found by iteration. On the groups of joints
qm = q0 exp(h v / 2), the momenta are seen from the bodies,

    M(qm) v = Ad^T p0 + h f / 2,    p1 = Ad^T (Ad^T p0 + h f),    f less ad_v^T M v,

with Ad of exp(h v / 2): so the spatial momentum of a floating mechanism changes by that of the
applied wrenches alone, Mueller (dynamics), eq. (79).
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from mbs_dynamics import checks
from mbs_dynamics.algorithms import (
    coriolis_matrix,
    kinetic_energy,
    mass_matrix,
    momenta,
    potential_energy,
)
from mbs_dynamics.algorithms.configurations import displaced, of_joints
from mbs_dynamics.algorithms.factorization import factorize
from mbs_dynamics.algorithms.newton_euler import Loads, Wrenches, newton_euler
from mbs_dynamics.checks import FloatArray
from mbs_dynamics.errors import ArgumentError, SingularError, UnknownMethodError
from mbs_dynamics.integrate.charts import Arrangement, by_velocity
from mbs_dynamics.integrate.driver import Record, Run, TimeSteps
from mbs_dynamics.integrate.events import EventFunction, between
from mbs_dynamics.integrate.forces import (
    Arrays,
    Drive,
    JointForces,
    Law,
    check_forces,
    passive_torques,
    weight_of_end,
)
from mbs_dynamics.integrate.results import Motion
from mbs_dynamics.integrate.schemes import (
    INSTANT,
    Adaptive,
    FixedStep,
    ImplicitMidpoint,
    Problem,
    Scheme,
    StepKernel,
    tolerances,
)
from mbs_dynamics.integrate.stepper import STEPS, Step, steps_per_decay
from mbs_dynamics.lie.arrays import Array
from mbs_dynamics.model.coordinates import checked_positions, position_names, velocity_names
from mbs_dynamics.model.model import Model, body_wrenches
from mbs_dynamics.model.subgroup import Subgroup
from mbs_dynamics.representation.tree import Tree

METHODS = (*STEPS, "dormand_prince", "implicit_midpoint")
"""The integrators of :func:`simulate`."""


def state_rate(problem: Problem) -> StepKernel:
    """Return the kernel of the rate (qd, qdd) of a state under all forces."""
    states, features = problem.states, problem.features

    def equations(
        model: Tree, state: Array, effort: Array, h: Any, wrenches: Any = None, joints: Any = None
    ) -> Array:
        q, qd = states.parts(state)
        if joints is not None:
            effort = effort + passive_torques(joints, features, by_velocity(model, q), qd)
        step = Step(model, features, effort, wrenches, joints, solver=problem.solver)
        step.find_friction(q, qd, h[()])
        return states.joined(qd, step.velocity(step.acceleration(q, qd)))

    key = features, problem.solver
    return StepKernel(problem, "state_rate", equations, {"state": states.shape()}, key)


def joint_scheme(method: str, problem: Problem, tolerances: tuple[float, float]) -> Scheme:
    """Return the integrator of one of :data:`METHODS` from q and qd on."""
    if method in STEPS:
        return FixedStep(problem, method)
    if problem.features.friction:
        raise ArgumentError(f"{method} takes no dry friction; take semi_implicit_euler or rk4")
    if method == "implicit_midpoint":
        if problem.features.stops:
            raise ArgumentError(
                "implicit_midpoint takes no joint stops; take semi_implicit_euler or rk4"
            )
        inputs = {"x": problem.states.shape(4), "v": (problem.model.n,)}
        return ImplicitMidpoint(problem, StepKernel(problem, "midpoint", midpoint, inputs))
    return Adaptive(problem, state_rate(problem), tolerances)


def midpoint(
    model: Tree,
    x: Array,
    v: Array,
    effort: Array,
    h: Any,
    wrenches: Any = None,
    joints: Any = None,
) -> dict[str, Array]:
    """Return the next iterate of v, and q, qd, p and v at the end of the step if v is final."""
    states, h = Arrangement(model.model), h[()]
    q, qd, p, _ = states.parts(x)
    known = damping = rest = np.zeros(model.n)
    if joints is not None:  # with mean rates v, damping exerts known - damping v
        weight = 2.0 * weight_of_end(steps_per_decay(model, q, joints[0], h))
        known, damping = (weight - 1.0) * joints[0] * qd, weight * joints[0]
    half = (0.5 * h) * v
    qm, p = displaced(model, q, half), of_joints(model, Subgroup.transported, half, p)
    # the rate of the momenta M v is C^T v plus the applied forces
    f = np.asarray(coriolis_matrix(model, qm, v)).T @ v + effort + known
    f = f - newton_euler(model, qm, rest, rest, "body_fixed", Loads(wrenches))
    if states.flat:  # p turns with the bodies in Subgroup.transported
        f = f - of_joints(model, Subgroup.momentum_rates, v, momentum(model, qm, v))
    following = solve_mass(model, qm, p + (0.5 * h) * f, (0.5 * h) * damping)
    p = p + h * f if joints is None else 2.0 * momentum(model, qm, v) - p
    q, p = displaced(model, q, h * v), of_joints(model, Subgroup.transported, half, p)
    return {"v": following, "x": states.joined(q, solve_mass(model, q, p), p, v)}


def solve_mass(model: Tree, q: Array, p: Array, armature: Any = 0.0) -> Array:
    """Return (M(q) + diag(armature))^-1 p."""
    M = np.asarray(mass_matrix(model, q, representation="body_fixed"))
    return factorize(model, M + np.diag(armature + np.zeros(model.n))).solution(p)


def momentum(model: Tree, q: Array, v: Array) -> Array:
    """Return M(q) v.

    In the middle of a step it is the mean of the momenta, which stays exact for any damping.
    """
    return np.asarray(mass_matrix(model, q, representation="body_fixed")) @ v


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
    wrenches: Wrenches | Law | None = None,
    forces: JointForces | None = None,
    events: Mapping[str, EventFunction] | None = None,
    stop: EventFunction | None = None,
    rtol: float = 1e-8,
    atol: float = 1e-8,
    solver: str = "auto",
    progress: bool | None = None,
    backend: str | None = None,
) -> Motion:
    """Return the motion of a model that starts at q (..., nq) and qd (..., n), a state a ``step``.

    Joints with several degrees of freedom move on their groups, without singularities: a free
    joint is a floating base, and one body with a free or a spherical joint a body in space.

    Methods, with their orders:

    - ``semi_implicit_euler`` (1), ``rk4`` (4): one kernel per step; motor torques are held over
      the step, as by a digital controller. Without a control law and events the loop is machine
      code. Stable for any damping, friction and stops, see :mod:`mbs_dynamics.integrate.stepper`.
      Joints that dry friction holds stand still, see :mod:`mbs_dynamics.integrate.friction`.
    - ``dormand_prince`` (5): the step size follows from ``rtol`` and ``atol``, with states every
      ``step`` by interpolation of order 4; control laws are evaluated at every stage. It resolves
      damping and stops, which may take many steps, and takes no dry friction.
    - ``implicit_midpoint`` (2): variational; the energy error is bounded, and momenta of symmetries
      are conserved. It takes neither dry friction nor stops; torques are held.

    :param q: positions in rad or m; leading axes are a batch of simulations.
    :param qd: rates in rad/s or m/s; None means zero.
    :param duration: in s, a whole number of steps.
    :param every: store every ``every``-th state, and the last one.
    :param control: motor torques: constant (n,), one value per step (steps, ..., n), or a function
        of t, q (..., n) and qd that returns them. None means zero.
    :param wrenches: body-fixed wrenches on the bodies, moment first, (nb, 6), in the same ways; or
        mappings from link names to wrenches (6,) in the frames of the links.
    :param forces: damping, friction and stops of the joints; none if None.
    :param events: functions of t, q (n,) and qd of one simulation, by name, whose changes of sign
        are recorded as events, separately for each simulation of a batch.
    :param stop: such a function, for one simulation; it ends where the sign changes.
    :param solver: how ``dormand_prince`` solves the equations of motion; see
        :func:`mbs_dynamics.forward_dynamics`.
    :param progress: whether to print progress to stderr; None means for long runs on a terminal.
    :raises ArgumentError: for a wrong shape or value, such as a step that is not positive.
    :raises SimulationError: if the state or a torque becomes infinite or NaN, the mass matrix is
        singular, or the tolerances cannot be met. It states the time, and its attribute ``motion``
        contains the trajectory up to the failure.
    """
    if not isinstance(model, Model):
        raise ArgumentError(f"model must be a Model; got {type(model).__name__}")
    timing = TimeSteps.of(duration, step, every, events, stop, progress)
    start = batched(
        model, checked_positions(model.joints, "q", q), np.zeros(model.n) if qd is None else qd
    )
    if method not in METHODS:
        raise UnknownMethodError(method, METHODS)
    if stop is not None and start[0].ndim > 1:
        batch = start[0].shape[:-1]
        raise ArgumentError(f"stop ends one simulation, not a batch {batch}; record it in events")
    check_forces(forces, model)
    accuracy = tolerances(rtol, atol)
    drives = [Drive("control", control, (model.n,), timing.steps)]
    if wrenches is not None:
        given = _by_body(model, wrenches)
        drives.append(Drive("wrenches", given, (model.nb, 6), timing.steps))
    problem = Problem(model, forces, tuple(drives), timing.h, start, backend, solver)
    run = Run(timing, problem, method, between(model))
    return run.go(
        lambda: joint_scheme(method, problem, accuracy),
        lambda record: _motion(problem, record, method),
    )


def _by_body(model: Model, wrenches: Any) -> Any:
    """Return wrenches, or a law of them, by body also where they are given by link name."""
    if isinstance(wrenches, Mapping):
        return body_wrenches(model, wrenches)
    if callable(wrenches):
        return lambda t, *state: _by_body(model, wrenches(t, *state))
    return wrenches


def batched(model: Model, q: FloatArray, qd: ArrayLike) -> Arrays:
    """Return q and qd with the axes of one batch; or raise ArgumentError."""
    qd = checks.numbers("qd", qd, (model.n,), batch=True)
    batch = checks.batch_of(q=q.shape[:-1], qd=qd.shape[:-1])
    arrays = (np.broadcast_to(x, (*batch, x.shape[-1])) for x in (q, qd))
    return tuple(np.ascontiguousarray(x) for x in arrays)


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
        joint_names=velocity_names(model.joints),
        position_names=position_names(model.joints),
        events=tuple(record.events),
        method=method,
    )


def _accelerations(problem: Problem, record: Record) -> FloatArray:
    """Return qdd at all states; NaN at the last one if the mass matrix is singular there."""
    states, qdd = problem.states.joined(*record.state), np.full(record.state[1].shape, np.nan)
    for count in (len(states), len(states) - 1):
        with contextlib.suppress(SingularError):
            values = tuple(rows[:count] for rows in record.acted)
            rates = state_rate(problem)(states[:count], values=values, h=INSTANT)
            qdd[:count] = problem.states.parts(rates, problem.model.n)[1]
            break
    return qdd
