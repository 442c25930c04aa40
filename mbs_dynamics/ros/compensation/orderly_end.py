# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""SIGINT and SIGTERM as a request, which leaves time to bring torques to zero."""

from __future__ import annotations

import signal
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol

import rclpy
from rclpy.executors import ExternalShutdownException, SingleThreadedExecutor
from rclpy.signals import SignalHandlerOptions

from mbs_dynamics.ros.process import shut_down

ENDING = (signal.SIGINT, signal.SIGTERM)


class Signals:
    """Waits for the signals that end a process, in a thread of its own.

    No exception is raised in the middle of other code, and ROS stays up until the process leaves by
    itself. Signals after the first change nothing. To be made in the main thread.
    """

    def __init__(self) -> None:
        self._asked = threading.Event()
        self._listeners: list[Callable[[], None]] = []
        # a handler in Python waits until the main thread leaves the wait for messages; this is
        # written at once, whichever thread gets the signal
        self._reading, self._writing = socket.socketpair()
        self._writing.setblocking(False)
        signal.set_wakeup_fd(self._writing.fileno(), warn_on_full_buffer=False)
        for number in ENDING:
            signal.signal(number, lambda *_: None)
        threading.Thread(target=self._wait, daemon=True).start()

    @property
    def asked(self) -> bool:
        """Whether a signal has come."""
        return self._asked.is_set()

    def listen(self, listener: Callable[[], None]) -> None:
        """Have a function called, in that thread, when the signal comes."""
        self._listeners.append(listener)
        if self.asked:
            listener()

    def _wait(self) -> None:
        while not set(self._reading.recv(1)) & set(ENDING):
            pass
        self._asked.set()
        for listener in self._listeners:
            listener()


class Leaver(Protocol):
    """A node that needs time to leave."""

    def leave(self) -> None:
        """Begin to leave."""

    @property
    def left(self) -> bool:
        """Whether it has left."""

    def fail(self, error: Exception) -> None:
        """Take an error that a callback has raised."""

    def last_words(self) -> None:
        """Say what is left to be said."""


def spin_until_left(node: Leaver, signals: Signals) -> None:
    """Serve a node until it has left, which a signal asks it to do. Errors do not end it."""
    executor = SingleThreadedExecutor()
    executor.add_node(node)
    signals.listen(lambda: executor.create_task(node.leave))
    while not node.left:
        try:
            executor.spin_once()
        except ExternalShutdownException:
            return
        except Exception as error:
            node.fail(error)
    node.last_words()


@contextmanager
def ros_until_asked(args: list[str] | None = None) -> Iterator[Signals]:
    """Initialise ROS without its signal handlers, and shut it down in the end."""
    signals = Signals()
    rclpy.init(args=args, signal_handler_options=SignalHandlerOptions.NO)
    try:
        yield signals
    finally:
        shut_down()
