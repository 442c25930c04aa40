# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Declares settings in dataclasses, with their units, ranges and descriptions.

Each is declared once: it is an argument in Python and a parameter of a node.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import partial
from typing import Any, NamedTuple, TypeVar

from mbs_dynamics import checks
from mbs_dynamics.errors import ArgumentError, listed, quoted

S = TypeVar("S", bound="Settings")


class Parameter(NamedTuple):
    """Declaration of a parameter, or of one parameter for each joint or link."""

    name: str
    type: str
    """bool, double, string, double_array or string_array."""
    default: Any
    """None if a value must be set."""
    description: str
    unit: str = ""
    range: tuple[float, float] | None = None
    choices: tuple[str, ...] = ()
    constraints: str = ""
    read_only: bool = False
    """Whether it can be set at the start only."""
    at_rest_only: bool = False
    """Whether it can be changed only while no torque is commanded or held."""
    per: str = ""
    """joint or link: parameters ``<name>.<joint>`` or ``<name>.<link>``."""
    once: str = ""
    """joint or link: what an array names, each at most once."""

    @property
    def full_name(self) -> str:
        """The name with a placeholder for the joint or link."""
        return f"{self.name}.<{self.per}>" if self.per else self.name

    @property
    def remarks(self) -> str:
        """Constraints on the value, as sentences."""
        choices = f"One of {', '.join(self.choices)}." if self.choices else ""
        resting = "Changes only while disabled." if self.at_rest_only else ""
        return " ".join(filter(None, [choices, resting, self.constraints]))

    def check(self, name: str, value: Any) -> None:
        """Raise ArgumentError for a value that is out of range or not among the choices."""
        if self.range is not None:
            low, high = self.range
            if not low <= checks.number(name, value) <= high:
                raise ArgumentError(f"{name} is {value:g}; valid is {low:g} to {high:g}")
        if self.choices and value not in self.choices:
            raise ArgumentError(
                f"{name} is {quoted(value)}; valid is one of {', '.join(self.choices)}"
            )


TYPES = {bool: "bool", float: "double", str: "string"}


def setting(
    default: Any,
    description: str,
    unit: str = "",
    *,
    type: str = "",
    choices: Iterable[str] = (),
    **declared: Any,
) -> Any:
    """Return a dataclass field that carries the declaration of a parameter.

    ``declared`` are further fields of :class:`Parameter`. ``type`` is needed where the default does
    not show it: for an empty array and for None. A field per joint holds one number for each joint
    of the field ``joints``; one per link holds pairs of a link and its numbers.
    """
    element = default[0] if isinstance(default, tuple) and default else default
    known = type or TYPES[element.__class__] + ("_array" if isinstance(default, tuple) else "")
    parameter = Parameter("", known, default, description, unit, choices=tuple(choices), **declared)
    return field(default=() if parameter.per else default, metadata={"parameter": parameter})


def number(
    default: float, low: float, high: float, unit: str = "", **declared: Any
) -> Callable[..., Any]:
    """Return the function that declares a setting by its description; see :func:`setting`."""
    return partial(setting, default, unit=unit, range=(low, high), **declared)


def option(default: Any, unit: str = "", **declared: Any) -> Callable[..., Any]:
    """Return the function that declares another setting by its description."""
    return partial(setting, default, unit=unit, **declared)


def names_setting(once: str, *, which: str = "", **declared: Any) -> Callable[..., Any]:
    """Return the function that declares a setting of names, empty by default.

    ``once`` is joint or link, ``which`` of them.
    """
    valid = f"Names of {which or once + 's'}, each at most once."
    return partial(setting, (), type="string_array", constraints=valid, once=once, **declared)


def parameters_of(kind: type[Settings]) -> tuple[Parameter, ...]:
    """Return the declarations of all parameters of these settings."""
    return tuple(item.metadata["parameter"]._replace(name=item.name) for item in fields(kind))


@dataclass(frozen=True)
class Settings:
    """Values of the parameters of a node. Raises ArgumentError for values that are not valid."""

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
