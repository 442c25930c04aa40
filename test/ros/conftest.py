# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Fixtures of the tests over DDS and with launch."""

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


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """Make an installation of this checkout, which launch finds."""
    pytest.importorskip("ros2launch")
    from launch_bench import make_installation

    make_installation(tmp_path, monkeypatch)
