# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Names and units of columns, and their declarations.

A column is called ``t``, ``q_<joint>``, ``qd_<joint>``, ``qdd_<joint>``, ``tau_<joint>`` or
``goal_<joint>``, and its values are in SI units. A unit in brackets after the name, as in
``t [ms]``, is a declaration in the file; the user gives all others. A declared unit of positions
also applies to goals.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from math import pi
from typing import NamedTuple

from mbs_dynamics.errors import UnknownNameError, listed, quoted
from mbs_dynamics.timeseries.series import TimeSeriesError

WORDS = {
    "t": ("t", "time", "times", "timestamp", "timestamps"),
    "q": ("q", "pos", "position", "positions"),
    "qd": ("qd", "vel", "velocity", "velocities"),
    "qdd": ("qdd", "acc", "acceleration", "accelerations"),
    "tau": ("tau", "torque", "torques", "effort", "efforts"),
    "goal": ("goal", "goals"),
}
"""Words for the quantities, in lower case; files are written with the first one."""

_G, _INCH, _POUND = 9.80665, 0.0254, 0.45359237
_DEG, _TURN, _RPM = pi / 180.0, 2.0 * pi, pi / 30.0

UNITS = {
    "t": {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9, "min": 60.0, "h": 3600.0},
    "q": {"rad": 1.0, "deg": _DEG, "mrad": 1e-3, "rev": _TURN, "m": 1.0, "cm": 1e-2, "mm": 1e-3},
    "qd": {
        **{"rad/s": 1.0, "deg/s": _DEG, "mrad/s": 1e-3, "rev/s": _TURN, "rpm": _RPM},
        **{"m/s": 1.0, "cm/s": 1e-2, "mm/s": 1e-3},
    },
    "qdd": {"rad/s^2": 1.0, "deg/s^2": _DEG, "m/s^2": 1.0, "mm/s^2": 1e-3},
    "tau": {
        **{"N m": 1.0, "mN m": 1e-3, "N cm": 1e-2, "kN m": 1e3, "N": 1.0, "mN": 1e-3, "kN": 1e3},
        **{"kg m": _G, "kg cm": 1e-2 * _G, "g cm": 1e-5 * _G},
        **{"lb ft": 12.0 * _INCH * _POUND * _G, "lb in": _INCH * _POUND * _G},
        "oz in": _INCH * _POUND * _G / 16.0,
    },
}
UNITS["goal"] = UNITS["q"]
"""Factors to SI units by quantity, for revolute and prismatic joints."""

SPELLINGS = {
    **{"µs": "us", "μs": "us", "sec": "s", "seconds": "s", "milliseconds": "ms", "minutes": "min"},
    **{"°": "deg", "degree": "deg", "degrees": "deg", "radians": "rad", "turns": "rev"},
    **{"°/s": "deg/s", "rad/s2": "rad/s^2", "deg/s2": "deg/s^2", "m/s2": "m/s^2"},
    **{"Nmm": "mNm", "kgfcm": "kgcm", "kgfm": "kgm", "lbfft": "lbft", "lbfin": "lbin"},
    **{"ozfin": "ozin", "ftlb": "lbft", "inlb": "lbin"},
}
"""Other spellings of units, without spaces."""

IGNORED = "none"
"""Declared meaning of a column that is not used."""


class UnknownColumnError(UnknownNameError, TimeSeriesError, kind="column"):
    """A file has no column or array of this name."""


class Meaning(NamedTuple):
    """Quantity, joint and unit of a column."""

    kind: str
    """One of WORDS, or empty for a further column."""
    joint: str = ""
    """Empty for times, and for an array with a column for each joint."""
    factor: float = 1.0
    """Factor of the unit to SI."""
    declared: bool = False
    """Whether the unit is declared, in the name or by the user."""
    angle: bool = False
    """Whether the declared unit is one of angle, which is invalid for a prismatic joint."""


def column_name(kind: str, joint: str) -> str:
    """Return the name of the column of a joint."""
    return f"{kind}_{joint}"


def parsed(name: str) -> Meaning:
    """Return the meaning that the name of a column states.

    Raises TimeSeriesError for an unknown unit in brackets.
    """
    bracket = re.fullmatch(r"(.+?)[\s_]*[\[(]([^\[\]()]+)[\])]", name.strip())
    if bracket is not None and not bracket[2].isdigit():
        kind, joint = _split(bracket[1])
        known = kind and unit_factor(kind, bracket[2]) is not None
        if known or joint or kind == "t":  # otherwise a joint is in brackets, as in q[joint1]
            return Meaning(kind, joint, *_declared_unit(name, kind, bracket[2]))
    return Meaning(*_split(name.strip()))


def _split(name: str) -> tuple[str, str]:
    """Return the quantity and the joint of a name without a unit."""
    for kind, words in WORDS.items():
        if name.lower() in words:
            return kind, ""
    for kind, words in WORDS.items():
        for word in sorted(words, key=len, reverse=True):
            rest = name[len(word) :]
            if kind == "t" or name[: len(word)].lower() != word or len(rest) < 1:
                continue
            if rest.isdigit():  # Position1
                return kind, rest
            if rest[0] == "[" and rest[-1] == "]":
                return kind, rest[1:-1]
            if rest[0] in "_. " and len(rest) > 1:
                return kind, rest[1:]
    return "", ""


def unit_factor(kind: str, unit: str) -> float | None:
    """Return the factor of a unit, such as ``deg`` or ``0.0032 N m``, to SI; None if unknown."""
    multiple, rest = re.fullmatch(r"\s*([-+]?[\d.]+(?:[eE][-+]?\d+)?)?\s*(.*?)\s*", unit).groups()  # type: ignore[union-attr]
    short = re.sub(r"[\s_.*·⋅]", "", rest)
    short = SPELLINGS.get(short, SPELLINGS.get(short.lower(), short))
    known = {re.sub(r"\s", "", name): factor for name, factor in UNITS[kind].items()}
    lower = {name.lower(): factor for name, factor in known.items()}
    factor = known.get(short, lower.get(short.lower()))
    value = number(multiple or "1")
    return None if factor is None or value is None else factor * value


def _factor(name: str, kind: str, unit: str) -> float:
    factor = unit_factor(kind, unit) if kind else 1.0
    if factor is None or factor == 0.0:
        word = WORDS[kind][0]
        raise TimeSeriesError(
            f"{quoted(name)} is in {quoted(unit)}; valid units are {listed(UNITS[kind])}, or a "
            f"multiple of one, as in --columns {word}=[0.0032 {next(iter(UNITS[kind]))}]"
        )
    return factor


def _declared_unit(name: str, kind: str, unit: str) -> tuple[float, bool, bool]:
    """Return factor, declared and angle of a Meaning."""
    angle = kind in ("q", "qd", "goal") and re.search("rad|deg|°|rev|turn|rpm", unit, re.IGNORECASE)
    return _factor(name, kind, unit), True, bool(angle)


class Declarations:
    """Declared names and units of columns, as ``--columns`` takes them.

    =========================== ===================================================================
    ``Time=t[ms]``              one column, with its unit
    ``J1=q_joint1[deg]``
    ``observation.state=q``     an array, or all columns that begin with this name
    ``q=[deg]``                 the unit of a quantity for all joints
    ``tau=[0.0032 N m]``
    ``t=rows/30``               times are row numbers divided by the rows per second
    ``qd=none``                 not used; also for a single column
    =========================== ===================================================================
    """

    def __init__(self, given: Mapping[str, str]) -> None:
        self.rate: float | None = None
        """Rows per second, if times are row numbers."""
        self._quantities: dict[str, str] = {}
        """Units in brackets, or IGNORED, by quantity."""
        self._columns: dict[str, str] = {}
        """Meanings by column, or by the beginning of names of columns."""
        for name, text in given.items():
            if rows := re.fullmatch(r"rows\s*/\s*(\S+)", text):
                self.rate = number(rows[1])
                if name != "t" or not self.rate or not 0.0 < self.rate < 1e9:
                    raise TimeSeriesError(
                        f"--columns {name}={text}: must be t=rows/RATE, with a positive number of "
                        "rows per second"
                    )
                self._quantities[name] = IGNORED  # a column of times is not used
                continue
            _check(name, text)
            of_quantity = name in WORDS and (text == IGNORED or text.startswith("["))
            (self._quantities if of_quantity else self._columns)[name] = text

    def meanings(self, names: Iterable[str]) -> dict[str, Meaning]:
        """Return the meanings of columns by name, without unused columns.

        Raises UnknownColumnError for a declared name that is neither a column, nor the beginning
        of column names, nor a quantity.
        """
        names = list(names)
        found: dict[str, Meaning] = {}
        used: set[str] = set()
        for name in names:
            declared = self._declared_name(name)
            if declared is None:
                meaning = parsed(name)
            else:
                used.add(declared)
                meaning = self._declared(name, declared)
            of_goal = meaning.kind == "goal" and "goal" not in self._quantities
            unit = self._quantities.get("q" if of_goal else meaning.kind)
            if unit is not None and not (declared is not None and meaning.declared):
                if unit == IGNORED:
                    continue
                unit_of = _declared_unit(name, meaning.kind, unit[1:-1])
                meaning = Meaning(meaning.kind, meaning.joint, *unit_of)
            if meaning.kind != IGNORED:
                found[name] = meaning
        for declared in self._columns:
            if declared not in used:
                raise UnknownColumnError(declared, names)
        return found

    def _declared_name(self, name: str) -> str | None:
        """Return the declared name of a column: its own, or the longest that it begins with."""
        if name in self._columns:
            return name
        begins = [x for x in self._columns if name.startswith(x) and name[len(x)] in "_.[ /"]
        return max(begins, key=len, default=None)

    def _declared(self, name: str, declared: str) -> Meaning:
        """Return the meaning of a column by the declaration of its name or beginning."""
        text = self._columns[declared]
        if text == IGNORED:
            return Meaning(IGNORED)
        if text.startswith("["):
            named = parsed(name)
            return Meaning(named.kind, named.joint, *_declared_unit(name, named.kind, text[1:-1]))
        stated = parsed(text)
        if declared != name:
            stated = stated._replace(joint=name[len(declared) :].strip("_.[] /"))
        return stated


def _check(name: str, text: str) -> None:
    """Raise TimeSeriesError for an invalid declaration."""
    if text == IGNORED:
        return
    if text.startswith("[") and text.endswith("]"):
        kind = name if name in WORDS else parsed(name).kind
        if kind:
            _factor(name, kind, text[1:-1])
            return
    elif parsed(text).kind:
        return
    raise TimeSeriesError(
        f"--columns {name}={text}: valid: a meaning such as t[ms], q_joint1 or "
        "tau_joint1[kg cm], a unit such as [deg], rows/RATE for t, or none"
    )


def number(text: str) -> float | None:
    """Return a text as a number; None if it is not one."""
    try:
        return float(text)
    except ValueError:
        return None
