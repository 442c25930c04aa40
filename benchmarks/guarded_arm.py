# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Time of one step of an arm behind a bus of motors, by what it is doing."""

import time
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

import mbs_dynamics as mbs
from benchmarks.report import Table
from mbs_dynamics.control import Frame, GuardedArm, MotorCommand, Motors, laws
from mbs_dynamics.resources import robot_path

MODEL = mbs.Model.from_urdf(robot_path("arm7"))
Q = np.array([0.3, 0.5, -0.2, 1.1, 0.1, 0.7, 0.1])
PERIOD, STEPS, ROUNDS = 0.001, 200, 50


class Case(NamedTuple):
    """Case that is timed."""

    law: Any = laws.Gravity(damping=0.3)
    enabled: bool = True
    fixed: Mapping[str, float] = {}
    given: int = MODEL.n
    """Number of the motors that report in each step."""


CASES = {
    "torques: gravity and damping": Case(),
    "the same, one of seven joints fixed": Case(fixed={"joint7": 0.1}, given=6),
    "the same, one motor of seven silent in each step": Case(given=6),
    "torques: friction compensated as well": Case(
        laws.Gravity(damping=0.3, friction=0.2, friction_scale=0.5)
    ),
    "torques: a law of the user, without its own time": Case(lambda _, state, __: state.gravity),
    "drives hold the arm": Case(enabled=False),
}


def guarded_arm() -> Iterator[Table]:
    """Yield the table of steps."""
    table = Table(
        "A step of an arm of seven joints: frames of all motors in, commands out",
        ("step", "least microseconds", "median"),
        note="CPU time, of 50 rounds of 200 steps, with new frames in each step.",
    )
    for name, case in CASES.items():
        taken = _times(case)
        table.rows.append([name, min(taken), float(np.median(taken))])
    yield table


def _motors(case: Case) -> Motors:
    row = dict.fromkeys(("sign", "position_per_radian"), 1.0)
    row |= dict.fromkeys(("command_per_newton_metre", "feedback_per_newton_metre"), 10.0)
    rows = {
        name: {"motor": k, "kp": 4000.0, "kd": 100.0, **row}
        for k, name in enumerate(MODEL.joint_names)
        if name not in case.fixed
    }
    return Motors({"when_silent": "damp", "motors": rows}, MODEL)


def _times(case: Case) -> list[float]:
    """Return the microseconds of a step, by round."""
    arm = GuardedArm(MODEL, case.law, _motors(case), fixed=case.fixed, effort_check="off")
    rng, now = np.random.default_rng(0), 0.0
    count = len(arm.motors.joint_names)
    commands: list[MotorCommand] = []

    def frames(moved: float) -> list[Frame]:
        """Return frames with the efforts that were commanded, around a posture."""
        efforts = [each.effort for each in commands] or [0.0] * count
        made = [
            Frame(k, now, q + moved, rate, effort)
            for k, (q, rate, effort) in enumerate(
                zip(Q.tolist(), rng.normal(0.0, 0.01, count).tolist(), efforts, strict=False)
            )
        ]
        silent = rng.integers(count) if case.given < count else None
        return [each for each in made if each.motor != silent]

    taken, engaged = [], False
    while len(taken) < ROUNDS:
        if not engaged and now > 0.1:
            engaged = True
            problems = arm.enable(now)
            if problems:
                raise SystemExit(f"the arm was not enabled: {problems}")
            if not case.enabled:
                arm.disable(now)
        given, timed = [], now > 2.0
        for moved in rng.normal(0.0, 1e-4, STEPS if timed else 1).tolist():
            now += PERIOD
            given.append((now, frames(moved)))
        begin = time.thread_time()
        for t, each in given:
            command = arm.step(t, each)
        spent = time.thread_time() - begin
        commands = list(command.motors)
        if timed:
            taken.append(1e6 * spent / STEPS)
    expected = "enabled" if case.enabled else "disabled"
    if arm.state != expected:
        raise SystemExit(f"the arm is {arm.state}, and should be {expected}: {arm.fault}")
    return taken
