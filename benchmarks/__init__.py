# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Benchmarks of mbs_dynamics, compared with Pinocchio: ``python -m benchmarks [names...]``."""
