# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The integrators behind one interface.

A scheme works on arrays of its own; a :class:`Layout` packs the states that laws and events receive
into them. Drives that are no laws are held over each step. A law is evaluated once per step
(:class:`FixedStep`, :class:`ImplicitMidpoint`) or at every stage (:class:`ExplicitRungeKutta`,
:class:`Adaptive`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from mbs_dynamics import checks
from mbs_dynamics.checks import FloatArray
from mbs_dynamics.compiler import Kernel
from mbs_dynamics.errors import ArgumentError, SimulationError, SingularError
from mbs_dynamics.integrate.forces import Inputs, State, finite
from mbs_dynamics.integrate.runge_kutta import (
    CLASSICAL,
    VECTORS,
    Chart,
    DormandPrince,
    Tableau,
    runge_kutta_step,
)

Arguments = Callable[[State, float], tuple[Any, ...]]
"""The values of the drives and the step to what a kernel takes after its first inputs."""

Field = Callable[..., FloatArray]
"""An array of states and the values of the drives to its rate; in stages of a Runge-Kutta step also
of the states at its beginning, and its length."""

SMALLEST_RTOL = 1e-14
"""Smallest relative tolerance above rounding."""

TOLERANCE = 1e-13
"""Change relative to one plus the size at which the iteration of an implicit scheme ends."""

ITERATIONS = 60

LARGEST = 1e100
"""Rates beyond this indicate that an iteration diverges."""


class Layout(ABC):
    """Arrangement of states in the arrays of a scheme."""

    axes = 1
    """Number of axes of one state; those before them are a batch."""

    @abstractmethod
    def pack(self, *state: FloatArray) -> FloatArray:
        """Return the array of a state."""

    @abstractmethod
    def seen(self, x: FloatArray) -> State:
        """Return the state that laws and events receive, from an array."""

    def recorded(self, x: FloatArray) -> State:
        """Return the arrays to record: the state of :meth:`seen` and any others."""
        return self.seen(x)


class Task(NamedTuple):
    """Arguments of every scheme."""

    layout: Layout
    inputs: Inputs
    h: float
    """Step, s."""
    x: FloatArray
    """The first array, or a batch of them."""


class Scheme(ABC):
    """A state ``x`` that advances by steps of ``h``, one by one."""

    def __init__(self, task: Task) -> None:
        self.layout, self.inputs, self.h, self.x = task
        self.step = self.h
        """Length of the next steps, s: the last one may be shorter."""
        self.k = 0
        self.batch = self.x.shape[: self.x.ndim - self.layout.axes]
        self._held: Any = None

    @abstractmethod
    def once(self, t: float, values: State) -> FloatArray:
        """Return the array after the step that begins at t with these values of the drives."""

    def values(self, t: float, x: FloatArray) -> State:
        """Return the values of the drives at t, in the present step."""
        return self.inputs.at(self.k, t, self.layout.seen(x), self.batch)

    def hold(self, members: FloatArray, x: FloatArray) -> None:
        """Keep the members of the batch in a mask at their states in x from now on."""
        mask = members.reshape(members.shape + (1,) * self.layout.axes)
        self._held = mask
        self.x = np.where(mask, x, self.x)

    def advance(self, steps: int) -> tuple[FloatArray, State]:
        """Return the next arrays (steps, ...) and the values of the drives in each step.

        Fewer are returned if a step fails, so that those before it are not lost. The failed step is
        then the first one of the next call, which raises its error.
        """
        states, acted = [], []
        for i in range(steps):
            t = self.k * self.h
            try:
                values = self.values(t, self.x)
                x = self.once(t, values)
            except (SimulationError, SingularError):
                if i == 0:
                    raise
                break
            if self._held is not None:
                x = np.where(self._held, self.x, x)
            states.append(x)
            acted.append(values)
            self.x, self.k = x, self.k + 1
            if not finite(x):
                break
        return np.array(states), tuple(np.array(x) for x in zip(*acted, strict=True))


class FixedStep(Scheme):
    """Steps of one kernel each; a loop in machine code if no drive is a law."""

    def __init__(self, task: Task, kernel: Kernel, arguments: Arguments) -> None:
        super().__init__(task)
        self.kernel, self.arguments = kernel, arguments

    def advance(self, steps: int) -> tuple[FloatArray, State]:
        """Return the next arrays and the values of the drives."""
        if self.inputs.laws:
            return super().advance(steps)
        rows = self.inputs.rows_from(self.k, steps)
        try:
            states = self.kernel.iterate(self.x, *self.arguments(rows, self.step), steps=steps)
        except SingularError as error:
            if error.trajectory is None or len(error.trajectory) < 2:
                raise
            states = error.trajectory
        states = states[1:]
        if self._held is not None:
            states = np.where(self._held, self.x, states)
        self.x, self.k = states[-1], self.k + len(states)
        return states, rows

    def once(self, t: float, values: State) -> FloatArray:
        """Return the array after a step."""
        found: FloatArray = self.kernel(self.x, *self.arguments(values, self.step))
        return found


class ExplicitRungeKutta(Scheme):
    """Explicit Runge-Kutta steps, with control laws evaluated at every stage."""

    def __init__(self, task: Task, field: Field, tableau: Tableau, chart: Chart = VECTORS) -> None:
        super().__init__(task)
        self.field, self.tableau, self.chart = field, tableau, chart

    def rate(self, t: float, x: FloatArray) -> FloatArray:
        """Return the rate of an array."""
        return self.field(x, self.values(t, x), self.x, self.step)

    def once(self, t: float, values: State) -> FloatArray:
        """Return the array after the step that begins at t."""
        return runge_kutta_step(self.tableau, self.rate, t, self.x, self.step, self.chart)


class Adaptive(Scheme):
    """The pair of Dormand and Prince; steps of ``h`` are read from its dense output.

    Values given per step would force a restart at every step: it takes laws and constants only.
    """

    def __init__(
        self, task: Task, field: Field, tolerances: tuple[float, float], chart: Chart = VECTORS
    ) -> None:
        super().__init__(task)
        for drive in self.inputs.drives:
            if drive.rows is not None and len(drive.rows) > 1:
                raise ArgumentError(
                    f"dormand_prince takes {drive.name} as a constant or as a function of t, "
                    f"{drive.seen}, not row by row"
                )
        self.field = field
        rtol, atol = tolerances
        self.pair = DormandPrince(self.rate, 0.0, self.x, rtol=rtol, atol=atol, chart=chart)

    def rate(self, t: float, x: FloatArray) -> FloatArray:
        """Return the rate of an array; zero for members that are held."""
        found = self.field(x, self.values(t, x))
        if self._held is None:
            return found
        mask = self._held.reshape(self.batch + (1,) * (found.ndim - len(self.batch)))
        return np.where(mask, 0.0, found)

    def hold(self, members: FloatArray, x: FloatArray) -> None:
        """Keep these members at their states."""
        super().hold(members, x)
        self.pair.renew(np.where(self._held, x, self.pair.y))

    def once(self, t: float, values: State) -> FloatArray:
        """Return the array after the step that begins at t."""
        return self.pair.at(self.k * self.h + self.step)


def explicit(
    method: str,
    task: Task,
    field: Field,
    accuracy: tuple[float, float],
    chart: Chart = VECTORS,
) -> Scheme:
    """Return dormand_prince, or for another method the classical Runge-Kutta scheme."""
    if method == "dormand_prince":
        return Adaptive(task, field, accuracy, chart)
    return ExplicitRungeKutta(task, field, CLASSICAL, chart)


def field_of(kernel: Kernel, arguments: Arguments, stepwise: bool = False) -> Field:
    """Return the field that a kernel of the state and further arguments computes.

    A ``stepwise`` kernel takes the state at the beginning of the step as well.
    """

    def field(x: FloatArray, values: State, begun: Any = None, h: float = 0.0) -> FloatArray:
        states = (x, begun) if stepwise else (x,)
        found: FloatArray = kernel(*states, *arguments(values, h))
        return found

    return field


def tolerances(rtol: float, atol: float) -> tuple[float, float]:
    """Return the tolerances of :class:`Adaptive`, or raise ArgumentError."""
    for name, value, least in (("rtol", rtol, SMALLEST_RTOL), ("atol", atol, 0.0)):
        if checks.number(name, value) <= least:
            raise ArgumentError(f"{name} must be more than {least:g}; got {value:g}")
    return float(rtol), float(atol)


class ImplicitMidpoint(Scheme):
    """Implicit steps whose rates v are found by iteration, for many simulations at once.

    ``improved(x, v, ...)`` returns the next iterate of v, and ``finished(x, v, ...)`` the array
    after the step, in which the slice ``guess`` contains v as the start of the next step.
    """

    def __init__(
        self,
        task: Task,
        kernels: tuple[tuple[Kernel, Arguments], tuple[Kernel, Arguments]],
        guess: Any,
    ) -> None:
        super().__init__(task)
        (self.improved, self.of_improved), (self.finished, self.of_finished) = kernels
        self.guess = guess

    def once(self, t: float, values: State) -> FloatArray:
        """Return the array after the step that begins at t."""
        given = self.of_improved(values, self.step)
        v = np.ascontiguousarray(self.x[self.guess])
        for _ in range(ITERATIONS):
            before, v = v, self.improved(self.x, v, *given)
            change, size = _change(before, v)
            if change <= TOLERANCE * (1.0 + size):
                found: FloatArray = self.finished(self.x, v, *self.of_finished(values, self.step))
                return found
            if not size < LARGEST:
                break
        raise _not_convergent("midpoint", t, self.step)


def _change(before: FloatArray, after: FloatArray) -> tuple[float, float]:
    """Return the largest change of an entry, and the largest entry."""
    return float(np.abs(after - before).max(initial=0.0)), float(np.abs(after).max(initial=0.0))


def _not_convergent(what: str, t: float, h: float) -> SimulationError:
    return SimulationError(
        f"the {what} scheme does not converge at t = {t:.9g} s with steps of {h:g} s; take "
        "smaller ones",
        time=t,
    )
