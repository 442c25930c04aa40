# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The period of one arm as it runs: samples and settings as vectors, and the state in between."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from mbs_dynamics.checks import FloatArray
from mbs_dynamics.control.environment import in_force
from mbs_dynamics.control.period import transitions
from mbs_dynamics.control.period.function import Period, initial
from mbs_dynamics.control.period.history import History
from mbs_dynamics.control.period.records import (
    REPORTS,
    Request,
    Result,
    Sample,
    Settings,
    State,
    Verdict,
)
from mbs_dynamics.model.model import Model

CACHED_PLACES = 256
"""Number of sets of joints whose places in a sample are cached."""


class Reported(NamedTuple):
    """Fields of the state whose changes are reported in words; see State."""

    mode: float
    fault: float
    hold: float
    slipped: float
    opposed: float
    collided: float
    unknown_since: float


class RunningPeriod:
    """The period of one arm as it runs.

    Parameters: ``joints`` (m,) are the coordinates of the commanded joints, ``function`` is the
    compiled period, ``given`` are the first settings, and ``fixed`` the positions of joints that
    report no state, by coordinate. Call :meth:`set_request` before the first period. Raises
    BackendError if compiled code differs from the equations.
    """

    def __init__(
        self,
        model: Model,
        joints: Sequence[int],
        function: Period,
        given: Settings,
        fixed: Mapping[int, float] = {},
    ) -> None:
        self.model, self.joints, self.function = model, list(joints), function
        self.use(given)
        function.verify(self._settings)
        self._state: FloatArray = function.state.packed(initial(given))
        self._record: State | None = None
        """The fields of the state, once they are read."""
        for k, position in fixed.items():
            s = self.state
            for row in (s.q, s.trusted, s.held, s.slow_q):
                row[k] = position
            s.qd[k] = s.stamp[k] = s.received[k] = 0.0
        self._result: Result | None = None
        self._history = History(function, self._state)
        self._places = function.state.places
        self._reported_at = np.array([self._places[name].start for name in Reported._fields])
        self._numbers: list[float] = []
        self._update_reported()
        self._silence: FloatArray = function.sample.packed(Sample())
        self.clear_sample(math.nan)
        self._report_places = lru_cache(CACHED_PLACES)(self._places_of)
        self._in_force: tuple[Any, ...] = ()
        self._start, self._ramp = (given.gravity, given.loads), 0.0
        """Gravity and loads at which the latest ramp of gravity torques began, and its time."""
        self._request: Any = None

    # -- settings and requests ---------------------------------------------------------------------

    def use(self, given: Settings) -> None:
        """Put all settings in force; the period ramps those that must not jump."""
        self.given = given
        self._settings: FloatArray = self.function.settings.packed(given)

    def change(self, **fields: Any) -> None:
        """Put some settings in force."""
        given, names = self.given._replace(**fields), ("gravity", "loads")
        new = [x for x in names if x in fields and (fields[x] != getattr(self.given, x)).any()]
        time = max([getattr(given, f"{x}_time") for x in new], default=0.0)
        if time > 0.0:
            self._start, self._ramp = self.environment(self.state), time
        else:  # at once, while the other goes on with its ramp
            pairs = zip(names, self._start, strict=True)
            gravity, loads = (getattr(given, x) if x in new else start for x, start in pairs)
            self._start = gravity, loads
        self.given = given
        self._settings = self._settings.copy()  # the one before may be in the history
        for name, value in fields.items():
            self._settings[self.function.settings.places[name]] = np.ravel(value)

    def retrace(self, function: Period) -> None:
        """Continue with a period that computes other laws."""
        if function is not self.function:
            self.function, self._history = function, History(function, self._state)

    def set_request(self, request: Request) -> None:
        """Set the request of the next periods."""
        self._request = self.function.request.packed(request)

    # -- samples -----------------------------------------------------------------------------------

    def clear_sample(self, t: float) -> None:
        """Begin the sample of a period at time ``t``: nothing is reported so far."""
        self._sample: FloatArray = self._silence.copy()
        self._sample[0] = t

    def report(self, t: float, joints: tuple[int, ...], values: FloatArray) -> None:
        """Begin the sample of a period at time ``t`` with the reports of k joints.

        ``joints`` (k,) are their coordinates, and ``values`` (9, k) the fields of REPORTS in
        ``records.py``.
        """
        self.clear_sample(t)
        self._sample[self._report_places(joints)] = values

    def _places_of(self, joints: tuple[int, ...]) -> Any:
        """Return the places (9, k) of reports of joints in the sample."""
        starts = [self.function.sample.places[name].start for name in REPORTS]
        return np.array(starts)[:, None] + np.array(joints, dtype=np.intp)

    def put(self, name: str, values: Any, joints: Any = slice(None)) -> None:
        """Fill a field of the sample of the next period, for all joints or some."""
        self._sample[self.function.sample.places[name]][joints] = values

    # -- periods -----------------------------------------------------------------------------------

    def run(self) -> FloatArray:
        """Run a period; return its output, a vector of the fields of ``Output`` in records.py."""
        output: FloatArray = self._run(self._sample, self._request).output
        return output

    def apply(self, t: float, request: Request) -> None:
        """Run a period without reports for a request; the command stays until the next one."""
        sample = self.function.sample.packed(Sample(now=t))
        self._run(sample, self.function.request.packed(request))

    def _run(self, sample: FloatArray, request: FloatArray) -> Result:
        self._history.store(self._state, sample, request, self._settings)
        self._result = result = self.function(self._state, sample, request, self._settings)
        self._state, self._record = result.state, None
        self._update_reported()
        return result

    def _update_reported(self) -> None:
        """Replace ``reported``, which stays the same object until one of its numbers changes."""
        numbers = self._state[self._reported_at].tolist()
        if numbers != self._numbers:
            self._numbers, self.reported = numbers, Reported(*numbers)

    def trial(self, t: float, request: Request) -> tuple[State, Verdict]:
        """Return state and verdict of a trial period without reports; the arm is not affected."""
        function = self.function
        sample, packed = function.sample.packed(Sample(now=t)), function.request.packed(request)
        result = function(self._state, sample, packed, self._settings)
        return function.state.unpacked(result.state), function.verdict.unpacked(result.verdict)

    def trial_of_sample(self) -> State:
        """Return the state of a trial of the next period; the arm is not affected."""
        result = self.function(self._state, self._sample, self._request, self._settings)
        return self.function.state.unpacked(result.state)

    def trial_at_rest(self, function: Period, given: Settings, request: Request) -> State:
        """Return the state of a trial period of an arm at rest, which ``function`` computes."""
        at_rest = function.state.packed(self.state._replace(mode=transitions.OFF))
        inputs = function.request.packed(request), function.settings.packed(given)
        return function.state.unpacked(function(at_rest, self._silence, *inputs).state)

    def latch_fault(self) -> None:
        """Start with a fault of the arm that another guard has latched; the arm must be at rest."""
        state = self._state.copy()
        state[self._places["mode"]], state[self._places["fault"]] = transitions.FAULT, -1.0
        self._state, self._record = state, None
        self._history = History(self.function, state)
        self._update_reported()

    def write_history(self, path: str | Path) -> None:
        """Write the latest periods, 5000 at least. Raises OSError if that fails."""
        self._history.write(path, self._state)

    # -- state -------------------------------------------------------------------------------------

    @property
    def state(self) -> State:
        """The state of the period. Its arrays are never changed later."""
        if self._record is None:
            self._record = self.function.state.unpacked(self._state)
        return self._record

    @property
    def verdict(self) -> Verdict:
        """The findings of the latest period; NaN before the first."""
        verdict = self.function.verdict
        if self._result is None:
            return verdict.unpacked(np.full(verdict.size, math.nan))
        return verdict.unpacked(self._result.verdict)

    def number(self, name: str) -> float:
        """Return a number of the state, without the rest of it."""
        return self._state.item(self._places[name].start)

    def stamps(self) -> list[float]:
        """Return the stamps (n,) in s of the latest accepted states, NaN before the first."""
        return self._state[self._places["stamp"]].tolist()  # type: ignore[no-any-return]

    @property
    def engaged(self) -> bool:
        """Whether torques are enabled, or ramp in."""
        return self.reported.mode in transitions.ENGAGED

    @property
    def floats_since_collision(self) -> bool:
        """Whether a collision has interrupted the law, until torques are enabled again."""
        return self.engaged and self.reported.collided >= 0.0

    def environment(self, s: State) -> tuple[FloatArray, FloatArray]:
        """Return gravity (3,) and loads (nb, 10), along the ramp of gravity torques in a state."""
        goals = self.given.gravity, self.given.loads
        left = max(0.0, float(s.lag_end - s.now))
        if not left or not self._ramp:
            return goals
        share = min(1.0, left / self._ramp)
        gravity, loads = (
            goal + share * (start - goal) for goal, start in zip(goals, self._start, strict=True)
        )
        return gravity, loads

    def model_in_force(self, s: State) -> Model:
        """Return the model with the gravity and the loads of a state."""
        gravity, loads = self.environment(s)
        cached = self._in_force
        if not cached or (cached[0] != gravity).any() or (cached[1] != loads).any():
            self._in_force = cached = gravity, loads, in_force(self.model, gravity, loads)
        model_in_force: Model = cached[2]
        return model_in_force
