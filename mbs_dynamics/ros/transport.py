# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""A transport on which no other process can hold up what this one publishes."""

from __future__ import annotations

from collections.abc import MutableMapping
from pathlib import Path

LOCALHOST_UDP = Path(__file__).with_name("localhost_udp.xml")


def prefer_udp(environment: MutableMapping[str, str]) -> None:
    """Have Fast DDS leave out shared memory, unless ``environment`` chooses a transport itself.

    To be called before ROS is initialised. Over shared memory whoever publishes opens a port of
    each participant that comes, and waits for 1/3 s and more where the listener at that port is
    idle (eProsima/Fast-DDS#6535); rclpy holds the interpreter's lock meanwhile, so that no thread
    runs. Participants with shared memory are reached over UDP as before. For the range LOCALHOST
    rmw_fastrtps adds shared memory whatever is set, so a profile of the same range takes its place.
    Other middleware does not read these variables, and keeps its range.
    """
    if environment.setdefault("FASTDDS_BUILTIN_TRANSPORTS", "UDPv4") != "UDPv4":
        return
    if environment.get("RMW_IMPLEMENTATION", "rmw_fastrtps_cpp") != "rmw_fastrtps_cpp":
        return
    localhost = (
        environment.get("ROS_LOCALHOST_ONLY") == "1"
        or environment.get("ROS_AUTOMATIC_DISCOVERY_RANGE") == "LOCALHOST"
    )
    others = ("FASTRTPS_DEFAULT_PROFILES_FILE", "ROS_STATIC_PEERS")
    if localhost and not any(environment.get(name) for name in others):
        environment["FASTRTPS_DEFAULT_PROFILES_FILE"] = str(LOCALHOST_UDP)
        environment["ROS_AUTOMATIC_DISCOVERY_RANGE"] = "SYSTEM_DEFAULT"
        environment.pop("ROS_LOCALHOST_ONLY", None)
