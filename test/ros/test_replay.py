# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Replay of a recorded bag: what the node would have published."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from bags import write_bag

pytest.importorskip("rclpy")
pytest.importorskip("rosbags")

from rosbags.highlevel import AnyReader
from rosbags.typesys import Stores, get_typestore
from waiting import TIMEOUT

import mbs_dynamics as mbs
from mbs_dynamics.resources import robot_path
from mbs_dynamics.timeseries import TimeSeries

ARM = mbs.Model.from_urdf(robot_path("arm7"))
COUNT = 250


def recording():
    t = 0.01 * np.arange(COUNT)
    q = np.sin(t[:, None] + np.arange(7))
    return TimeSeries(t, ARM.joint_names, q, np.cos(t[:, None] + np.arange(7)), tau=0.0 * q)


def replayed(*arguments):
    """Run the command in a process of its own, as it has a ROS of its own."""
    command = [sys.executable, "-m", "mbs_dynamics.cli", "replay", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT, check=False)


@pytest.fixture(scope="module")
def bag(tmp_path_factory):
    path = tmp_path_factory.mktemp("replay") / "bag"
    write_bag(path, recording(), "mcap")
    return path


def test_every_message_is_answered_as_the_node_does(bag, tmp_path):
    out = tmp_path / "out.mcap"
    params = tmp_path / "params.yaml"
    params.write_text("/**: {ros__parameters: {publish_twists: false}}", encoding="utf-8")
    more = ["-p", "publish_mass_matrix:=true", "--params-file", params]
    done = replayed(robot_path("arm7"), bag, "--out", out, *more)
    assert done.returncode == 0, done.stderr
    assert f"{COUNT} messages were replayed" in done.stdout
    found = {}
    store = get_typestore(Stores.ROS2_JAZZY)
    with AnyReader([out], default_typestore=store) as reader:
        for connection, when, data in reader.messages():
            message = reader.deserialize(data, connection.msgtype)
            found.setdefault(connection.topic, []).append((when, message))
    node = "/dynamics_node"
    assert f"{node}/twist/tool" not in found
    gravity = found[f"{node}/gravity_torques"]
    assert len(gravity) == COUNT
    expected = mbs.gravity_torques(ARM, recording().q)
    efforts = np.array([message.effort for _, message in gravity])
    np.testing.assert_allclose(efforts, expected, atol=1e-9)
    stamps = [m.header.stamp.sec * 10**9 + m.header.stamp.nanosec for _, m in gravity]
    assert stamps == [when for when, _ in gravity]
    M = np.reshape(found[f"{node}/mass_matrix"][7][1].data, (7, 7))
    np.testing.assert_allclose(M, mbs.mass_matrix(ARM, recording().q[7]), atol=1e-9)
    assert len(found["/diagnostics"]) == 2  # one for each second of the bag


def test_what_cannot_be_replayed(bag, tmp_path):
    out = ["--out", str(tmp_path / "x.mcap")]
    cases = {
        "x.db3": ["--out", "x.db3"],
        "absent.yaml": [*out, "--params-file", "absent.yaml"],
        "/other": [*out, "--joint-states", "/other"],
        "'bodyfixed'": [*out, "-p", "representation:=bodyfixed"],
    }
    main = "import sys; from mbs_dynamics.cli import main; "
    tried = [["replay", str(robot_path("arm7")), str(bag), *given] for given in cases.values()]
    command = [sys.executable, "-c", main + f"print([main(one) for one in {tried}])"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT, check=False)
    assert done.stdout == "[1, 1, 1, 1]\n", done.stderr
    for said in cases:
        assert said in done.stderr
    assert "Traceback" not in done.stderr
    assert not list(tmp_path.iterdir())
