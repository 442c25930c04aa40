# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Participants come and go, with the default transport, while torques are commanded."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("rclpy")

from mbs_dynamics.ros.process import LOCALHOST_UDP, prefer_udp

pytestmark = pytest.mark.backend_independent


def test_no_fault_and_no_blocked_publisher_as_participants_come_and_go():
    # the visitors use shared memory; the driver takes the advice of the documentation
    arguments = ["--comings", "30", "--driver-env", "FASTDDS_BUILTIN_TRANSPORTS=UDPv4"]
    settings = ["--set", "stale_timeout:=0.5", "--set", "callback_timeout:=5.0"]
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.participants", *arguments, *settings],
        cwd=Path(__file__).parents[3],
        capture_output=True,
        text=True,
    )
    assert "0 faults while 30 participants came and went" in done.stdout, done.stdout + done.stderr
    assert done.returncode == 0


def test_prefer_udp_in_a_subnet_sets_the_transport_only():
    environment = {"ROS_AUTOMATIC_DISCOVERY_RANGE": "SUBNET"}
    prefer_udp(environment)
    assert environment == {
        "ROS_AUTOMATIC_DISCOVERY_RANGE": "SUBNET",
        "FASTDDS_BUILTIN_TRANSPORTS": "UDPv4",
    }


@pytest.mark.parametrize(
    "localhost", [{"ROS_AUTOMATIC_DISCOVERY_RANGE": "LOCALHOST"}, {"ROS_LOCALHOST_ONLY": "1"}]
)
def test_prefer_udp_on_localhost_keeps_the_range_by_a_profile(localhost):
    environment = dict(localhost)
    prefer_udp(environment)
    assert environment == {
        "ROS_AUTOMATIC_DISCOVERY_RANGE": "SYSTEM_DEFAULT",
        "FASTDDS_BUILTIN_TRANSPORTS": "UDPv4",
        "FASTRTPS_DEFAULT_PROFILES_FILE": str(LOCALHOST_UDP),
    }
    assert "<address>127.0.0.1</address>" in LOCALHOST_UDP.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "chosen",
    [
        {"FASTDDS_BUILTIN_TRANSPORTS": "DEFAULT"},
        {"RMW_IMPLEMENTATION": "rmw_cyclonedds_cpp"},
        {"FASTRTPS_DEFAULT_PROFILES_FILE": "mine.xml"},
        {"ROS_STATIC_PEERS": "192.168.0.2"},
    ],
)
def test_prefer_udp_keeps_the_range_where_something_else_is_chosen(chosen):
    environment = {"ROS_AUTOMATIC_DISCOVERY_RANGE": "LOCALHOST", **chosen}
    prefer_udp(environment)
    given = {"ROS_AUTOMATIC_DISCOVERY_RANGE": "LOCALHOST", **chosen}
    assert {name: environment[name] for name in given} == given
    assert environment.get("FASTRTPS_DEFAULT_PROFILES_FILE") in (None, "mine.xml")


def test_processes_over_udp_open_no_shared_memory():
    program = (
        "import os, rclpy; from mbs_dynamics.ros.process import prefer_udp\n"
        "prefer_udp(os.environ); rclpy.init(); rclpy.create_node('quiet')\n"
        "print('/dev/shm/fastrtps_' in open('/proc/self/maps').read()); os._exit(0)"
    )
    done = subprocess.run(
        [sys.executable, "-u", "-c", program],
        cwd=Path(__file__).parents[3],
        capture_output=True,
        text=True,
    )
    assert done.stdout.strip() == "False", done.stdout + done.stderr
