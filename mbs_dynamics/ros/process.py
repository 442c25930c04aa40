# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""A process that takes part in ROS: its start, and the signals that end it."""

from __future__ import annotations

import faulthandler
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import rclpy
from rclpy.exceptions import InvalidNodeNameException, ParameterException
from rclpy.executors import ExternalShutdownException, SingleThreadedExecutor
from rclpy.logging import get_logger
from rclpy.signals import SignalHandlerOptions
from rclpy.utilities import try_shutdown

from mbs_dynamics.errors import MbsError
from mbs_dynamics.ros.node_base import BaseNode
from mbs_dynamics.ros.parameters import misdirected_files

LAST_MOMENTS = 10.0
"""Time limit in s for the end of a process after the shutdown of ROS has begun."""

ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
"""Signals that end a process: Ctrl-C, kill, the end of its terminal or ssh session, and Ctrl-\\."""


def run(kind: type[BaseNode]) -> int:
    """Create a node and spin it until a signal or a shutdown of ROS; return the exit code.

    The signals are :data:`ENDING`. The node ends once :attr:`BaseNode.shutdown_complete`. Errors
    that a user can correct are logged in one line, and the exit code is 1.
    """
    with ros_with_signals() as signals:
        try:
            node = kind()
        except (MbsError, ParameterException, InvalidNodeNameException) as error:
            get_logger(kind.interface.node).fatal(f"cannot start: {error}")
            return 1
        for message in misdirected_files(node, sys.argv):
            node.get_logger().warning(message)
        if not node.start():
            return 0 if signals.asked else 1
        spin_until_shutdown(node, signals)
    return 0


class EndingSignals:
    """Records the signals that end a process. To be created in the main thread.

    No exception is raised in the middle of other code, and ROS stays up until the process shuts it
    down. Signals after the first have no effect. SIGHUP stays ignored where it was, as under nohup.
    """

    def __init__(self) -> None:
        self.asked = False
        """Whether a signal was received."""
        for number in ENDING:
            if number != signal.SIGHUP or signal.getsignal(number) is not signal.SIG_IGN:
                signal.signal(number, self._receive)

    def _receive(self, *_: object) -> None:
        self.asked = True


def spin_until_shutdown(node: BaseNode, signals: EndingSignals) -> None:
    """Spin a node until it has shut down after a signal. Errors do not end it.

    Python handles a signal once the executor wakes up: at the next message, or at the diagnostics
    of the node, within a second.
    """
    executor = SingleThreadedExecutor()
    executor.add_node(node)
    begun = False
    while not node.shutdown_complete:
        try:
            if signals.asked and not begun:
                begun = True
                node.begin_shutdown()
            else:
                executor.spin_once()
        except ExternalShutdownException:
            return
        except Exception as error:
            node.fail(error)
    node.flush()


@contextmanager
def ros_with_signals(args: list[str] | None = None) -> Iterator[EndingSignals]:
    """Initialise ROS without its signal handlers, and shut it down at the end.

    Further signals are ignored then: they would change the exit code of the interpreter. A terminal
    and `ros2 launch` both send SIGINT when a user presses Ctrl-C. If the middleware blocks, the
    process ends within 10 s all the same, with the stacks of its threads. Raises SystemExit, with a
    line for the user, for arguments that are wrong.
    """
    signals = EndingSignals()
    try:
        rclpy.init(args=args, signal_handler_options=SignalHandlerOptions.NO)
    except Exception as error:  # rclpy has no public names for these errors
        problem = " ".join(str(error).split())
        if "same type" in problem:
            problem += "; write all numbers of a list with a point: [0.0, 0.0, -9.81]"
        print(f"{Path(sys.argv[0]).name}: cannot start: {problem}", file=sys.stderr)
        raise SystemExit(1) from error
    try:
        yield signals
    finally:
        faulthandler.dump_traceback_later(LAST_MOMENTS, exit=True, file=2)
        try_shutdown()
        for number in ENDING:
            signal.signal(number, signal.SIG_IGN)
