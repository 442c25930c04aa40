# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Any sequence of inputs yields finite commands within limits and rates, and none unasked."""

from __future__ import annotations

import contextlib

import numpy as np
import pytest
from gravity_bench import ARM7, JOINTS, Bench
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from mbs_dynamics.control.environment import LinkGravity, LinkLoad
from mbs_dynamics.control.settings import RATE_SHARE
from mbs_dynamics.errors import MbsError

numbers = st.floats(allow_nan=True, allow_infinity=True)
plausible = st.floats(-1.9, 1.9)
delays = st.sampled_from([0.0, 1e-6, 0.001, 0.01, 0.05, 0.19, 0.21, 0.5, 3.0])
DESCRIPTIONS = [
    ARM7,
    ARM7.replace("<robot", "<!-- other --><robot", 1),
    ARM7.replace('effort="180"', 'effort="20"'),
    "<robot/>",
    "no XML",
]
SLACK = 1e-9


class Anything(RuleBasedStateMachine):
    """Sends anything to a compensator, and looks at each command."""

    @initialize(
        on_fault=st.sampled_from(["hold", "ramp_down", "zero"]),
        imu=st.booleans(),
        scale=st.sampled_from([0.1, 1.0]),
    )
    def begin(self, on_fault, imu, scale):
        self.bench = Bench(on_fault=on_fault, use_imu=imu, effort_scale=scale)
        self.seen = 0
        self.arm = self.bench.core.arm
        self.before = np.zeros(7)
        self.since = self.bench.now
        self.may = False
        """Whether a command is allowed at all."""
        self.sane = self.bench.core.settings
        self.restart(30)

    # -- what can happen ---------------------------------------------------------------------------

    def after(self):
        """Do what the node does after each callback."""
        if self.bench.core.stopping:
            self.bench.tick()
        if self.bench.core.pending is not None:
            with contextlib.suppress(MbsError):
                self.bench.adopt()
        self.look()

    @rule(delay=delays)
    def wait(self, delay):
        self.bench.now += delay
        self.bench.tick()
        self.after()

    @rule(q=st.lists(plausible, min_size=7, max_size=7), steps=st.integers(1, 30))
    def good(self, q, steps):
        for _ in range(steps):
            self.bench.now += 0.01
            if self.bench.core.settings.use_imu:
                self.bench.core.accelerate(
                    "base_link", (0.0, 0.0, 9.81), self.bench.now, stamp=self.bench.nanoseconds
                )
            self.bench.send(q)
            self.after()

    @rule(steps=st.integers(1, 150))
    def restart(self, steps):
        """Bring everything in order, and enable."""
        core = self.bench.core
        core.disable(self.bench.now)
        while not core.at_rest:
            self.bench.now += 0.05
            self.bench.tick()
            self.after()
        core.change(self.sane, self.bench.now)
        core.describe(ARM7, self.bench.now)
        self.after()
        self.bench.now += 20.0  # after which any stamp is taken
        self.good([0.1] * 7, 2)  # after a jump, the first one is refused
        if core.fault is not None:
            core.clear(self.bench.now)
        self.enable()
        assert core.state == "ramping in"
        self.good([0.1] * 7, steps)

    @rule(
        q=st.lists(numbers, max_size=9),
        qd=st.lists(numbers, max_size=9),
        names=st.one_of(st.just(JOINTS), st.lists(st.sampled_from([*JOINTS, "wheel"]), max_size=9)),
        stamp=st.one_of(st.none(), st.integers(0, 2 * 10**11)),
        delay=delays,
    )
    def anything(self, q, qd, names, stamp, delay):
        self.bench.now += delay
        self.bench.send(q, qd, names, stamp)
        self.after()

    @rule(
        q=st.lists(plausible, min_size=7, max_size=7), qd=st.lists(numbers, min_size=7, max_size=7)
    )
    def rates(self, q, qd):
        self.bench.now += 0.01
        self.bench.send(q, qd)
        self.after()

    @rule()
    def enable(self):
        engaged = self.bench.core.engaged
        if self.bench.core.enable(self.bench.now) == "" and not engaged:
            self.since = self.bench.now
        self.after()

    @rule()
    def disable(self):
        self.bench.core.disable(self.bench.now)
        self.after()

    @rule(text=st.sampled_from(DESCRIPTIONS))
    def describe(self, text):
        self.bench.core.describe(text, self.bench.now)
        self.after()

    @rule(
        values=st.fixed_dictionaries(
            {},
            optional={
                "on_fault": st.sampled_from(["hold", "ramp_down", "zero", "nothing"]),
                "damping": st.lists(numbers, min_size=7, max_size=7).map(tuple),
                "gravity_scale": st.lists(st.floats(-0.1, 1.6), min_size=7, max_size=7).map(tuple),
                "friction_scale": st.floats(-0.1, 1.1),
                "friction": st.lists(st.floats(-2.0, 1e4), min_size=7, max_size=7).map(tuple),
                "effort_scale": st.floats(0.0, 1.1),
                "effort_limits": st.lists(numbers, min_size=7, max_size=7).map(tuple),
                "ramp_time": st.floats(0.0, 11.0),
                "ramp_in_time": st.floats(0.0, 11.0),
                "velocity_filter": st.floats(0.0, 0.1),
                "limit_zone": st.floats(0.0, 1.0),
                "max_payload": st.floats(-1.0, 50.0),
                "stale_timeout": st.floats(0.0, 11.0),
                "gravity": st.tuples(numbers, numbers, numbers),
                "velocity_from_position": st.booleans(),
                "compensates_itself": st.sampled_from([False, False, True]),
            },
        )
    )
    def change(self, values):
        core = self.bench.core
        try:
            changed = core.settings.changed(values)
            core.check(changed)
        except MbsError:
            return
        core.change(changed, self.bench.now)
        self.after()

    @rule(
        link=st.sampled_from(["tool", "link4", "base_link", "nowhere"]),
        mass=numbers,
        com=st.tuples(numbers, numbers, numbers),
    )
    def payload(self, link, mass, com):
        with contextlib.suppress(MbsError):
            self.bench.core.set_load(LinkLoad(link, mass, com, ((0.0,) * 3,) * 3), self.bench.now)
        self.after()

    @rule(vector=st.tuples(numbers, numbers, numbers), imu=st.booleans())
    def gravity(self, vector, imu):
        with contextlib.suppress(MbsError):
            if imu:
                self.bench.core.accelerate(
                    "base_link", vector, self.bench.now, stamp=self.bench.nanoseconds
                )
            else:
                self.bench.core.set_gravity(LinkGravity("", vector), self.bench.now)
        self.after()

    # -- what must hold ----------------------------------------------------------------------------

    def look(self):
        """Check what was commanded since the last look."""
        core = self.bench.core
        new = self.bench.commands[self.seen :]
        self.seen = len(self.bench.commands)
        for now, command in new:
            assert self.may or core.state != "disabled"
            limits = np.array(
                self.arm.running.given.effort[self.arm.joints]
            )  # of the robot that was commanded
            assert np.isfinite(command).all()
            assert (np.abs(command) <= limits + SLACK).all()
            step = np.abs(np.array(command) - self.before)
            assert (step <= RATE_SHARE * limits * (now - self.since) + SLACK).all()
            self.before, self.since = np.array(command), now
        self.arm = core.arm
        # the last command of a ramp out is the one that leads to the state disabled
        self.may = core.state != "disabled"

    @invariant()
    def nothing_is_engaged_that_may_not_be(self):
        core = self.bench.core
        if core.engaged:
            assert core.settings.compensates_itself is False
            assert core.arm is not None
            assert not core.refused

    @invariant()
    def what_is_held_is_what_was_commanded(self):
        if self.bench.commands:
            latest = self.bench.core.latest
            assert list(latest) == self.bench.commands[-1][1]


TestAnything = Anything.TestCase
TestAnything.pytestmark = [pytest.mark.filterwarnings("ignore:overflow:RuntimeWarning")]
TestAnything.settings = settings(max_examples=15, stateful_step_count=25, deadline=None)
