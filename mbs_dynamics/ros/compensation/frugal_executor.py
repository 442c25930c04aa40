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
"""An executor that spends its time on one stream of messages, and less on the rest."""

from __future__ import annotations

import time
from typing import Any

from rclpy.event_handler import EventHandler
from rclpy.executors import SingleThreadedExecutor
from rclpy.service import Service
from rclpy.subscription import Subscription

PATIENCE = 0.02
"""Seconds for which the rest may wait while messages come."""


class FrugalExecutor(SingleThreadedExecutor):
    """Leaves services, events of the middleware and rare messages out of most waits.

    rclpy builds its wait set anew for each message, and a node has a dozen services, those of its
    parameters and its lifecycle among them. Here, after a message of the type ``often``, they are
    in it once in PATIENCE. A wait without them lasts until the next such message or timer; so a
    node needs a timer, and when messages stop, the rest is served at the latest after its period.
    """

    def __init__(self, often: type, **options: Any) -> None:
        super().__init__(**options)
        self._often = often
        self._due = 0.0
        self._streaming = False
        self._wanted = True

    def spin_once(self, timeout_sec: float | None = None) -> None:
        """Wait for one callback, and execute it."""
        now = time.monotonic()
        self._wanted = not self._streaming or now >= self._due
        if self._wanted:
            self._due = now + PATIENCE
        super().spin_once(timeout_sec)

    def wait_for_ready_callbacks(self, *args: Any, **kwargs: Any) -> Any:
        """Return the next callback that is ready, with its entity and node."""
        found = super().wait_for_ready_callbacks(*args, **kwargs)
        self._streaming = getattr(found[1], "msg_type", None) is self._often
        return found

    def can_execute(self, entity: Any) -> bool:
        """Return whether this entity is waited for."""
        if not self._wanted:
            if isinstance(entity, Subscription):
                if entity.msg_type is not self._often:
                    return False
            elif isinstance(entity, (Service, EventHandler)):
                return False
        return bool(super().can_execute(entity))
