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
"""An executor that spends its time on messages and timers, and looks at the rest now and then."""

from __future__ import annotations

import time
from typing import Any

from rclpy.event_handler import EventHandler
from rclpy.executors import SingleThreadedExecutor
from rclpy.service import Service
from rclpy.subscription import Subscription

PATIENCE = 0.02
"""Seconds for which services and events may wait while messages come."""


class FrugalExecutor(SingleThreadedExecutor):
    """Leaves services and events of the middleware out of most waits.

    rclpy builds its wait set anew for each message, and a node has a dozen services, those of its
    parameters and its lifecycle among them. Here, after a message, they are in it once in PATIENCE.
    A wait without them lasts until the next message or timer; so a node needs a timer, and when
    messages stop, services answer at the latest after its period.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._due = 0.0
        self._after_message = False
        self._wanted = True

    def spin_once(self, timeout_sec: float | None = None) -> None:
        """Wait for one callback, and execute it."""
        now = time.monotonic()
        self._wanted = not self._after_message or now >= self._due
        if self._wanted:
            self._due = now + PATIENCE
        super().spin_once(timeout_sec)

    def wait_for_ready_callbacks(self, *args: Any, **kwargs: Any) -> Any:
        """Return the next callback that is ready, with its entity and node."""
        found = super().wait_for_ready_callbacks(*args, **kwargs)
        self._after_message = isinstance(found[1], Subscription)
        return found

    def can_execute(self, entity: Any) -> bool:
        """Return whether this entity is waited for."""
        if not self._wanted and isinstance(entity, (Service, EventHandler)):
            return False
        return bool(super().can_execute(entity))
