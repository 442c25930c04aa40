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
"""Fixtures of the tests over DDS."""

from __future__ import annotations

import pytest


@pytest.fixture(scope="session")
def ros():
    """Keep rclpy initialised in this process."""
    rclpy = pytest.importorskip("rclpy")
    rclpy.init()
    yield
    rclpy.try_shutdown()


@pytest.fixture(scope="session")
def controller_manager_msgs(pytestconfig):
    """Make the messages of the controller manager importable, here and in processes."""
    pytest.importorskip("rclpy")
    from controller_manager_bench import provide

    provide(pytestconfig.cache.mkdir("controller_manager_msgs"))
