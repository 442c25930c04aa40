# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Motion of the arm when gravity compensation stops: faults at any moment of any motion.

MuJoCo simulates the arm, in the same loop as the compensator. Whatever happens, torques beyond the
gravity torques that ramp out take energy out of the arm, except for those of one period, in which
they oppose a motion that may be over.
"""

import functools
from collections import deque

import numpy as np
import pytest
from gravity_bench import MODEL, Bench, load
from hypothesis import Phase, assume, example, given, settings
from hypothesis import strategies as st

pytest.importorskip("mujoco")

import mbs_dynamics as mbs
from mbs_dynamics.control.faults import Fault
from mbs_dynamics.resources import robot_path
from simulated import mujoco_arm as mujoco

BARE = mujoco.bare(robot_path("arm7"))
STEP = 0.001
RAMP = 0.3
TIMER = 0.01
"""Period in s of commands without messages."""
STALE = 0.05
TIMES = {"ramp_time": RAMP, "ramp_in_time": 0.0, "stale_timeout": STALE}
TABLE = """<robot name="table"><link name="base"/><link name="top"><inertial><mass value="1"/>
  <inertia ixx="{inertia}" iyy="{inertia}" izz="{inertia}" ixy="0" ixz="0" iyz="0"/></inertial>
  </link><joint name="axle" type="continuous"><parent link="base"/><child link="top"/>
  <axis xyz="0 0 1"/><limit effort="87" velocity="10"/></joint></robot>"""


class Loop:
    """An arm and its compensator, and what torques beyond gravity's have done to the arm."""

    def __init__(self, arm, bench, period):
        self.arm, self.bench, self.period = arm, bench, period
        self.names = bench.core.settings.joints
        self.report, self.count = REPORTS["good"], 0
        self.due = self.tick_at = bench.now
        self.envelope = None
        """Least and largest gravity torques since shortly before the release; None before."""
        self.recent = deque(maxlen=round(3.0 * period / STEP))
        """Gravity torques of the last three periods: states are that old when they are used."""
        self.carrying = bench.core.arm.model
        for one in bench.core.environment.loads:
            self.carrying = self.carrying.with_payload(one.link, one.mass)
        self.energy = self.most = 0.0
        """Energy put into the arm in J: now, and its maximum."""

    def run(self, seconds):
        bench = self.bench
        for _ in range(round(seconds / STEP)):
            bench.now += STEP
            command = None
            if bench.now >= self.due - 1e-9:
                self.due = bench.now + self.period
                state = self.arm.q.copy(), self.arm.qd.copy(), self.names
                answer = self.report(bench, self.count, *state)
                self.count += 1
                if answer is not None:
                    command = answer.command
                    self.settle()
            if bench.now >= self.tick_at - 1e-9:
                command = bench.tick()
                self.settle()
            if command is not None:
                self.arm.command = np.array(command)
            self.advance()

    def fail(self, report, action):
        """Begin a fault."""
        core, now = self.bench.core, self.bench.now
        self.report, self.count = REPORTS[report], 0
        if action == "disable":
            core.disable(now)
        elif action == "error":
            command = core.arm.fail(Fault("internal_error", "what"), now)
            self.arm.command = self.arm.command if command is None else np.array(command)
        self.settle()

    def settle(self):
        """Set the timer as the node does after each callback."""
        self.tick_at = self.bench.now + TIMER

    def advance(self):
        before, tau = self.arm.qd.copy(), self.arm.command.copy()
        self.recent.append(mbs.gravity_torques(self.carrying, self.arm.q))
        self.arm.advance(STEP)
        if self.envelope is not None:
            # a release takes each torque from g(q) to zero: what lies between is gravity's
            low, high = self.envelope
            low, high = np.minimum(low, self.recent[-1]), np.maximum(high, self.recent[-1])
            self.envelope = low, high
            beyond = tau - np.clip(tau, low, high)
            self.energy += STEP * float(beyond @ (before + self.arm.qd)) / 2.0
            self.most = max(self.most, self.energy)

    def release(self):
        torques = [0.0 * self.recent[0], *self.recent]
        self.envelope = np.min(torques, axis=0), np.max(torques, axis=0)


REPORTS = {
    "good": lambda b, k, q, qd, names: b.send(q, qd, names),
    "none": lambda b, k, q, qd, names: None,
    "NaN": lambda b, k, q, qd, names: b.send(q * np.nan, qd, names),
    "one NaN": lambda b, k, q, qd, names: b.send(q * np.nan if k == 0 else q, qd, names),
    "no velocities": lambda b, k, q, qd, names: b.send(q, (), names),
    "another publisher's": lambda b, k, q, qd, names: b.send(q + 0.4 * (k % 2 == 0), qd, names),
    "back in time": lambda b, k, q, qd, names: b.send(q, qd, names, stamp=k + 1),
    "one joint less": lambda b, k, q, qd, names: b.send(q[:-1], qd[:-1], names[:-1]),
}
"""What becomes of the k-th state since the fault."""

FAULTS = [
    *((report, "") for report in REPORTS if report != "good"),
    ("good", "disable"),
    ("none", "disable"),
    ("good", "error"),
]
"""Reports, and what happens to the compensator."""

seven = functools.partial(st.lists, min_size=7, max_size=7)


# shrinking takes minutes
@pytest.mark.long
@settings(max_examples=25, deadline=None, phases=[Phase.explicit, Phase.generate])
@given(
    q=seven(st.floats(-1.2, 1.2)),
    qd=seven(st.floats(-0.8, 0.8)),
    slowing=st.floats(0.1, 1.0),
    friction=st.sampled_from([0.0, 0.5]),
    mass=st.sampled_from([0.0, 2.0]),
    period=st.sampled_from([0.002, 0.005, 0.01]),
    moment=st.floats(0.0, 0.2),
    fault=st.sampled_from(FAULTS),
    on_fault=st.sampled_from(["ramp_down", "hold", "zero"]),
)
@example(
    q=[-0.995, -0.776, -0.448, 1.159, 0.0, 0.0, 0.735],
    qd=[0.086, -0.556, 0.268, -0.556, 0.333, 0.0, 0.0],
    slowing=0.76, friction=0.0, mass=2.0, period=0.01, moment=0.18, fault=("one joint less", ""),
    on_fault="ramp_down",
)  # fmt: skip
@example(
    q=[0.0, 0.025, 0.0, 0.0, 0.0, -0.56, 0.0], qd=[-0.266, 0.131, 0.644, 0.0, 0.0, 0.0, 0.363],
    slowing=0.17, friction=0.5, mass=0.0, period=0.002, moment=0.018, fault=("none", "disable"),
    on_fault="ramp_down",
)  # fmt: skip
def test_torques_beyond_gravity_put_no_energy_into_the_arm_after_a_fault(
    q, qd, slowing, friction, mass, period, moment, fault, on_fault
):
    # while one joint is silent, but not for too long yet, the others go on as before
    assume(not (friction and fault == ("one joint less", "")))
    q, qd = np.array(q), np.array(qd)
    # what no joint does faster than in its time constant, with all the others free to move
    damping = 1.0 / np.diag(mbs.inverse_mass_matrix(MODEL, q)) / slowing
    given = {"damping": tuple(damping), "friction": (friction,) * 7, "friction_scale": 1.0}
    bench = Bench(limit_zone=0.0, max_age=0.0, on_fault=on_fault, **TIMES, **given)
    if mass:
        bench.core.set_load(load(mass, "link7", (0.0, 0.0, 0.0)))
    arm = mujoco.MujocoArm(BARE, mujoco.Load("link7", mass) if mass else None)
    arm.model.jnt_limited[:] = 0
    arm.place(q)
    loop = Loop(arm, bench, period)
    for _ in range(20):  # with brakes
        bench.now += period
        bench.send(arm.q, np.zeros(7))
        if bench.state == "disabled":
            reason = bench.core.enable(bench.now)
            if "against gravity" in reason:
                return
            assert reason == ""
    loop.due = bench.now + period
    arm.command = bench.torques[-1]
    arm.qd[:] = qd
    loop.run(0.02 + moment)
    if bench.state != "enabled":
        return
    before, drive = arm.qd.copy(), np.array(bench.core.arm.latest) - loop.recent[-1]
    loop.release()
    loop.fail(*fault)
    change = max(3.0 * period, TIMER)
    loop.run(change)
    # the work of all that is no gravity, from the last message on until the next one is missing and
    # the change has been made; the arm may gain speed meanwhile
    fastest = np.maximum(np.abs(before), np.abs(arm.qd))
    may = change * float(np.abs(drive) @ fastest) + 1e-3
    loop.run(STALE + RAMP + 0.1)
    assert loop.most <= may


LIGHT = {"inertia": 0.1, "periods": 10.0, "speed": 1.0, "period": 0.002}


@pytest.mark.long
@settings(max_examples=80, deadline=None, phases=[Phase.explicit, Phase.generate])
@given(
    fault=st.sampled_from(FAULTS),
    inertia=st.sampled_from([0.1, 1.0, 10.0]),
    periods=st.floats(10.0, 100.0),
    speed=st.floats(0.1, 5.0),
    period=st.sampled_from([0.002, 0.01]),
    on_fault=st.sampled_from(["ramp_down", "hold", "zero"]),
)
@example(fault=("none", ""), on_fault="hold", **LIGHT)
@example(fault=("good", "disable"), on_fault="ramp_down", **LIGHT)
def test_a_joint_on_a_vertical_axis_never_turns_back(
    fault, inertia, periods, speed, period, on_fault
):
    """The damping takes 10 periods and more to stop it, and acts for less than 5 of them."""
    damping, text = (min(inertia / (periods * period), 1e4),), TABLE.format(inertia=inertia)
    bench = Bench(text, joints=("axle",), damping=damping, on_fault=on_fault, **TIMES)
    arm = mujoco.MujocoArm(text)
    loop = Loop(arm, bench, period)
    arm.qd[:] = speed
    for _ in range(20):  # guided
        bench.now += period
        arm.q[:] += period * speed
        bench.send(arm.q, arm.qd, loop.names)
        if bench.state == "disabled":
            assert bench.core.enable(bench.now) == ""
    loop.due = bench.now + period
    arm.command = bench.torques[-1]
    loop.fail(*fault)
    before = 0.5 * inertia * arm.qd[0] ** 2
    for _ in range(int((STALE + RAMP + 0.1) / STEP)):
        loop.run(STEP)
        assert arm.qd[0] >= 0.0
        assert 0.5 * inertia * arm.qd[0] ** 2 <= before + 1e-9
        before = 0.5 * inertia * arm.qd[0] ** 2
