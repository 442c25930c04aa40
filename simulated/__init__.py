# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Simulated arms, drives and events that tests and benchmarks share."""
