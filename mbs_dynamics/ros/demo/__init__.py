# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The demonstration: a simulated robot with gravity compensation, and claims about them."""
