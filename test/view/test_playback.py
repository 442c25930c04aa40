# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Motions on the page, and pictures of them."""

import numpy as np
import pytest
from mechanisms import ARM_URDF
from page_bench import running

import mbs_dynamics as mbs
from mbs_dynamics.errors import ArgumentError, MbsError
from mbs_dynamics.integrate import simulate
from mbs_dynamics.model.coordinates import position_names, velocity_names
from mbs_dynamics.resources import robot_path
from mbs_dynamics.timeseries import TimeSeries
from mbs_dynamics.view.options import PageOptions
from mbs_dynamics.view.page import Page
from mbs_dynamics.view.playback import Playback, frame_times
from mbs_dynamics.view.states import states_at, states_of

ARM = mbs.Model.from_urdf(robot_path("arm7"))
Q = np.array([0.3, -0.5, 0.7, -1.1, 0.2, 0.9, -0.4])


@pytest.fixture(scope="module")
def swing():
    return simulate(ARM, Q, duration=0.5, step=1e-3).series


@pytest.fixture
def page():
    shown = Page(ARM, PageOptions(robot_path("arm7"), port=0))
    yield shown
    shown.close()


def test_the_state_is_that_of_the_time_line(see, page, swing):
    playback = Playback(page, swing)
    with running(page, playback):
        seen = see(page.address)
        seen.slide("time, s", 0.25)
        assert seen.until(lambda: playback.time() == pytest.approx(0.25))
        seen.tab("Numbers")
        q, qd = swing.q[250], swing.qd[250]

        def shows():
            rows = seen.table("joints")[1:]
            return np.array([[float(cell) for cell in row[1:3]] for row in rows])

        assert seen.until(lambda: np.allclose(shows(), np.stack([q, qd], axis=1), atol=6e-4))
        assert seen.errors == []


def test_playback_has_a_speed_and_repeats(page, swing, monkeypatch):
    clock = [100.0]
    monkeypatch.setattr("mbs_dynamics.view.playback.time.monotonic", lambda: clock[0])
    playback = Playback(page, swing)
    assert not playback.due()
    playback.play()
    assert playback.due()
    clock[0] += 0.2
    assert playback.time() == pytest.approx(0.2)
    playback._speed.value = "0.5"
    playback._change_speed(None)
    assert playback.time() == pytest.approx(0.2)
    clock[0] += 0.2
    assert playback.time() == pytest.approx(0.3)
    playback.pause()
    clock[0] += 5.0
    assert playback.time() == pytest.approx(0.3)
    assert not playback.due()
    playback.play()
    clock[0] += 0.6  # over the end by 0.1 s
    assert playback.time() == pytest.approx(0.1)


@pytest.mark.long
def test_the_trace_is_the_path_of_the_body(page, swing):
    playback = Playback(page, swing)
    page.body.value = "link5"
    page.refresh(playback)
    (lines,) = page.canvas.handles("trace")
    path = mbs.forward_kinematics(ARM, swing.q, bodies=["link5"])[:, 0, :3, 3]
    np.testing.assert_allclose(lines.points[0, 0], path[0], atol=1e-6)
    np.testing.assert_allclose(lines.points[-1, 1], path[-1], atol=1e-6)
    page.body.value = "tool"
    page.refresh(playback)
    (lines,) = page.canvas.handles("trace")
    path = mbs.forward_kinematics(ARM, swing.q, bodies=["tool"])[:, 0, :3, 3]
    np.testing.assert_allclose(lines.points[0, 0], path[0], atol=1e-6)


def test_motions_of_other_robots_and_without_states_are_refused(page, swing):
    chain = mbs.Model.from_urdf(ARM_URDF)
    other = simulate(chain, [0.3, 0.1], duration=0.01).series
    with pytest.raises(MbsError, match="shoulder"):
        Playback(page, other)
    with pytest.raises(ArgumentError, match="no states"):
        Playback(page, swing.rows(slice(0)))
    batch = simulate(ARM, np.stack([Q, Q]), duration=0.01)
    with pytest.raises(ArgumentError, match="batch"):
        Playback(page, batch.series)


@pytest.mark.parametrize("every", [7, 499])
def test_the_robot_moves_by_time_whatever_rows_are_stored(page, swing, every):
    """Between rows it moves on: with few rows too it is near the motion."""
    rows = swing.rows(np.unique(np.append(np.arange(0, len(swing), every), len(swing) - 1)))
    playback = Playback(page, rows)
    times = np.linspace(0.0, 0.5, 21)
    for t in times:
        playback.seek(float(t))
        q = playback.scene("tool", "hybrid").q
        between = [np.interp(t, rows.t, column) for column in rows.q.T]
        np.testing.assert_allclose(q, between, atol=1e-9)


def test_joints_and_rates_that_were_not_recorded_are_filled(page, swing):
    some = TimeSeries(swing.t + 5.0, ARM.joint_names[:3], swing.q[:, :3])
    states = states_of(some, ARM)
    np.testing.assert_allclose(states.t, swing.t, atol=1e-9)
    np.testing.assert_array_equal(states.q[:, :3], swing.q[:, :3])
    rest = ARM.neutral(within_limits=True)
    np.testing.assert_array_equal(states.q[:, 3:], np.tile(rest[3:], (len(swing), 1)))
    np.testing.assert_allclose(states.qd[1:200, :3], swing.qd[1:200, :3], atol=2e-3)
    assert not states.qd[:, 3:].any()


def test_an_unlimited_angle_that_a_driver_wraps_turns_on():
    text = robot_path("arm7").read_text().replace('type="revolute"', 'type="continuous"', 1)
    model = mbs.Model.from_urdf(text)
    t = np.linspace(0.0, 4.0, 41)
    wrapped = np.remainder(2.0 * t + np.pi, 2.0 * np.pi) - np.pi
    turning = TimeSeries(t, ("joint1",), wrapped[:, None])
    times = np.linspace(0.0, 4.0, 173)
    q, qd = states_at(model, states_of(turning, model), times)
    np.testing.assert_allclose(np.cos(q[:, 0]), np.cos(2.0 * times), atol=1e-6)
    np.testing.assert_allclose(qd[:, 0], 2.0, atol=1e-6)


def test_a_free_body_turns_between_rows():
    model = mbs.Model.from_urdf(ARM_URDF, floating_base=True)
    spin = np.array([0.0, 0.0, 2.0, 0.0, 0.0, 0.0, 0.0, 0.0])
    start, end = model.neutral(), mbs.displaced(model, model.neutral(), spin)
    names = velocity_names(model.joints), position_names(model.joints)
    two = TimeSeries([0.0, 1.0], names[0], [start, end], positions=names[1])
    q, qd = states_at(model, states_of(two, model), np.array([0.25]))
    np.testing.assert_allclose(q[0], mbs.displaced(model, start, 0.25 * spin), atol=1e-9)
    np.testing.assert_allclose(qd[0], spin, atol=1e-9)


@pytest.mark.parametrize("end", [0.2, 2.0, 2.01])
@pytest.mark.parametrize("rate", [10.0, 25.0])
def test_frames_of_a_file_follow_time(end, rate):
    times = frame_times(end, rate)
    assert abs(len(times) / rate - end) <= 1.5 / rate
    assert 0.0 == times[0] <= times[-1] <= end
