# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Which columns of a row, which rows beyond or before it, a loop within a loop runs over."""

from __future__ import annotations

ALL, BEYOND, SINCE = "all", "beyond", "since"
"""What a loop over columns runs over: all columns of its tree, those of the rows beyond, those of
its tree from the row on. Loops over pairs run over the rows beyond."""
