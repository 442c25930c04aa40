# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Declares the fields of :class:`~mbs_dynamics.ros.settings.NodeSettings` as ROS parameters.

A field is one parameter, or, where it is by joint, one for each joint of the field ``joints``, or,
where it is by link, one for each link that the user has named.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from dataclasses import Field
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from rcl_interfaces.msg import FloatingPointRange, ParameterDescriptor
from rclpy.node import Node
from rclpy.parameter import Parameter

from mbs_dynamics.ros.files import applies, parameter_groups
from mbs_dynamics.ros.settings import (
    NodeSettings,
    by_joint_fields,
    by_link_fields,
    check_once,
    whole_fields,
)

S = TypeVar("S", bound=NodeSettings)

FOREIGN = ("use_sim_time", "start_type_description_service", "qos_overrides.")
"""Parameters, or prefixes of them, that rclpy itself declares."""

ARRAYS = {str: Parameter.Type.STRING_ARRAY, float: Parameter.Type.DOUBLE_ARRAY}

DOUBLES = {
    Parameter.Type.INTEGER: Parameter.Type.DOUBLE,
    Parameter.Type.INTEGER_ARRAY: Parameter.Type.DOUBLE_ARRAY,
}
"""The types of integers, and those of doubles that they are taken for."""


def names(kind: type[NodeSettings], joints: Sequence[str] = ()) -> list[str]:
    """Return the names of all parameters of a node with these settings and these ``joints``."""
    by_joint = [f"{item.name}.{joint}" for item in by_joint_fields(kind) for joint in joints]
    return [item.name for item in whole_fields(kind)] + by_joint


def declare(node: Node, kind: type[S]) -> S:
    """Declare all parameters on the node and return their values; log those that do not exist.

    Integers that are given for doubles become doubles. Raises rclpy's exceptions for a value of the
    wrong type or out of range, and MbsError for values that contradict each other.
    """
    for item in whole_fields(kind):
        _declare(node, item)
    joints: list[str] = []
    if by_joint_fields(kind):
        joints = [name for name in node.get_parameter("joints").value if name]
        check_once("joints", "joint", joints)
    for item in by_joint_fields(kind):
        for joint in joints:
            default = float(item.metadata["each_default"])
            _declare_value(node, f"{item.name}.{joint}", default, _descriptor(item.metadata))
    named = _declare_by_link(node, kind)
    known = [*names(kind, joints), *named]
    for name in _overrides(node):
        if name not in known and not name.startswith(FOREIGN):
            node.get_logger().warning(unknown(known, name))
    given = [node.get_parameter_or(name) for name in known]
    found = _values(kind, given, joints)
    if by_joint_fields(kind):
        found["joints"] = tuple(joints)
    return kind(**found)


def changed(settings: S, given: Iterable[Parameter]) -> S:
    """Return the settings with these parameters in them, those same settings if none is theirs.

    Raises ArgumentError for values that cannot be.
    """
    given = list(given)
    joints = getattr(settings, "joints", ())
    found = _values(type(settings), given, joints, settings)
    return settings.changed(found) if found else settings


def converted(node: Node, given: Iterable[Parameter]) -> list[Parameter]:
    """Return parameters with doubles in place of integers where the node has declared doubles."""
    # one that is not set has no value to give, but a type not to be taken for a double
    return [
        _converted(parameter, node.get_parameter_or(parameter.name, parameter).type_)
        for parameter in given
    ]


def declared(node: Node) -> list[str]:
    """Return the names of the parameters that a node has declared, without those of rclpy."""
    return [name for name in node.get_parameters_by_prefix("") if not name.startswith(FOREIGN)]


def misdirected_files(node: Node, args: Sequence[str]) -> list[str]:
    """Return messages about files of parameters that have none for this node, which ROS ignores.

    ``args`` are those that ROS was initialised with.
    """
    messages = []
    name = node.get_fully_qualified_name()
    for option, path in pairwise(args):
        if option != "--params-file":
            continue
        nodes = [one for one, _ in parameter_groups(Path(path))]
        if not any(applies(one, name) for one in nodes):
            theirs = f"it has those of {', '.join(nodes)}" if nodes else "it has none at all"
            messages.append(f"{path} has no parameters for {name}: {theirs}")
    return messages


def unknown(known: Sequence[str], name: str) -> str:
    """Return the message about a name that is not among those of the parameters."""
    close = difflib.get_close_matches(name, known, n=1)
    hint = f" (did you mean {close[0]!r}?)" if close else ""
    return f"no parameter {name!r}{hint}; the parameters are: {', '.join(known)}"


def _overrides(node: Node) -> dict[str, Parameter]:
    """Return the values that files and the command line give."""
    found: dict[str, Parameter] = getattr(node, "_parameter_overrides", {})  # has no public name
    return found


def _converted(parameter: Parameter, declared: Parameter.Type) -> Parameter:
    if DOUBLES.get(parameter.type_) is not declared:
        return parameter
    return Parameter(parameter.name, declared, np.asarray(parameter.value, dtype=float).tolist())


def _declare(node: Node, item: Field[Any]) -> None:
    """Declare the parameter of one field, with its default.

    A field whose default is an empty tuple becomes an array of strings, or of what the field says;
    one whose default is None must be set, and is true or false.
    """
    about, default = _descriptor(item.metadata), item.default
    if default is None:
        node.declare_parameter(item.name, Parameter.Type.BOOL, about)
    elif default == ():  # rclpy takes an empty list for an array of bytes
        _declare_array(node, item, about)
    else:
        value = list(default) if isinstance(default, tuple) else default
        _declare_value(node, item.name, value, about)


def _declare_by_link(node: Node, kind: type[NodeSettings]) -> list[str]:
    """Declare the parameters whose names begin with a field and a dot; return their names."""
    declared = []
    for item in by_link_fields(kind):
        for name in sorted(_overrides(node)):
            if name.startswith(f"{item.name}."):
                about, array = _descriptor(item.metadata), Parameter.Type.DOUBLE_ARRAY
                _convert_override(node, name, array)
                node.declare_parameter(name, array, about)
                declared.append(name)
    return declared


def _declare_value(node: Node, name: str, default: Any, about: ParameterDescriptor) -> None:
    _convert_override(node, name, Parameter.Type.from_parameter_value(default))
    node.declare_parameter(name, default, about)


def _declare_array(node: Node, item: Field[Any], about: ParameterDescriptor) -> None:
    """Declare an array that may be empty."""
    name, kind = item.name, ARRAYS[item.metadata["element"]]
    _convert_override(node, name, kind)
    about.type, about.read_only = kind.value, False
    node.declare_parameter(name, kind, about)
    if node.get_parameter_or(name).value is None:
        node.set_parameters([Parameter(name, kind, [])])
    if item.metadata["read_only"]:  # from now on: it could not have been set to nothing before
        fixed = copy(about)
        fixed.name, fixed.read_only = name, True
        node.set_descriptor(name, fixed)


def _convert_override(node: Node, name: str, declared: Parameter.Type) -> None:
    overrides = _overrides(node)
    if name in overrides:
        overrides[name] = _converted(overrides[name], declared)


def _descriptor(metadata: Mapping[str, Any]) -> ParameterDescriptor:
    """Return what ROS is told about a parameter, from the metadata of its field."""
    about = ParameterDescriptor(
        description=metadata["description"],
        additional_constraints=metadata["constraints"],
        read_only=metadata["read_only"],
    )
    limits = metadata.get("each") or metadata["range"]
    if limits is not None:
        low, high = limits
        about.floating_point_range = [FloatingPointRange(from_value=low, to_value=high)]
    return about


def _values(
    kind: type[NodeSettings],
    given: Iterable[Parameter],
    joints: Sequence[str],
    before: NodeSettings | None = None,
) -> dict[str, Any]:
    """Return those parameters that are settings, as values of ``kind``.

    Arrays become tuples. Empty strings in them are dropped: ``['']`` is how a file says none.
    """
    defaults = {item.name: item.default for item in whole_fields(kind)}
    by_joint = {item.name: item.metadata["each_default"] for item in by_joint_fields(kind)}
    of_links = [item.name for item in by_link_fields(kind)]
    found: dict[str, Any] = {}
    for parameter in given:
        group, _, joint = parameter.name.partition(".")  # or the link
        if isinstance(defaults.get(parameter.name), tuple):
            found[parameter.name] = tuple(x for x in parameter.value or () if x != "")
        elif parameter.name in defaults:
            found[parameter.name] = parameter.value
        elif group in by_joint and joint in joints:
            now = getattr(before, group, None) or [by_joint[group]] * len(joints)
            each = list(found.get(group, now))
            each[list(joints).index(joint)] = parameter.value
            found[group] = tuple(each)
        elif group in of_links:
            found[group] = (*found.get(group, ()), (joint, tuple(parameter.value)))
    return found
