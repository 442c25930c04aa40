# Copyright 2026 The mbs_dynamics authors
#
# Licensed under the Apache License, Version 2.0 (the "License");
# you may not use this file except in compliance with the License.
# You may obtain a copy of the License at
#
#     http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS,
# WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
# See the License for the specific language governing permissions and
# limitations under the License.
"""A demonstration over DDS: a moving robot, the dynamics node, and an observer that checks it.

Three processes. They speak on this machine only, in a ROS domain chosen at random, so that no other
robot hears them.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import rclpy
from rclpy.executors import SingleThreadedExecutor

from mbs_dynamics.errors import ModelError, ModelWarning
from mbs_dynamics.model import Model
from mbs_dynamics.resources import robot_path
from mbs_dynamics.ros.demo_observer import Observer
from mbs_dynamics.ros.demo_source import RATE
from mbs_dynamics.ros.process import ros

HEALTHY = 0.5
"""Part of the joint states that must be answered at least."""

PATIENCE = 30.0
"""Seconds to wait for the first answer: to start, and to compile."""


def main(robot: str | None, seconds: float) -> int:
    """Run the demonstration and return 0 if right torques arrived at a healthy rate, else 1.

    ``robot`` is the path of a URDF, by default the arm that comes with this package. Raises
    UrdfError if it cannot be read, ModelError if it has no joint.
    """
    path = Path(robot) if robot is not None else robot_path("arm7")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ModelWarning)  # the node says them
        model = Model.from_urdf(path)
    if model.n == 0:
        raise ModelError(f"robot {model.name!r} has no joint that moves: there is nothing to show")
    os.environ["ROS_DOMAIN_ID"] = str(random.randint(1, 101))
    os.environ["ROS_AUTOMATIC_DISCOVERY_RANGE"] = "LOCALHOST"
    os.environ.pop("ROS_STATIC_PEERS", None)
    code = 1  # if it is interrupted
    with (
        ros(),
        _process("mbs_dynamics.ros.demo_source", str(path.resolve())),
        _process("mbs_dynamics.ros.dynamics_node"),
    ):
        code = _watch(Observer(model), seconds)
    return code


@contextmanager
def _process(module: str, *arguments: str) -> Iterator[None]:
    """Run a module as a process of its own, and end it in any case."""
    process = subprocess.Popen([sys.executable, "-m", module, *arguments])
    try:
        yield
    finally:
        process.terminate()
        try:
            process.wait(timeout=5.0)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _watch(observer: Observer, seconds: float) -> int:
    executor = SingleThreadedExecutor()
    executor.add_node(observer)
    waiting_since = time.monotonic()
    while observer.count == 0 and rclpy.ok():
        executor.spin_once(timeout_sec=0.1)
        if time.monotonic() - waiting_since > PATIENCE:
            print(f"FAILED: no torques within {PATIENCE:g} s", file=sys.stderr)
            return 1
    begin = time.monotonic()
    observer.count, next_check, next_table, height = 0, begin, begin + 1.0, 0
    redraw = sys.stdout.isatty()
    while (now := time.monotonic()) < begin + seconds and rclpy.ok():
        executor.spin_once(timeout_sec=0.05)
        if now >= next_check:
            observer.check()
            done = time.monotonic()
            next_check = done + max(0.2, 10.0 * (done - now))  # most of the time is for listening
        if now >= next_table:
            lines = list(observer.table(now - begin))
            above = f"\x1b[{height}A\x1b[J" if redraw and height else ""
            print(above + "\n".join(lines), flush=True)
            next_table, height = next_table + 1.0, len(lines)
    rate = observer.count / (time.monotonic() - begin)
    observer.check()
    right = observer.checked > 0 and observer.wrong == 0
    healthy = rate >= HEALTHY * RATE
    print(
        f"{'OK' if right and healthy else 'FAILED'}: {observer.count} answers, {rate:.1f} a second "
        f"to {RATE:g} joint states a second; {observer.checked} checked independently, "
        f"{observer.wrong} wrong"
    )
    return 0 if right and healthy else 1
