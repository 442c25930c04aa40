# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Wrist sensors: what fits, what is refused, and what is left of a reading.

Readings are differences of joint wrenches of the arm with a payload and without, or MuJoCo's.
"""

import math

import numpy as np
import pytest

import mbs_dynamics as mbs
from mbs_dynamics.control.force_calibration import Calibration, fit
from mbs_dynamics.control.force_sensor import ForceSensor
from mbs_dynamics.control.joint_states import Rejection
from mbs_dynamics.errors import ArgumentError, ModelError, UnknownBodyError
from mbs_dynamics.lie import se3, so3
from mbs_dynamics.resources import robot_path
from mbs_dynamics.yaml_files import read_yaml_file, yaml_text

ARM = mbs.Model.from_urdf(robot_path("arm7"))
SENSOR = "flange"
PLACED = ARM.frames[SENSOR].placement
BIAS = np.array([0.1, -0.2, 0.3, 4.0, -5.0, 6.0])
MASS, COM = 1.0, np.array([0.02, -0.03, 0.08])
TRUE = Calibration(BIAS, MASS, COM)
NOISE = np.array([0.01] * 3 + [0.1] * 3)
REST = np.zeros(7)


def reading(q, qd=REST, qdd=REST, *, mass=MASS, wrenches=None):
    """Return BIAS and the wrench of the tool on the flange: what a payload adds to the joint's."""
    loaded = ARM.with_payload(SENSOR, mass, COM)
    W = mbs.joint_wrenches(ARM, q, qd, qdd)[-1]
    W = W - mbs.joint_wrenches(loaded, q, qd, qdd, wrenches)[-1]
    return BIAS + se3.Ad(PLACED).T @ W


def poses(N=10, seed=0, **how):
    """Return gravities (N, 3) in the axes of the flange, and readings (N, 6) without noise."""
    Q = np.random.default_rng(seed).uniform(-2.5, 2.5, (N, 7))
    R = mbs.forward_kinematics(ARM, Q, bodies=[SENSOR])[:, 0, :3, :3]
    return np.swapaxes(R, 1, 2) @ ARM.gravity, np.array([reading(q, **how) for q in Q])


# -- fit -------------------------------------------------------------------------------------------


def test_fit_of_exact_readings_is_exact():
    found = fit(*poses())
    for got, true in zip(found.calibration, TRUE, strict=True):
        np.testing.assert_allclose(got, true, atol=1e-12)
    assert np.abs(found.residuals).max() < 1e-12


@pytest.mark.long
def test_a_tool_of_1_kg_is_found_within_1_percent_from_ten_noisy_poses():
    rng, largest = np.random.default_rng(1), []
    for seed in range(100):
        g, W = poses(seed=seed)
        found = fit(g, W + NOISE * rng.normal(size=W.shape))
        wrong, bias = found.calibration.mass - MASS, found.calibration.bias - BIAS
        largest.append((abs(wrong), np.abs(bias[3:]).max()))
    assert (np.quantile(largest, 0.98, axis=0) < (0.01 * MASS, 0.1)).all()


def test_a_sensor_without_a_tool_is_allowed_and_said():
    g, W = poses(mass=0.0)
    W = W + NOISE * np.random.default_rng(2).normal(size=W.shape)
    found = fit(g, W)
    assert (found.calibration.mass, *found.calibration.com) == (0.0, 0.0, 0.0, 0.0)
    np.testing.assert_allclose(found.calibration.bias, W.mean(axis=0))
    assert "no tool" in str(found)


@pytest.mark.parametrize("frozen", [slice(6), slice(3), slice(3, 6)])
def test_readings_that_do_not_change_are_refused(frozen):
    g, W = poses()
    W = W + NOISE * np.random.default_rng(2).normal(size=W.shape)
    W[:, frozen] = W[0, frozen]
    with pytest.raises(ArgumentError, match="the readings do not change"):
        fit(g, W)


@pytest.mark.parametrize("noise", [0.0, 0.1])
@pytest.mark.parametrize(
    ("turn", "sign", "said"),
    [
        ((math.pi, 0, 0), 1, "do not follow gravity.*axes of the sensor's link"),
        ((0, 0, math.pi / 2), 1, "do not follow gravity.*axes of the sensor's link"),
        ((0, 0, 0), -1, "a sensor that reports the opposite wrench"),
        ((0, math.pi / 2, 0), -1, "do not follow gravity.*axes of the sensor's link"),
    ],
)
def test_a_sensor_mounted_the_wrong_way_round_is_refused(turn, sign, said, noise):
    g, W = poses()
    Q = np.kron(np.eye(2), so3.exp(np.array(turn, dtype=float)))
    read = sign * W @ Q.T + noise * NOISE * np.random.default_rng(3).normal(size=W.shape)
    with pytest.raises(ArgumentError, match=said):
        fit(g, read)
    tilted = np.kron(np.eye(2), so3.exp(np.radians([3.0, -3.0, 2.0])))
    assert abs(fit(g, W @ tilted.T).calibration.mass - MASS) < 0.02  # an inaccuracy of the frame


DOWN, SIDE, FRONT = np.eye(3)[[2, 0, 1]] * 9.81


@pytest.mark.parametrize(
    ("directions", "said"),
    [
        ([], "at least 4 poses are needed"),
        ([DOWN, SIDE, FRONT], "at least 4 poses are needed"),
        ([DOWN] * 9, "Tilt the sensor about two axes"),
        (np.eye(4, 3), "gravity (in m/s^2)"),
        ([DOWN, SIDE] * 4, "Tilt the sensor about two axes"),
    ],
)
def test_poses_that_do_not_show_the_weight_are_refused(directions, said):
    g = np.reshape(directions, (-1, 3))
    W = BIAS + np.hstack([np.cross(COM, MASS * g), MASS * g])
    with pytest.raises(ArgumentError) as raised:
        fit(g, W)
    assert said in str(raised.value)


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (lambda W: W * ([1000.0] * 3 + [1.0] * 3), "centre of mass"),
        (lambda W: np.random.default_rng(4).normal(size=W.shape) * 10.0, "do not follow gravity"),
        (lambda W: W * 1e3, "1000 kg and its centre of mass"),
    ],
)
def test_readings_that_are_none_of_a_tool_are_refused(damage, said):
    g, W = poses()
    with pytest.raises(ArgumentError) as raised:
        fit(g, damage(W))
    assert said in str(raised.value)


@pytest.mark.parametrize("stated", [2.0, 1.25])
def test_a_payload_that_is_subtracted_and_too_heavy_is_named_beside_the_opposite_wrench(stated):
    g, W = poses(mass=1.0)
    W = BIAS + (1.2 - stated) * (W - BIAS) + NOISE * np.random.default_rng(4).normal(size=W.shape)
    with pytest.raises(ArgumentError, match=r"payload.*too heavy.*opposite wrench"):
        fit(g, W)


@pytest.mark.parametrize("offset", [0.03, 0.3])
def test_a_weight_that_is_subtracted_at_a_wrong_centre_is_not_reported_as_no_tool(offset):
    g, W = poses(mass=0.0)
    W[:, :3] += np.cross([0.0, 0.0, -offset], 1.2 * g)
    W = W + NOISE * np.random.default_rng(5).normal(size=W.shape)
    with pytest.raises(ArgumentError, match="wrong centre of mass"):
        fit(g, W)


@pytest.mark.parametrize("count", [8, 12, 20])
@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("alone", [False, True])
def test_a_bias_that_changes_between_poses_is_refused_and_an_outlier_is_named(count, seed, alone):
    rng = np.random.default_rng(seed)
    g = rng.normal(size=(count, 3))
    g *= 9.81 / np.linalg.norm(g, axis=1, keepdims=True)
    W = np.hstack([np.cross([0.0, 0.0, 0.06], 1.2 * g), 1.2 * g])
    W += rng.normal(size=W.shape) * ([0.02] * 3 + [0.05] * 3)
    assert abs(fit(g, W).calibration.mass - 1.2) < 0.012
    first = int(rng.integers(2, count - 2))
    step = rng.normal(size=6) * ([0.3] * 3 + [3.0] * 3)
    W[first : first + 1 if alone else count] += step
    where = f"pose {first + 1} is off" if alone else "pose"
    with pytest.raises(ArgumentError, match=f"{where}.*zeroed"):
        fit(g, W)


# -- the file --------------------------------------------------------------------------------------


def test_a_file_keeps_a_calibration(tmp_path, monkeypatch):
    path = tmp_path / "sensor.yaml"
    TRUE.write(path, SENSOR)
    for got, true in zip(Calibration.read(path, SENSOR), TRUE, strict=True):
        np.testing.assert_array_equal(got, true)

    def fail(*_):
        raise OSError("no space left")

    monkeypatch.setattr("os.replace", fail)
    with pytest.raises(ArgumentError, match="no space left"):
        TRUE._replace(mass=2.0).write(path, SENSOR)
    assert Calibration.read(path).mass == MASS  # the old one, whole
    assert [one.name for one in tmp_path.iterdir()] == ["sensor.yaml"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[", "is not YAML"),
        ("[1]", "must be a table"),
        ('{"frame": "flange", "mass": 1.0}', "bias_torque"),
        ({"mass": -1.0}, "-1 kg"),
        ({"com": [0.0, math.nan, 0.0]}, "com must be finite"),
        ({"bias_force": [1.0, 2.0]}, "bias_force has shape (2,)"),
        ({"mass": 1e300}, "1e+300 kg"),
        ({"com": [0.0, 80.0, 0.0]}, "at most 2 m away"),
        ({"frame": "other"}, "other"),
        ({"centre": [0.0]}, "centre"),
    ],
)
def test_a_bad_file_is_refused(tmp_path, text, said):
    path = tmp_path / "sensor.yaml"
    TRUE.write(path, SENSOR)
    if isinstance(text, dict):
        text = yaml_text(read_yaml_file(path) | text)
    path.write_text(text)
    with pytest.raises(ArgumentError) as raised:
        Calibration.read(path, SENSOR)
    assert said in str(raised.value)
    assert str(path) in str(raised.value)


# -- the sensor ------------------------------------------------------------------------------------


class Bench:
    """A sensor on the arm that is read every 2 ms."""

    def __init__(self, calibration=TRUE, seed=0, noise=0.0):
        self.sensor = ForceSensor(ARM, SENSOR)
        self.sensor.calibrate(calibration, 0.0)
        self.now, self.noise, self.rng = 100.0, noise * NOISE, np.random.default_rng(seed)
        self.ahead = 10**12
        """Lead of stamps over the clock, in ns."""

    @property
    def stamp(self):
        return self.ahead + round(1e9 * self.now)

    def read(self, q, W, dt=0.002):
        self.now += dt
        self.sensor.move(np.asarray(q), self.stamp, self.now)
        W = W + self.noise * self.rng.normal(size=6)
        return self.sensor.read(W, self.stamp, self.now)

    def hold(self, q, W, duration=0.6):
        return np.array([self.read(q, W) for _ in range(round(duration / 0.002))])


def test_what_is_left_is_the_wrench_of_the_surroundings():
    rng, bench = np.random.default_rng(5), Bench()
    tool = se3.inverse(PLACED) @ ARM.frames["tool"].placement
    for _ in range(20):
        q, push = rng.uniform(-2.5, 2.5, 7), rng.normal(size=6) * [2, 2, 2, 20, 20, 20]
        W = bench.read(q, reading(q, wrenches={"tool": push}))
        np.testing.assert_allclose(W, np.linalg.solve(se3.Ad(tool).T, push), atol=1e-10)


def test_poses_are_taken_of_a_still_arm_only():
    bench, q = Bench(), np.linspace(-1.0, 1.0, 7)
    W = reading(q)
    bench.hold(q, W, 0.3)
    for wait, said in ((0.0, "cover 0.3 s"), (10.0, "cover 0 s")):
        with pytest.raises(ArgumentError, match=said):
            bench.sensor.take_pose(bench.now + wait)
    for k in range(300):
        bench.read(q + 1e-4 * k, W)
    with pytest.raises(ArgumentError, match="the sensor by 0"):
        bench.sensor.take_pose(bench.now)
    with pytest.raises(ArgumentError, match="moves"):
        bench.sensor.zero(bench.now)


@pytest.mark.long
def test_zero_and_fit_change_the_output_without_a_jump():
    bench, q = Bench(), np.linspace(-1.0, 1.0, 7)
    drift = np.array([0.02, 0.01, -0.03, 1.0, -2.0, 3.0])
    W = reading(q) + drift

    def goes(before, after):
        """Assert that the output goes linearly from one value to the other within 1 s."""
        out = bench.hold(q, W, 1.2)
        share = np.minimum(0.002 * np.arange(1, len(out) + 1), 1.0)[:, None]
        np.testing.assert_allclose(out, before + share * (after - before), atol=1e-9)

    bench.hold(q, W)
    goes(drift, drift)
    np.testing.assert_allclose(bench.sensor.zero(bench.now), drift, atol=1e-12)
    goes(drift, np.zeros(6))
    weight = reading(q, mass=1.5) - reading(q)
    bench.sensor.calibrate(TRUE._replace(bias=BIAS + drift, mass=1.5), bench.now)
    goes(np.zeros(6), -weight)
    bench.sensor.zero(bench.now)
    bench.sensor.zero(bench.now)  # as the first, since the output has yet to arrive
    goes(-weight, np.zeros(6))


@pytest.mark.parametrize(
    ("kind", "change"),
    [
        ("not_finite", {"W": [0, 0, 0, 0, 0, math.nan]}),
        ("not_finite", {"W": [0, 0, 0, 0, 1e10, 0]}),
        ("old_stamp", {"ahead": 0.0}),
        ("old_stamp", {"ahead": -0.001}),
        ("stamps_apart", {"ahead": 0.11}),
        ("no_pose", {"wait": 0.6}),
    ],
)
def test_bad_readings_are_rejected_and_end_a_still_pose(kind, change):
    bench, q = Bench(), np.ones(7)
    good = reading(q)
    bench.hold(q, good)
    given = np.array(change.get("W", good), dtype=float)
    now, stamp = bench.now + change.get("wait", 0.0), bench.stamp
    stamp += round(1e9 * change.get("ahead", 0.001))
    answer = bench.sensor.read(given, stamp, now)
    assert isinstance(answer, Rejection)
    assert answer.kind == kind
    if kind != "old_stamp":
        with pytest.raises(ArgumentError):
            bench.sensor.take_pose(now)
    np.testing.assert_allclose(bench.read(q, good), 0.0, atol=1e-10)  # it goes on
    bench.ahead -= 50 * 10**9  # after a pause a recording is played again
    np.testing.assert_allclose(bench.read(q, good, 0.6), 0.0, atol=1e-10)


def test_a_rejected_reading_does_not_end_the_ramp_of_a_change():
    bench, q = Bench(), np.ones(7)
    before = bench.hold(q, reading(q) + 1.0)[-1]
    bench.read(q, [0.0, 0.0, 0.0, 0.0, 0.0, math.nan])
    bench.sensor.calibrate(TRUE._replace(bias=BIAS + 1.0), bench.now)
    np.testing.assert_allclose(bench.read(q, reading(q) + 1.0), 0.998 * before, atol=1e-9)


def test_gravity_is_that_of_the_model_until_it_changes():
    q, sensor = np.linspace(-1.0, 1.0, 7), ForceSensor(ARM.with_gravity((3.0, 4.0, 5.0)), SENSOR)
    sensor.calibrate(Calibration(BIAS, MASS, COM), 0.0)
    sensor.move(q, 0, 0.0)
    R = mbs.forward_kinematics(ARM, q, bodies=[SENSOR])[0, :3, :3]
    for gravity in ([3.0, 4.0, 5.0], [-5.0, 0.0, 8.0]):
        sensor.gravity = np.array(gravity)
        force = MASS * R.T @ gravity
        weight = np.concatenate([np.cross(COM, force), force])
        np.testing.assert_allclose(sensor.read(BIAS + weight, 0, 0.0), 0.0, atol=1e-12)


def test_links_that_cannot_bear_a_sensor_are_refused():
    with pytest.raises(UnknownBodyError, match="nowhere"):
        ForceSensor(ARM, "nowhere")
    with pytest.raises(ModelError, match="'base_link'"):
        ForceSensor(ARM, "base_link")
