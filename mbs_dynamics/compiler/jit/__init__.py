# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""From LLVM IR to machine code in memory, by way of a cache on disk."""
