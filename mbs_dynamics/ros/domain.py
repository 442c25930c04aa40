# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Unused ROS domains on this machine. No ROS is needed."""

from __future__ import annotations

import random
import socket

DOMAINS = range(1, 102)
"""ROS domains with ports on every platform, without the default one."""


def unused_domain() -> int:
    """Return a random domain without participants on this machine."""
    candidates = random.sample(DOMAINS, len(DOMAINS))
    return next((domain for domain in candidates if _is_unused(domain)), candidates[0])


def _is_unused(domain: int) -> bool:
    """Return whether the port of the first participant is free, DDSI-RTPS 2.5, section 9.6.2.3."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.bind(("", 7400 + 250 * domain + 10))
        except OSError:
            return False
    return True
