# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""A process that takes part in ROS, from its start to the signal that ends it."""

from __future__ import annotations

import atexit
import faulthandler
import signal
from collections.abc import Iterator
from contextlib import contextmanager

import rclpy
from rclpy.utilities import try_shutdown

LAST_MOMENTS = 10.0
"""Seconds that a process has to end once ROS is to shut down."""


@contextmanager
def ros(args: list[str] | None = None) -> Iterator[None]:
    """Initialise ROS, and shut it down in the end. SIGINT and SIGTERM end the block, no errors."""
    # rclpy's own handler ends the executor; Python's would raise in the middle of a callback
    signal.signal(signal.SIGINT, lambda *_: None)
    rclpy.init(args=args)
    try:
        yield
    except Exception:
        if rclpy.ok():  # else a signal has ended ROS, and what failed then was cut off by it
            raise
    finally:
        shut_down()


def shut_down() -> None:
    """Shut ROS down, and see to it that the process ends after that.

    Whatever hangs in the middleware, here or in the destructors that run as the interpreter ends:
    after ten seconds the stacks of all threads are written to standard error, and the exit code
    is 1.
    """
    _end_soon()
    try_shutdown()
    faulthandler.cancel_dump_traceback_later()
    atexit.unregister(_end_soon)
    atexit.register(_end_soon)


def _end_soon() -> None:
    faulthandler.dump_traceback_later(LAST_MOMENTS, exit=True, file=2)
