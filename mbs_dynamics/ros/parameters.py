# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Parameters of nodes: their declaration, and settings from their values.

A field of the settings is one parameter; or one for each joint of the field ``joints``; or one for
each link that the user names.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from copy import copy
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from rcl_interfaces.msg import FloatingPointRange, ParameterDescriptor
from rclpy.node import Node
from rclpy.parameter import Parameter

from mbs_dynamics.errors import ArgumentError, listed
from mbs_dynamics.ros.interface import UnknownParameterError, applies, parameter_groups
from mbs_dynamics.settings import Parameter as Declared
from mbs_dynamics.settings import Settings, check_once, parameters_of

S = TypeVar("S", bound=Settings)

MISSPELT = 0.85
"""Ratio of difflib above which an unknown name counts as a misspelt parameter."""

FOREIGN = ("use_sim_time", "start_type_description_service", "qos_overrides.")
"""Parameters, or prefixes of them, that rclpy itself declares."""

ARRAYS = (Parameter.Type.DOUBLE_ARRAY, Parameter.Type.STRING_ARRAY)

DOUBLES = {
    Parameter.Type.INTEGER: Parameter.Type.DOUBLE,
    Parameter.Type.INTEGER_ARRAY: Parameter.Type.DOUBLE_ARRAY,
}
"""Types of integers, and the types of doubles that they are converted to."""


def declare(node: Node, kind: type[S]) -> S:
    """Declare all parameters on the node and return their values.

    Integers that are given for doubles become doubles. Raises rclpy's exceptions for a value of the
    wrong type or out of range, and MbsError for values that contradict each other, for names that
    are misspelt, and for settings that are constant in nodes, unless the value is that of the
    constant. Other names that do not exist are logged, since nodes may share a file.
    """
    given = [name for name in _names(node) if not name.startswith(FOREIGN)]
    given = _without_constants(node, kind, given)
    declared = [one for one in parameters_of(kind) if not one.constant]
    known = [one.name for one in declared if not one.per]
    for one in declared:
        if not one.per:
            _declare(node, one.name, one)
    by_joint = any(one.per == "joint" for one in declared)
    joints = [name for name in node.get_parameter("joints").value if name] if by_joint else []
    check_once("joints", "joint", joints)
    for one in declared:
        names: list[str] = []
        if one.per == "joint":
            names = [f"{one.name}.{joint}" for joint in joints]
        elif one.per:
            names = sorted(name for name in given if name.startswith(f"{one.name}."))
        for name in names:
            known.append(name)
            _declare(node, name, one)
    _ignore_others(node, [name for name in given if name not in known], known)
    values = _values(kind, [node.get_parameter_or(name) for name in known], joints)
    if by_joint:
        values["joints"] = tuple(joints)
    return kind(**values)


def changed(settings: S, given: Iterable[Parameter]) -> S:
    """Return the settings with these parameters; the same object if none of them is a setting.

    Raises ArgumentError for invalid values.
    """
    values = _values(type(settings), given, getattr(settings, "joints", ()), settings)
    return settings.changed(values) if values else settings


def converted(node: Node, given: Iterable[Parameter]) -> list[Parameter]:
    """Return parameters with doubles in place of integers where the node has declared doubles."""
    # an unset parameter has no value to give, but a type that is not to be taken for a double
    return [
        _converted(parameter, node.get_parameter_or(parameter.name, parameter).type_)
        for parameter in given
    ]


def misdirected_files(node: Node, args: Sequence[str]) -> list[str]:
    """Return messages about parameter files without parameters of this node, which ROS ignores.

    ``args`` are the arguments that ROS was initialised with.
    """
    problems = []
    name = node.get_fully_qualified_name()
    for option, path in pairwise(args):
        if option != "--params-file":
            continue
        try:
            nodes = [one for one, _ in parameter_groups(Path(path))]
        except ArgumentError as error:  # valid for ROS, which has read it
            problems.append(str(error))
            continue
        if not any(applies(one, name) for one in nodes):
            others = f"it has those of {', '.join(nodes)}" if nodes else "it has none at all"
            problems.append(f"{path} has no parameters for {name}: {others}")
    return problems


def _without_constants(node: Node, kind: type[Settings], given: Sequence[str]) -> list[str]:
    """Return the names without those of constants, which are removed if they have their value.

    Raises ArgumentError for another value, and for former parameters that must not be ignored.
    """
    constants = {one.name: one for one in parameters_of(kind) if one.constant}
    others = []
    for name in given:
        one, value = constants.get(name.partition(".")[0]), node.get_parameter(name).value
        if name in kind.removed:
            raise ArgumentError(f"{name} is not a parameter any more: {kind.removed[name]}")
        if one is None:
            others.append(name)
        elif value == one.default:
            node.undeclare_parameter(name)
        else:
            raise ArgumentError(
                f"{name} is {value}, and a constant in nodes, {one.default!r}: {one.constant} "
                "Remove it; docs/reference/removed_parameters.md tells more"
            )
    return others


def _ignore_others(node: Node, others: Sequence[str], known: Sequence[str]) -> None:
    """Remove values that were given for parameters that do not exist, and log them."""
    for name in others:
        if difflib.get_close_matches(name, known, n=1, cutoff=MISSPELT) and "." not in name:
            raise UnknownParameterError(name, known)
        node.undeclare_parameter(name)
    if others:
        node.get_logger().warning(
            f"ignored, as they are not parameters: {listed(others)}; docs/reference/"
            "removed_parameters.md tells what replaces those of earlier versions"
        )


def _names(node: Node) -> list[str]:
    """Return the names of all parameters of a node. At first those are the ones that were given."""
    return list(node.get_parameters_by_prefix(""))


def _converted(parameter: Parameter, declared: Parameter.Type) -> Parameter:
    if DOUBLES.get(parameter.type_) is not declared:
        return parameter
    return Parameter(parameter.name, declared, np.asarray(parameter.value, dtype=float).tolist())


def _declare(node: Node, name: str, declared: Declared) -> None:
    """Declare one parameter; without a default it has a type only."""
    about = ParameterDescriptor(
        description=declared.description + (f" Unit: {declared.unit}." if declared.unit else ""),
        additional_constraints=declared.remarks,
        read_only=declared.read_only,
    )
    if declared.range is not None:
        low, high = declared.range
        about.floating_point_range = [FloatingPointRange(from_value=low, to_value=high)]
    kind, value = Parameter.Type[declared.type.upper()], declared.default
    if node.has_parameter(name):  # a value was given: rclpy has declared it, undescribed
        given = _converted(node.get_parameter(name), kind)
        node.undeclare_parameter(name)
        if given.type_ is not kind and given.value != []:
            node.declare_parameter(name, kind, about)  # raises, since the value has another type
        value = tuple(given.value) if kind in ARRAYS else given.value
    if value is None:
        node.declare_parameter(name, kind, about)
    elif value != ():
        value = list(value) if isinstance(value, tuple) else value
        node.declare_parameter(name, value, about, ignore_override=True)
    else:  # rclpy takes an empty list for an array of bytes
        about.type, about.read_only = kind.value, False
        node.declare_parameter(name, kind, about, ignore_override=True)
        node.set_parameters([Parameter(name, kind, [])])
        if declared.read_only:  # only now: an empty list could not have been set before
            fixed = copy(about)
            fixed.name, fixed.read_only = name, True
            node.set_descriptor(name, fixed)


def _values(
    kind: type[Settings],
    given: Iterable[Parameter],
    joints: Sequence[str],
    before: Settings | None = None,
) -> dict[str, Any]:
    """Return those parameters that are settings, as values of ``kind``.

    Arrays become tuples. Empty strings in them are dropped: ``['']`` means none in a file.
    """
    declared = {one.name: one for one in parameters_of(kind)}
    values: dict[str, Any] = {}
    for parameter in given:
        group, _, owner = parameter.name.partition(".")
        one = declared.get(group)
        if one is None or bool(one.per) != bool(owner):
            continue
        value = parameter.value
        if one.per and one.per != "joint":
            element = tuple(value) if one.type.endswith("_array") else value
            values[group] = (*values.get(group, ()), (owner, element))
        elif one.per == "joint" and owner in joints:
            now = getattr(before, group, None) or [one.default] * len(joints)
            each = list(values.get(group, now))
            each[list(joints).index(owner)] = value
            values[group] = tuple(each)
        elif not one.per:
            is_array = one.type.endswith("_array")
            values[group] = tuple(x for x in value or () if x != "") if is_array else value
    return values
