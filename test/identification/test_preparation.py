# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Stretches of recordings for identification, and the filters of their signals."""

from dataclasses import replace

import numpy as np
import pytest
from identification_bench import JOINTS, TRUE, recorded

from mbs_dynamics.identification.preparation import joints_with_torques, prepared
from mbs_dynamics.identification.signals import cutoff_of, filtered, rate_of
from mbs_dynamics.timeseries import TimeSeriesError

SHORT = recorded(1, duration=3.0, rate=100.0)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"tau": None}, "holds no efforts.*NAME=tau_joint1"),
        ({"tau": np.full_like(SHORT.tau, np.nan)}, "holds no efforts"),
        ({"q": np.tile(SHORT.q[0], (300, 1)), "qd": None}, "positions in .q_joint1.* are constant"),
    ],
)
def test_rejects_recordings_without_torques_or_motion(changes, said):
    with pytest.raises(TimeSeriesError, match=said):
        prepared(replace(SHORT, **changes), TRUE)


def test_rejects_few_samples():
    with pytest.raises(TimeSeriesError, match=r"20 .*50"):
        prepared(SHORT.rows(slice(20)), TRUE)


def test_gaps_divide_recordings():
    keep = (SHORT.t < 1.0) | (SHORT.t > 1.5)
    parts, notes = prepared(SHORT.rows(keep), TRUE)
    assert [len(part) for part in parts] == [100, 149]
    assert any("1 gap(s)" in note for note in notes)
    for part in parts:
        assert part.t[0] == 0.0
        assert rate_of(part) == pytest.approx(100.0)


def test_irregular_clocks_become_uniform():
    rng = np.random.default_rng(0)
    t = SHORT.t + 0.002 * rng.uniform(size=len(SHORT.t))
    q = np.column_stack([np.interp(t, SHORT.t, x) for x in SHORT.q.T])
    (part,), _ = prepared(replace(SHORT, t=t, q=q, qd=None), TRUE)
    assert np.ptp(np.diff(part.t)) < 1e-12
    exact = np.column_stack([np.interp(part.t + t[0], SHORT.t, x) for x in SHORT.q.T])
    np.testing.assert_allclose(part.q[5:-5], exact[5:-5], atol=1e-3)


def test_wrapped_angles_are_unwrapped():
    q = SHORT.q + 3.0 * (np.arange(7) == 0)
    wrapped = (q + np.pi) % (2.0 * np.pi) - np.pi
    assert np.abs(np.diff(wrapped[:, 0])).max() > 6.0
    (part,), _ = prepared(replace(SHORT, q=wrapped, declared=frozenset("q")), TRUE)
    assert np.abs(np.diff(part.q[:, 0])).max() < 0.1


@pytest.mark.parametrize("effort", [0.0, np.nan])
def test_joints_at_rest_without_torques_are_left_out(effort):
    q, tau = SHORT.q.copy(), SHORT.tau.copy()
    q[:, 2], tau[:, 2] = 0.04, effort
    (part,), notes = prepared(replace(SHORT, q=q, tau=tau, qd=None), TRUE)
    assert joints_with_torques(part) == tuple(name for name in JOINTS if name != "joint3")
    assert (part.q[:, 2] == 0.04).all()
    assert any("neither move nor have torques: joint3" in note for note in notes)


def test_samples_before_drives_report_torques_are_left_out():
    tau = SHORT.tau.copy()
    tau[:45] = 0.0
    (part,), notes = prepared(replace(SHORT, tau=tau), TRUE)
    assert len(part) == len(SHORT) - 45
    assert any("45 samples without any torque" in note for note in notes)


@pytest.mark.parametrize("velocities", [True, False])
def test_rates_have_no_shift_in_time(velocities):
    """Against the exact rates of a motion; noise on the positions."""
    long = recorded(1, duration=20.0, rate=100.0)
    rng = np.random.default_rng(2)
    noisy = replace(
        long,
        q=long.q + 1e-5 * rng.normal(size=long.q.shape),
        qd=long.qd if velocities else None,
    )
    cutoff = cutoff_of([noisy])
    found = filtered(noisy, cutoff)
    exact = np.stack([np.interp(found.t, long.t, x) for x in long.qd.T], axis=1)
    assert np.abs(found.qd - exact).max() < 0.02 * np.abs(exact).max()
    lag = [
        np.argmax(np.correlate(a - a.mean(), b - b.mean(), "full")) - (len(a) - 1)
        for a, b in zip(found.qd.T, exact.T, strict=True)
    ]
    assert lag == [0] * 7
    assert rate_of(found) >= 5.0 * cutoff
