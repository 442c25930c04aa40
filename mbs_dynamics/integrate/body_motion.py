# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Simulation of a rigid body on SO(3) or SE(3): no coordinates, and so no singularities."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import numpy as np
from numpy.typing import ArrayLike

from mbs_dynamics import checks
from mbs_dynamics.checks import FloatArray
from mbs_dynamics.errors import ArgumentError, UnknownMethodError
from mbs_dynamics.integrate.body_stepper import BODY_METHODS, BodyStepper
from mbs_dynamics.integrate.charts import GroupChart
from mbs_dynamics.integrate.drive import Drive, Inputs, Law, State
from mbs_dynamics.integrate.events import EventFunction, between_poses
from mbs_dynamics.integrate.groups import GroupBody
from mbs_dynamics.integrate.motion import BodyMotion, Event
from mbs_dynamics.integrate.run import Course, Record, Run
from mbs_dynamics.integrate.runge_kutta import TABLEAUS
from mbs_dynamics.integrate.schemes import (
    Adaptive,
    Explicit,
    Held,
    Implicit,
    Layout,
    Scheme,
    Task,
    tolerances,
)
from mbs_dynamics.integrate.simulation import batched

ADAPTIVE = "dormand_prince"
"""The scheme of :func:`simulate_body` that has no fixed step, beside :data:`BODY_METHODS`."""


def simulate_body(
    body: GroupBody,
    C: ArrayLike,
    V: ArrayLike,
    *,
    duration: float,
    step: float = 1e-3,
    every: int = 1,
    method: str = "munthe_kaas_4",
    wrenches: ArrayLike | Law | None = None,
    events: Mapping[str, EventFunction] | None = None,
    stop: EventFunction | None = None,
    rtol: float = 1e-8,
    atol: float = 1e-8,
    momenta: bool = False,
    increments: str = "right",
    dexp: str = "exact",
    rho: float = 0.9,
    progress: bool | None = None,
    backend: str | None = None,
) -> BodyMotion:
    """Return the motion of a rigid body from a pose and a body-fixed twist on.

    :param C: (..., 4, 4) pose, or (..., 3, 3) rotation for a body on SO(3); leading axes are a
        batch of simulations.
    :param V: (..., 6) body-fixed twist, or (..., 3) angular velocity.
    :param duration: in s; rounded to a number of steps.
    :param every: keep every so manieth state.
    :param method: one of :data:`BODY_METHODS`, or ``"dormand_prince"``: Munthe-Kaas steps of order
        5, as long as ``rtol`` and ``atol`` allow for the increment of each step and the twist.
    :param wrenches: body-fixed wrenches (dim,), moment first, beside those of the body itself: a
        constant, one value for each step (steps, ..., dim), held over it, or a function of t, C
        and V. Such a law acts at every stage of a Munthe-Kaas scheme, in the middle of the step of
        ``momentum_midpoint`` and at the end of that of ``generalized_alpha``, whose steps are
        iterated until it agrees: the order of the scheme is kept.
    :param events: functions of t, C and V of one simulation, by name, whose changes of sign are
        recorded as events, of each simulation of a batch for itself. Between two states, C is C_0
        exp(X) with X a cubic in the algebra.
    :param stop: such a function; the simulation ends where its sign changes. In a batch the
        simulation then rests in the state it had, and the batch ends when all have stopped.
    :param momenta: see :class:`BodyStepper`; so for ``increments``, ``dexp``, ``rho``.
    :param progress: whether to show how far it is on stderr; None for long runs on a terminal.
    :raises ArgumentError: for a wrong shape or value; UnknownMethodError.
    :raises SimulationError: if the state or a wrench is not finite, an implicit scheme does not
        converge, or the tolerances cannot be met. It says when, and its attribute ``motion`` has
        what there is until then.
    """
    if method not in (*BODY_METHODS, ADAPTIVE):
        raise UnknownMethodError(method, (*BODY_METHODS, ADAPTIVE))
    stepper = BodyStepper(
        body,
        "munthe_kaas_4" if method == ADAPTIVE else method,
        momenta=momenta,
        increments=increments,
        dexp=dexp,
        rho=rho,
        wrenches=wrenches is not None,
        backend=backend,
    )
    course = Course.of(duration, step, every, events, stop, progress)
    size, dim = body.group.size, body.group.dim
    start = batched(C=(C, (size, size)), V=(V, (dim,)))
    check_poses("C", start[0])
    accuracy = tolerances(rtol, atol)
    drives = []
    if wrenches is not None:
        drives.append(Drive("wrenches", wrenches, (dim,), course.steps, seen="C, V"))
    inputs = Inputs(tuple(drives))
    run = Run(
        course,
        inputs,
        method,
        (*start, body.momentum(*start)),
        start[1].shape[:-1],
        partial(between_poses, body.group),
        extra=1,
    )
    return run.go(
        lambda: _scheme(stepper, method, inputs, course.h, start, accuracy),
        lambda record: _motion(body, record, method),
    )


def check_poses(name: str, C: FloatArray) -> None:
    """Raise ArgumentError for matrices that are no poses (..., 4, 4), rotations (..., 3, 3)."""
    R = C[..., :3, :3]
    wrong = np.abs(np.swapaxes(R, -1, -2) @ R - np.eye(3)).max(axis=(-1, -2), initial=0.0)
    wrong = (wrong > checks.ROTATION_TOLERANCE) | (np.linalg.det(R) < 0.0)
    if wrong.any():
        raise ArgumentError(
            f"{name} has no rotation in its upper left block: {R[wrong][0].tolist()}"
        )
    last = C[..., 3:, :]
    if last.size and not (last == (0.0, 0.0, 0.0, 1.0)).all():
        raise ArgumentError(f"the last row of {name} must be (0, 0, 0, 1); got {last.tolist()}")


class BodyLayout(Layout):
    """The states of a :class:`BodyStepper`; spatial momenta are recorded beside what is seen."""

    def __init__(self, stepper: BodyStepper) -> None:
        self.stepper = stepper

    def pack(self, *state: FloatArray) -> FloatArray:
        """Return the state of C, V, and what wrench acts if that matters."""
        return self.stepper.pack(*state)

    def seen(self, x: FloatArray) -> State:
        """Return C and V."""
        return self.stepper.unpack(x)

    def recorded(self, x: FloatArray) -> State:
        """Return C, V and the spatial momenta."""
        return (*self.stepper.unpack(x), self.stepper.momentum(x))


def _scheme(
    stepper: BodyStepper,
    method: str,
    inputs: Inputs,
    h: float,
    start: State,
    accuracy: tuple[float, float],
) -> Scheme:
    """Return the integrator: one kernel a step where no law decides, else what asks the law."""
    batch, layout = start[1].shape[:-1], BodyLayout(stepper)
    if method == "generalized_alpha" and inputs.drives:
        x = layout.pack(*start, *inputs.at(0, 0.0, start, batch))
    else:
        x = layout.pack(*start)
    task = Task(layout, inputs, h, x)
    if method != ADAPTIVE and not inputs.laws:
        return Held(task, stepper.kernel, lambda values: (np.array(h), *values))
    if method in ("momentum_midpoint", "generalized_alpha"):
        share = 0.5 if method == "momentum_midpoint" else 1.0
        return Implicit(task, stepper.instant_kernel, share)
    rate, group = stepper.rate_kernel, stepper.body.group
    order = 5 if method == ADAPTIVE else int(method[-1])
    chart = GroupChart(group, group.dim, stepper.kind, order, stepper.backend)

    def field(x: FloatArray, values: State) -> FloatArray:
        found: FloatArray = rate.call(x, *values)
        return found

    if method == ADAPTIVE:
        return Adaptive(task, field, accuracy, chart)
    return Explicit(task, field, TABLEAUS[order], chart)


def _motion(body: GroupBody, record: Record, method: str) -> BodyMotion:
    (C, V, momentum), none = record.state, np.zeros(0)
    return BodyMotion(
        t=record.t,
        C=C,
        V=V,
        momentum=momentum,
        kinetic=body.kinetic_energy(V),
        potential=body.potential_energy(C),
        method=method,
        events=tuple(
            Event(x.name, x.t, none, none, x.state[0], x.state[1], x.member) for x in record.events
        ),
        wrench=record.acted[0] if record.acted else np.zeros(V.shape),
    )
