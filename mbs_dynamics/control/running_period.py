# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The period of one arm as it runs: samples and settings as vectors, and the state in between."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from struct import Struct
from typing import Any, NamedTuple

import numpy as np

from mbs_dynamics.checks import FloatArray
from mbs_dynamics.control.environment import in_force
from mbs_dynamics.control.period import transitions
from mbs_dynamics.control.period.evidence import EFFORT_FLOOR
from mbs_dynamics.control.period.following import period_of
from mbs_dynamics.control.period.function import Period, initial
from mbs_dynamics.control.period.history import History, Replay, replayed
from mbs_dynamics.control.period.records import Result, Sample, Settings, State, Verdict
from mbs_dynamics.model.model import Model


class Reported(NamedTuple):
    """Fields of the state whose changes are reported; see State."""

    mode: float
    fault: float
    hold: float
    slipped: float
    opposed: float
    collided: float


MODES = {
    transitions.OFF: "disabled",
    transitions.RAMPING_IN: "ramping in",
    transitions.ON: "enabled",
    transitions.RAMPING_OUT: "ramping out",
    transitions.STOPPING: "fault",
    transitions.FAULT: "fault",
}
"""Names of the modes for users."""


class RunningPeriod:
    """The period of one arm as it runs.

    Parameters: ``joints`` (m,) are the coordinates of the commanded joints, and ``given`` the first
    settings. Raises BackendError if compiled code differs from the equations.
    """

    def __init__(
        self, model: Model, joints: Sequence[int], period: Period, given: Settings
    ) -> None:
        self.model, self.joints, self._period = model, list(joints), period
        self._use(given)
        period.verify(self._settings)
        self._state: FloatArray = period.state.packed(initial(period, given)).astype(float)
        self._record: State | None = None
        """The fields of the state, once they are read."""
        self._result: Result | None = None
        self._history = History(period, self._state)
        self._places = period.state.places
        self._reported_at = np.array([self._places[name].start for name in Reported._fields])
        self._reported = self._reported_of(self._state)
        self._sample: Any = self._silence(math.nan)
        self.sample: Sample = period.sample.unpacked(self._sample)
        """The sample of the next period: numbers, and arrays to be filled."""
        self._pack = Struct(f"{len(self._sample)}d").pack_into
        row, n = self._sample.tolist(), model.n
        self._unreported, self._rest = row[1 : 1 + 8 * n], row[1 + 8 * n :]
        self._zeros, self._unknown = [0.0] * n, [math.nan] * n
        self._in_force: tuple[Any, ...] = ()

    # -- settings ----------------------------------------------------------------------------------

    def _use(self, given: Settings) -> None:
        """Put all settings in force; numbers change by the ramps of the period."""
        self._given = given
        self._settings: FloatArray = self._period.settings.packed(given).astype(float)

    def _change(self, **fields: Any) -> None:
        """Put some settings in force."""
        self._given = self._given._replace(**fields)
        self._settings = self._settings.copy()  # the one before may be in the history
        for name, value in fields.items():
            self._settings[self._period.settings.places[name]] = np.ravel(value)

    def _retrace(self, period: Period) -> None:
        """Go on with a period that computes other laws."""
        if period is not self._period:
            self._period, self._history = period, History(period, self._state)

    # -- samples -----------------------------------------------------------------------------------

    def clear_sample(self, t: float) -> None:
        """Begin the sample of a period at time ``t``: nothing is reported so far."""
        self._pack(self._sample, 0, t, *self._unreported, *self._rest)

    def report(
        self,
        t: float,
        joints: Sequence[int],
        stamp: float,
        q: Sequence[float],
        qd: Sequence[float],
        efforts: Sequence[float],
    ) -> None:
        """Begin the sample of a period at time ``t`` with the states of some joints, each (k,).

        ``joints`` are their coordinates, ascending; ``stamp`` in s is that of their measurement.
        """
        n = self.model.n
        if len(joints) == n:
            self._pack(
                self._sample, 0, t, *[stamp] * n, *[t] * n, *[1.0] * n, *q, *qd, *efforts,
                *self._zeros, *self._unknown, *self._rest,
            )  # fmt: skip
            return
        self.clear_sample(t)
        x, k = self.sample, list(joints)
        x.stamp[k], x.received[k], x.reported[k] = stamp, t, 1.0
        x.q[k], x.qd[k], x.effort[k] = q, qd, efforts

    def _silence(self, t: float) -> FloatArray:
        """Return a sample in which nothing is reported."""
        zero, unknown = np.zeros(self.model.n), np.full(self.model.n, math.nan)
        nothing = Sample(
            t, unknown, unknown, zero, unknown, unknown, unknown, zero, unknown, zero, zero, 1.0,
            zero,
        )  # fmt: skip
        return np.asarray(self._period.sample.packed(nothing), dtype=float)

    # -- periods -----------------------------------------------------------------------------------

    def _reported_of(self, state: FloatArray) -> Reported:
        return Reported(*state[self._reported_at].tolist())

    def _run(self, sample: FloatArray, request: FloatArray) -> Reported:
        """Run a period, and return what was reported before."""
        self._history.note(self._state, sample, request, self._settings)
        result = self._period(self._state, sample, request, self._settings)
        self._state, self._record, self._result = result.state, None, result
        before, self._reported = self._reported, self._reported_of(self._state)
        return before

    def _tried(self, t: float, request: FloatArray) -> tuple[State, Verdict]:
        """Return state and verdict of a period that is not run."""
        result = self._period(self._state, self._silence(t), request, self._settings)
        period = self._period
        return period.state.unpacked(result.state), period.verdict.unpacked(result.verdict)

    def write_history(self, path: str | Path) -> None:
        """Write the latest periods, 5000 at least, as an .npz file for :meth:`replay`.

        Raises OSError if it cannot be written.
        """
        self._history.write(path, self._state)

    def replay(self, path: str | Path) -> Replay:
        """Return every command and verdict of the periods in a file; the arm is not affected.

        They are the same as then, number by number, laws included. Raises ArgumentError for a file
        that is not a history, or that of another robot.
        """
        return replayed(self.model, path)

    # -- state -------------------------------------------------------------------------------------

    @property
    def state_record(self) -> State:
        """The state of the period: arrays that are not changed later."""
        if self._record is None:
            self._record = self._period.state.unpacked(self._state)
        return self._record

    @property
    def verdict(self) -> Verdict:
        """What the latest period has found; NaN before the first."""
        if self._result is None:
            return self._period.verdict.unpacked(np.full(self._period.verdict.size, math.nan))
        return self._period.verdict.unpacked(self._result.verdict)

    @property
    def _mode(self) -> float:
        return self._reported.mode

    @property
    def state(self) -> str:
        """The state: disabled, ramping in, enabled, ramping out, or fault."""
        if self._mode == transitions.RAMPING_OUT and self._reported.hold == 1.0:
            return MODES[transitions.OFF]  # nothing ramps: the drives hold the arm already
        return MODES[self._mode]

    @property
    def engaged(self) -> bool:
        """Whether torques are enabled, or ramp in."""
        return self._mode in transitions.ENGAGED

    @property
    def moving(self) -> bool:
        """Whether torques follow the arm, or change towards those that a stop leads to."""
        return self._mode not in transitions.RELEASED

    @property
    def at_rest(self) -> bool:
        """Whether drives hold the arm, or nothing is commanded."""
        return bool(transitions.is_at_rest(self.state_record))

    @property
    def torques_are_in(self) -> bool:
        """Whether torques are enabled and have ramped in."""
        return self._mode == transitions.ON and not self.behind

    @property
    def behind(self) -> bool:
        """Whether the rate limit keeps the command from the torques that are wanted."""
        return bool(self._state[self._places["behind"].start])

    @property
    def saturated(self) -> list[int]:
        """Coordinates of the joints whose command is at its effort limit."""
        since = self._state[self._places["saturated_since"]]
        return np.flatnonzero(since < math.inf).tolist()  # type: ignore[no-any-return]

    @property
    def positions(self) -> FloatArray:
        """(m,) the latest positions in rad or m that were used, unwrapped; NaN before the first."""
        return np.asarray(self.state_record.q[self.joints])

    @property
    def efforts(self) -> FloatArray:
        """(m,) the latest measured efforts in N m or N, NaN where unknown."""
        return np.asarray(self.state_record.effort[self.joints])

    @property
    def held(self) -> FloatArray:
        """(m,) the positions in rad or m that the drives hold, where they do."""
        return np.asarray(self.state_record.held[self.joints])

    @property
    def fed_forward(self) -> FloatArray:
        """(m,) gravity torques in N m or N of the positions that the drives hold."""
        s = self.state_record
        return np.asarray((self._gravity_at(np.array(s.held)) * s.scale)[self.joints])

    @property
    def effort_limits(self) -> list[float]:
        """(m,) largest torques in N m or N."""
        return [float(self._given.effort[k]) for k in self.joints]

    @property
    def without_speed_limit(self) -> list[str]:
        """Names of the commanded joints whose speed is not watched."""
        fastest, names = self.model.velocity_limits, self.model.joint_names
        return [names[k] for k in self.joints if fastest[k] == math.inf]

    @property
    def motors_hold(self) -> bool:
        """Whether measured efforts show that motors hold the arm."""
        efforts, limits = self.efforts, self._given.effort[self.joints]
        known = bool(np.isfinite(efforts).all())
        return known and bool((abs(efforts) > EFFORT_FLOOR * limits).any())

    @property
    def stamps(self) -> list[float]:
        """(n,) the stamps in s of the latest accepted states, NaN before the first."""
        return self._state[self._places["stamp"]].tolist()  # type: ignore[no-any-return]

    @property
    def refused(self) -> FloatArray:
        """(n,) why the latest report of each joint was not used; 0: it was."""
        return np.asarray(self._state[self._places["refused"]])

    @property
    def weighing(self) -> bool:
        """Whether the arm is watched for evidence that its torques are right."""
        return bool(self.state_record.weighing)

    @property
    def period(self) -> float:
        """Time in s between two states, by which a stiffness is accepted; 0: not known yet."""
        return float(period_of(self.state_record, self._given))

    def _gravity_at(self, q: FloatArray) -> FloatArray:
        """Return the gravity torques (n,) at q (n,), not scaled, as the period computes them."""
        s = self.state_record
        return self._period.gravity(q, s.gravity, s.loads)

    def _model_in_force(self) -> Model:
        """Return the model under the gravity and with the loads of the latest period."""
        s, kept = self.state_record, self._in_force
        if not kept or (kept[0] != s.gravity).any() or (kept[1] != s.loads).any():
            model = in_force(self.model, np.array(s.gravity), np.array(s.loads))
            self._in_force = kept = np.array(s.gravity), np.array(s.loads), model
        model_in_force: Model = kept[2]
        return model_in_force
