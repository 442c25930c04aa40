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
"""Declares the fields of :class:`~mbs_dynamics.ros.settings.Settings` as ROS parameters."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import fields
from typing import Any

from rcl_interfaces.msg import FloatingPointRange, ParameterDescriptor
from rclpy.node import Node
from rclpy.parameter import Parameter

from mbs_dynamics.ros.settings import Settings

FOREIGN = ("use_sim_time", "start_type_description_service", "qos_overrides.")
"""Parameters, or prefixes of them, that rclpy itself declares."""


def declare(node: Node) -> Settings:
    """Declare all parameters on the node and return their values.

    Raises rclpy's exceptions for a value of the wrong type or out of range, and MbsError for
    values that contradict each other.
    """
    for item in fields(Settings):
        descriptor = ParameterDescriptor(
            description=item.metadata["description"],
            additional_constraints=item.metadata["constraints"],
            read_only=item.metadata["read_only"],
        )
        if item.metadata["range"] is not None:
            low, high = item.metadata["range"]
            descriptor.floating_point_range = [FloatingPointRange(from_value=low, to_value=high)]
        if item.name == "bodies":  # rclpy takes an empty list for an array of bytes
            node.declare_parameter(item.name, Parameter.Type.STRING_ARRAY, descriptor)
            if node.get_parameter_or(item.name).value is None:
                empty = Parameter(item.name, Parameter.Type.STRING_ARRAY, [])
                node.set_parameters([empty])
        else:
            default = item.default
            value = list(default) if isinstance(default, tuple) else default
            node.declare_parameter(item.name, value, descriptor)
    return Settings().changed(values(node.get_parameters([item.name for item in fields(Settings)])))


def values(parameters: Iterable[Parameter]) -> dict[str, Any]:
    """Return those parameters that are settings, as values of :class:`Settings`."""
    known = {item.name for item in fields(Settings)}
    found: dict[str, Any] = {}
    for parameter in parameters:
        if parameter.name == "bodies":
            found["bodies"] = tuple(name for name in parameter.value or () if name)
        elif parameter.name == "gravity":
            found["gravity"] = tuple(parameter.value)
        elif parameter.name in known:
            found[parameter.name] = parameter.value
    return found


def foreign(name: str) -> bool:
    """Return whether rclpy itself declares a parameter of this name."""
    return name.startswith(FOREIGN)


def unknown(name: str) -> str:
    """Return a complaint about a parameter that does not exist."""
    known = [item.name for item in fields(Settings)]
    close = difflib.get_close_matches(name, known, n=1)
    hint = f" (did you mean {close[0]!r}?)" if close else ""
    return f"no parameter {name!r}{hint}; the parameters are: {', '.join(known)}"
