# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The law of an arm and what it follows: references, and changes from one law to another."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from mbs_dynamics.checks import FloatArray
from mbs_dynamics.control.laws.impedance import JointInertia
from mbs_dynamics.control.laws.law import Law, LawState
from mbs_dynamics.control.pose_follower import PoseFollower
from mbs_dynamics.control.references import JointFollower, Target
from mbs_dynamics.control.settings import MotionSettings
from mbs_dynamics.errors import ArgumentError, MbsError
from mbs_dynamics.model.coordinates import bounded
from mbs_dynamics.model.model import Model
from mbs_dynamics.model.orders import tools

Follower = JointFollower | PoseFollower

STOP_ZONE, SHORT = 0.15, 0.02
"""Distance in rad or m over which torques of a pose fade, and how far from a position limit they
are zero."""

STOP_RATE, CALM = 30.0, 0.6
"""Rate in 1/s at which joints are braked near a position limit, and above this share of their
velocity limit."""


def name_of(law: Law) -> str:
    """Return the name of a law for messages."""
    return getattr(law, "__name__", type(law).__name__)


class Followed(NamedTuple):
    """A law with its reference."""

    law: Law | None
    """None: gravity compensation alone, the arm floats."""
    follower: Follower | None


FLOATING = Followed(None, None)


def _link_of(law: Any, model: Model) -> str | None:
    """Return the link that a law moves, by default the tool; None for a law of joints."""
    link = getattr(law, "link", None)
    return tools(model)[0] if link == "" else link


class Stops:
    """Keeps joints within their limits under torques of a law that moves a link.

    A pose may pull a joint past its limit, or near a singularity faster than it may turn. Torques
    towards a position limit, of those in addition to gravity compensation, fade over STOP_ZONE and
    are zero just before the limit. There, and above CALM of its velocity limit, a joint is damped,
    with its inertia while the others are free, and beyond half of SHORT drawn back by a spring.
    None of this adds energy.
    """

    def __init__(self, model: Model, joints: Sequence[int]) -> None:
        own = list(joints)
        limited = bounded(model.lower, model.upper)[own]
        self._low = np.where(limited, model.lower[own], -np.inf)
        self._high = np.where(limited, model.upper[own], np.inf)
        self._zone = np.minimum(STOP_ZONE, 0.25 * (self._high - self._low))
        self._calm = CALM * model.velocity_limits[own]
        self._inertia = JointInertia(model, joints)
        self._joints = own

    def within(self, added: FloatArray, state: LawState) -> FloatArray:
        """Return the torques (m,) in addition to gravity compensation that limits leave."""
        q, qd = state.q[self._joints], state.qd[self._joints]
        room = np.where(added > 0.0, self._high - q, q - self._low) - SHORT
        added = added * np.clip(room / self._zone, 0.0, 1.0)
        ahead = np.where(qd > 0.0, self._high - q, q - self._low) - SHORT
        near = 1.0 - np.clip(ahead / self._zone, 0.0, 1.0)
        speed = 2.0 * near * qd + np.sign(qd) * np.maximum(abs(qd) - self._calm, 0.0)
        beyond = q - np.clip(q, self._low + 0.5 * SHORT, self._high - 0.5 * SHORT)
        if speed.any() or beyond.any():
            rate = min(STOP_RATE, 0.2 / max(state.gap, 1e-9))
            brake = rate * speed + 0.25 * rate * rate * beyond
            added = added - brake / np.diag(self._inertia.at(state.q)[1])
        return added


class Following:
    """The law in force, with its reference, and the share of the one before that is left.

    A law begins with the present state as its reference. Torques go from those of the law before
    to its own along a straight line in ``switch_time``, both computed at each state, so that
    neither a switch nor a change of stiffness is a jump. One that is asked for meanwhile begins
    when that has ended, and only the latest one.
    """

    def __init__(self, model: Model, joints: Sequence[int], settings: MotionSettings) -> None:
        self._model, self._joints, self.settings = model, list(joints), settings
        self._now = FLOATING
        self._before: Followed | None = None
        self._next: Followed | None = None
        self._begun_at = 0.0
        self._stops: Stops | None = None
        """None until a law that moves a link is prepared."""
        self._softened = False
        """Whether it was reported that a law is softer than set, since torques were enabled."""

    @property
    def law(self) -> Law | None:
        """The law in force, or about to be."""
        return (self._next or self._now).law

    @property
    def name(self) -> str:
        """Name of the law, for messages."""
        return "gravity compensation" if self.law is None else name_of(self.law)

    @property
    def follower(self) -> Follower | None:
        """The reference of the law in force; None where the arm floats."""
        return self._now.follower

    @property
    def joints(self) -> JointFollower | None:
        """The part of that reference that joints follow."""
        return None if self.follower is None else self.follower.joints

    @property
    def idle(self) -> bool:
        """Whether gravity compensation alone acts."""
        return self._now.law is None and self._before is None

    def apply(self, settings: MotionSettings) -> None:
        """Use other limits of references."""
        self.settings = settings
        for each in (self._now, self._before, self._next):
            if each is not None and each.follower is not None:
                each.follower.apply(settings)

    def prepared(self, law: Law | None, model: Model, state: LawState) -> Followed:
        """Return a law to be switched to, once it has been called at a state.

        That compiles what it needs. Raises MbsError for a law that fails, or that the arm cannot
        bear.
        """
        if law is None:
            return FLOATING
        if not callable(law):
            raise ArgumentError(
                f"the law is a {type(law).__name__}; valid is a function of model, state and "
                "reference"
            )
        link = _link_of(law, self._model)
        follower: Follower
        if link is None:
            follower = JointFollower(self._model, self._joints, self.settings)
        else:
            follower = PoseFollower(self._model, self._joints, self.settings, link)
            self._stops = self._stops or Stops(self._model, self._joints)
        follower.begin(state.q, state.qd, state.time)
        self._torques(Followed(law, follower), model, state)
        check = getattr(law, "check", None)
        if check is not None:
            check(model, state)
        follower.joints.begun = False
        return Followed(law, follower)

    def switch(self, to: Followed, now: float, engaged: bool) -> None:
        """Let another law take over from now on, at once unless torques are ``engaged``."""
        present = self._now
        links = [_link_of(each.law, self._model) for each in (to, present)]
        if None not in (to.law, present.law) and links[0] == links[1]:
            to = to._replace(follower=present.follower)  # other gains for the same reference
        if engaged and self._before is not None:
            self._next = to
        elif engaged:
            self._before, self._now, self._begun_at = self._now, to, now
        else:
            self._before, self._next, self._now = None, None, to

    def restart(self) -> None:
        """Forget all references. They begin anew with the next state."""
        self._softened = False
        if self._next is not None:
            self._now = self._next
        self._before = self._next = None
        if self.joints is not None:
            self.joints.begun = False

    def aim(self, target: Target | None, q: FloatArray, now: float) -> None:
        """Go to a target; None: come to rest. Raises MbsError, and changes nothing, if invalid."""
        follower = self._now.follower
        if follower is None:
            raise ArgumentError("the arm floats; valid are references while a law follows them")
        if not follower.joints.begun:
            follower.begin(q, np.zeros_like(q), now)
        if target is None:
            follower.stop(now)
        else:
            follower.aim(target, q, now)

    def remark(self) -> str:
        """Return what has happened to the reference since the last call; empty if nothing."""
        follower = self._now.follower
        if follower is None or not follower.joints.remark:
            return ""
        remark, follower.joints.remark = follower.joints.remark, ""
        return remark

    def check(self, model: Model, state: LawState) -> None:
        """Raise ArgumentError if the arm cannot bear the law at a state."""
        check = getattr(self.law, "check", None)
        if check is not None:
            check(model, state)

    def added(self, model: Model, state: LawState, gravity: Sequence[float]) -> list[float]:
        """Return the torques (m,) in addition to those of gravity compensation (m,).

        Raises ArgumentError for a law that fails.
        """
        before, elapsed = self._before, state.time - self._begun_at
        share = min(1.0, max(0.0, elapsed / self.settings.switch_time))
        torques = self._added(self._now, model, state, gravity)
        if before is not None:
            torques = share * torques + (1.0 - share) * self._added(before, model, state, gravity)
            if share == 1.0:
                self._before, following = None, self._next
                if following is not None:
                    self._next = None
                    self.switch(following, state.time, engaged=True)
        added: list[float] = torques.tolist()
        return added

    def _added(
        self, followed: Followed, model: Model, state: LawState, gravity: Sequence[float]
    ) -> FloatArray:
        if followed.law is None:
            return np.zeros(len(self._joints))
        follower = followed.follower
        if follower is not None and not follower.joints.begun:
            follower.begin(state.q, state.qd, state.time)
        added = self._torques(followed, model, state) - gravity
        if self._stops is not None and isinstance(follower, PoseFollower):
            added = self._stops.within(added, state)
        return added

    def _torques(self, followed: Followed, model: Model, state: LawState) -> FloatArray:
        law, follower = followed
        assert law is not None
        assert follower is not None
        follower.use(law, state.qd)
        reference: Any = follower.at(state.q, state.time)
        name = name_of(law)
        try:
            torques = np.asarray(law(model, state, reference), dtype=float)
        except MbsError as error:
            raise ArgumentError(f"law {name!r}: {error}") from error
        except Exception as error:  # whatever it is, the arm must be held
            message = f"law {name!r} raised {type(error).__name__}: {error}"
            raise ArgumentError(message) from error
        if getattr(law, "slowed", False) and not self._softened:
            self._softened = True
            follower.joints.remark = (
                f"law {name!r} is softer than set for some time: with up to "
                f"{1e3 * state.gap:.3g} ms between two states its stiffness would be unstable at "
                "this posture; this is reported once"
            )
        if torques.shape == (len(self._joints),) and np.isfinite(torques).all():
            return torques
        raise ArgumentError(
            f"law {name!r} returned {torques.tolist()}; valid are {len(self._joints)} finite "
            "torques"
        )

    def pace(self, rate: float) -> None:
        """Play the trajectory at a share of its speed, from 0 to 1, along the same path.

        Raises ArgumentError for another share, and without a trajectory.
        """
        if not 0.0 <= rate <= 1.0:
            raise ArgumentError(f"the pace is {rate:g}; valid is 0 to 1")
        if self.joints is None or self.joints.trajectory is None:
            raise ArgumentError("no trajectory is approached or played")
        self.joints.pace(rate)
