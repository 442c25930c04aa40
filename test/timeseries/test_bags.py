# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Bags of rosbag2 and ROS 1: whole, split, unfinished, and with several topics."""

import shutil

import numpy as np
import pytest
from bags import write_bag

from mbs_dynamics.timeseries import TimeSeries, TimeSeriesError
from mbs_dynamics.timeseries.reading import merged

rosbag1 = pytest.importorskip("rosbags.rosbag1")
typesys = pytest.importorskip("rosbags.typesys")

T = 0.01 * np.arange(300)
Q = np.column_stack([np.sin(T), np.cos(T)])
NAMES = ("elbow", "wrist")
SHORT = TimeSeries(T, NAMES, Q, 2.0 * Q, tau=3.0 * Q)
SUFFIX = {"sqlite3": ".db3", "mcap": ".mcap"}


def assert_same(found, rows=slice(None)):
    assert found.joints == NAMES
    np.testing.assert_allclose(found.t - found.t[0], T[rows] - T[rows][0], atol=1e-8)
    for kind in ("q", "qd", "tau"):
        np.testing.assert_array_equal(getattr(found, kind), getattr(SHORT, kind)[rows])


@pytest.mark.parametrize("whole", [True, False])
@pytest.mark.parametrize("storage", SUFFIX)
def test_bags_of_ros_2(storage, whole, tmp_path):
    write_bag(tmp_path / "bag", SHORT, storage)
    path = tmp_path / "bag"
    assert_same(TimeSeries.read(path if whole else next(path.glob(f"*{SUFFIX[storage]}"))))


def write_ros1(path, topics=("/joint_states",), stamped=True, reset=299):
    """Write joint states as a bag of ROS 1, on several topics."""
    store = typesys.get_typestore(typesys.Stores.ROS1_NOETIC)
    kinds, name = store.types, "sensor_msgs/msg/JointState"
    with rosbag1.Writer(path) as writer:
        for topic in topics:
            states = writer.add_connection(topic, name, typestore=store)
            for k, t in enumerate(T):
                when = round(1e9 * (100.0 + t))
                at = when - round(1e9 * T[reset]) if k > reset else when
                stamp = kinds["builtin_interfaces/msg/Time"](*divmod(at if stamped else 0, 10**9))
                header = kinds["std_msgs/msg/Header"](seq=k, stamp=stamp, frame_id="")
                arrays = (Q[k], 2.0 * Q[k], 3.0 * Q[k])
                message = kinds[name](header, list(NAMES), *arrays)
                writer.write(states, when, store.serialize_ros1(message, name))


@pytest.mark.parametrize("stamped", [True, False])
def test_bags_of_ros_1(stamped, tmp_path):
    write_ros1(tmp_path / "run.bag", stamped=stamped)
    assert_same(TimeSeries.read(tmp_path / "run.bag"))


def test_one_of_several_topics_is_chosen(tmp_path):
    write_ros1(tmp_path / "run.bag", ("/left/joint_states", "/right/joint_states"))
    with pytest.raises(TimeSeriesError, match=r"/left/joint_states, /right/.* by --topic"):
        TimeSeries.read(tmp_path / "run.bag")
    with pytest.raises(TimeSeriesError, match="topics with joint states are: /left"):
        TimeSeries.read(tmp_path / "run.bag", topic="/other")
    assert_same(TimeSeries.read(tmp_path / "run.bag", topic="/right/joint_states"))


def test_schemas_without_the_nested_types_are_read(tmp_path):
    write_bag(tmp_path / "bag", SHORT, "mcap")
    (path,) = (tmp_path / "bag").glob("*.mcap")
    data = path.read_bytes()
    nested = b"MSG: std_msgs/Header"
    assert nested in data
    path.write_bytes(data.replace(nested, b"MSG: std_msgs/Absent"))
    assert_same(TimeSeries.read(path))


def cut_short(path, records):
    """Cut the end off an MCAP file: everything behind some of its records."""
    data, at = path.read_bytes(), 8
    for _ in range(records):
        at += 9 + int.from_bytes(data[at + 1 : at + 9], "little")
    path.write_bytes(data[: at + 5])


def test_an_mcap_without_its_end_is_read_with_a_note(tmp_path):
    write_bag(tmp_path / "bag", SHORT, "mcap")
    (path,) = (tmp_path / "bag").glob("*.mcap")
    cut_short(path, 2)  # the header and a chunk
    found = TimeSeries.read(path)
    assert any("was not closed" in note for note in found.notes)
    assert_same(found)
    again = TimeSeries.read(path.parent)
    assert any("the bag is incomplete" in note for note in again.notes)
    cut_short(path, 1)
    with pytest.raises(TimeSeriesError, match=r"none; .*was not closed"):
        TimeSeries.read(path)


@pytest.mark.long
@pytest.mark.parametrize("storage", SUFFIX)
def test_files_of_a_split_bag_without_metadata_are_read_in_their_order(storage, tmp_path):
    folder = tmp_path / "killed"
    folder.mkdir()
    for k, rows in enumerate(np.array_split(np.arange(len(T)), 11)):
        write_bag(tmp_path / f"part{k}", SHORT.rows(rows), storage)
        (part,) = (tmp_path / f"part{k}").glob(f"*{SUFFIX[storage]}")
        shutil.copy(part, folder / f"run_{k}{SUFFIX[storage]}")
    found = TimeSeries.read(folder)
    assert any("metadata.yaml is missing" in note for note in found.notes)
    assert_same(found)


def test_folders_and_files_without_joint_states_are_rejected(tmp_path):
    with pytest.raises(TimeSeriesError, match=r"metadata\.yaml"):
        TimeSeries.read(tmp_path)
    for name, data in (("b.mcap", b"none"), ("c.db3", b"none")):
        (tmp_path / name).write_bytes(data)
        with pytest.raises(TimeSeriesError, match="cannot be read as a bag"):
            TimeSeries.read(tmp_path / name)


def test_units_of_bags_are_declared(tmp_path):
    write_ros1(tmp_path / "run.bag")
    columns = {"q": "[deg]", "tau_wrist": "none", "qd": "none", "t": "rows/50"}
    found = TimeSeries.read(tmp_path / "run.bag", columns=columns)
    np.testing.assert_allclose(found.q, np.radians(Q))
    assert found.qd is None
    assert np.isnan(found.tau[:, 1]).all()
    np.testing.assert_allclose(np.diff(found.t), 0.02)


def samples(*messages):
    """Return samples of joint states from (time, joints) of each message."""
    return [(t, {name: (t, 1.0, 2.0) for name in names}) for t, names in messages]


def test_joints_in_separate_messages_are_interpolated():
    found = merged("run", samples(*((t, "a") for t in T), *((t + 0.003, "b") for t in T[::2])))
    assert "interpolated" in found.notes[0]
    assert found.joints == ("a", "b")
    np.testing.assert_allclose(found.q[:, 1], found.t, atol=1e-12)
    assert found.t[0] >= 0.003


def test_gaps_of_one_joint_are_not_bridged():
    late = [t for t in T if not 1.0 < t < 2.0]
    found = merged("run", samples(*((t, "a") for t in T), *((t, "b") for t in late)))
    assert len(found) == len(late)
    assert any("rows with missing values" in note for note in found.notes)


def test_joints_that_are_not_reported_throughout_are_left_out():
    found = merged("run", samples(*((t, "a") for t in T), (T[5], "b"), (T[9], "b")))
    assert found.joints == ("a",)
    assert any("not reported throughout: b" in note for note in found.notes)


def test_a_clock_that_was_reset_is_rejected(tmp_path):
    write_ros1(tmp_path / "run.bag", reset=200)
    with pytest.raises(TimeSeriesError, match=r"goes back from 102 to 100\.01 s"):
        TimeSeries.read(tmp_path / "run.bag")
