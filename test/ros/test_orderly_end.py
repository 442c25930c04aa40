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
"""How a node that needs time to leave is served, and how it ends."""

from __future__ import annotations

import os
import signal
import time

import pytest

pytest.importorskip("rclpy")

from rclpy.clock import Clock, ClockType
from rclpy.node import Node
from std_msgs.msg import Bool, String

from mbs_dynamics.ros.compensation.frugal_executor import FrugalExecutor
from mbs_dynamics.ros.compensation.orderly_end import Signals, spin_until_left

pytestmark = [pytest.mark.usefixtures("ros"), pytest.mark.backend_independent]


class Reluctant(Node):
    """Raises an error, and takes three ticks to leave."""

    def __init__(self):
        super().__init__("reluctant")
        self.errors, self.ticks, self.leaving, self.spoke = [], 0, False, False
        self.create_timer(0.01, self.tick, clock=Clock(clock_type=ClockType.STEADY_TIME))

    def tick(self):
        if not self.leaving:
            os.kill(os.getpid(), signal.SIGTERM)
            raise ValueError("spoilt")
        self.ticks += 1

    def leave(self):
        self.leaving = True

    @property
    def left(self):
        return self.ticks >= 3

    def fail(self, error):
        self.errors.append(str(error))

    def last_words(self):
        self.spoke = True


def test_an_error_does_not_end_it_and_a_signal_lets_it_leave():
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    node = Reluctant()
    try:
        signals = Signals()
        assert not signals.asked
        spin_until_left(node, signals, String)
        assert signals.asked
        late = []
        signals.listen(lambda: late.append(True))
        assert late == [True]
    finally:
        signal.set_wakeup_fd(-1)
        for number, handler in before.items():
            signal.signal(number, handler)
        node.destroy_node()
    assert set(node.errors) == {"spoilt"}
    assert node.leaving
    assert node.spoke


def test_rare_messages_are_served_beside_a_stream_of_others():
    node = Node("frugal")
    executor = FrugalExecutor(String)
    executor.add_node(node)
    often, rare = [], []
    node.create_subscription(String, "often", often.append, 10)
    node.create_subscription(Bool, "rare", rare.append, 10)
    node.create_timer(0.1, lambda: None)
    stream, single = (
        node.create_publisher(String, "often", 10),
        node.create_publisher(Bool, "rare", 10),
    )
    end = time.monotonic() + 20.0
    while not (len(rare) >= 3 and len(often) >= 50) and time.monotonic() < end:
        stream.publish(String())
        if len(often) % 10 == 0:
            single.publish(Bool())
        executor.spin_once()
    executor.shutdown()
    node.destroy_node()
    assert len(often) >= 50
    assert len(rare) >= 3
