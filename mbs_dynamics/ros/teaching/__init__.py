# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The parts of teaching_node that do not depend on ROS."""
