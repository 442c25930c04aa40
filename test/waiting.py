# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Waiting for what must come."""

import time

TIMEOUT = 300.0
"""In s. Only what never comes lasts that long, however busy the machine is; nothing is measured."""


def wait_until(condition, again=lambda: time.sleep(0.01)):
    """Do something again and again until a condition holds."""
    end = time.monotonic() + TIMEOUT
    while not condition():
        assert time.monotonic() < end, "what was waited for did not come"
        again()
