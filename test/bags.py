# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Bags of ROS 2 for tests, without ROS."""

import pytest


def write_bag(path, recording, storage):
    """Write a recording as joint states, beside another topic, to the folder of a bag."""
    rosbag2 = pytest.importorskip("rosbags.rosbag2")
    typesys = pytest.importorskip("rosbags.typesys")
    store = typesys.get_typestore(typesys.Stores.ROS2_JAZZY)
    joints, text = "sensor_msgs/msg/JointState", "std_msgs/msg/String"
    Header, Time = (store.types[x] for x in ("std_msgs/msg/Header", "builtin_interfaces/msg/Time"))
    plugin = getattr(rosbag2.StoragePlugin, storage.upper())
    with rosbag2.Writer(path, version=9, storage_plugin=plugin) as writer:
        states = writer.add_connection("/joint_states", joints, typestore=store)
        other = writer.add_connection("/chatter", text, typestore=store)
        for k, t in enumerate(recording.t):
            stamp = round(1e9 * (100.0 + t))
            header = Header(stamp=Time(*divmod(stamp, 10**9)), frame_id="")
            values = recording.q[k], recording.qd[k], recording.tau[k]
            message = store.types[joints](header, list(recording.joints), *values)
            writer.write(states, stamp, store.serialize_cdr(message, joints))
            said = store.types[text](data="hello")
            writer.write(other, stamp, store.serialize_cdr(said, text))
