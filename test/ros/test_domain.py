# Copyright 2026 The mbs_dynamics authors
#
# Licensed under the Apache License, Version 2.0 (the "License");
# you may not use this file except in compliance with the License.
# You may obtain a copy of the License at
#
#     http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS,
# WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
# See the License for the specific language governing permissions and
# limitations under the License.
"""The choice of a ROS domain in which nobody else on this machine is."""

from __future__ import annotations

import pytest

pytest.importorskip("rclpy")

import rclpy

from mbs_dynamics.ros import domain


def test_a_domain_with_a_participant_is_not_chosen(monkeypatch):
    for _ in range(5):  # another process may take the domain in the same moment, and leave it
        quiet = domain.unused_domain()
        assert domain._is_unused(quiet)
        context = rclpy.Context()
        context.init(domain_id=quiet)
        node = rclpy.create_node("somebody", context=context)
        if not domain._is_unused(quiet):
            break
        node.destroy_node()
        rclpy.try_shutdown(context=context)
    try:
        assert not domain._is_unused(quiet)
        other = domain.unused_domain()
        monkeypatch.setattr(domain, "DOMAINS", range(min(quiet, other), max(quiet, other) + 1))
        assert all(domain.unused_domain() != quiet for _ in range(20))
        monkeypatch.setattr(domain, "DOMAINS", range(quiet, quiet + 1))
        assert domain.unused_domain() == quiet  # there is no other
    finally:
        node.destroy_node()
        rclpy.try_shutdown(context=context)
    assert domain._is_unused(quiet)
