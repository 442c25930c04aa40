# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Declares the fields of :class:`~mbs_dynamics.ros.settings.NodeSettings` as ROS parameters."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from dataclasses import Field, fields
from typing import Any, TypeVar

from rcl_interfaces.msg import FloatingPointRange, ParameterDescriptor
from rclpy.node import Node
from rclpy.parameter import Parameter

from mbs_dynamics.ros.settings import NodeSettings

S = TypeVar("S", bound=NodeSettings)

FOREIGN = ("use_sim_time", "start_type_description_service", "qos_overrides.")
"""Parameters, or prefixes of them, that rclpy itself declares."""

ARRAYS = {str: Parameter.Type.STRING_ARRAY, float: Parameter.Type.DOUBLE_ARRAY}


def declare(node: Node, kind: type[S]) -> S:
    """Declare all parameters on the node and return their values; say those that do not exist.

    Raises rclpy's exceptions for a value of the wrong type or out of range, and MbsError for values
    that contradict each other.
    """
    for item in fields(kind):
        declare_one(node, item)
    for name in getattr(node, "_parameter_overrides", ()):  # rclpy has no public name for it
        if not node.has_parameter(name) and not name.startswith(FOREIGN):
            node.get_logger().warning(unknown(kind, name))
    given = node.get_parameters([item.name for item in fields(kind)])
    return kind(**values(kind, given))


def declare_one(node: Node, item: Field[Any]) -> None:
    """Declare the parameter of one field, with its default.

    A field whose default is an empty tuple becomes an array of strings, or of what the field says.
    Raises rclpy's exceptions for a value of the wrong type or out of range.
    """
    about, default = descriptor(item.metadata), item.default
    if default == ():  # rclpy takes an empty list for an array of bytes
        _declare_array(node, item, about)
    else:
        value = list(default) if isinstance(default, tuple) else default
        node.declare_parameter(item.name, value, about)


def descriptor(metadata: Mapping[str, Any]) -> ParameterDescriptor:
    """Return what ROS is told about a parameter, from the metadata of its field."""
    about = ParameterDescriptor(
        description=metadata["description"],
        additional_constraints=metadata["constraints"],
        read_only=metadata["read_only"],
    )
    if metadata["range"] is not None:
        low, high = metadata["range"]
        about.floating_point_range = [FloatingPointRange(from_value=low, to_value=high)]
    return about


def _declare_array(node: Node, item: Field[Any], about: ParameterDescriptor) -> None:
    """Declare an array that may be empty."""
    name, kind = item.name, ARRAYS[item.metadata["element"]]
    about.type, about.read_only = kind.value, False
    node.declare_parameter(name, kind, about)
    if node.get_parameter_or(name).value is None:
        node.set_parameters([Parameter(name, kind, [])])
    if item.metadata["read_only"]:  # from now on: it could not have been set to nothing before
        fixed = copy(about)
        fixed.name, fixed.read_only = name, True
        node.set_descriptor(name, fixed)


def values(kind: type[NodeSettings], parameters: Iterable[Parameter]) -> dict[str, Any]:
    """Return those parameters that are settings, as values of ``kind``.

    Arrays become tuples. Empty strings in them are dropped: ``['']`` is how a file says none.
    """
    defaults = {item.name: item.default for item in fields(kind)}
    found: dict[str, Any] = {}
    for parameter in parameters:
        if isinstance(defaults.get(parameter.name), tuple):
            found[parameter.name] = tuple(x for x in parameter.value or () if x != "")
        elif parameter.name in defaults:
            found[parameter.name] = parameter.value
    return found


def unknown(kind: type[NodeSettings], name: str) -> str:
    """Return a complaint about a parameter that does not exist."""
    return unknown_among([item.name for item in fields(kind)], name)


def unknown_among(known: Sequence[str], name: str) -> str:
    """Return a complaint about a name that is not among those of the parameters."""
    close = difflib.get_close_matches(name, known, n=1)
    hint = f" (did you mean {close[0]!r}?)" if close else ""
    return f"no parameter {name!r}{hint}; the parameters are: {', '.join(known)}"
