# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Bridges to CasADi, PyTorch, JAX and SymPy, each an extra of this package and a module here."""
