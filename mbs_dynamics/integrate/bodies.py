# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Simulation of a rigid body on SO(3) or SE(3): no coordinates, and so no singularities."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from mbs_dynamics import checks
from mbs_dynamics.checks import FloatArray
from mbs_dynamics.compiler import Kernel, checked_backend, default_backend, trace
from mbs_dynamics.errors import ArgumentError, UnknownMethodError
from mbs_dynamics.integrate.driver import Course, Record, Run
from mbs_dynamics.integrate.events import EventFunction, between_poses
from mbs_dynamics.integrate.forces import Drive, Inputs, Law, State
from mbs_dynamics.integrate.groups import (
    Alpha,
    ExponentialChart,
    GroupBody,
    GroupChart,
    Increments,
    generalized_alpha,
    momentum_midpoint,
    pose_of,
)
from mbs_dynamics.integrate.joints import batched
from mbs_dynamics.integrate.results import BodyMotion, Event
from mbs_dynamics.integrate.runge_kutta import TABLEAUS, runge_kutta_step
from mbs_dynamics.integrate.schemes import (
    FixedStep,
    Implicit,
    Layout,
    Scheme,
    Task,
    explicit,
    field_of,
    tolerances,
)
from mbs_dynamics.lie.arrays import Array

# -- a step as one kernel --------------------------------------------------------------------------

BODY_METHODS = (
    "munthe_kaas_1",
    "munthe_kaas_2",
    "munthe_kaas_3",
    "munthe_kaas_4",
    "momentum_midpoint",
    "generalized_alpha",
)
"""The integrators on Lie groups; the number is the order, and it is 2 for the other two."""


class BodyStepper:
    """A step of a rigid body as one kernel, on flat states made by ``pack``.

    :param body: a :class:`GroupBody`.
    :param method: one of :data:`BODY_METHODS`; see :mod:`mbs_dynamics.integrate.groups`.
    :param momenta: whether a Munthe-Kaas scheme integrates the spatial momentum in place of the
        twist, which conserves it while no wrench acts.
    :param increments: ``"right"`` or ``"left"``.
    :param dexp: ``"exact"`` or ``"truncated"``.
    :param wrenches: whether a body-fixed wrench, held over the step, is an input.
    :param rho: spectral radius at infinite frequency of the generalized-alpha scheme, 0 to 1.
    :param backend: as for :func:`mbs_dynamics.compile`.
    """

    def __init__(
        self,
        body: GroupBody,
        method: str = "munthe_kaas_4",
        *,
        momenta: bool = False,
        increments: str = "right",
        dexp: str = "exact",
        rho: float = 0.9,
        wrenches: bool = False,
        backend: str | None = None,
    ) -> None:
        if not isinstance(body, GroupBody):
            raise ArgumentError(f"body must be a GroupBody; got {type(body).__name__}")
        if method not in BODY_METHODS:
            raise UnknownMethodError(method, BODY_METHODS)
        for name, value, valid in (
            ("increments", increments, ("right", "left")),
            ("dexp", dexp, ("exact", "truncated")),
        ):
            if value not in valid:
                raise ArgumentError(f"{name} must be one of {', '.join(valid)}; got {value!r}")
        if not 0.0 <= checks.number("rho", rho) <= 1.0:
            raise ArgumentError(f"rho must be from 0 to 1; got {rho:g}")
        self.body, self.method = body, method
        self.momenta = bool(momenta) or method == "momentum_midpoint"
        self.takes_wrenches = bool(wrenches)
        self.kind = Increments(increments == "left", dexp == "truncated")
        self._alpha = Alpha.of(rho)
        self.backend = default_backend() if backend is None else checked_backend(backend)
        self._entries = body.group.size**2
        self._vectors = 3 if method == "generalized_alpha" else 1
        self.size = self._entries + self._vectors * body.group.dim
        """Entries of a state."""

    @cached_property
    def kernel(self) -> Kernel:
        """``kernel(state, h)``, or ``kernel(state, h, wrench)`` -> state, all flat."""
        return self._made(self._equations, f"{self.method}_body")

    @cached_property
    def instant_kernel(self) -> Kernel:
        """Of an implicit scheme: like :attr:`kernel`, and C, V at which the wrench acts."""
        return self._made(self._with_instant, f"{self.method}_instant")

    @cached_property
    def rate_kernel(self) -> Kernel:
        """``rate_kernel(state, wrench)`` -> (V, rate of twist or momentum), without a step."""
        return self._made(self._rate, "body_rate", step=False)

    def pack(self, C: ArrayLike, V: ArrayLike, wrench: ArrayLike | None = None) -> FloatArray:
        """Return the states (..., size) for poses and body-fixed twists.

        The generalized-alpha scheme starts with the accelerations under ``wrench``.
        """
        size, dim = self.body.group.size, self.body.group.dim
        pose, twist = np.asarray(C, dtype=float), np.asarray(V, dtype=float)
        batch = np.broadcast_shapes(pose.shape[:-2], twist.shape[:-1])
        pose = np.broadcast_to(pose, (*batch, size, size))
        twist = np.broadcast_to(twist, (*batch, dim))
        vectors = [self.body.momentum(pose, twist) if self.momenta else twist]
        if self.method == "generalized_alpha":
            flat = zip(pose.reshape(-1, size, size), twist.reshape(-1, dim), strict=True)
            rates = np.array([self.body.acceleration(c, v) for c, v in flat], dtype=float)
            rates = rates.reshape(*batch, dim)
            if wrench is not None:
                rates = rates + np.asarray(wrench) @ self.body.inverse
            vectors += [rates] * 2
        return np.concatenate([pose.reshape(*batch, self._entries), *vectors], axis=-1)

    def unpack(self, state: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return poses (..., size, size) and body-fixed twists (..., dim) of states."""
        size, dim, k = self.body.group.size, self.body.group.dim, self._entries
        C = state[..., :k].reshape(*state.shape[:-1], size, size)
        y = state[..., k : k + dim]
        if not self.momenta:
            return C, y
        carried = np.swapaxes(self.body.group.Ad(C), -1, -2) @ y[..., None]
        return C, (self.body.inverse @ carried)[..., 0]

    def momentum(self, state: FloatArray) -> FloatArray:
        """Return spatial momenta (..., dim) of states: integrated, or those of C and V."""
        k = self._entries
        if self.momenta:
            return state[..., k : k + self.body.group.dim]
        return self.body.momentum(*self.unpack(state))

    def run(
        self, state: FloatArray, h: float, steps: int, wrench: ArrayLike | None = None
    ) -> FloatArray:
        """Return the states (steps + 1, ..., size); a loop in machine code.

        Raises SingularError where an implicit scheme does not converge.
        """
        loads = () if wrench is None else (wrench,)
        return self.kernel.iterate(state, h, *loads, steps=steps)

    # -- equations ---------------------------------------------------------------------------------

    def _made(self, equations: Callable[..., Any], name: str, step: bool = True) -> Kernel:
        inputs: dict[str, tuple[int, ...]] = {"state": (self.size,)}
        if step:
            inputs["h"] = ()
        if self.takes_wrenches:
            inputs["wrench"] = (self.body.group.dim,)
        kept = self.momenta, self.kind, self._alpha, self.takes_wrenches, self.backend
        key, kernels = (name, *kept), self.body.kernels
        if key not in kernels:
            kernels[key] = Kernel(trace(equations, inputs, name=name), backend=self.backend)
        return kernels[key]

    def _parts(self, state: Array) -> tuple[Array, list[Array]]:
        """Return the pose and the vectors of a state."""
        dim, k = self.body.group.dim, self._entries
        vectors = [state[k + i * dim : k + (i + 1) * dim] for i in range(self._vectors)]
        return pose_of(self.body.group, state), vectors

    def _equations(self, state: Array, h: Any, wrench: Array | None = None) -> Array:
        if self.method in ("generalized_alpha", "momentum_midpoint"):
            return self._with_instant(state, h, wrench)["state"]
        # Munthe-Kaas schemes: Runge-Kutta for the increments
        order = int(self.method[-1])
        chart = ExponentialChart(self.body.group, self.kind, order)

        def rate(_t: float, x: Array) -> Array:
            return self._rate(x, wrench)

        return runge_kutta_step(TABLEAUS[order], rate, 0.0, state, h[()], chart)

    def _with_instant(self, state: Array, h: Any, wrench: Array | None) -> dict[str, Array]:
        body, h, (C, vectors) = self.body.under(wrench), h[()], self._parts(state)
        after: tuple[Array, ...]
        if self.method == "generalized_alpha":
            after = generalized_alpha(body, C, vectors[0], vectors[1], vectors[2], h, self._alpha)
            C, V = after[:2]
        else:
            C_new, Pi, C, V = momentum_midpoint(body, C, vectors[0], h)
            after = C_new, Pi
        return {"state": np.concatenate([np.ravel(x) for x in after]), "C": C, "V": V}

    def _rate(self, state: Array, wrench: Array | None = None) -> Array:
        body, (C, (y,)) = self.body.under(wrench), self._parts(state)
        V = body.twist_of(C, y) if self.momenta else y
        rate = body.momentum_rate(C, V) if self.momenta else body.acceleration(C, V)
        return np.concatenate([V, rate])


# -- simulation ------------------------------------------------------------------------------------

ADAPTIVE = "dormand_prince"
"""The scheme of :func:`simulate_body` with variable steps, in addition to :data:`BODY_METHODS`."""


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
    """Return the motion of a rigid body that starts at a pose and a body-fixed twist.

    :param body: a body made by :func:`free_body` or :func:`pivoted_body`.
    :param C: (..., 4, 4) pose, or (..., 3, 3) rotation for a body on SO(3); leading axes are a
        batch of simulations.
    :param V: (..., 6) body-fixed twist, or (..., 3) angular velocity.
    :param duration: in s; the last step is shorter if it is no whole number of steps.
    :param every: store every ``every``-th state.
    :param method: one of :data:`BODY_METHODS`, or ``"dormand_prince"``: Munthe-Kaas steps of order
        5, whose size follows from ``rtol`` and ``atol`` for the increment of each step and the
        twist.
    :param wrenches: body-fixed wrenches (dim,), moment first, in addition to those of the body: a
        constant, one value per step (steps, ..., dim), held over it, or a function of t, C and V.
        Such a law is evaluated at every stage of a Munthe-Kaas scheme, in the middle of the step of
        ``momentum_midpoint`` and at the end of that of ``generalized_alpha``, whose steps are
        iterated until it agrees: the order of the scheme is preserved.
    :param events: and ``stop`` as for :func:`simulate`, functions of t, C and V of one simulation.
        Between two states, C is C_0 exp(X) with X a cubic in the algebra.
    :param momenta: see :class:`BodyStepper`, also for ``increments``, ``dexp`` and ``rho``.
    :raises ArgumentError: for a wrong shape or value; UnknownMethodError.
    :raises SimulationError: as for :func:`simulate`, and if an implicit scheme does not converge.

    ``progress`` and ``backend`` are those of :func:`simulate`.
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
    checks.check_poses("C", start[0])
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


class BodyLayout(Layout):
    """The states of a :class:`BodyStepper`; spatial momenta are recorded as well."""

    def __init__(self, stepper: BodyStepper) -> None:
        self.stepper = stepper

    def pack(self, *state: FloatArray) -> FloatArray:
        """Return the state of C, V, and of the acting wrench if needed."""
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
    """Return the integrator: one kernel per step without a law, else one that evaluates the law."""
    batch, layout = start[1].shape[:-1], BodyLayout(stepper)
    if method == "generalized_alpha" and inputs.drives:
        x = layout.pack(*start, *inputs.at(0, 0.0, start, batch))
    else:
        x = layout.pack(*start)
    task = Task(layout, inputs, h, x)
    if method != ADAPTIVE and not inputs.laws:
        return FixedStep(task, stepper.kernel, lambda values, step: (np.array(step), *values))
    if method in ("momentum_midpoint", "generalized_alpha"):
        share = 0.5 if method == "momentum_midpoint" else 1.0
        return Implicit(task, stepper.instant_kernel, share)
    group = stepper.body.group
    order = 5 if method == ADAPTIVE else int(method[-1])
    chart = GroupChart(group, group.dim, stepper.kind, order, stepper.backend)

    field = field_of(stepper.rate_kernel, lambda values, _: values)
    return explicit(method, task, field, accuracy, chart, order)


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
