# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""From functions to programs: symbols and graphs, series, gradients."""
