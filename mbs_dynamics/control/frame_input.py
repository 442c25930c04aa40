# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Decides which frames of motors are used, and what faults of drives they report."""

from __future__ import annotations

import math
from collections.abc import Sequence
from operator import add, sub
from typing import Any

from mbs_dynamics.control.fast_path import FastFrames
from mbs_dynamics.control.input_checks import SLACK, largest_step
from mbs_dynamics.control.motors import Frame, Measured, Motors
from mbs_dynamics.control.policy import CommandPolicy, Doubt, Fault
from mbs_dynamics.control.turns import turning, turns_to
from mbs_dynamics.errors import listed
from mbs_dynamics.model.model import Model

APART = 0.1
"""Largest difference of the positions of two motors of one joint, in rad or m."""


class FrameInput:
    """The frames of the motors of an arm, merged and checked.

    ``hottest`` is the highest temperature in degrees Celsius. Faults of drives stop the arm by its
    ``policy``.
    """

    def __init__(self, motors: Motors, model: Model, policy: CommandPolicy, hottest: float) -> None:
        self._motors, self._policy, self._hottest = motors, policy, hottest
        self._coordinates, self._max_age = motors.coordinates, motors.max_age
        m = len(self._coordinates)
        turns = turning(model)
        self._turning = [turns[k] for k in self._coordinates]
        self._fastest = [float(model.velocity_limits[k]) for k in self._coordinates]
        single = len(motors.motors) == m
        self._fast = FastFrames(motors, hottest) if single else None
        self.positions: list[float] = [math.nan] * m
        """(m,) the latest positions that were accepted; angles without limits are unwrapped."""
        self._shown = self.positions
        """(m,) likewise, in the turn that the drives report."""
        self._turned = [0.0] * m
        """(m,) whole turns in rad from these to ``positions``."""
        self._any_turned = False
        self.reported: Sequence[float] = ()
        """(m,) likewise, in the units of the drives; empty if frames were not as usual."""
        self.stamps: list[float] = [-math.inf] * m
        """(m,) in s, of these positions."""
        self._suspect: list[tuple[float, float] | None] = [None] * m
        """(m,) position and stamp of the latest frame that jumped, if the ones after agree."""
        self.refused = [""] * m
        """(m,) why the latest frame of each joint was not used."""
        self._refusing = False
        """Whether there is any."""
        self._unknown: set[int | str] = set()
        self.remark = ""
        """Remark on frames, to be cleared by its reader; empty if there is none."""

    def read(self, frames: Sequence[Frame], t: float) -> tuple[Any, ...] | None:
        """Return coordinates, positions, velocities, efforts and stamps to be used, or None."""
        if self._fast is not None and not self._refusing:
            latest = t + self._max_age
            usual = self._fast.read(frames, self._shown, self.stamps, SLACK, latest)
            if usual is not None:
                q, qd, tau, stamps, self.reported = usual
                self._shown = q
                if self._any_turned:
                    q = list(map(add, q, self._turned))
                self.positions, self.stamps = q, stamps
                return self._coordinates, q, qd, tau, stamps
        measured = self._motors.measured(frames)
        joints, q, qd, tau, stamps, _, _, unknown, _ = measured
        if unknown and not self._unknown.issuperset(unknown):
            self._unknown.update(unknown)
            self.remark = f"frames of unknown motors {listed(map(str, unknown))} are ignored"
        self.positions, self.stamps = list(self.positions), list(self.stamps)
        self._shown = list(self._shown)
        self.reported = ()
        rows: list[tuple[Any, ...]] = []
        for place, k in enumerate(joints):
            self._check_drive(k, measured, place, t)
            turned = turns_to(q[place], self.positions[k]) if self._turning[k] else 0.0
            at = q[place] + turned
            why = self._why_not(k, at, qd[place], stamps[place], t)
            if why is None:
                continue
            self.refused[k] = why
            if not why:
                self.positions[k], self.stamps[k] = at, stamps[place]
                self._shown[k], self._turned[k] = q[place], turned
                self._suspect[k] = None
                coordinate = self._coordinates[k]
                rows.append((coordinate, at, qd[place], tau[place], stamps[place]))
        self._refusing, self._any_turned = any(self.refused), any(self._turned)
        return tuple(map(list, zip(*rows, strict=True))) if rows else None

    def _check_drive(self, k: int, measured: Measured, place: int, t: float) -> None:
        """Stop if the drive of joint ``k`` reports an error, or its motors are apart."""
        name, fault = self._motors.joint_names[k], None
        if measured.errors[place]:
            message = f"the drive of {name} reports error {measured.errors[place]}"
            fault = Fault("drive_error", message, Doubt.MOTOR, (k,))
        elif measured.temperatures[place] > self._hottest:
            message = f"{name} is at {measured.temperatures[place]:.4g} degrees Celsius"
            fault = Fault("temperature", f"{message}; valid is {self._hottest:g}")
        elif measured.apart and measured.apart[place] > APART:
            message = (
                f"the motors of {name} are {measured.apart[place]:.4g} apart; valid is {APART}"
            )
            fault = Fault("motors_apart", message, Doubt.ENCODER, (k,))
        if fault is not None:
            self._policy.trip(t, fault)

    def _why_not(self, k: int, q: float, qd: float, stamp: float, t: float) -> str | None:
        """Return why a frame is not used, empty if it is; None if it is none, but the one before.

        A frame that jumps away from those before is not used. Frames that agree with it make the
        encoder doubtful.
        """
        before, at = self.stamps[k], self.positions[k]
        if not (math.isfinite(q) and math.isfinite(qd)):
            return f"its position is {q} and its velocity {qd}"
        if not math.isfinite(stamp) or stamp > t + self._max_age:
            return f"its stamp is {stamp:.6g} s, and now is {t:.6g} s"
        if stamp == before:
            return None
        if stamp < before:
            return f"its stamp is {before - stamp:.6g} s before that of the frame before"
        if math.isnan(at) or not self._jumps(k, q - at, stamp - before):
            return ""
        suspect, self._suspect[k] = self._suspect[k], (q, stamp)
        if suspect is not None:
            moved = q - suspect[0]
            moved += turns_to(moved, 0.0) if self._turning[k] else 0.0
            if self._jumps(k, moved, stamp - suspect[1]):
                self._suspect[k] = None
        if not self._policy.engaged and stamp - before >= self._max_age:
            return ""  # nothing moves by it
        return f"it jumped by {q - at:.4g} in {stamp - before:.3g} s"

    def _jumps(self, k: int, moved: float, elapsed: float) -> bool:
        return bool(abs(moved) > largest_step(self._fastest[k], max(elapsed, 0.0)))

    def shown(self, positions: Sequence[float]) -> Sequence[float]:
        """Return positions (m,) in the turns that the drives report, to command them."""
        return list(map(sub, positions, self._turned)) if self._any_turned else positions

    def silence(self, t: float) -> Fault:
        """Return the fault of the motor of which no frame was used for the longest time."""
        most, oldest = self._max_age, min(self.stamps)
        k = self.stamps.index(oldest)
        name, why = self._motors.joint_names[k], self.refused[k]
        if self._suspect[k] is not None and why:
            return Fault("encoder_jump", f"{name}: {why}", Doubt.ENCODER, (k,))
        silent = sum(t - stamp >= most for stamp in self.stamps)
        message = f"no valid frame of {name} for {t - oldest:.3f} s; max_age is {most:g}"
        more = f"; likewise {silent - 1} more" if silent > 1 else ""
        return Fault("stale", message + more + (f"; {why}" if why else ""), Doubt.STATE)
