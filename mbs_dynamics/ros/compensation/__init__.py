# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Parts of gravity_compensation_node and command_watchdog_node."""
