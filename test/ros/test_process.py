# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Transport, start and end of a process of ROS, whatever the middleware does."""

import os
import signal

import pytest

pytest.importorskip("rclpy")

from backends import run_python
from rclpy.clock import Clock, ClockType
from rclpy.node import Node

from mbs_dynamics.ros.parameters import misdirected_files
from mbs_dynamics.ros.process import ENDING, EndingSignals, spin_until_shutdown

pytestmark = pytest.mark.process

# beside much other work, ROS itself may take a second to shut down
PROGRAM = """
import atexit, time
from mbs_dynamics.ros import process
from mbs_dynamics.ros.process import ros_with_signals

process.LAST_MOMENTS = 4.0
{hang}
with ros_with_signals():
    pass
print("after ROS", flush=True)
"""

NODE = """
import os, random, signal, sys, threading, time
from mbs_dynamics.ros.dynamics_node import DynamicsNode
from mbs_dynamics.ros.process import run

def interrupt():
    for pause in {pauses}:
        time.sleep(pause)
        os.kill(os.getpid(), signal.SIGINT)

class Interrupted(DynamicsNode):
    def start(self):
        threading.Thread(target=interrupt, daemon=True).start()
        return super().start()

sys.exit(run(Interrupted))
"""

HANG_IN_SHUTDOWN = "process.try_shutdown = lambda: time.sleep(100)"
HANG_AT_EXIT = "atexit.register(time.sleep, 100)"


@pytest.mark.parametrize("hang", [HANG_IN_SHUTDOWN, HANG_AT_EXIT])
def test_a_process_that_hangs_after_ros_ends_and_says_where(hang):
    ended = run_python(PROGRAM.format(hang=hang))
    assert ended.returncode == 1
    assert "Timeout" in ended.stderr
    assert ("ros_with_signals" in ended.stderr) == (hang == HANG_IN_SHUTDOWN)
    assert ("after ROS" in ended.stdout) == (hang == HANG_AT_EXIT)


def test_a_second_interrupt_changes_no_exit_code(ros):
    """A terminal sends SIGINT to all its processes, and so does launch, to its own."""
    ended = run_python(NODE.format(pauses=[0.2, 0.05, 0.01, 0.01]))
    assert ended.returncode == 0
    assert "Traceback" not in ended.stderr


TRIED = """
import sys
from mbs_dynamics.ros.process import ros_with_signals

for arguments in eval(sys.argv[1]):
    try:
        with ros_with_signals(["--ros-args", *arguments]):
            print("started")
    except SystemExit as ended:
        assert ended.code == 1
"""


def test_arguments_that_ros_cannot_read_take_one_line(tmp_path):
    integers, misplaced = tmp_path / "integers.yaml", tmp_path / "misplaced.yaml"
    integers.write_text("/**: {ros__parameters: {gravity: [0, 0, -9.81]}}")
    misplaced.write_text("max_rate: 3.0\n")
    cases = {
        "[0.0, 0.0, -9.81]": ["--params-file", str(integers)],
        "line 1": ["--params-file", str(misplaced)],
        "absent.yaml": ["--params-file", "absent.yaml"],
        "'-p max_rate'": ["-p", "max_rate"],
        "['--nonsense']": ["--nonsense"],
    }
    ended = run_python(TRIED, repr(list(cases.values())))
    assert (ended.returncode, ended.stdout) == (0, "")
    lines = [line for line in ended.stderr.splitlines() if "[rcl]" not in line]
    for line, said in zip(lines, cases, strict=True):
        assert line.startswith("-c: cannot start: ")
        assert said in line


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("wrong: GIVEN\n/**/right: GIVEN", None),
        ("left: {arm: {right: GIVEN}}", None),
        ("right: GIVEN\n/*/right: GIVEN", "no parameters for /left/arm/right: it has those of"),
        ("<robot/>", "has none at all"),
    ],
)
def test_a_file_for_another_node_is_said(ros, tmp_path, text, problem):
    file = tmp_path / "parameters.yaml"
    file.write_text(text.replace("GIVEN", "{ros__parameters: {max_rate: 3.0}}"))
    node = Node("right", namespace="/left/arm")
    found = misdirected_files(node, ["--ros-args", "--params-file", str(file)])
    node.destroy_node()
    assert len(found) == (problem is not None)
    assert all(one.startswith(str(file)) and problem in one for one in found)


class Reluctant(Node):
    """Raises an error, and takes three ticks to shut down."""

    def __init__(self):
        super().__init__("reluctant")
        self.errors, self.ticks, self.shutting_down, self.spoke = [], 0, False, False
        self.create_timer(0.01, self.tick, clock=Clock(clock_type=ClockType.STEADY_TIME))

    def tick(self):
        if not self.shutting_down:
            os.kill(os.getpid(), signal.SIGTERM)
            raise ValueError("spoilt")
        self.ticks += 1

    def begin_shutdown(self):
        self.shutting_down = True

    @property
    def shutdown_complete(self):
        return self.ticks >= 3

    def fail(self, error):
        self.errors.append(str(error))

    def flush(self):
        self.spoke = True


def test_an_error_does_not_end_a_node_and_a_signal_lets_it_shut_down(ros):
    before = {number: signal.getsignal(number) for number in ENDING}
    node = Reluctant()
    try:
        signals = EndingSignals()
        assert not signals.asked
        spin_until_shutdown(node, signals)
        assert signals.asked
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        node.destroy_node()
    assert set(node.errors) == {"spoilt"}
    assert node.shutting_down
    assert node.spoke
