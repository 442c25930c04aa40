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
"""A process that takes part in ROS, from its start to the signal that ends it."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager

import rclpy
from rclpy.utilities import try_shutdown


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
        try_shutdown()
