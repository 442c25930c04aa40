# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""How a process of ROS ends, whatever the middleware does."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytest.importorskip("rclpy")

from rclpy.node import Node

from mbs_dynamics.ros.parameters import misdirected_files

pytestmark = pytest.mark.backend_independent

# beside much other work, ROS itself may take a second to shut down
PROGRAM = """
import atexit, time
from mbs_dynamics.ros import process
from mbs_dynamics.ros.process import ros_with_signals

process.LAST_MOMENTS = 4.0
{before}
with ros_with_signals():
    pass
print("after ROS", flush=True)
{after}
"""

NODE = """
import os, random, signal, sys, threading, time
from mbs_dynamics.ros import dynamics_node

def interrupt():
    for pause in {pauses}:
        time.sleep(pause)
        os.kill(os.getpid(), signal.SIGINT)

class Interrupted(dynamics_node.DynamicsNode):
    def start(self):
        threading.Thread(target=interrupt, daemon=True).start()
        return super().start()

dynamics_node.DynamicsNode = Interrupted
sys.exit(dynamics_node.main(sys.argv))
"""

HANG_IN_SHUTDOWN = "process.try_shutdown = lambda: time.sleep(100)"
HANG_AT_EXIT = "atexit.register(time.sleep, 100)"


def outcome(before="", after=""):
    program = PROGRAM.format(before=before, after=after)
    return subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False
    )


@pytest.mark.parametrize("hang", [HANG_IN_SHUTDOWN, HANG_AT_EXIT])
def test_a_process_that_hangs_after_ros_ends_and_says_where(hang):
    ended = outcome(before=hang)
    assert ended.returncode == 1
    assert "Timeout" in ended.stderr
    assert ("shut_down" in ended.stderr) == (hang == HANG_IN_SHUTDOWN)
    assert ("after ROS" in ended.stdout) == (hang == HANG_AT_EXIT)


def test_a_process_may_go_on_after_ros():
    ended = outcome(after="time.sleep(4.5)")
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "after ROS\n", "")


@pytest.mark.parametrize("second", [0.0, 0.02, 0.05, 0.1, 0.2])
def test_a_second_interrupt_changes_no_exit_code(ros, second):
    """A terminal sends SIGINT to all its processes, and so does launch, to its own."""
    program = NODE.format(pauses=[0.2, second, 0.01, 0.01])
    ended = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False
    )
    assert (ended.returncode, ended.stderr) == (0, "")


@pytest.mark.parametrize(
    ("content", "arguments", "said"),
    [
        (
            "/**:\n  ros__parameters:\n    gravity: [0, 0, -9.81]\n",
            [],
            "write all numbers of a list with a point: [0.0, 0.0, -9.81]",
        ),
        ("max_rate: 3.0\n", [], "Cannot have a value before ros__parameters at line 1"),
        (None, [], "Error opening YAML file"),
        ("", ["-p", "max_rate"], "Couldn't parse parameter override rule: '-p max_rate'"),
        ("", ["--nonsense"], "unknown arguments ['--nonsense']"),
    ],
)
def test_arguments_that_ros_cannot_read_take_one_line(tmp_path, content, arguments, said):
    file = tmp_path / "parameters.yaml"
    if content is not None:
        file.write_text(content, encoding="utf-8")
    files = ["--params-file", str(file)] if content != "" else []
    command = [sys.executable, "-m", "mbs_dynamics.ros.dynamics_node", "--ros-args"]
    ended = subprocess.run(
        [*command, *files, *arguments], capture_output=True, text=True, timeout=60, check=False
    )
    assert ended.returncode == 1
    (line,) = [line for line in ended.stderr.splitlines() if "[rcl]" not in line]
    assert line.startswith("dynamics_node.py: cannot start: ")
    assert said in line


def test_a_file_for_another_node_is_said(ros, tmp_path):
    node = Node("right", namespace="/left/arm")
    try:
        for names, good in (
            (["/**"], True),
            (["/left/arm/right"], True),
            (["wrong", "left/arm/right"], True),
            (["/*/*/right"], True),
            (["/**/right"], True),
            (["right"], False),
            (["/*/right"], False),
            (["/left/arm/rig"], False),
            ([], False),
        ):
            file = tmp_path / "parameters.yaml"
            file.write_text(
                "\n".join(f"{name}: {{ros__parameters: {{max_rate: 3.0}}}}" for name in names)
            )
            found = misdirected_files(node, ["--ros-args", "--params-file", str(file)])
            assert bool(found) is not good, names
            if found:
                (message,) = found
                assert message.startswith(f"{file} has no parameters for /left/arm/right: ")
                assert all(name in message for name in names)
        file.write_text("left: {arm: {right: {ros__parameters: {max_rate: 3.0}}}}")
        assert misdirected_files(node, ["--params-file", str(file)]) == []
        file.write_text("<robot/>")
        assert "has none at all" in misdirected_files(node, ["--params-file", str(file)])[0]
    finally:
        node.destroy_node()
