# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""How a node that needs time to shut down is served, and how it ends."""

from __future__ import annotations

import os
import signal

import pytest

pytest.importorskip("rclpy")

import rclpy
from rclpy.clock import Clock, ClockType
from rclpy.node import Node
from rclpy.signals import SignalHandlerOptions

from mbs_dynamics.ros import process
from mbs_dynamics.ros.process import EndingSignals, spin_until_shutdown

pytestmark = [pytest.mark.usefixtures("ros"), pytest.mark.backend_independent]


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


def test_an_error_does_not_end_it_and_a_signal_lets_it_shut_down():
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    node = Reluctant()
    try:
        signals = EndingSignals()
        assert not signals.asked
        spin_until_shutdown(node, signals)
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
    assert node.shutting_down
    assert node.spoke


def test_ros_is_up_without_its_signal_handlers_until_the_end(monkeypatch):
    """Whatever ends the block: SIGTERM must leave time to bring torques to zero."""
    calls = []
    monkeypatch.setattr(rclpy, "init", lambda **given: calls.append(given))
    monkeypatch.setattr(process, "shut_down", lambda: calls.append("down"))
    monkeypatch.setattr(process, "EndingSignals", lambda: "signals")
    up = {"args": ["--ros-args"], "signal_handler_options": SignalHandlerOptions.NO}
    with process.ros_with_signals(["--ros-args"]) as signals:
        assert signals == "signals"
        assert calls == [up]
    assert calls == [up, "down"]
    with pytest.raises(ValueError, match="spoilt"), process.ros_with_signals(["--ros-args"]):
        raise ValueError("spoilt")
    assert calls == [up, "down"] * 2
