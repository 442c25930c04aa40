# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Kernels: arguments, one state and batches, and the native call."""
