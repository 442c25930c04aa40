# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Interface of wrench_compensation_node. No ROS is needed."""
