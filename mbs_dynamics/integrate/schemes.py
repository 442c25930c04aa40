# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The integrators behind one interface.

A scheme works on arrays of its own, into which it packs the states that laws and events receive.
Drives that are not laws are held over each step. A law is evaluated once per step
(:class:`FixedStep`, :class:`ImplicitMidpoint`) or at every stage (:class:`Adaptive`).
"""

# ruff: noqa: D102 (methods are described once, in the base class)

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from mbs_dynamics import checks
from mbs_dynamics.algorithms import mass_matrix
from mbs_dynamics.algorithms.kernels import compiled_on
from mbs_dynamics.checks import FloatArray
from mbs_dynamics.errors import ArgumentError, SimulationError, SingularError
from mbs_dynamics.integrate.charts import Arrangement, chart_of
from mbs_dynamics.integrate.forces import Arrays, Drive, Features, JointForces, finite
from mbs_dynamics.integrate.runge_kutta import DormandPrince
from mbs_dynamics.integrate.stepper import Stepper, inputs_of_step, parameters_of
from mbs_dynamics.model.model import Model

INSTANT = np.array(1e-12)
"""Length in s of a step that is short enough to describe one instant."""

SMALLEST_RTOL = 1e-14
"""Smallest relative tolerance above rounding."""

TOLERANCE = 1e-13
"""Change relative to one plus the size at which the iteration of an implicit scheme ends."""

ITERATIONS = 60

LARGEST = 1e100
"""Rates beyond this indicate that an iteration diverges."""


class Problem(NamedTuple):
    """A model, its loads, and what all schemes start from."""

    model: Model
    forces: JointForces | None
    drives: tuple[Drive, ...]
    """Motor torques, and wrenches on the bodies if there are any."""
    h: float
    """Step, s."""
    start: Arrays
    """The first q and qd, or a batch of them."""
    backend: str | None
    solver: str = "auto"
    """Method of :func:`mbs_dynamics.forward_dynamics`, where the whole step is not a kernel."""

    @property
    def laws(self) -> bool:
        """Whether any drive is a function in Python."""
        return any(drive.law is not None for drive in self.drives)

    @property
    def features(self) -> Features:
        """Kinds of forces in the joints."""
        return Features() if self.forces is None else self.forces.features

    @property
    def states(self) -> Arrangement:
        """Arrangement of q and qd in arrays."""
        return Arrangement(self.model)


class StepKernel:
    """A kernel of arrays of states, then efforts, h, wrenches and joints as a problem has them."""

    def __init__(
        self,
        problem: Problem,
        name: str,
        equations: Callable[..., Any],
        inputs: Mapping[str, tuple[int, ...]],
        key: Any = (),
    ) -> None:
        model, wrenches = problem.model, len(problem.drives) > 1
        every = {**inputs, **inputs_of_step(model, problem.features, wrenches)}
        self.kernel = compiled_on(
            model, (key, tuple(every)), equations, every, name=name, backend=problem.backend
        )
        self.constants = parameters_of(model, problem.forces, self.kernel)

    def __call__(self, *states: FloatArray, values: Arrays, h: FloatArray) -> Any:
        """Return the result for states, the values of the drives and a step of h."""
        return self.kernel(*states, values[0], h, *values[1:], *self.constants)


class Scheme(ABC):
    """A state ``x`` that advances by steps of ``h``, one by one."""

    def __init__(self, problem: Problem) -> None:
        self.model, self.drives, self.h = problem.model, problem.drives, problem.h
        self.states = problem.states
        self.x = self.pack(*problem.start)
        self.k = 0
        self.batch = self.x.shape[: self.x.ndim - self.states.axes]

    def pack(self, q: FloatArray, qd: FloatArray) -> FloatArray:
        """Return the array of a state."""
        return np.asarray(self.states.joined(q, qd))

    def seen(self, x: FloatArray) -> Arrays:
        """Return q and qd, which laws and events receive, from an array."""
        q, qd, *_ = self.states.parts(x)
        return q, qd

    @abstractmethod
    def one_step(self, t: float, values: Arrays) -> FloatArray:
        """Return the array after a step from t with these values of the drives."""

    def values(self, t: float, x: FloatArray) -> Arrays:
        """Return the values of the drives at t, in the present step."""
        seen = self.seen(x)
        return tuple([drive.at(self.k, t, seen, self.batch) for drive in self.drives])

    def advance(self, steps: int) -> tuple[FloatArray, Arrays]:
        """Return the next arrays (steps, ...) and the values of the drives in each step.

        If a step fails, those before it are returned; the next call repeats it and raises its
        error.
        """
        states, acted = [], []
        for i in range(steps):
            t = self.k * self.h
            try:
                values = self.values(t, self.x)
                x = self.one_step(t, values)
            except (SimulationError, SingularError):
                if i == 0:
                    raise
                break
            states.append(x)
            acted.append(values)
            self.x, self.k = x, self.k + 1
            if not finite(x):
                break
        return np.array(states), tuple(np.array(x) for x in zip(*acted, strict=True))


class FixedStep(Scheme):
    """Steps of a :class:`Stepper`."""

    def __init__(self, problem: Problem, method: str) -> None:
        super().__init__(problem)
        self.laws = problem.laws
        self.stepper = Stepper(
            problem.model,
            method=method,
            forces=problem.forces,
            wrenches=len(problem.drives) > 1,
            backend=problem.backend,
        )

    def advance(self, steps: int) -> tuple[FloatArray, Arrays]:
        if self.laws:
            return super().advance(steps)
        rows = tuple(drive.rows_from(self.k, steps) for drive in self.drives)
        try:
            states = self.stepper.run(self.x, rows[0], self.h, steps, *rows[1:])
        except SingularError as error:
            if error.trajectory is None or len(error.trajectory) < 2:
                raise
            states = error.trajectory
        states = states[1:]
        self.x, self.k = states[-1], self.k + len(states)
        return states, rows

    def one_step(self, t: float, values: Arrays) -> FloatArray:
        return self.stepper.step(self.x, values[0], self.h, *values[1:])


class Adaptive(Scheme):
    """The pair of Dormand and Prince; steps of ``h`` are read from its dense output.

    Values given per step would force a restart at every step: it takes laws and constants only.
    ``field`` computes the rate of an array.
    """

    def __init__(
        self, problem: Problem, field: StepKernel, tolerances: tuple[float, float]
    ) -> None:
        super().__init__(problem)
        chart = chart_of(problem.model, problem.states)
        for drive in self.drives:
            if drive.rows is not None and len(drive.rows) > 1:
                raise ArgumentError(
                    f"dormand_prince takes {drive.name} as a constant or as a function of t, "
                    "q, qd, not row by row"
                )
        self.field = field
        rtol, atol = tolerances
        self.pair = DormandPrince(self.rate, 0.0, self.x, rtol=rtol, atol=atol, chart=chart)

    def rate(self, t: float, x: FloatArray) -> FloatArray:
        """Return the rate of an array."""
        return np.asarray(self.field(x, values=self.values(t, x), h=INSTANT))

    def one_step(self, t: float, values: Arrays) -> FloatArray:
        return self.pair.at((self.k + 1) * self.h)


def tolerances(rtol: float, atol: float) -> tuple[float, float]:
    """Return the tolerances of :class:`Adaptive`, or raise ArgumentError."""
    for name, value, least in (("rtol", rtol, SMALLEST_RTOL), ("atol", atol, 0.0)):
        if checks.number(name, value) <= least:
            raise ArgumentError(f"{name} must be more than {least:g}; got {value:g}")
    return float(rtol), float(atol)


class ImplicitMidpoint(Scheme):
    """Implicit steps whose rates v are found by iteration, for many simulations at once.

    ``iteration`` computes from the array and v the next iterate of v, and the array after the step,
    whose last part is v as the start of the next step.
    """

    def __init__(self, problem: Problem, iteration: StepKernel) -> None:
        super().__init__(problem)
        self.iteration = iteration

    def pack(self, q: FloatArray, qd: FloatArray) -> FloatArray:
        """Return q, qd, the momenta p, and rates to begin the iteration with."""
        p = (mass_matrix(self.model, q) @ qd[..., None])[..., 0]
        return np.asarray(self.states.joined(q, qd, p, qd))

    def one_step(self, t: float, values: Arrays) -> FloatArray:
        h, v = np.array(self.h), np.ascontiguousarray(self.states.parts(self.x)[-1])
        for _ in range(ITERATIONS):
            before, v = v, self.iteration(self.x, v, values=values, h=h).v
            change, size = (float(np.abs(x).max(initial=0.0)) for x in (v - before, v))
            if change <= TOLERANCE * (1.0 + size):
                return np.asarray(self.iteration(self.x, v, values=values, h=h).x)
            if not size < LARGEST:
                break
        raise SimulationError(
            f"the midpoint scheme does not converge at t = {t:.9g} s with steps of {self.h:g} "
            "s; take smaller ones",
            time=t,
        )
