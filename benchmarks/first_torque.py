# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""From a fresh clone to the first gravity torque on a terminal, with ROS 2 as wheels."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks.report import Table

ROOT = Path(__file__).parents[1]

LISTENER = """
import rclpy
from rclpy.node import Node
from sensor_msgs.msg import JointState
rclpy.init()
node, heard = Node("listener"), []
node.create_subscription(JointState, "/dynamics_node/gravity_torques", heard.append, 10)
while not heard:
    rclpy.spin_once(node, timeout_sec=0.1)
print(dict(zip(heard[0].name, heard[0].effort)))
"""
"""What `ros2 topic echo --once` does, where there is no ros2cli."""


def first_torque() -> Iterator[Table]:
    """Yield the seconds of each step, one after the other."""
    environment = {**os.environ, "ROS_AUTOMATIC_DISCOVERY_RANGE": "LOCALHOST"}
    environment.pop("MBS_CACHE", None)
    rows: list[list[object]] = []
    with tempfile.TemporaryDirectory() as folder:
        environment["XDG_CACHE_HOME"] = f"{folder}/cache"  # no code of earlier runs
        clone = Path(folder) / "mbs_dynamics"
        begin = time.perf_counter()
        _timed(rows, "git clone", ["git", "clone", "--quiet", str(ROOT), str(clone)], environment)
        _timed(
            rows, "make: environment, package, ROS 2", ["make", ".venv/.run"], environment, clone
        )
        rows.append(["nodes, until the first torque", _nodes(clone, environment)])
        rows.append(["together", time.perf_counter() - begin])
        rows.append(["nodes once more, with the cache", _nodes(clone, environment)])
    yield Table("Seconds from a fresh clone to the first gravity torque", ("step", "s"), rows)


def _timed(
    rows: list[list[object]],
    step: str,
    command: list[str],
    environment: dict[str, str],
    folder: Path | None = None,
) -> None:
    begin = time.perf_counter()
    subprocess.run(command, cwd=folder, env=environment, check=True, stdout=sys.stderr)
    rows.append([step, time.perf_counter() - begin])


def _nodes(clone: Path, environment: dict[str, str]) -> float:
    """Return the seconds from the start of two nodes to the first torque that is heard."""
    bin_folder = clone / ".venv" / "bin"
    urdf = str(clone / "urdf" / "arm7.urdf")
    begin = time.perf_counter()
    given = ["--ros-args", "-p", f"robot_description_file:={urdf}"]
    nodes = [
        subprocess.Popen([bin_folder / "simulator_node", *given], env=environment),
        subprocess.Popen([bin_folder / "dynamics_node"], env=environment),
    ]
    try:
        python = [bin_folder / "python", "-c", LISTENER]
        heard = subprocess.run(python, env=environment, check=True, capture_output=True, text=True)
        seconds = time.perf_counter() - begin
    finally:
        for node in nodes:
            node.terminate()
        for node in nodes:
            node.wait()
    print(heard.stdout, file=sys.stderr)
    return seconds
