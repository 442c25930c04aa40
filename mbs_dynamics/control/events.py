# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Faults, collisions, warnings and remarks of an arm under guard, as text."""

from __future__ import annotations

import math

import numpy as np

from mbs_dynamics.control.collision import Collision, collision_of
from mbs_dynamics.control.faults import Fault
from mbs_dynamics.control.law_in_force import LawInForce
from mbs_dynamics.control.period import transitions
from mbs_dynamics.control.period.records import NEVER
from mbs_dynamics.control.period.sentences import fault_of, problems
from mbs_dynamics.control.remarks import Remarks
from mbs_dynamics.control.running_period import Reported, RunningPeriod
from mbs_dynamics.control.turns import sliding
from mbs_dynamics.errors import listed

REMARKED = ("ended", "stiffness_share", "waits_since", "link_waits_since", "obeys")
"""Fields of the state on which remarks about references depend."""


class Events:
    """The faults and collisions of an arm, and warnings and remarks about it.

    ``source`` names the source of states in messages. Call :meth:`update` after each period.
    """

    def __init__(self, running: RunningPeriod, laws: LawInForce, source: str) -> None:
        self._running, self._laws, self._source = running, laws, source
        self._reported = running.reported
        slides = sliding(running.model)
        units = ["m" if slides[k] else "rad" for k in running.joints]
        self._lags = Remarks(laws.motion, units)
        self.fault: Fault | None = None
        """The fault that stopped the arm, until it is cleared; None if there is none."""
        self.collision: Collision | None = None
        """The latest collision since torques were enabled, or the law was changed; else None."""
        self.trouble: Fault | None = None
        """Why the latest message about the arm was not used; None if it was."""
        self.external: Fault | None = None
        """The latest external reason to stop."""
        self._efforts_end = False
        """Whether checks that need efforts became inactive since torques were enabled."""
        self._remarks: list[str] = []
        self._warnings: list[str] = []

    def warnings(self) -> list[str]:
        """Return the warnings since the last call."""
        said, self._warnings = self._warnings, []
        return said

    def remarks(self) -> list[str]:
        """Return the remarks since the last call."""
        said, self._remarks = self._remarks, []
        return said

    def summary(self) -> str:
        """Return warnings and remarks since the last call as one sentence; empty if none."""
        if not (self._warnings or self._remarks):
            return ""
        return "; ".join([*self.warnings(), *self.remarks()])

    def remark(self, *said: str) -> None:
        """Add to the next :meth:`remarks`."""
        self._remarks += said

    def restart(self) -> None:
        """Enable again the messages that are reported once after torques are enabled."""
        self._efforts_end = False
        self._lags.restart()

    def adopt(self, fault: Fault) -> None:
        """Adopt a fault that is already latched."""
        self._reported, self.fault = self._running.reported, fault

    def update(self) -> bool:
        """Report the changes since the last call; return whether there are any."""
        before, now = self._reported, self._running.reported
        if now is before:
            return False
        self._reported = now
        self._report_changes(before, now)
        if self._running.engaged and not self._efforts_end:
            self._efforts_end = now.unknown_since < math.inf
            if self._efforts_end:
                self._warnings += self.inactive_checks()
        return True

    def update_law(self) -> None:
        """Report how the law in force follows its reference."""
        law, running = self._laws.in_force, self._running
        if law is None or not running.engaged:
            return
        ended, *numbers = running.numbers(*REMARKED)
        if self._laws.motion.trajectory is not None and ended:
            self._laws.motion.end()
            self._laws.update_request()
            self.remark("the trajectory has ended, and its last point is held")
        if self._lags.due(*numbers):
            self.remark(*self._lags.new(running.state, running.given, law))

    def _report_changes(self, before: Reported, now: Reported) -> None:
        running = self._running
        names = running.model.joint_names
        if (now.mode, now.fault) != (before.mode, before.fault):
            self._report_fault(now.mode)
        if now.slipped != before.slipped and now.slipped >= 0.0:
            k = int(now.slipped)
            self.remark(
                f"the drive of {names[k]} does not hold it: it is {running.given.slip[k]:.3g} from "
                "where it is to be"
            )
        if now.collided != before.collided:
            self._report_collision(now.collided)
        if now.opposed and not before.opposed and not running.engaged and now.fault == 0.0:
            self.remark(*problems(running.verdict, running.state, names, kinds=("support",)))

    def _report_fault(self, mode: float) -> None:
        """Store a fault that has been latched, or forget one."""
        running = self._running
        if mode not in (transitions.STOPPING, transitions.FAULT):
            self.fault = None
            return
        if self.fault is not None:
            return
        found = fault_of(running.state, running.model.joint_names, running.joints)
        if found is not None and found.kind in ("stale", "encoder_jump") and self.trouble:
            trouble = self.trouble  # messages come, and cannot be used
            found = found._replace(kind=trouble.kind, reason=f"{trouble.reason}; {found.reason}")
        self.fault = found or self.external

    def _report_collision(self, joint: float) -> None:
        """Store a collision that has begun, or forget one."""
        self.collision = None
        if joint < 0.0:
            return
        running = self._running
        self.collision = collision_of(running.state, running.given, running.model_in_force())
        names = running.model.joint_names
        said = problems(running.verdict, running.state, names, kinds=("contact",))
        if said:
            self.remark(f"collision: {said[0]}; the arm floats")
            self._laws.stop()

    def inactive_checks(self) -> list[str]:
        """Return which checks are inactive without the efforts that are unknown."""
        running, given = self._running, self._running.given
        unknown = np.isnan(running.state.effort)
        reasons = []
        if given.tolerance > 0.0 and unknown[running.joints].any():
            settings = "effort_check tracking, or tracking_tolerance"
            reasons.append(f"they are not compared with commands ({settings})")
        if (unknown & (given.impact_threshold < NEVER)).any():
            reasons.append("no collision is detected (collision_file)")
        names = zip(running.model.joint_names, unknown, strict=True)
        lacking = listed([name for name, lacks in names if lacks])
        return [f"{self._source} hold no efforts of {lacking}: {reason}" for reason in reasons]
