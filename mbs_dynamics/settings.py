# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Declares settings in dataclasses, with their units, ranges and descriptions.

Each is declared once: it is an argument in Python and, unless it is constant there, a parameter of
nodes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, ClassVar, NamedTuple, TypeVar

from mbs_dynamics import checks
from mbs_dynamics.errors import ArgumentError, listed, quoted

S = TypeVar("S", bound="Settings")


class Parameter(NamedTuple):
    """Declaration of a parameter, or of one parameter for each joint or link."""

    name: str
    default: Any
    """None if a value must be set."""
    description: str
    unit: str = ""
    low: float | None = None
    high: float | None = None
    """Smallest and largest value; None without a range."""
    type: str = ""
    """bool, double, string, double_array or string_array."""
    choices: tuple[str, ...] = ()
    constraints: str = ""
    read_only: bool = False
    """Whether it can be set at the start only."""
    at_rest_only: bool = False
    """Whether it can be changed only while no torque is commanded or held."""
    per: str = ""
    """joint: parameters ``<name>.<joint>`` for each of the field ``joints``; another word, such as
    link: parameters ``<name>.<link>`` for those that the user names."""
    once: str = ""
    """joint or link: what an array names, each at most once."""
    constant: str = ""
    """Why nodes take the default and have no such parameter; empty if they have one."""

    @property
    def full_name(self) -> str:
        """The name with a placeholder for the joint or link."""
        return f"{self.name}.<{self.per}>" if self.per else self.name

    @property
    def range(self) -> tuple[float, float] | None:
        """The smallest and largest value; None without a range."""
        return None if self.low is None or self.high is None else (self.low, self.high)

    @property
    def remarks(self) -> str:
        """Constraints on the value, as sentences."""
        several = "Some of" if self.type.endswith("array") else "One of"
        choices = f"{several} {', '.join(self.choices)}." if self.choices else ""
        resting = "Changes only while disabled." if self.at_rest_only else ""
        once = f"Names of {self.once}s, each at most once." if self.once else ""
        return " ".join(filter(None, [choices, resting, self.constraints or once]))

    def check(self, name: str, value: Any) -> None:
        """Raise ArgumentError for a value that is out of range or not among the choices."""
        if self.range is not None:
            low, high = self.range
            good = type(value) is float and low <= value <= high  # which is mostly so
            if not good and not low <= checks.number(name, value) <= high:
                raise ArgumentError(f"{name} is {value:g}; must be {low:g} to {high:g}")
        for one in value if isinstance(value, tuple) else (value,):
            if self.choices and one not in self.choices:
                verb = "has" if isinstance(value, tuple) else "is"
                raise ArgumentError(
                    f"{name} {verb} {quoted(one)}; must be one of {', '.join(self.choices)}"
                )


TYPES = {bool: "bool", float: "double", str: "string"}


def parameter(
    default: Any,
    description: str,
    *,
    unit: str = "",
    low: float | None = None,
    high: float | None = None,
    type: str = "",
    choices: tuple[str, ...] = (),
    constraints: str = "",
    read_only: bool = False,
    at_rest_only: bool = False,
    per: str = "",
    once: str = "",
    constant: str = "",
) -> Any:
    """Return the dataclass field of a setting, with its declaration as a parameter.

    The arguments are the fields of :class:`Parameter`; the field's name is the name. ``type`` is
    needed for an empty array of numbers and for None. A setting per joint holds one number for each
    joint of the field ``joints``; one per link holds pairs of a link and its value.
    """
    if not type and once:
        type = "string_array"
    elif not type:
        element = default[0] if isinstance(default, tuple) else default
        type = TYPES[element.__class__] + ("_array" if isinstance(default, tuple) else "")
    declared = Parameter(
        name="",
        default=default,
        description=description,
        unit=unit,
        low=low,
        high=high,
        type=type,
        choices=choices,
        constraints=constraints,
        read_only=read_only,
        at_rest_only=at_rest_only,
        per=per,
        once=once,
        constant=constant,
    )
    return field(default=() if per else default, metadata={"parameter": declared})


_DECLARED: dict[type, tuple[Parameter, ...]] = {}
"""The declarations of settings, which are asked for at each change of a parameter."""


def parameters_of(kind: type[Settings]) -> tuple[Parameter, ...]:
    """Return the declarations of all settings, those that are constant in nodes included."""
    if kind not in _DECLARED:
        _DECLARED[kind] = tuple(
            item.metadata["parameter"]._replace(name=item.name) for item in fields(kind)
        )
    return _DECLARED[kind]


@dataclass(frozen=True)
class Settings:
    """Values of the parameters of a node. Raises ArgumentError for values that are not valid."""

    removed: ClassVar[Mapping[str, str]] = {}
    """Former parameters that a node must not ignore, and what replaces them."""

    def __post_init__(self) -> None:
        for parameter in parameters_of(type(self)):
            name, value = parameter.name, getattr(self, parameter.name)
            if parameter.per == "joint":
                joints = getattr(self, "joints", ())
                each = value or (parameter.default,) * len(joints)
                numbers = checks.numbers(name, each, (len(joints),)).tolist()
                for joint, number in zip(joints, numbers, strict=True):
                    parameter.check(f"{name}.{joint}", number)
                object.__setattr__(self, name, tuple(numbers))
            elif not parameter.per:
                parameter.check(name, value)
            if parameter.once:
                check_once(name, parameter.once, value)

    def changed(self: S, values: Mapping[str, Any]) -> S:
        """Return the settings with some values replaced, checked as a whole."""
        return replace(self, **values)


def check_once(name: str, kind: str, given: Iterable[str]) -> None:
    """Raise ArgumentError if a parameter names a joint or link twice."""
    twice = sorted(one for one, times in Counter(given).items() if times > 1)
    if twice:
        raise ArgumentError(f"{name} must name each {kind} once; got twice: {listed(twice)}")
