# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Which columns of a row, which rows beyond or before it, a loop within a loop runs over."""

from __future__ import annotations

ALL, BEYOND, SINCE, BELOW = "all", "beyond", "since", "below"
"""What a loop within runs over: all columns of its tree, those of the rows beyond, those of its
tree from the row on, those before it. Loops over pairs run over the rows beyond where nothing is
said."""
