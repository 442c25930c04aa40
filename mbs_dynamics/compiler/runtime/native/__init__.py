# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Calls from Python that are machine code: see docs/internals/compiler.md, "The call"."""
