# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Comparison of two versions of this package: what ``benchmarks.against`` consists of."""
