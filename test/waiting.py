# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""How long a test waits for what must come."""

TIMEOUT = 300.0
"""In s. Only what never comes lasts that long, however busy the machine is; nothing is measured."""
