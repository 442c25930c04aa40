# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Names of quantities and units in tables: the meaning of a column, and its factor to SI."""

from __future__ import annotations

import re
from collections.abc import Iterable
from math import pi
from typing import NamedTuple

from mbs_dynamics.errors import ArgumentError

QUANTITIES = {
    "t": (
        *("t", "time", "times", "timestamp", "timestamps", "time_stamp", "stamp", "__time"),
        *("sec", "secs", "seconds"),
    ),
    "q": ("q", "position", "positions", "pos", "joint_positions", "joint_position", "actual_q"),
    "qd": (
        *("qd", "dq", "velocity", "velocities", "vel"),
        *("joint_velocities", "joint_velocity", "actual_qd"),
    ),
    "tau": (
        *("tau", "torque", "torques", "effort", "efforts", "tau_j"),
        *("joint_torques", "joint_torque", "joint_efforts", "joint_effort", "actual_tau"),
    ),
}
"""Accepted names of the quantities of a recording, in lower case."""

_GRAVITY = 9.80665
_INCH, _POUND = 0.0254, 0.45359237

UNITS: dict[str, dict[str, float]] = {
    "t": {
        **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), 1.0),
        **dict.fromkeys(("ms", "msec", "millisecond", "milliseconds", "millis"), 1e-3),
        **dict.fromkeys(("us", "µs", "μs", "usec", "microsecond", "microseconds"), 1e-6),
        **dict.fromkeys(("ns", "nsec", "nanosecond", "nanoseconds"), 1e-9),
        **dict.fromkeys(("min", "minute", "minutes"), 60.0),
        **dict.fromkeys(("h", "hour", "hours"), 3600.0),
    },
    "q": {
        **dict.fromkeys(("rad", "radian", "radians", "m"), 1.0),
        **dict.fromkeys(("deg", "degs", "degree", "degrees", "°"), pi / 180.0),
        **dict.fromkeys(("mrad", "mm"), 1e-3),
        **dict.fromkeys(("rev", "turn", "turns"), 2.0 * pi),
        "cm": 1e-2,
    },
    "qd": {
        **dict.fromkeys(("rads", "radps", "radsec", "rads1", "ms", "mps"), 1.0),
        **dict.fromkeys(("degs", "degps", "degsec", "degs1", "°s", "dps"), pi / 180.0),
        **dict.fromkeys(("rpm", "revmin", "1min", "min1"), pi / 30.0),
        **dict.fromkeys(("mrads", "mms", "mmps"), 1e-3),
        **dict.fromkeys(("revs", "rps"), 2.0 * pi),
    },
    "tau": {
        **dict.fromkeys(("nm", "n"), 1.0),
        **dict.fromkeys(("mnm", "mn"), 1e-3),
        **dict.fromkeys(("knm", "kn"), 1e3),
        "ncm": 1e-2,
        **dict.fromkeys(("kgcm", "kgfcm", "kpcm"), 1e-2 * _GRAVITY),
        **dict.fromkeys(("kgm", "kgfm", "kpm"), _GRAVITY),
        **dict.fromkeys(("gcm", "gfcm"), 1e-5 * _GRAVITY),
        **dict.fromkeys(("lbft", "lbfft", "ftlb", "ftlbf"), 12.0 * _INCH * _POUND * _GRAVITY),
        **dict.fromkeys(("lbin", "lbfin", "inlb", "inlbf"), _INCH * _POUND * _GRAVITY),
        **dict.fromkeys(("ozin", "ozfin", "inoz"), _INCH * _POUND * _GRAVITY / 16.0),
    },
}
"""Factors to s, rad or m, rad/s or m/s, N m or N, by lower-case names without blanks and signs."""

COMMON = {
    "t": "s, ms, us, ns, min, h",
    "q": "rad, deg, m, mm",
    "qd": "rad/s, deg/s, rpm, m/s, mm/s",
    "tau": "N m, mN m, N cm, kg cm, lb in, N",
}
"""Examples of units for messages."""

UNUSABLE = {
    "t": ("sample", "samples", "tick", "ticks", "count", "counts", "frame", "frames"),
    "q": ("tick", "ticks", "count", "counts"),
    "qd": ("tick", "ticks", "count", "counts"),
    "tau": (
        *("%", "percent", "pct", "permille", "‰", "pu", "raw", "tick", "ticks", "count", "counts"),
        *("a", "ma", "amp", "amps", "ampere", "v", "pwm"),
    ),
}
"""Units that a recording alone does not convert to SI."""

_SUFFIXES = ("m", "n", "h", "a", "v", "s", "mn", "kn", "min", "raw")
"""Units that are only units of joints in brackets: behind a name they may be a part of it."""

_MARK = r"(?:d|des|desired|cmd|cmptd|command|commanded|target|ref|reference|set|setpoint|goal)"
MARK = re.compile(_MARK, re.IGNORECASE)
"""Marks of values that were not measured."""


class Meaning(NamedTuple):
    """Quantity and joint of a column."""

    quantity: str
    """One of QUANTITIES."""
    joint: str
    """Empty for times, and for arrays of all joints."""
    factor: float = 1.0
    """Of its unit, to SI."""
    stated: bool = False
    """Whether the unit is stated."""


def meaning(name: str, raw: bool = False) -> Meaning | None:
    """Return the quantity, joint and unit that the name of a column or array states, or None.

    With ``raw`` torques may be in any unit, and positions in ticks, those of a drive: their factor
    is one. Raises ArgumentError for a unit that is unknown or cannot be converted.
    """
    name = name.strip().strip("\"'").strip()
    whole = _named(name)
    bracket = re.fullmatch(r"(.*?)\s*[\[(<{]\s*([^\])>}]*)\s*[\])>}]", name)
    if bracket and not bracket[2].isdigit():
        bare = _named(bracket[1].rstrip("_. "))
        unit = _normal(bracket[2])
        known = bare is not None and (unit in UNITS[bare[0]] or unit in UNUSABLE[bare[0]])
        whole_name = bare is not None and (bare[0] == "t" or bare[1])  # so that this is a unit
        if bare is not None and (known or (whole_name and not MARK.fullmatch(bare[1]))):
            return Meaning(*bare, _factor(name, bare[0], bracket[2], raw), True)
    suffix = re.fullmatch(r"(.+?)[_ .]([^\s_.]+|deg[_/]s|rad[_/]s|[nk]\w*[_ ·*.]c?m|%)", name, re.I)
    bare = _named(suffix[1]) if suffix else None
    if suffix and bare is not None and (bare[1] or bare[0] == "t"):
        unit = _normal(suffix[2])
        allowed = bare[0] == "t" or unit not in _SUFFIXES
        if allowed and (unit in UNITS[bare[0]] or unit in UNUSABLE[bare[0]]):
            return Meaning(*bare, _factor(name, bare[0], suffix[2], raw), True)
    return None if whole is None else Meaning(*whole)


def _named(name: str) -> tuple[str, str] | None:
    """Return the quantity and the joint of a name without a unit."""
    lower = name.lower()
    for quantity, words in QUANTITIES.items():
        if lower in words:
            return quantity, ""
    for quantity, words in QUANTITIES.items():
        if quantity == "t":
            continue
        for word in sorted(words, key=len, reverse=True):
            match = re.fullmatch(rf"{word}(\[|[_. ]?)(.+?)\]?", name, re.IGNORECASE)
            if match and (match[1] or match[2].isdigit()):
                return quantity, match[2]
    for quantity, words in QUANTITIES.items():  # joint1_pos
        for word in words if quantity != "t" else ():
            match = re.fullmatch(rf"(.+)[_./]{word}", name, re.IGNORECASE)
            if match:
                return quantity, match[1]
    return None


def _normal(unit: str) -> str:
    """Return a unit in lower case without blanks and signs of multiplication and division."""
    return re.sub(r"[\s_.*·⋅/^-]", "", unit).lower()


def _factor(name: str, quantity: str, unit: str, raw: bool) -> float:
    if raw and (quantity == "tau" or _normal(unit) in UNUSABLE[quantity]):
        return 1.0
    factor = UNITS[quantity].get(_normal(unit))
    if factor is None:
        currents = "; of currents, give the meaning by --columns, and the gains by --gains"
        raise ArgumentError(
            f"{name!r} is in {unit!r}; valid are units such as {COMMON[quantity]}"
            + (currents if quantity == "tau" else "")
        )
    return factor


def commanded(joint: str, measured: Iterable[str]) -> bool:
    """Return whether a joint's name states a commanded value of one of the ``measured`` joints."""
    before = re.fullmatch(rf"{_MARK}[_.\[ /]*(.+?)\]?", joint, re.IGNORECASE)
    after = re.fullmatch(rf"(.+)[_. /]{_MARK}", joint, re.IGNORECASE)
    rests = [match[1] for match in (before, after) if match]
    return any(rest.isdigit() or rest in measured for rest in rests)
