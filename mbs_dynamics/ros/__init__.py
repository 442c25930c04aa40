# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""ROS 2 nodes. No other part of this package imports rclpy or messages."""
