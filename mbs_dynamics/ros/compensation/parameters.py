# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Declares the settings of gravity compensation as ROS parameters, some of them by joint."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import Field, fields
from typing import Any

from rcl_interfaces.msg import FloatingPointRange, ParameterDescriptor
from rclpy.node import Node
from rclpy.parameter import Parameter

from mbs_dynamics.ros import parameters
from mbs_dynamics.ros.compensation.settings import GravityCompensationSettings
from mbs_dynamics.ros.settings import check_once

_FIELDS = fields(GravityCompensationSettings)
WHOLE = tuple(item for item in _FIELDS if "each" not in item.metadata)
"""Settings that are one parameter."""

BY_JOINT = tuple(item for item in _FIELDS if "each" in item.metadata)
"""Settings that are one parameter for each joint of ``joints``."""


def names(joints: Sequence[str]) -> list[str]:
    """Return the names of all parameters of a node that commands these joints."""
    return [item.name for item in WHOLE] + [
        f"{item.name}.{joint}" for item in BY_JOINT for joint in joints
    ]


def declare(node: Node) -> GravityCompensationSettings:
    """Declare all parameters on the node and return their values; say those that do not exist.

    Raises rclpy's exceptions for a value of the wrong type or out of range, and MbsError for values
    that contradict each other.
    """
    for item in WHOLE:
        if item.default is None:  # must be set by the user
            about = parameters.descriptor(item.metadata)
            node.declare_parameter(item.name, Parameter.Type.BOOL, about)
        else:
            parameters.declare_one(node, item)
    joints = [name for name in node.get_parameter("joints").value if name]
    check_once("joints", "joint", joints)
    for item in BY_JOINT:
        for joint in joints:
            default = float(item.metadata["each_default"])
            node.declare_parameter(f"{item.name}.{joint}", default, _each(item))
    known = names(joints)
    for name in getattr(node, "_parameter_overrides", ()):  # rclpy has no public name for it
        if name not in known and not name.startswith(parameters.FOREIGN):
            node.get_logger().warning(parameters.unknown_among(known, name))
    given = [node.get_parameter_or(name) for name in known]
    return changed(GravityCompensationSettings(joints=tuple(joints)), given)


def _each(item: Field[Any]) -> ParameterDescriptor:
    about = parameters.descriptor(item.metadata)
    low, high = item.metadata["each"]
    about.floating_point_range = [FloatingPointRange(from_value=low, to_value=high)]
    return about


def changed(
    settings: GravityCompensationSettings, given: Iterable[Parameter]
) -> GravityCompensationSettings:
    """Return the settings with these parameters in them. Raises ArgumentError if they are bad."""
    whole = {item.name: item.default for item in WHOLE}
    by_joint = {item.name for item in BY_JOINT}
    found: dict[str, Any] = {}
    for parameter in given:
        group, _, joint = parameter.name.partition(".")
        if parameter.name in whole:
            value = parameter.value
            if isinstance(whole[parameter.name], tuple):
                value = tuple(x for x in value or () if x != "")
            found[parameter.name] = value
        elif group in by_joint and joint in settings.joints:
            each = list(found.get(group, getattr(settings, group)))
            each[settings.joints.index(joint)] = parameter.value
            found[group] = tuple(each)
    return settings.changed(found) if found else settings
