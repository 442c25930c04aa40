# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Bridges to CasADi, PyTorch, JAX, SymPy and ros2_control.

Each of the first four is an extra of this package and a module here; ``controller_package`` writes
a controller of ros2_control.
"""
