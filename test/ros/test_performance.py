# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Counts, rates and latencies of an input."""

from __future__ import annotations

import pytest

from mbs_dynamics.control.joint_states import Rejection
from mbs_dynamics.ros.performance import InputStatistics


def test_counts_and_rates():
    counts = InputStatistics(now=100.0)
    empty = counts.report(101.0)
    assert (empty.rate, empty.rejected) == (0.0, 0)
    for k, took in enumerate((0.1, 0.3, 0.2)):
        begin = 101.0 + 0.5 * k
        counts.answered(begin, begin + took)
    counts.rejected(Rejection("not_finite", "elbow = nan"))
    counts.rejected(Rejection("incomplete_joints", "elbow"))
    counts.skipped(102.5)
    report = counts.report(103.0)
    assert report.rate == pytest.approx(1.5)
    assert report.rejected == 2
    assert report.values == {
        "rate [Hz]": "1.5",
        "answered": 3,
        "rejected": 2,
        "last rejection": "elbow",
        "rejected: incomplete_joints": 1,
        "rejected: not_finite": 1,
        "latency max [ms]": "300.0000",
    }
    after = counts.report(104.0)
    assert (after.rate, after.rejected) == (0.0, 0)
    assert (after.values["answered"], after.values["rejected"]) == (3, 2)
    assert after.values["latency max [ms]"] == "0.0000"


def test_stale_only_while_messages_are_expected():
    counts = InputStatistics(now=0.0)
    assert counts.stale_for(100.0, 0.5) is None
    counts.wait(100.0)
    assert counts.stale_for(100.5, 0.5) is None
    assert counts.stale_for(101.0, 0.5) == pytest.approx(1.0)
    counts.answered(101.0, 101.0)
    assert counts.stale_for(101.4, 0.5) is None
    counts.skipped(101.8)
    assert counts.stale_for(102.2, 0.5) is None
    assert counts.stale_for(102.8, 0.5) == pytest.approx(1.0)
    counts.wait(103.0)
    assert counts.stale_for(103.2, 0.5) is None
    counts.wait(None)
    assert counts.stale_for(200.0, 0.5) is None
