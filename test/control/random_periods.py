# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Random histories of guarded arms, many side by side, with faults and requests at any time."""

from typing import Any, NamedTuple

import numpy as np

import mbs_dynamics as mbs
from mbs_dynamics.control.period import transitions
from mbs_dynamics.control.period.function import Period, initial
from mbs_dynamics.control.period.records import NEVER, Settings

ARM = """
<robot name="three"><link name="base"/>
<link name="upper"><inertial><origin xyz="0.2 0 0"/><mass value="2"/>
<inertia ixx="0.01" iyy="0.02" izz="0.02" ixy="0" ixz="0" iyz="0"/></inertial></link>
<link name="lower"><inertial><origin xyz="0.15 0 0.02"/><mass value="1"/>
<inertia ixx="0.01" iyy="0.01" izz="0.01" ixy="0" ixz="0" iyz="0"/></inertial></link>
<link name="hand"><inertial><origin xyz="0.05 0.02 0"/><mass value="0.5"/>
<inertia ixx="0.002" iyy="0.002" izz="0.002" ixy="0" ixz="0" iyz="0"/></inertial></link>
<joint name="shoulder" type="revolute"><parent link="base"/><child link="upper"/>
<axis xyz="0 1 0"/><limit lower="-2" upper="2" effort="40" velocity="3"/></joint>
<joint name="elbow" type="revolute"><parent link="upper"/><child link="lower"/>
<origin xyz="0.4 0 0"/><axis xyz="0 1 0"/><limit lower="-2" upper="2" effort="20" velocity="3"/>
</joint>
<joint name="wrist" type="continuous"><parent link="lower"/><child link="hand"/>
<origin xyz="0.3 0 0"/><axis xyz="1 0 0"/><limit effort="5" velocity="6"/></joint></robot>
"""
"""An arm with two limited joints and one that turns without limits."""

MODEL = mbs.Model.from_urdf(ARM)
N = MODEL.n
PERIOD = 0.004
TURNING = np.array([False, False, True])
"""Joints without limits."""
INERTIA = np.array([0.8, 0.2, 0.03])
"""Inertias of joints of the simulated arm, in kg m^2."""


def settings(layouts: Period, **options: Any) -> Settings:
    """Return settings of this arm, with drives that can hold it."""
    one = np.ones(N)
    efforts = MODEL.effort_limits
    low = np.where(np.isfinite(MODEL.lower), MODEL.lower, -NEVER)
    high = np.where(np.isfinite(MODEL.upper), MODEL.upper, NEVER)
    given = {
        "commanded": one, "low": low - 0.05, "high": high + 0.05,
        "spring_low": low, "spring_high": high,
        "fastest": MODEL.velocity_limits, "effort": efforts, "rate": 50.0 * efforts,
        "timeout": 0.02 * one, "ahead": 0.02, "longest_pause": 0.02, "differentiates": 0.0,
        "frozen_timeout": 0.05, "tolerance": 0.05, "hottest": 90.0, "saturation": 1.0,
        "effort_check": 1.0, "starts_from_effort": 0.0, "collides": 0.0,
        "on_collision": 0.0, "impact_threshold": NEVER * one,
        "sustained_threshold": NEVER * one, "watches_efforts": 0.0,
        "can_hold": 1.0, "stiffness": np.array([300.0, 150.0, 20.0]),
        "drive_damping": np.array([15.0, 5.0, 0.5]), "slip": 0.1 * one, "on_fault": 0.0,
        "ramp_in": 0.1, "ramp_out": 0.5, "hand_over": 0.1, "release": 0.3, "settle_time": 0.5,
        "filter": 0.0,
        "gravity": np.array([0.0, 0.0, -9.81]), "gravity_time": 0.5,
        "loads": np.zeros((len(layouts.model.body_names), 10)), "loads_time": 0.3,
        "scale": one, "damping": np.array([0.5, 0.3, 0.05]), "friction": 0.1 * one, "zone": 0.1,
        "state_period": PERIOD, "switch_time": 0.3,
        "joint_stiffness": np.array([60.0, 30.0, 3.0]), "joint_ratio": 1.0, "joint_fastest": 0.22,
        "link_stiffness": np.array([5.0, 5.0, 5.0, 200.0, 200.0, 200.0]), "link_ratio": 1.0,
        "link_fastest": 0.22, "link_axes": 0.0, "posture_frequency": 2.0, "own_lead": 0.2 * one,
        "own_link_lead": np.array([0.2, 0.2, 0.2, 0.1, 0.1, 0.1]), "reference_velocity": 0.5 * one,
        "reference_acceleration": 2.0 * one, "reference_timeout": 0.2,
        "pose_velocity": np.array([1.0, 0.25]), "pose_acceleration": np.array([4.0, 1.0]),
    }  # fmt: skip
    return Settings(**(given | options))


KINDS = (
    "silent", "nan", "velocity_nan", "velocity_wild", "jump", "shift", "frozen", "backwards",
    "future", "effort_nan", "effort_sign", "command_sign", "error", "hot", "apart", "pushed",
    "blocked", "law", "law_nan",
)  # fmt: skip
"""Faults of one joint that begin at random and last some periods."""


class Step(NamedTuple):
    """One period of all histories."""

    before: Any
    sample: Any
    request: Any
    settings: Any
    after: Any
    output: Any
    verdict: Any


def unpacked(layouts: Period, before: Any, inputs: tuple[Any, Any, Any], result: Any) -> Step:
    """Return a period of many arms by fields; ``inputs`` are samples, requests and settings."""
    kinds = ("state", "sample", "request", "settings", "state", "output", "verdict")
    rows = before, *inputs, result.state, result.output, result.verdict
    return Step(*(getattr(layouts, x).unpacked(row) for x, row in zip(kinds, rows, strict=True)))


class Histories:
    """Many arms with random faults and requests; ``faults``: their rate per period and joint."""

    def __init__(self, count: int, seed: int, layouts: Period, faults: float = 0.001) -> None:
        self.layouts, self.count = layouts, count
        self.rng = rng = np.random.default_rng(seed)
        self.calm = rng.random(count) < 0.25
        """Arms with few faults, rarely disabled, and then held by others, so that motions end."""
        self.rate = faults * np.where(self.calm, 0.1, 1.0)[:, None]
        self.q = rng.uniform(-1.5, 1.5, (count, N))
        self.q[:, 2] *= 4.0
        self.qd = np.zeros((count, N))
        self.time = rng.uniform(0.0, 1e4, count)
        self.settings = np.stack([self._settings() for _ in range(count)])
        self.state = np.stack([self._initial(row) for row in self.settings])
        self.kind = np.full((count, N), -1)
        self.left = np.zeros((count, N), dtype=int)
        self.shift = np.zeros((count, N))
        self.latest = np.zeros((3, count, N))
        self.torque = np.zeros((count, N))
        self.stuck = np.zeros(count, dtype=int)
        self.motions = np.zeros((count, layouts.request.size))
        """Laws and motions that are requested."""
        drives = self.settings[:, layouts.settings.places["can_hold"].start] > 0.5
        self.holder = ~drives & (rng.random(count) < 0.5)
        """Whether another controller can hold an arm."""
        self.holds = self.holder.copy()
        self.inputs: tuple[Any, Any, Any] = ()
        """Samples, requests and settings of the latest period."""
        self.result: Any = None

    def _settings(self) -> Any:
        rng = self.rng
        drives = rng.random() < 0.7
        given = settings(
            self.layouts,
            can_hold=float(drives),
            on_fault=rng.choice([0.0, 1.0, 1.0, 2.0]),
            effort_check=float(rng.integers(3)),
            tolerance=0.05 * (rng.random() < 0.7),
            filter=0.01 * (rng.random() < 0.3),
            ramp_in=rng.choice([0.0, 0.1, 0.3]),
            saturation=rng.choice([0.1, 1.0]),
            effort=MODEL.effort_limits * rng.choice([0.0, 0.3, 0.5, 1.0], p=[0.02, 0.08, 0.1, 0.8]),
            starts_from_effort=float(rng.random() < 0.2),
            scale=rng.choice([0.9, 1.0]) * np.ones(N),
            longest_pause=rng.choice([0.012, 0.02, 0.04]),
        )
        stiff = given.joint_stiffness * rng.choice([0.3, 1.0, 1.0, 30.0])  # some soft, some refused
        given = given._replace(joint_stiffness=stiff, state_period=rng.choice([0.0, PERIOD]))
        if rng.random() < 0.5:  # a little beyond the errors of the simulated inertia
            given = given._replace(
                collides=1.0,
                on_collision=float(rng.integers(3)),
                impact_threshold=np.array([0.5, 0.3, NEVER]) * rng.choice([1.0, 4.0]),
                sustained_threshold=np.array([1.0, 0.5, NEVER]) * rng.choice([1.0, 4.0]),
            )
        if not drives:
            zero = np.zeros(N)
            given = given._replace(stiffness=zero, drive_damping=zero, hand_over=0.0)
        return self.layouts.settings.packed(given).astype(float)

    def _initial(self, row: Any) -> Any:
        layout = self.layouts.settings
        state = initial(layout.unpacked(row))
        return self.layouts.state.packed(state).astype(float)

    def _begin_faults(self) -> None:
        rng = self.rng
        begins = (rng.random((self.count, N)) < self.rate) & (self.left == 0)
        self.kind = np.where(begins, rng.integers(len(KINDS), size=self.kind.shape), self.kind)
        long = np.where(rng.random(self.kind.shape) < 0.5, 1, rng.integers(1, 60, self.kind.shape))
        self.left = np.where(begins, long, np.maximum(self.left - 1, 0))
        self.kind = np.where(self.left > 0, self.kind, -1)

    def _is(self, name: str) -> Any:
        return self.kind == KINDS.index(name)

    def sample(self) -> Any:
        """Return the samples of the next period of all arms."""
        rng, n = self.rng, self.count
        self._begin_faults()
        self.time = self.time + PERIOD * rng.uniform(0.9, 1.1, n)
        jump = rng.random(n)
        self.time = np.where(jump < 2e-4, self.time + 0.01 * 50.0 ** rng.random(n), self.time)
        self.stuck = np.where(jump > 1.0 - 1e-4, 10, np.maximum(self.stuck - 1, 0))
        now = np.where(self.stuck > 0, np.nan if rng.random() < 0.5 else self.time[0], self.time)
        now = np.where(rng.random(n) < 1e-4, self.time - 1.0, now)

        noise = rng.normal(size=(3, n, N)) * np.array([1e-5, 2e-3, 0.02])[:, None, None]
        q, qd, effort = self.q + noise[0], self.qd + noise[1], self.torque + noise[2]
        q[:, 2] = (q[:, 2] + np.pi) % (2.0 * np.pi) - np.pi
        self.shift = np.where(self._is("shift"), 0.8, 0.0)
        q = q + self.shift + np.where(self._is("jump"), rng.uniform(-2.0, 2.0, q.shape), 0.0)
        frozen = self._is("frozen")
        q, qd = np.where(frozen, self.latest[0], q), np.where(frozen, self.latest[1], qd)
        effort = np.where(frozen, self.latest[2], effort)
        self.latest = np.stack([q, qd, effort])
        stamp = self.time[:, None] - 0.001 + np.zeros(N)
        stamp = stamp - np.where(self._is("backwards"), 1.0, 0.0)
        stamp = stamp + np.where(self._is("future"), 1.0, 0.0)
        effort = np.where(self._is("effort_nan"), np.nan, effort)
        effort = np.where(self._is("effort_sign"), -effort - 1.0, effort)
        row = np.zeros((n, self.layouts.sample.size))
        places = self.layouts.sample.places
        row[:, places["now"].start] = now
        values = {
            "stamp": stamp,
            "received": stamp,
            "reported": np.where(self._is("silent"), 0.0, 1.0),
            "q": np.where(self._is("nan"), np.nan, q),
            "qd": np.where(self._is("velocity_nan"), np.nan, qd + 12.0 * self._is("velocity_wild")),
            "effort": effort,
            "error": np.where(self._is("error"), 3.0, 0.0),
            "temperature": np.where(self._is("hot"), 120.0, 40.0),
            "apart": np.where(self._is("apart"), 0.5, 0.0),
            "law": np.where(self._is("law"), 3.0, np.where(self._is("law_nan"), np.nan, 0.0)),
            "nudge": np.zeros((n, N)),
        }
        for name, value in values.items():
            row[:, places[name]] = value
        row[:, places["floats"].start] = 1.0
        return row

    def request(self) -> Any:
        """Return the requests of the next period: mostly none."""
        rng, n = self.rng, self.count
        row = np.zeros((n, self.layouts.request.size))
        row[:, 3], row[:, 4] = self.holder, self.holder & self._other_holds()
        actions = (
            transitions.ENABLE, transitions.ENABLE, transitions.ENABLE, transitions.CLEAR,
            transitions.DISABLE, transitions.DISABLE, transitions.HOLD, transitions.TRIP,
        )  # fmt: skip
        asked = rng.random(n) < 0.02
        wanted = np.where(self.calm & (rng.random(n) < 0.95), actions[0], rng.choice(actions, n))
        row[:, 0] = np.where(asked, wanted, transitions.NONE)
        row[:, 1] = np.where(asked & (rng.random(n) < 0.5), 0.0, 1.0)
        self._change_motions()
        first = self.layouts.request.places["law"].start
        row[:, first:] = self.motions[:, first:]
        return row

    def _change_motions(self) -> None:
        """Request another law or motion of some arms, and feed them segments of trajectories."""
        rng, places = self.rng, self.layouts.request.places
        for k in np.flatnonzero(rng.random(self.count) < np.where(self.calm, 0.002, 0.004)):
            row = self.motions[k]
            if rng.random() < 0.3:
                row[places["law"]] = rng.choice([0.0, 1.0, 1.0, 2.0, 2.0, 3.0, 4.0, 7.0])
                continue
            row[places["motion"]] += 1.0
            row[places["follows"]] = rng.choice([0.0, 1.0, 2.0, 2.0])
            row[places["prefers"]] = rng.integers(2)
            away = rng.choice([0.02, 0.05, 0.5]) * rng.uniform(-1.0, 1.0, N)
            here = np.nan_to_num(self.state[k, self.layouts.state.places["q"]])
            here[2] += 2.0 * np.pi * rng.integers(-1, 2)
            row[places["target"]] = here + away
            row[places["target_qd"]] = rng.uniform(-0.5, 0.5, N) * (rng.random() < 0.3)
            pose = np.hstack([np.eye(3), rng.uniform(-0.6, 0.6, (3, 1))])
            angle = rng.uniform(-np.pi, np.pi)
            pose[:2, :2] = [[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]]
            row[places["target_pose"]] = pose.ravel()
            # q + 3 d (x / T)^2 - 2 d (x / T)^3, from rest to rest in T
            segment = np.zeros((6, N))
            segment[0], segment[2], segment[3] = here + away, 5.0 * away, -8.0 * away
            segment[0] += rng.uniform(-1.0, 1.0) * (rng.random() < 0.1)
            row[places["segment"]] = segment.ravel()
            row[places["duration"]], row[places["delay"]] = 0.4, 0.1
            row[places["pace"]] = rng.choice([1.0, 1.0, 0.5, 0.0])
            if rng.random() < 0.2:  # what is not a number, or no rotation
                name = rng.choice(["target", "target_pose", "segment", "pace", "target_qd"])
                row[places[name]] = rng.choice([np.nan, np.inf, 1e30])

    def _other_holds(self) -> Any:
        """Let other controllers let go of arms that torques hold, take them back, or lose them."""
        rng = self.rng
        on = self.state[:, self.layouts.state.places["mode"].start] == transitions.ON
        chance = rng.random(self.count)
        self.holds = np.where(self.holds, ~(on & (chance < 0.1)), ~on & (chance < 0.02))
        self.holds ^= rng.random(self.count) < 1e-3
        return self.holds

    def _change_settings(self) -> None:
        """Change gains, gravity or loads of some arms."""
        rng, places = self.rng, self.layouts.settings.places
        self.settings = self.settings.copy()  # those of the period before may be stored
        for k in np.flatnonzero(rng.random(self.count) < 5e-4):
            row = self.settings[k]
            row[places["scale"]] = rng.uniform(0.8, 1.2)
            row[places["damping"]] *= rng.uniform(0.5, 1.5)
            row[places["joint_stiffness"]] *= rng.uniform(0.5, 1.5)
            row[places["link_stiffness"]] *= rng.uniform(0.5, 1.5)
            row[places["link_axes"]] = rng.integers(2)
            if rng.random() < 0.02:
                row[places["joint_stiffness"]] = np.nan
            if rng.random() < 0.02:
                row[places["gravity"]] = np.nan
            elif rng.random() < 0.5:
                tilt = rng.uniform(-0.3, 0.3, 2)
                row[places["gravity"]] = 9.81 * np.array([*tilt, -np.sqrt(1.0 - tilt @ tilt)])
            loads = row[places["loads"]].reshape(-1, 10)
            loads[-1, 0] = rng.choice([0.0, 0.3])

    def step(self) -> Step:
        """Advance all arms by a period."""
        self._change_settings()
        sample, request = self.sample(), self.request()
        before = self.state
        result = self.layouts(before, sample, request, self.settings)
        self.state, self.result = result.state, result
        if not self.inputs:  # once all arms have a time
            law = self.layouts.request.places["law"].start
            self.motions[:, law] = self.rng.integers(3, size=self.count)
        self.inputs = sample, request, self.settings
        self._move(self.layouts.output.unpacked(result.output), request[:, 1])
        return unpacked(self.layouts, before, self.inputs, result)

    def _move(self, output: Any, sends: Any) -> None:
        """Move the arms by what their motors are told."""
        p = self.layouts.settings.unpacked(self.settings)
        loops = output.stiffness * p.stiffness * (output.position - self.q)
        turns = 2.0 * np.pi * np.round((output.position - self.q) / (2.0 * np.pi))
        loops = np.where(TURNING, loops - output.stiffness * p.stiffness * turns, loops)
        loops = loops - output.damping * p.drive_damping * self.qd
        sign = np.where(self._is("command_sign"), -1.0, 1.0)
        exerted = np.clip(sign * output.torque + loops, -1.5 * p.effort, 1.5 * p.effort)
        push = np.where(self._is("pushed"), 8.0 * INERTIA, 0.0)
        load = self.layouts.gravity(self.q, p.gravity, p.loads.reshape(self.count, -1, 10))
        for _ in range(4):
            friction = 0.1 * np.tanh(self.qd / 0.01)
            rate = (exerted + push - load - friction) / INERTIA
            self.qd = np.clip(self.qd + 0.25 * PERIOD * rate, -8.0, 8.0)
            self.q = self.q + 0.25 * PERIOD * self.qd
        modes = self.state[:, self.layouts.state.places["mode"].start]
        held = self.calm & (modes == transitions.OFF)
        still = (self.holder & self.holds) | held
        self.qd = np.where(still[:, None] | self._is("blocked"), 0.0, self.qd)
        stop = np.array([2.1, 2.1, np.inf])
        self.qd = np.where(np.abs(self.q) > stop, 0.0, self.qd)
        self.q = np.clip(self.q, -stop, stop)
        self.torque = np.where(held[:, None], load, exerted)
