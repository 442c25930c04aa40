# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The three checks of data whose units were not declared."""

from dataclasses import replace

import numpy as np
import pytest

import mbs_dynamics as mbs
from mbs_dynamics.resources import robot_path
from mbs_dynamics.timeseries import TimeSeries, TimeSeriesError

ARM = mbs.Model.from_urdf(robot_path("arm7"))
T = 0.01 * np.arange(1000)
PHASE = T[:, None] + np.arange(7)
RIGHT = TimeSeries(
    T, ARM.joint_names, np.sin(PHASE), np.cos(PHASE), tau=np.sin(2.0 * PHASE), name="run.csv"
)
DEG = 180.0 / np.pi


def test_data_in_si_units_passes():
    assert RIGHT.of(ARM).joints == ARM.joint_names


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"t": 1e3 * T}, r"period of 10 s .*Likely is --columns t=\[ms\]; otherwise"),
        ({"t": 1e3 * T, "qd": None}, r"Likely is --columns t=\[ms\]; otherwise"),
        ({"t": 1e9 * T, "qd": None}, r"Likely is --columns t=\[ns\]; otherwise"),
        ({"t": T / 60.0, "qd": None}, r"Likely is --columns t=\[min\]; otherwise"),
        ({"t": 100.0 * T}, r"Likely is --columns t=rows/100; otherwise"),
        ({"t": 100.0 * T, "qd": None}, r"Likely is --columns t=\[ms\] or t=rows/RATE; otherwise"),
        ({"qd": DEG * RIGHT.qd}, r"qd_joint1.* are 57.3 times .*qd=\[deg/s\]"),
        ({"qd": 30 / np.pi * RIGHT.qd}, r"Likely is --columns qd=\[rpm\]"),
        ({"qd": 0.0 * RIGHT.qd}, r"qd_joint1.* are zero, .*--columns qd=none"),
        ({"qd": np.cos(3.0 * PHASE)}, r"do not agree with the positions.*qd=none"),
        ({"qd": 0.5 * RIGHT.qd}, r"are 0.5 times the derivatives of the positions"),
        (
            {"qd": np.where(np.arange(7) == 1, -100.0, 1.0) * RIGHT.qd},
            "'qd_joint2' are -100 times .*qd_joint2=none",
        ),
        ({"t": 1.25 * T}, "are 1.25 times the derivatives"),
        ({"q": DEG * RIGHT.q, "qd": None}, r"outside the limits .*Likely is --columns q=\[deg\];"),
        ({"q": DEG * RIGHT.q}, r"Likely is --columns q=\[deg\];"),
        ({"q": 1e3 * RIGHT.q, "qd": None}, r"Likely is --columns q=\[mrad\];"),
    ],
)  # fmt: skip
def test_rejects_other_units_with_the_declaration(changes, said):
    with pytest.raises(TimeSeriesError, match=f"run.csv: .*{said}"):
        replace(RIGHT, **changes).of(ARM)


@pytest.mark.parametrize(
    ("changes", "declared"),
    [
        ({"t": 1e3 * T, "qd": None}, "t"),
        ({"q": DEG * RIGHT.q, "qd": None}, "tq"),
        ({"qd": 0.5 * RIGHT.qd}, ("qd",)),
    ],
)
def test_what_is_declared_is_not_doubted(changes, declared):
    assert len(replace(RIGHT, **changes, declared=frozenset(declared)).of(ARM)) == 1000


def test_wrapped_angles_and_noise_pass():
    rng = np.random.default_rng(0)
    q = RIGHT.q + np.where(np.arange(7) == 0, 3.0, 0.0)
    wrapped = (q + np.pi) % (2.0 * np.pi) - np.pi
    qd = RIGHT.qd + 0.05 * rng.normal(size=q.shape)
    assert replace(RIGHT, q=wrapped, qd=qd).of(ARM).joints == ARM.joint_names


def test_a_robot_that_falls_beyond_its_limits_passes():
    q = RIGHT.q + np.where(np.arange(7) == 1, 3.0, 0.0)
    assert (q[:, 1] > ARM.upper[1]).mean() > 0.3
    assert replace(RIGHT, q=q).of(ARM).joints == ARM.joint_names


def test_speeds_beyond_the_limits_are_rejected():
    with pytest.raises(TimeSeriesError, match=r"times its velocity limit.*t=\[min\]"):
        replace(RIGHT, t=T / 14.0, qd=None).of(ARM)


def test_rejections_name_the_columns_of_the_file(tmp_path):
    """Both where the unit is likely to be another one, and where joints are named."""
    names = [f"angle{k}" for k in range(1, 8)]
    table = np.column_stack([T, DEG * RIGHT.q])
    path = tmp_path / "run.csv"
    np.savetxt(path, table, delimiter=",", header=",".join(["Clock", *names]), comments="")
    declared = {f"angle{k}": f"q_{joint}" for k, joint in enumerate(ARM.joint_names, 1)}
    series = TimeSeries.read(path, columns={"Clock": "t", **declared})
    with pytest.raises(TimeSeriesError, match=r"'angle1', .*--columns q=\[deg\]"):
        series.of(ARM)
    assert series.named(np.arange(7) == 2, "q") == "joint3 (column 'angle3')"
    assert RIGHT.named(np.arange(7) == 2) == "joint3"
