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
"""Events: instants at which a function of time and state is zero, found between two steps."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from mbs_dynamics.checks import FloatArray
from mbs_dynamics.errors import ArgumentError
from mbs_dynamics.integrate.joint_forces import position_limits
from mbs_dynamics.integrate.motion import Event
from mbs_dynamics.model.tree import Model

EventFunction = Callable[[float, FloatArray, FloatArray], float]
"""Time, q and qd to a number; the event is where it changes its sign."""

STOP = "stop"
"""Name of the event at which a simulation ends."""


def stop_events(model: Model) -> dict[str, EventFunction]:
    """Return event functions for joints that reach a limit of position, by joint and end."""
    found: dict[str, EventFunction] = {}
    for end, limits in zip(("lower", "upper"), position_limits(model), strict=True):
        for k, (name, limit) in enumerate(zip(model.joint_names, limits, strict=True)):
            if np.isfinite(limit):
                found[f"{name} at its {end} limit"] = _distance(k, float(limit))
    return found


def _distance(k: int, limit: float) -> EventFunction:
    return lambda t, q, qd: float(q[k]) - limit


class Watch:
    """Finds the events between two states, by cubic interpolation of the positions."""

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
        self._values: dict[str, float] = {}

    def __bool__(self) -> bool:
        return bool(self.functions)

    def begin(self, t: float, state: FloatArray) -> None:
        """Start at a state (2, n)."""
        self._values = {name: self._value(name, t, state) for name in self.functions}

    def between(self, t: float, before: FloatArray, h: float, after: FloatArray) -> list[Event]:
        """Return the events of the step of h from t, in order, up to the one that ends it all."""
        found = []
        for name in self.functions:
            first, last = self._values[name], self._value(name, t + h, after)
            self._values[name] = last
            if first * last < 0.0 or (last == 0.0 and first != 0.0):
                s = self._crossing(name, first, last, t, before, h, after)
                q, qd = interpolated(before, after, h, s)
                found.append(Event(name, t + s * h, q, qd))
        found.sort(key=lambda event: event.t)
        names = [event.name for event in found]
        return found[: names.index(STOP) + 1] if STOP in names else found

    def _value(self, name: str, t: float, state: FloatArray) -> float:
        value: Any = self.functions[name](t, state[0], state[1])
        if np.shape(value) != () or not np.isfinite(value):
            raise ArgumentError(
                f"event {name!r} must return a finite number; got {value!r} at t = {t:g} s"
            )
        return float(value)

    def _crossing(
        self,
        name: str,
        first: float,
        last: float,
        t: float,
        before: FloatArray,
        h: float,
        after: FloatArray,
    ) -> float:
        """Return where in the step, 0 to 1, the function is zero: bisected to rounding."""
        low, high = 0.0, 1.0
        if last == 0.0:
            return high
        while high - low > 1e-13:
            middle = 0.5 * (low + high)
            at = np.array(interpolated(before, after, h, middle))
            value = self._value(name, t + middle * h, at)
            if value * first <= 0.0:
                high = middle
            else:
                low = middle
        return high


def interpolated(
    before: FloatArray, after: FloatArray, h: float, s: float
) -> tuple[FloatArray, FloatArray]:
    """Return q and qd at the share s of a step: the cubic through both states, and its rate."""
    (q0, v0), (q1, v1) = before, after
    change = q1 - q0 - h * v0
    bend = h * (v1 - v0)
    cubic, square = bend - 2.0 * change, 3.0 * change - bend
    q = q0 + s * (h * v0 + s * (square + s * cubic))
    return q, v0 + s * (2.0 * square + 3.0 * s * cubic) / h
