# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""How far an arm under guard moves at every event, on a simulated bus of drives in MuJoCo."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import mbs_dynamics as mbs
from benchmarks.mechanisms import robot
from benchmarks.report import Table
from mbs_dynamics.control import laws
from mbs_dynamics.control.faults import Doubt
from simulated.guarded_bench import EVENTS, PERIOD, Event, Loop, happen, table

POSTURES = 3
"""Number of random postures of each arm."""

SECONDS = 2.0
"""Time after an event in which the motion is measured."""

GUIDED = 20.0
"""Time of guided floating of each arm, in min."""

DAMPING = 0.5
"""Of the law and of the loop without guard, in N m s/rad."""


class Arm(NamedTuple):
    """An arm with drives."""

    path: str
    stiffness: float
    """Of the drives that hold, in N m/rad."""
    damping: float
    """Likewise, in N m s/rad."""
    fixed: dict[str, float]
    """Positions of joints without motors, by name."""
    limits: tuple[float, ...] = ()
    """Of the torques, in N m; empty: those of the URDF."""


ARMS = {
    "arm7": Arm("arm7", 400.0, 10.0, {}),
    "Panda": Arm("Panda", 400.0, 10.0, {"panda_finger_joint1": 0.0}),
    "Z1": Arm(
        "z1_description/urdf/z1.urdf", 100.0, 3.0, {"jointGripper": 0.0},
        (40.0, 40.0, 27.0, 7.0, 7.0, 7.0),
    ),
}  # fmt: skip
"""Arms of 15, 17 and 5 kg; the last one with limits of the motors that arms of its size have."""


IMPEDANCE = (
    lambda: laws.JointImpedance(20.0),
    lambda: laws.CartesianImpedance("tool", 500.0, 20.0),
)
"""Laws that are tried beside gravity compensation, by arm7."""


class Bare(Loop):
    """The loop without a guard: gravity torques and damping, by the latest values that are finite.

    Drives that hear nothing damp after 50 ms.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.q, self.qd = np.zeros((2, self.model.n))
        self.q[[self.model.joint_names.index(name) for name in self.fixed]] = [*self.fixed.values()]

    def step(self) -> Any:
        """Return the commands of the next period."""
        reported = self.motors.measured(self.bus.read())
        for joint, q, qd in zip(*reported[:3], strict=True):
            k = self.motors.coordinates[joint]
            self.q[k], self.qd[k] = (q, qd) if np.isfinite([q, qd]).all() else (self.q[k], 0.0)
        torques = mbs.gravity_torques(self.model, self.q) - DAMPING * self.qd
        limits, order = np.array(self.motors.limits), list(self.motors.coordinates)
        return self.motors.commands(
            np.clip(torques[order], -limits, limits).tolist(), self.q[order].tolist()
        )

    def enabled(self, seconds: float = 0.1) -> Bare:
        """Run for some time."""
        self.run(seconds)
        self.bus.mark()
        return self


class Bench:
    """Loops with one of ARMS, in random postures."""

    def __init__(self, name: str) -> None:
        arm, rng = ARMS[name], np.random.default_rng(0)
        self.model = model = robot(arm.path)
        order = [k for k, joint in enumerate(model.joint_names) if joint not in arm.fixed]
        self.joints = [model.joint_names[k] for k in order]
        self.fixed = arm.fixed
        self.middle = 0.5 * (model.lower + model.upper)[order]
        limits = np.array(arm.limits or model.effort_limits[order])
        self.rows = {"kp": arm.stiffness, "kd": arm.damping, "joints": self.joints}
        self.rows["limits"] = limits
        self.postures: list[tuple[NDArray[np.float64], int, float]] = []
        """Positions, the joint that bears most of its limit, and the largest torque in N m."""
        while len(self.postures) < POSTURES:
            q = model.lower + (0.2 + 0.6 * rng.random(model.n)) * (model.upper - model.lower)
            q[[model.joint_names.index(joint) for joint in arm.fixed]] = [*arm.fixed.values()]
            g = abs(mbs.gravity_torques(model, q))[order]
            if 0.1 < (g / limits).max() < 0.7:
                self.postures.append((q[order], int((g / limits).argmax()), float(g.max())))

    def trials(self, event: Event, joint: int | None = None, **options: Any) -> list[Loop]:
        """Return loops in which an event has happened, one for each posture."""
        given = {"model": self.model, "fixed": self.fixed, "step": 0.0005, **options}
        given["rows"] = self.rows | given.get("rows", {})
        return [
            happen(event, 0x10 + (most if joint is None else joint), SECONDS, q=q, seed=k, **given)
            for k, (q, most, _) in enumerate(self.postures)
        ]


class Silent(Loop):
    """A loop that is measured until its drives act alone, without a look at it afterwards."""

    def run(self, seconds: float, period: float = PERIOD) -> Loop:
        """Run, unless an event has happened."""
        return self if self.now > 1.5 else super().run(seconds, period)


def farthest(loops: list[Loop]) -> float:
    """Return the largest motion of a joint in any of them, in rad."""
    return round(float(max(loop.bus.moved for loop in loops)), 3)


def reaction(loop: Loop) -> str:
    """Return what the guard did."""
    if loop.arm.fault is not None:
        return f"fault {loop.arm.fault.kind}"
    return "goes on" if loop.arm.state == "enabled" else str(loop.arm.state)


def holder(loop: Loop) -> str:
    """Return who holds the arm in the end."""
    if loop.command.mode != "hold":
        return "torques" if loop.command.mode == "torque" else "nobody"
    doubt = loop.arm.fault.doubt if loop.arm.fault else Doubt.NOTHING
    damps, lets_go = "; gravity and damping at the joint", "; no torque at the joint"
    return "drives" + {Doubt.ENCODER: damps, Doubt.MOTOR: lets_go}.get(doubt, "")


COMMANDED = ("disable", "enabled twice", "load")
"""Events that do not happen to a loop without guard."""


def events(benches: dict[str, Bench]) -> Table:
    """Return how far arms move at each event."""
    note = (
        f"Largest motion of any joint in rad within {SECONDS:g} s, in {POSTURES} random postures; "
        "simulated arms have no stops. The event happens at the joint that bears the largest share "
        "of its limit. *joint*, *Cartesian*: arm7 under impedance laws of 20 N m/rad, and of 500 "
        "N/m and 20 N m/rad. *no guard*: g(q) - D qd of the latest finite values, by arm7; *ramp "
        "down*: the guard with drives that cannot hold, in 1 s, by arm7."
    )
    made = Table(
        "Events",
        ("event", "reaction", "holder", "no guard", "ramp down", *ARMS, "joint", "Cartesian"),
        note=note,
    )
    for name, event in EVENTS.items():
        bare = ramped = None
        if not name.startswith(COMMANDED):
            bare = farthest(benches["arm7"].trials(event, kind=Bare))
        if event.mode == "hold":
            ramped = farthest(benches["arm7"].trials(event, rows={"kp": 0.0}))
        trials = [bench.trials(event) for bench in benches.values()]
        trials += [benches["arm7"].trials(event, law=law()) for law in IMPEDANCE]
        loops = [loop for each in trials for loop in each]
        outcomes = [" or ".join(sorted(set(map(of, loops)))) for of in (reaction, holder)]
        made.rows.append([name, *outcomes, bare, ramped, *map(farthest, trials)])
        show(made)
    return made


def wrong_commands(benches: dict[str, Bench]) -> Table:
    """Return which wrong commands are found, at every joint."""
    note = (
        "Trials at every joint in each posture. A deviation below 2 % of the effort limit is not "
        "seen: the joint moves on until it reaches another limit."
    )
    columns = (
        "arm, event",
        "trials",
        "found",
        "farthest, found",
        "not found",
        "farthest, not found",
    )
    made = Table(
        "A motor that exerts another torque than commanded, at any joint", columns, note=note
    )
    for arm, bench in benches.items():
        for name in ("sign of a command", "command fourfold"):
            loops = [x for k in range(len(bench.joints)) for x in bench.trials(EVENTS[name], k)]
            detected = [x for x in loops if x.arm.fault and x.arm.fault.kind == "tracking"]
            rest = [x for x in loops if x not in detected]
            made.rows.append([
                f"{arm}, {name}", len(loops), len(detected), farthest(detected), len(rest),
                farthest(rest),
            ])  # fmt: skip
            show(made)
    return made


def dead_loop(benches: dict[str, Bench]) -> Table:
    """Return what drives do when the loop dies for good, and nobody commands them any more."""
    note = (
        f"Largest motion in rad within {SECONDS:g} s. Drives that hold do it without gravity "
        "torques: the arm sags by g/K, and overshoots at first. Under the last torques, an arm "
        "that stood still stands still; one that moved, moves on."
    )
    made = Table("The loop dies for good", ("drives then", *ARMS), note=note)
    for kind in ("hold", "damp", "zero", "last"):
        event = Event(lambda loop, _: loop.bus.advance(SECONDS), table={"when_silent": kind})
        loops = [bench.trials(event, kind=Silent) for bench in benches.values()]
        made.rows.append([kind, *map(farthest, loops)])
        show(made)
    sags = [max(g for *_, g in bench.postures) / bench.rows["kp"] for bench in benches.values()]
    made.rows.append(["g/K, for comparison", *sags])
    return made


def guided(benches: dict[str, Bench]) -> Table:
    """Return the number of false alarms while an operator guides arms."""
    note = (
        "Random torques of an operator at all joints, low-passed with 0.3 s; torques in steps of "
        "0.06 N m, noise of 0.05 N m in measured efforts, latency of 1 ms."
    )
    columns = ("arm", "simulated, min", "false alarms", "fastest, rad/s", "farthest, rad")
    made = Table("Guided floating", columns, note=note)
    for arm, bench in benches.items():
        fastest, alarms, minutes, moved = 0.0, 0, 0.0, 0.0
        rng = np.random.default_rng(1)
        while minutes < GUIDED:
            for k, (posture, *_) in enumerate(bench.postures):
                q = bench.middle + 0.3 * (posture - bench.middle)  # away from limits
                made_of = {"made": table(**bench.rows), "model": bench.model, "fixed": bench.fixed}
                loop = Loop(q=q, seed=k, step=0.001, **made_of).enabled()
                fastest = max(fastest, float(loop.guided(60.0, rng).max()))
                moved = max(moved, loop.bus.moved)
                minutes += (loop.now - 1.0) / 60.0
                alarms += loop.arm.fault is not None
                if loop.arm.fault is not None:
                    print(arm, loop.events, file=sys.stderr, flush=True)
        made.rows.append([arm, round(minutes), alarms, fastest, moved])
        show(made)
    return made


def show(table: Table) -> None:
    """Say on standard error that a row is done."""
    print(*table.rows[-1], sep=" | ", file=sys.stderr, flush=True)


def guarded_events() -> Iterator[Table]:
    """Yield the tables."""
    benches = {name: Bench(name) for name in ARMS}
    for made in (events, wrong_commands, dead_loop, guided):
        yield made(benches)
