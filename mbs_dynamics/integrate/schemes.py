# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The integrators behind one interface.

A scheme works on arrays of its own, into which it packs the states that laws and events receive.
Drives that are no laws are held over each step. A law is evaluated once per step
(:class:`FixedStep`, :class:`ImplicitMidpoint`) or at every stage (:class:`ExplicitRungeKutta`,
:class:`Adaptive`).
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
from mbs_dynamics.compiler import Kernel
from mbs_dynamics.errors import ArgumentError, SimulationError, SingularError
from mbs_dynamics.integrate.charts import Arrangement
from mbs_dynamics.integrate.forces import Arrays, Features, Inputs, JointForces, finite
from mbs_dynamics.integrate.friction import LIMIT, iterated, packed, settled
from mbs_dynamics.integrate.runge_kutta import CLASSICAL, Chart, DormandPrince, runge_kutta_step
from mbs_dynamics.integrate.stepper import inputs_of_step, parameters_of
from mbs_dynamics.model.model import Model

Arguments = Callable[[Arrays, float], tuple[Any, ...]]
"""The values of the drives and the step to what a kernel takes after its first inputs."""

Field = Callable[..., FloatArray]
"""Arrays of states, and the values of the drives and the step by name, to an array."""

BISECTIONS = 50
"""Halvings of a step in the search for the instant at which friction changes."""

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
    inputs: Inputs
    """Motor torques, and wrenches on the bodies if there are any."""
    h: float
    """Step, s."""
    start: Arrays
    """The first q and qd, or a batch of them."""
    backend: str | None
    solver: str = "articulated_body"
    """Method of :func:`mbs_dynamics.forward_dynamics`, where the whole step is no kernel."""

    @property
    def features(self) -> Features:
        """Kinds of forces in the joints."""
        return Features() if self.forces is None else self.forces.features

    @property
    def states(self) -> Arrangement:
        """Arrangement of q and qd in arrays."""
        return Arrangement(self.model)

    def kernel(
        self,
        name: str,
        equations: Callable[..., Any],
        inputs: Mapping[str, tuple[int, ...]],
        key: Any = (),
    ) -> tuple[Kernel, Arguments]:
        """Return a kernel of inputs, efforts, h, wrenches and joints, and its arguments."""
        wrenches = len(self.inputs.drives) > 1
        every = {**inputs, **inputs_of_step(self.model, self.features, wrenches)}
        key = key, tuple(every)
        kernel = compiled_on(self.model, key, equations, every, name=name, backend=self.backend)
        return kernel, self.arguments(kernel)

    def arguments(self, kernel: Kernel) -> Arguments:
        """Return a function from values of the drives to the arguments after a kernel's state."""
        constants = parameters_of(self.model, self.forces, kernel)
        return lambda values, h: (values[0], np.array(h), *values[1:], *constants)


class Scheme(ABC):
    """A state ``x`` that advances by steps of ``h``, one by one."""

    def __init__(self, problem: Problem) -> None:
        self.model, self.inputs, self.h = problem.model, problem.inputs, problem.h
        self.states, self.sliding = problem.states, problem.features.friction
        self.x = self.pack(*problem.start)
        self.step = self.h
        """Length of the next steps, s: the last one may be shorter."""
        self.k = 0
        self.batch = self.x.shape[: self.x.ndim - self.states.axes]
        self._held: Any = None

    def pack(self, q: FloatArray, qd: FloatArray) -> FloatArray:
        """Return the array of a state, with the parts of friction if there is any."""
        array: FloatArray = self.states.joined(q, qd)
        return packed(self.states, array) if self.sliding else array

    def seen(self, x: FloatArray) -> Arrays:
        """Return q and qd, which laws and events receive, from an array."""
        q, qd, *_ = self.states.parts(x)
        return q, qd

    @abstractmethod
    def one_step(self, t: float, values: Arrays) -> FloatArray:
        """Return the array after a step from t with these values of the drives."""

    def values(self, t: float, x: FloatArray) -> Arrays:
        """Return the values of the drives at t, in the present step."""
        return self.inputs.at(self.k, t, self.seen(x), self.batch)

    def hold(self, members: FloatArray, x: FloatArray) -> None:
        """Keep the members of the batch in a mask at their states in x from now on."""
        mask = members.reshape(members.shape + (1,) * self.states.axes)
        self._held = mask
        self.x = np.where(mask, x, self.x)

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

    def __init__(self, problem: Problem, kernel: Kernel, arguments: Arguments) -> None:
        super().__init__(problem)
        self.kernel, self.arguments = kernel, arguments

    def advance(self, steps: int) -> tuple[FloatArray, Arrays]:
        if self.inputs.laws:
            return super().advance(steps)
        rows = self.inputs.rows_from(self.k, steps)
        arguments = self.arguments(rows, self.step)
        try:
            if self.sliding:
                states = iterated(self.kernel, self.x, arguments, steps, self.states)
            else:
                states = self.kernel.iterate(self.x, *arguments, steps=steps)
        except SingularError as error:
            if error.trajectory is None or len(error.trajectory) < 2:
                raise
            states = error.trajectory
        states = states[1:]
        if self._held is not None:
            states = np.where(self._held, self.x, states)
        self.x, self.k = states[-1], self.k + len(states)
        return states, rows

    def one_step(self, t: float, values: Arrays) -> FloatArray:
        arguments = self.arguments(values, self.step)
        if self.sliding:
            return settled(self.kernel, self.x, self.states, *arguments)
        x: FloatArray = self.kernel(self.x, *arguments)
        return x


class ExplicitRungeKutta(Scheme):
    """Classical Runge-Kutta steps, with control laws evaluated at every stage.

    ``field(state, begun, ...)`` returns the rate of q and qd in a step that begins with the array
    ``begun``, and ``finished(begun, state, ...)`` the array after it.
    """

    def __init__(
        self, problem: Problem, field: Field, finished: Field | None, chart: Chart
    ) -> None:
        super().__init__(problem)
        self.field, self.finished, self.chart = field, finished, chart

    def one_step(self, t: float, values: Arrays) -> FloatArray:

        def attempted(begun: FloatArray) -> FloatArray:
            def rate(t: float, x: FloatArray) -> FloatArray:
                return self.field(x, begun, values=self.values(t, x), h=self.step)

            y = self.states.joined(*self.seen(begun))
            y = runge_kutta_step(CLASSICAL, rate, t, y, self.step, self.chart)
            if self.finished is None:
                return y
            return self.finished(begun, y, values=values, h=self.step)

        return settled(attempted, self.x, self.states) if self.sliding else attempted(self.x)


class Adaptive(Scheme):
    """The pair of Dormand and Prince; steps of ``h`` are read from its dense output.

    Values given per step would force a restart at every step: it takes laws and constants only.
    ``field`` returns the rate of an array. With friction it takes the directions ``signs`` in which
    joints slide, zero for those that stand, and the number of revisions too, and returns the
    revised directions as a third part. They stay until friction requires others; a step ends then.
    """

    def __init__(
        self, problem: Problem, field: Field, tolerances: tuple[float, float], chart: Chart
    ) -> None:
        super().__init__(problem)
        for drive in self.inputs.drives:
            if drive.rows is not None and len(drive.rows) > 1:
                raise ArgumentError(
                    f"dormand_prince takes {drive.name} as a constant or as a function of t, "
                    "q, qd, not row by row"
                )
        self.field = field
        self.signs = np.zeros((*self.batch, self.model.n))
        self._turn(0.0, self.x)
        rtol, atol = tolerances
        self.pair = DormandPrince(self.rate, 0.0, self.x, rtol=rtol, atol=atol, chart=chart)

    def pack(self, q: FloatArray, qd: FloatArray) -> FloatArray:
        return np.asarray(self.states.joined(q, qd))

    def rate(self, t: float, x: FloatArray) -> FloatArray:
        """Return the rate of an array; zero for members that are held."""
        rate = self._field(t, x)
        if self.sliding:
            rate = self.states.joined(*self.states.parts(rate, self.model.n)[:2])
        if self._held is None:
            return rate
        mask = self._held.reshape(self.batch + (1,) * (rate.ndim - len(self.batch)))
        return np.where(mask, 0.0, rate)

    def _field(self, t: float, x: FloatArray) -> FloatArray:
        more = (self.signs, np.zeros(())) if self.sliding else ()
        return self.field(x, *more, values=self.values(t, x))

    def hold(self, members: FloatArray, x: FloatArray) -> None:
        """Keep these members at their states."""
        super().hold(members, x)
        self.pair.renew(np.where(self._held, x, self.pair.y))

    def one_step(self, t: float, values: Arrays) -> FloatArray:
        return self.pair.at(self.k * self.h + self.step, self._slip if self.sliding else None)

    def _slip(self) -> None:
        """End the last step of the pair where joints stop or begin to slide."""
        pair = self.pair
        if not self._slips(pair.t, pair.y):
            return
        low, high = pair.begun, pair.t
        for _ in range(BISECTIONS):
            middle = 0.5 * (low + high)
            if self._slips(middle, pair.between(middle)):
                high = middle
            else:
                low = middle
        x = pair.between(high)
        q, qd = self.seen(x)
        stops = (self.signs != 0.0) & (self._field(high, x)[self.states.last()] == 0.0)
        x = self.states.joined(q, np.where(stops, 0.0, qd))
        self._turn(high, x)
        pair.renew(x, high)

    def _slips(self, t: float, x: FloatArray) -> bool:
        slips = self._field(t, x)[self.states.last()] != self.signs
        if self._held is not None:
            slips &= ~self._held.reshape((*self.batch, 1))
        return bool(slips.any())

    def _turn(self, t: float, x: FloatArray) -> None:
        """Let joints slide or stand as friction requires at an instant."""
        if self.sliding:
            rates = instant(self.field, self.states, x, self.values(t, x), self.signs)
            self.signs = rates[self.states.last()]


def instant(
    field: Field,
    states: Arrangement,
    x: FloatArray,
    values: Arrays,
    before: FloatArray | float = 0.0,
) -> FloatArray:
    """Return rates of q and qd, and directions (..., n) in which joints slide, zero if they stand.

    ``field`` is that of :class:`Adaptive`; ``before`` are directions to try in joints at rest.
    """
    qd = states.parts(x)[1]
    signs = np.where(qd != 0.0, np.sign(qd), before)
    for count in range(LIMIT):
        rates = field(x, signs, np.array(float(count)), values=values)
        if (rates[states.last()] == signs).all():
            break
        signs = rates[states.last()]
    return rates


def field_of(kernel: Kernel, arguments: Arguments) -> Field:
    """Return the field that a kernel of states and further arguments computes."""

    def field(*states: FloatArray, values: Arrays, h: float = 0.0) -> FloatArray:
        rate: FloatArray = kernel(*states, *arguments(values, h))
        return rate

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
        problem: Problem,
        kernels: tuple[tuple[Kernel, Arguments], tuple[Kernel, Arguments]],
        guess: Any,
    ) -> None:
        super().__init__(problem)
        (self.improved, self.of_improved), (self.finished, self.of_finished) = kernels
        self.guess = guess

    def pack(self, q: FloatArray, qd: FloatArray) -> FloatArray:
        """Return q, qd, the momenta p, and rates to begin the iteration with."""
        p = (mass_matrix(self.model, q) @ qd[..., None])[..., 0]
        array: FloatArray = self.states.joined(q, qd, p, qd)
        return array

    def one_step(self, t: float, values: Arrays) -> FloatArray:
        given = self.of_improved(values, self.step)
        v = np.ascontiguousarray(self.x[self.guess])
        for _ in range(ITERATIONS):
            before, v = v, self.improved(self.x, v, *given)
            change, size = (float(np.abs(x).max(initial=0.0)) for x in (v - before, v))
            if change <= TOLERANCE * (1.0 + size):
                array: FloatArray = self.finished(self.x, v, *self.of_finished(values, self.step))
                return array
            if not size < LARGEST:
                break
        raise SimulationError(
            f"the midpoint scheme does not converge at t = {t:.9g} s with steps of {self.step:g} "
            "s; take smaller ones",
            time=t,
        )
