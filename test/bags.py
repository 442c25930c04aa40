# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Bags of ROS 2 for tests, without ROS."""

import pytest


def write_bag(path, recording, storage):
    """Write a recording as joint states, beside another topic, to the folder of a bag."""
    rosbag2 = pytest.importorskip("rosbags.rosbag2")
    typesys = pytest.importorskip("rosbags.typesys")
    store = typesys.get_typestore(typesys.Stores.ROS2_JAZZY)
    kinds = {
        name: store.types[name]
        for name in (
            "sensor_msgs/msg/JointState",
            "std_msgs/msg/Header",
            "builtin_interfaces/msg/Time",
            "std_msgs/msg/String",
        )
    }
    plugin = getattr(rosbag2.StoragePlugin, storage.upper())
    with rosbag2.Writer(path, version=9, storage_plugin=plugin) as writer:
        joints = "sensor_msgs/msg/JointState"
        states = writer.add_connection("/joint_states", joints, typestore=store)
        other = writer.add_connection("/chatter", "std_msgs/msg/String", typestore=store)
        for k, t in enumerate(recording.t):
            stamp = round(1e9 * (100.0 + t))
            time = kinds["builtin_interfaces/msg/Time"](*divmod(stamp, 10**9))
            message = kinds[joints](
                header=kinds["std_msgs/msg/Header"](stamp=time, frame_id=""),
                name=list(recording.joints),
                position=recording.q[k],
                velocity=recording.qd[k],
                effort=recording.tau[k],
            )
            writer.write(states, stamp, store.serialize_cdr(message, joints))
            said = kinds["std_msgs/msg/String"](data="hello")
            writer.write(other, stamp, store.serialize_cdr(said, "std_msgs/msg/String"))
