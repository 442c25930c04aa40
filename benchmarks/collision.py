# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Which contacts of a moving arm are detected in 20 ms, and false alarms, with wrong masses.

The arm in MuJoCo moves from posture to posture under computed torques of a description whose masses
are wrong by a fifth, each up or down. Thresholds are tuned from a minute of that motion.
"""

import os
import sys
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any, NamedTuple

import mujoco
import numpy as np
from numpy.typing import NDArray

import mbs_dynamics as mbs
from benchmarks.mechanisms import robot
from benchmarks.report import Table
from mbs_dynamics.control import Motors
from mbs_dynamics.control.collision import thresholds_of, tune
from mbs_dynamics.control.period import collisions
from mbs_dynamics.control.period.records import NEVER, State
from mbs_dynamics.integrate import JointForces
from simulated.bus import SimulatedBus
from simulated.guarded_bench import NOISE, table

Array = NDArray[np.float64]

FORCE, LASTS, WITHIN = 10.0, 0.1, 0.02
"""Force of a contact in N, how long it lasts, and in what time it is to be detected, both in s."""

WRONG = 0.2
"""Share by which masses are wrong."""

FREE = float(os.environ.get("MBS_COLLISION_MINUTES", "60")) * 60.0
"""Free motion in which false alarms are counted, in s, of all robots together."""

PERIODS = 0.001, 0.004
"""Of the loop, in s."""

ROBOTS, CONTACTS = 3, 40
"""Number of robots with other wrong masses, and of contacts at each link and robot."""


class Arm(NamedTuple):
    """An arm, the joints that move, and links that are touched."""

    path: str
    joints: int
    fixed: dict[str, float]
    links: tuple[str, ...]


PANDA = Arm(
    "panda_description/urdf/panda.urdf", 7, {"panda_finger_joint1": 0.0},
    ("panda_hand", "panda_link6", "panda_link4"),
)  # fmt: skip


class Watch:
    """External torques of an arm that moves, against thresholds, as the period compares them."""

    def __init__(self, model: mbs.Model, rows: dict[str, dict[str, float]]) -> None:
        self._model, self._thresholds = model, thresholds_of(model, {"joints": rows})
        self._watched, self.latest = self._thresholds[0] < NEVER, ""
        self._friction = JointForces.of(model)
        unknown = State(*[np.full(model.n, np.nan)] * len(State._fields))
        self._unknown = unknown._replace(contact_time=0.0)
        self.restart()

    def restart(self) -> None:
        """Forget all external torques, as after a pause."""
        self._at, self._state = np.nan, self._unknown

    def hit(self, t: float, q: Array, qd: Array, tau: Array) -> bool:
        """Return whether a torque exceeds its threshold at time t, in a state q, qd, tau (n,)."""
        if t == self._at:
            return False
        elapsed, self._at = t - self._at, t
        momentum, rate = mbs.generalized_momentum(self._model, q, qd)
        rate = rate + tau + self._friction.resistance(qd)
        s = collisions.with_contact(self._state, self._watched, elapsed, momentum, rate)
        self._state = s
        if s.contact_time < collisions.SETTLING:
            return False
        torques = np.array([collisions.impact_of(s), s.sustained])
        exceeds = np.abs(torques) > self._thresholds
        if exceeds.any():
            self.latest = f"{torques[exceeds]} exceed {self._thresholds[exceeds]} at {t:.3f} s"
        return bool(exceeds.any())


class Mover:
    """A simulated arm that moves between random postures, and is watched.

    ``fastest`` is the largest speed of a motion in rad/s.
    """

    def __init__(
        self, arm: Arm, seed: int, period: float = 0.001, fastest: float = 1.0, step: float = 0.001
    ) -> None:
        self.model = model = robot(arm.path)
        self.rng, m = np.random.default_rng(seed), arm.joints
        self.period, self.fastest = period, fastest
        names = model.joint_names[:m]
        self.motors = Motors(table(joints=names, limits=model.effort_limits[:m]), model)
        self.middle = 0.5 * (model.lower + model.upper)[:m]
        self.range = 0.35 * (model.upper - model.lower)[:m]
        given: Any = {"noise": NOISE, "torque_step": 0.06, "friction": 0.2, "step": step}
        self.bus = SimulatedBus(model, self.motors, fixed=arm.fixed, seed=seed, **given)
        for body in model.body_names:
            factor = 1.0 + self.rng.choice([-WRONG, WRONG])
            k = self.bus.mujoco.body(body).id
            self.bus.mujoco.body_mass[k] *= factor
            self.bus.mujoco.body_inertia[k] *= factor
        mujoco.mj_setConst(self.bus.mujoco, self.bus.data)
        self.bus.place(self.middle)
        self._q, self._qd, self._tau = np.zeros((3, model.n))
        self._goal, self._from, self._begin, self._time = self.middle, self.middle, 0.0, 0.1

    def reference(self, t: float) -> tuple[Array, Array, Array]:
        """Return position, velocity and acceleration (m,): least jerk from posture to posture."""
        if t > self._begin + self._time + 0.1:
            self._from, self._begin = self._goal, t
            self._goal = self.middle + self.range * self.rng.uniform(-1.0, 1.0, len(self.middle))
            speed = self.fastest * self.rng.uniform(0.2, 1.0)
            self._time = 1.875 * float(np.abs(self._goal - self._from).max()) / speed
        x, T, d = min((t - self._begin) / self._time, 1.0), self._time, self._goal - self._from
        return (
            self._from + d * x**3 * (10.0 - 15.0 * x + 6.0 * x * x),
            d * 30.0 * x**2 * (1.0 - x) ** 2 / T,
            d * 60.0 * x * (1.0 - x) * (1.0 - 2.0 * x) / T**2,
        )

    def step(self) -> tuple[float, Array, Array, Array]:
        """Simulate a period; return stamp and measured positions, velocities and efforts."""
        reported = self.motors.measured(self.bus.read())
        m, stamp = len(self.middle), reported[4][0]
        measured = np.array(reported[1:4])
        q, qd, qdd = self.reference(self.bus.time)
        self._q[:m], self._qd[:m] = measured[0], qd
        pull = 225.0 * (q - measured[0]) + 21.0 * (qd - measured[1])
        qdd = np.append(qdd + pull, np.zeros(self.model.n - m))
        torques = mbs.inverse_dynamics(self.model, self._q, self._qd, qdd)[:m]
        self.bus.write(self.motors.commands(torques.tolist(), measured[0].tolist()))
        self.bus.advance(self.period)
        return stamp, *measured

    def recorded(self, seconds: float) -> Any:
        """Return a recording of the motion."""
        rows = [self.step() for _ in range(round(seconds / self.period))]
        t, q, qd, tau = (np.array(x) for x in zip(*rows, strict=True))
        new = np.concatenate([[True], np.diff(t) > 0.0])
        joints = self.model.joint_names[: len(self.middle)]
        return SimpleNamespace(joints=joints, t=t[new], q=q[new], qd=qd[new], tau=tau[new])

    def watched(self, watch: Watch, seconds: float) -> float | None:
        """Return when a collision is detected, in s; None if none is."""
        q, qd, tau = np.zeros((3, self.model.n))
        for _ in range(round(seconds / self.period)):
            stamp, *measured = self.step()
            m = len(self.middle)
            q[:m], qd[:m], tau[:m] = measured
            if watch.hit(stamp, q, qd, tau):
                return self.bus.time
        return None

    def touched(self, watch: Watch, link: str, direction: Array) -> float | None:
        """Touch a link with FORCE along a direction (3,); return the time until detection."""
        self._q[: len(self.middle)] = self.bus.q
        J = mbs.jacobian(self.model, self._q, link, representation="hybrid")
        begun = self.bus.time
        self.bus.push[:] = FORCE * (J[3:].T @ direction)[: len(self.middle)]
        detected = self.watched(watch, LASTS)
        self.bus.push[:] = 0.0
        return None if detected is None else detected - begun


def tuned(mover: Mover, seconds: float = 60.0) -> dict[str, dict[str, float]]:
    """Return thresholds tuned from its motion."""
    return tune(mover.model, [mover.recorded(seconds)])


def unit(rng: np.random.Generator) -> Array:
    """Return a random direction (3,)."""
    x = rng.normal(size=3)
    return np.asarray(x / np.linalg.norm(x))


def collision() -> Iterator[Table]:
    """Yield the tables."""
    note = (
        f"{ROBOTS} robots with masses that are each wrong by {100.0 * WRONG:g} %; {FORCE:g} N in "
        "random directions at the origin of a link, in motion of up to 1 rad/s; friction of 0.2 "
        "N m that no model states, torques in steps of 0.06 N m, noise of 2 mrad/s and 0.05 N m, "
        "latency of 1 ms each way. *slowest*: of those that were seen. A force whose line passes "
        "near all axes below its link is not seen by any threshold."
    )
    columns = ("loop, link", "contacts", "seen in 20 ms", "in 100 ms", "median, ms", "slowest, ms")
    seen = Table(f"Contacts of {FORCE:g} N", columns, note=note)
    alarms = Table("False alarms", ("loop, speed", "simulated, min", "false alarms"))
    for period in PERIODS:
        movers = [Mover(PANDA, seed, period) for seed in range(ROBOTS)]
        watches = [Watch(m.model, tuned(m)) for m in movers]
        name = f"{1.0 / period:g} Hz"
        for link in PANDA.links:
            times = []
            for mover, watch in zip(movers, watches, strict=True):
                for _ in range(CONTACTS):
                    watch.restart()
                    mover.watched(watch, 0.7 + mover.rng.random())
                    times.append(mover.touched(watch, link, unit(mover.rng)))
            delays = np.array([np.inf if x is None else x for x in times])
            middle = float(1e3 * np.median(delays))
            seen.rows.append([
                f"{name}, {link}", len(delays), f"{100.0 * (delays <= WITHIN + 1e-9).mean():.0f} %",
                f"{100.0 * np.isfinite(delays).mean():.0f} %", middle if middle < np.inf else None,
                float(1e3 * delays[np.isfinite(delays)].max()),
            ])  # fmt: skip
            print(*seen.rows[-1], file=sys.stderr, flush=True)
        count = 0
        for mover, watch in zip(movers, watches, strict=True):
            end = mover.bus.time + FREE / ROBOTS
            while end - mover.bus.time > mover.period:
                watch.restart()
                alarm = mover.watched(watch, end - mover.bus.time) is not None
                count += alarm
                if alarm:
                    print(watch.latest, file=sys.stderr, flush=True)
        alarms.rows.append([f"{name}, 1 rad/s", round(FREE / 60.0), count])
        print(*alarms.rows[-1], file=sys.stderr, flush=True)
    yield seen
    yield alarms
