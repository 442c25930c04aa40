# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""ROS 2 nodes. The only place of this package that imports rclpy and messages."""
