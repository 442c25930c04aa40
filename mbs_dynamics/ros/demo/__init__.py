# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The demonstration: a simulated robot, its compensation, and what must be true of them."""
