# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Events: instants at which a function of time and state is zero, found between two steps."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from mbs_dynamics.algorithms.configurations import (
    difference,
    displaced,
    increment_rates,
    increment_velocities,
)
from mbs_dynamics.errors import ArgumentError
from mbs_dynamics.integrate.forces import Arrays
from mbs_dynamics.integrate.results import Event
from mbs_dynamics.model.coordinates import single_coordinates, velocity_names
from mbs_dynamics.model.model import Model

EventFunction = Callable[..., float]
"""Time and state of one simulation to a number; the event is where it changes its sign."""

Between = Callable[[float], Arrays]
"""The share of a step, 0 to 1, to the state there."""

Interpolation = Callable[[Arrays, Arrays, float], Between]
"""States before and after a step and its length to the interpolation between them."""

STOP = "stop"
"""Name of the event at which a simulation ends."""


def stop_events(model: Model) -> dict[str, EventFunction]:
    """Return event functions for joints that reach a position limit, by joint and end."""
    functions: dict[str, EventFunction] = {}
    for end, limits in (("lower", model.lower), ("upper", model.upper)):
        for at, k in single_coordinates(model.joints):
            if np.isfinite(limits[k]):
                name = f"{velocity_names(model.joints)[k]} at its {end} limit"
                functions[name] = lambda t, q, qd, at=at, end=limits[k]: float(q[at] - end)
    return functions


class Watch:
    """Detects events between two states, separately for each simulation of a batch."""

    def __init__(
        self, events: Mapping[str, EventFunction] | None, stop: EventFunction | None
    ) -> None:
        self.functions = dict(events or {})
        if STOP in self.functions:
            raise ArgumentError(f"no event may be called {STOP!r}: that is what ends a simulation")
        if stop is not None:
            self.functions[STOP] = stop
        for name, function in self.functions.items():
            if not callable(function):
                raise ArgumentError(f"event {name!r} must be a function; got {function!r}")
        self._values: dict[tuple[int, ...], dict[str, float]] = {}
        """Values of the functions now, by the index of the simulation and by name."""

    def begin(self, t: float, state: Arrays, batch: tuple[int, ...]) -> None:
        """Start at a state whose arrays have the axes of a batch."""
        for member in np.ndindex(batch):
            single = _of(state, member)
            self._values[member] = {name: self._value(name, t, single) for name in self.functions}

    def between(
        self, t: float, before: Arrays, after: Arrays, h: float, interpolated: Interpolation
    ) -> list[Event]:
        """Return the events of the step of h that begins at t, in order, up to the stop."""
        events: list[Event] = []
        for member in self._values:
            states = _of(before, member), _of(after, member)
            events += self._crossings(member, t, *states, h, interpolated)
        events.sort(key=lambda event: event.t)
        stop = next((k for k, event in enumerate(events) if event.name == STOP), len(events))
        return events[: stop + 1]

    def _crossings(
        self,
        member: tuple[int, ...],
        t: float,
        before: Arrays,
        after: Arrays,
        h: float,
        interpolated: Interpolation,
    ) -> Iterator[Event]:
        between: Between | None = None
        for name, first in self._values[member].items():
            last = self._value(name, t + h, after)
            self._values[member][name] = last
            if first * last < 0.0 or (last == 0.0 and first != 0.0):
                between = between or interpolated(before, after, h)
                s = 1.0 if last == 0.0 else self._bisected(name, first, t, h, between)
                q, qd = between(s)
                yield Event(name, t + s * h, q, qd, member)

    def _value(self, name: str, t: float, state: Arrays) -> float:
        value: Any = self.functions[name](t, *state)
        if np.shape(value) != () or not np.isfinite(value):
            raise ArgumentError(
                f"event {name!r} must return a finite number; got {value!r} at t = {t:g} s"
            )
        return float(value)

    def _bisected(self, name: str, first: float, t: float, h: float, between: Between) -> float:
        """Return where in the step, 0 to 1, the function is zero, to rounding."""
        low, high = 0.0, 1.0
        while high - low > 1e-13:
            middle = 0.5 * (low + high)
            if self._value(name, t + middle * h, between(middle)) * first <= 0.0:
                high = middle
            else:
                low = middle
        return high


def _of(state: Arrays, member: tuple[int, ...]) -> Arrays:
    return tuple(x[member] for x in state) if member else state


def between(model: Model) -> Interpolation:
    """Return the interpolation of q and qd by the cubic through both states, in increments of q.

    With q = q_0 exp(u), u is the cubic in the algebra, and qd has its rate: D (88), (89).
    """

    def interpolated(before: Arrays, after: Arrays, h: float) -> Between:
        (q0, v0), (q1, v1) = before, after
        u = np.asarray(difference(model, q0, q1))
        first, last = h * v0, h * np.asarray(increment_rates(model, u, v1))
        cubic, square = first + last - 2.0 * u, 3.0 * u - 2.0 * first - last

        def at(s: float) -> Arrays:
            change = s * (first + s * (square + s * cubic))
            slope = first + s * (2.0 * square + 3.0 * s * cubic)
            v = np.asarray(increment_velocities(model, change, slope / h))
            return np.asarray(displaced(model, q0, change)), v

        return at

    return interpolated
