# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""What wrench_compensation_node is made of, without ROS."""
