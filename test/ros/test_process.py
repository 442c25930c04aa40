# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""How a process of ROS ends, whatever the middleware does."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytest.importorskip("rclpy")

pytestmark = pytest.mark.backend_independent

# beside much other work, ROS itself may take a second to shut down
PROGRAM = """
import atexit, time
from mbs_dynamics.ros import process
from mbs_dynamics.ros.process import ros_with_signals

process.LAST_MOMENTS = 4.0
{before}
with {context}():
    pass
print("after ROS", flush=True)
{after}
"""

CONTEXTS = ["process.ros", "ros_with_signals"]

HANG_IN_SHUTDOWN = "process.try_shutdown = lambda: time.sleep(100)"
HANG_AT_EXIT = "atexit.register(time.sleep, 100)"


def outcome(context, before="", after=""):
    program = PROGRAM.format(context=context, before=before, after=after)
    return subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False
    )


@pytest.mark.parametrize("context", CONTEXTS)
@pytest.mark.parametrize("hang", [HANG_IN_SHUTDOWN, HANG_AT_EXIT])
def test_a_process_that_hangs_after_ros_ends_and_says_where(context, hang):
    ended = outcome(context, before=hang)
    assert ended.returncode == 1
    assert "Timeout" in ended.stderr
    assert ("shut_down" in ended.stderr) == (hang == HANG_IN_SHUTDOWN)
    assert ("after ROS" in ended.stdout) == (hang == HANG_AT_EXIT)


@pytest.mark.parametrize("context", CONTEXTS)
def test_a_process_may_go_on_after_ros(context):
    ended = outcome(context, after="time.sleep(4.5)")
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "after ROS\n", "")
