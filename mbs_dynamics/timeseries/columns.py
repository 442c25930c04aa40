# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Names of columns, units, and how both are declared.

A column is called ``t``, ``q_<joint>``, ``qd_<joint>``, ``qdd_<joint>``, ``tau_<joint>`` or
``goal_<joint>``, and its values are in SI units. A unit in brackets behind the name, as in
``t [ms]``, is a declaration in the file; all others are given by the user. That of positions is the
one of goals as well.
"""

from __future__ import annotations

import math
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
"""Words for the quantities, in lower case; the first is the one that is written."""

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
"""Factors to SI units, of a force for a prismatic joint."""

SPELLINGS = {
    **{"µs": "us", "μs": "us", "sec": "s", "seconds": "s", "milliseconds": "ms", "minutes": "min"},
    **{"°": "deg", "degree": "deg", "degrees": "deg", "radians": "rad", "turns": "rev"},
    **{"°/s": "deg/s", "rad/s2": "rad/s^2", "deg/s2": "deg/s^2", "m/s2": "m/s^2"},
    **{"Nmm": "mNm", "kgfcm": "kgcm", "kgfm": "kgm", "lbfft": "lbft", "lbfin": "lbin"},
    **{"ozfin": "ozin", "ftlb": "lbft", "inlb": "lbin"},
}
"""Other spellings of units, without blanks."""

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
    """Of the unit, to SI."""
    declared: bool = False
    """Whether the unit is declared, in the name or by the user."""
    angle: bool = False
    """Whether the declared unit is one of an angle, which no joint that slides has."""


def column_name(kind: str, joint: str) -> str:
    """Return the name of the column of a joint."""
    return f"{kind}_{joint}"


def parsed(name: str) -> Meaning:
    """Return the meaning that the name of a column states.

    Raises TimeSeriesError for a unit in brackets that is not known.
    """
    bracket = re.fullmatch(r"(.+?)[\s_]*[\[(]([^\[\]()]+)[\])]", name.strip())
    if bracket is not None and not bracket[2].isdigit():
        kind, joint = _split(bracket[1])
        known = kind and unit_factor(kind, bracket[2]) is not None
        if known or joint or kind == "t":  # or else it is the name of a joint, as in q[joint1]
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
    if factor is None or factor == 0.0 or not math.isfinite(factor):
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
    ``q=[deg]``                 the unit of a quantity, of all joints
    ``tau=[0.0032 N m]``
    ``t=rows/30``               times are numbers of rows over the rows per second
    ``qd=none``                 not used; of a single column as well
    =========================== ===================================================================
    """

    def __init__(self, given: Mapping[str, str]) -> None:
        self._given = dict(given)
        self.rate: float | None = None
        """Rows per second, if times are row numbers."""
        for name, meaning in given.items():
            rows = re.fullmatch(r"rows\s*/\s*(\S+)", meaning)
            if rows is None:
                _check(name, meaning)
            elif name != "t" or not (rate := number(rows[1])) or not 0.0 < rate < 1e9:
                raise TimeSeriesError(
                    f"--columns {name}={meaning}: must be t=rows/RATE, with a positive number of "
                    "rows per second"
                )
            else:
                self.rate = rate

    def meanings(self, names: Iterable[str]) -> dict[str, Meaning]:
        """Return the meanings of columns by name, without those that are not used.

        Raises UnknownColumnError for a declared name that is neither a column, nor the beginning
        of names of columns, nor a quantity; TimeSeriesError if a column has two meanings.
        """
        names = list(names)
        found: dict[str, Meaning] = {}
        used: set[str] = set()
        for name in names:
            one = self._declaration_of(name)
            meaning = parsed(name) if one is None else self._declared(name, one)
            used |= set() if one is None else {one}
            by_user = one is not None and meaning.declared
            as_kind = "q" if meaning.kind == "goal" and "goal" not in self._given else meaning.kind
            if as_kind in self._given and meaning.kind not in used and not by_user:
                meaning = self._whole(meaning, as_kind)
            if meaning.kind != IGNORED:
                found[name] = meaning
        for name in self._given:
            if name not in used and name not in WORDS:
                raise UnknownColumnError(name, names)
        return found

    def _declaration_of(self, name: str) -> str | None:
        """Return the declared name that is this column, or the longest that it begins with."""
        best = None
        for one, text in self._given.items():
            if one in WORDS and text.startswith(("[", IGNORED, "rows")):
                continue  # of a quantity
            if one == name:
                return one
            begins = name.startswith(one) and name[len(one)] in "_.[ /"
            if begins and (best is None or len(one) > len(best)):
                best = one
        return best

    def _declared(self, name: str, one: str) -> Meaning:
        """Return the meaning of a column by the declaration ``one`` of it or of its beginning."""
        text = self._given[one]
        if text == IGNORED:
            return Meaning(IGNORED)
        if text.startswith("["):
            own = parsed(name)
            return Meaning(own.kind, own.joint, *_declared_unit(name, own.kind, text[1:-1]))
        stated = parsed(text)
        if one != name:
            stated = stated._replace(joint=name[len(one) :].strip("_.[] /"))
        return stated

    def _whole(self, meaning: Meaning, kind: str) -> Meaning:
        """Return the meaning of a column by the declaration of a quantity."""
        text = self._given[kind]
        if text == IGNORED or text.startswith("rows"):
            return Meaning(IGNORED)
        if not text.startswith("["):
            return meaning
        return Meaning(meaning.kind, meaning.joint, *_declared_unit(kind, kind, text[1:-1]))


def _check(name: str, text: str) -> None:
    """Raise TimeSeriesError for a declaration that means nothing."""
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
        "tau_joint1[kg cm], a unit such as [deg], rows/RATE for t, and none"
    )


def number(text: str) -> float | None:
    """Return the number that a text states; None if it is none."""
    try:
        return float(text)
    except ValueError:
        return None
