# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""A ROS domain of one's own, among all that run on this machine."""

from __future__ import annotations

import random
import socket

DOMAINS = range(1, 102)
"""Those that every platform has ports for, without the default one."""


def discovery_port(domain: int) -> int:
    """Return the UDP port on which the first participant of a domain listens.

    DDSI-RTPS 2.5, section 9.6.2.3: PB + DG domain + d1.
    """
    return 7400 + 250 * domain + 10


def unused_domain() -> int:
    """Return a domain at random in which nobody on this machine takes part yet."""
    candidates = random.sample(DOMAINS, len(DOMAINS))
    return next((domain for domain in candidates if _is_unused(domain)), candidates[0])


def _is_unused(domain: int) -> bool:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.bind(("", discovery_port(domain)))
        except OSError:
            return False
    return True
