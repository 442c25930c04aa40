# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Episodes of LeRobot datasets: names, units and clock from info.json, or declared."""

import json

import numpy as np
import pytest

from mbs_dynamics.timeseries import TimeSeries, TimeSeriesError

pyarrow = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")

NAMES = ("shoulder_pan", "elbow_flex")
ROWS = np.column_stack([np.arange(40.0), 10.0 - np.arange(40.0)])


def dataset(folder, state=None, episodes=1, more=(), per_file=1):
    """Write a dataset of episodes, ``per_file`` in each file, and return its folder."""
    features = {"observation.state": {"dtype": "float32", "shape": [2], "names": list(NAMES)}}
    features["observation.state"] |= state or {}
    features |= {name: {"dtype": "float32", "shape": [2], "names": list(NAMES)} for name in more}
    (folder / "meta").mkdir(parents=True)
    (folder / "data" / "chunk-000").mkdir(parents=True)
    info = {"codebase_version": "v2.1", "fps": 20, "features": features}
    (folder / "meta" / "info.json").write_text(json.dumps(info))
    for first in range(0, episodes, per_file):
        numbers = [k for k in range(first, min(first + per_file, episodes)) for _ in ROWS]
        columns = {
            "observation.state": [(row + k).tolist() for k in set(numbers) for row in ROWS],
            "frame_index": [*range(len(ROWS))] * len(set(numbers)),
            "episode_index": numbers,
            "timestamp": [0.0] * len(numbers),
        }
        for name in more:
            columns[name] = (3.0 * np.tile(ROWS, (len(set(numbers)), 1))).tolist()
        path = folder / "data" / "chunk-000" / f"episode_{first:06d}.parquet"
        parquet.write_table(pyarrow.table(columns), path)
    return folder


def test_time_is_the_frame_over_fps_and_units_are_asked_for(tmp_path):
    path = dataset(tmp_path / "set")
    with pytest.raises(TimeSeriesError, match=r"no unit of observation\.state.*q=\[deg\]"):
        TimeSeries.read(path)
    found = TimeSeries.read(path, columns={"q": "[deg]"})
    assert found.joints == NAMES
    np.testing.assert_allclose(found.t, np.arange(40) / 20.0)
    np.testing.assert_allclose(found.q, np.radians(ROWS), rtol=1e-6)
    file = next(path.rglob("*.parquet"))
    np.testing.assert_array_equal(TimeSeries.read(file, columns={"q": "[deg]"}).q, found.q)


@pytest.mark.parametrize("unit", ["deg", ["deg", "deg"]])
def test_a_unit_in_info_json_is_used(unit, tmp_path):
    found = TimeSeries.read(dataset(tmp_path / "set", {"unit": unit}))
    np.testing.assert_allclose(found.q, np.radians(ROWS), rtol=1e-6)


def test_names_state_quantities(tmp_path):
    names = {"motors": ["gripper.pos", "gripper.vel"]}
    path = dataset(tmp_path / "set", {"names": names}, more=["observation.effort"])
    columns = {"q": "[rad]", "qd": "[rad/s]", "tau": "none"}
    found = TimeSeries.read(path, columns=columns)
    assert found.joints == ("gripper",)
    np.testing.assert_allclose(found.qd, ROWS[:, 1:])
    assert found.tau is None


def test_efforts_are_torques(tmp_path):
    path = dataset(tmp_path / "set", more=["observation.effort", "observation.velocity"])
    with pytest.raises(TimeSeriesError, match=r"observation\.(effort|velocity).*"):
        TimeSeries.read(path, columns={"q": "[rad]"})
    columns = {"q": "[rad]", "qd": "[rad/s]", "tau": "[mN m]"}
    np.testing.assert_allclose(TimeSeries.read(path, columns=columns).tau, 3e-3 * ROWS)


def test_actions_are_goals(tmp_path):
    path = dataset(tmp_path / "set", more=["action"])
    found = TimeSeries.read(path, columns={"q": "[deg]"})
    np.testing.assert_allclose(found.goal, np.radians(3.0 * ROWS))


@pytest.mark.parametrize("per_file", [1, 3])
def test_an_episode_is_chosen(per_file, tmp_path):
    path = dataset(tmp_path / "set", episodes=3, per_file=per_file)
    columns = {"q": "[rad]"}
    with pytest.raises(TimeSeriesError, match=r"has 3 episodes, 0 to 2; choose one.*--topic"):
        TimeSeries.read(path, columns=columns)
    found = TimeSeries.read(path, columns=columns, topic="2")
    np.testing.assert_allclose(found.q, ROWS + 2.0)
    with pytest.raises(TimeSeriesError, match=r"no episode 7; it has 0, 1, 2"):
        TimeSeries.read(path, columns=columns, topic="7")


def test_joints_without_names_are_numbers(tmp_path):
    path = dataset(tmp_path / "set", {"names": None})
    assert TimeSeries.read(path, columns={"q": "[rad]"}).joints == ("0", "1")


def test_rejects_what_is_no_dataset(tmp_path):
    (tmp_path / "alone.parquet").write_bytes(b"none")
    with pytest.raises(TimeSeriesError, match=r"no meta.info\.json"):
        TimeSeries.read(tmp_path / "alone.parquet")
    path = dataset(tmp_path / "set")
    (path / "meta" / "info.json").write_text("{}")
    with pytest.raises(TimeSeriesError, match="cannot be read as a LeRobot dataset"):
        TimeSeries.read(path)
