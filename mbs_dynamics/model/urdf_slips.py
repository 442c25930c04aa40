# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Likely slips in the inertias of a URDF, with the values that were likely meant."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

import numpy as np

from mbs_dynamics.model.diagnostics import Diagnostic
from mbs_dynamics.model.inertia import Inertia
from mbs_dynamics.model.urdf_elements import Link, Tensor

SIDES = {
    "left": "right", "l": "r", "fl": "fr", "rl": "rr", "hl": "hr", "bl": "br", "ml": "mr",
    "lf": "rf", "lh": "rh", "lr": "rr", "lb": "rb", "lm": "rm",
}  # fmt: skip
"""Words in names of links on the left side, and those of their twins on the right."""

POWERS = (-1, 1, -2, 2, -3, 3)
"""Powers of ten by which a shifted decimal point changes a number, the likely ones first."""

SAME = 1e-6
"""Relative difference up to which two entries were likely written as the same number."""

NO_INERTIA = 1e-2
"""Radius of gyration, relative to that of the twin, below which a tensor counts as none."""

FAR = -0.2
"""Least second moment, relative to their sum, that a shifted decimal point leaves at most."""

UNEQUAL = 0.05
"""Relative difference of twins from which it is reported."""


def tensor_slip(tensor: Tensor) -> str:
    """Return the likely slip in a tensor that no body can have, and the value that was meant.

    Empty if no single slip explains it.
    """
    slips = _negative, _row_by_row, _other_order, _shifted_point
    return next(filter(None, (slip(tensor) for slip in slips)), "")


def _negative(tensor: Tensor) -> str:
    names = [name for name in ("ixx", "iyy", "izz") if getattr(tensor, name) < 0.0]
    meant = tensor._replace(**{name: -getattr(tensor, name) for name in names})
    if not names or not _is_possible(meant):
        return ""
    return f"the sign of a moment of inertia is likely wrong: {_text(meant, names)}"


def _row_by_row(tensor: Tensor) -> str:
    """The nine entries of the matrix, of which the first six found a place."""
    xx, xy, _, yx, yy, yz = tensor
    if abs(yx - xy) > SAME * abs(xy) or min(xx, yy) <= 0.0 or xx * yy <= xy * xy:
        return ""
    return (
        "iyy equals ixy, so that the nine entries of the matrix were likely written row by row: "
        f"iyy is then {yy:g}, iyz {yz:g}, and izz is unknown, from {abs(xx - yy):g} to {xx + yy:g}"
    )


def _other_order(tensor: Tensor) -> str:
    a, b, c, d, e, f = tensor
    orders = {
        "ixx, iyy, izz, ixy, ixz, iyz, as in MJCF": Tensor(a, d, e, b, f, c),
        "ixx, ixy, iyy, ixz, iyz, izz, the lower triangle row by row": Tensor(a, b, d, c, e, f),
    }
    for order, meant in orders.items():
        if _is_possible(meant):
            return f"its numbers are likely in the order {order}: {_text(meant)}"
    return ""


def _shifted_point(tensor: Tensor) -> str:
    candidates: list[tuple[int, float, str]] = []
    if _margin(tensor) > FAR:  # rounding, or a tensor of another point
        return ""
    for name, value in tensor._asdict().items():
        for rank, power in enumerate(POWERS):
            meant = tensor._replace(**{name: value * 10.0**power})
            if value and _is_possible(meant):
                text = f"the decimal point of {name} is likely shifted: {_text(meant, [name])}"
                candidates.append((rank // 2, -_margin(meant), text))
    return min(candidates)[2] if candidates else ""


def _margin(tensor: Tensor) -> float:
    """Return the least second moment of mass relative to their sum; negative for no body."""
    xx, xy, xz, yy, yz, zz = tensor
    T = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    trace = float(np.trace(T))
    if trace <= 0.0:
        return -1.0
    return float(np.linalg.eigvalsh(0.5 * trace * np.eye(3) - T)[0]) / (0.5 * trace)


def _is_possible(tensor: Tensor) -> bool:
    return _margin(tensor) > 0.0


def _text(tensor: Tensor, names: Iterable[str] = Tensor._fields) -> str:
    return ", ".join(f"{name} {getattr(tensor, name):g}" for name in names)


# -- links on the left and on the right ------------------------------------------------------------


def twin_slips(links: Mapping[str, Link], inertias: Mapping[str, Inertia]) -> Iterator[Diagnostic]:
    """Yield diagnostics about links whose inertia differs from the one of their mirror image.

    ``inertias`` are those of all links, in their frames.
    """
    for left, right in _twins(inertias):
        pair = sorted((left, right), key=lambda name: inertias[name].mass)
        light, heavy = (inertias[name].mass for name in pair)
        ratio = _ratio(heavy, light)
        if ratio > 1.0 + UNEQUAL:
            values = f"{light:g} kg, and its twin {pair[1]!r} has {heavy:g} kg"
            yield _different(pair[0], f"has {values}", ratio)
            continue
        moments = {name: float(np.trace(inertias[name].tensor_at_com)) for name in pair}
        small, large = sorted(pair, key=lambda name: moments[name])
        if moments[large] <= 0.0:
            continue
        ratio = _ratio(moments[large], moments[small])
        inertial = links[large].inertial
        tensor = None if inertial is None else inertial.inertia
        if ratio > NO_INERTIA**-2 and tensor is not None:
            yield Diagnostic(
                f"link {small!r}",
                f"has no inertia about its centre of mass to speak of, and its twin {large!r} has "
                f"one; likely {_text(tensor)}, mirrored",
            )
        elif ratio > 1.0 + UNEQUAL:
            values = f"{moments[small]:g} kg m^2, those of its twin {large!r} {moments[large]:g}"
            yield _different(small, f"has moments of inertia whose sum is {values}", ratio)


def _ratio(large: float, small: float) -> float:
    """Return the ratio of two numbers >= 0, 1 if both are zero."""
    if small > 0.0:
        return large / small
    return np.inf if large > 0.0 else 1.0


def _different(link: str, message: str, ratio: float) -> Diagnostic:
    """Return a diagnostic about twins: a warning if they differ by a power of ten, or by all."""
    power = round(float(np.log10(ratio))) if np.isfinite(ratio) else 0
    if power and abs(ratio / 10.0**power - 1.0) < UNEQUAL:
        message += f": the factor is {10**power}, likely by a shifted decimal point"
        return Diagnostic(f"link {link!r}", message)
    return Diagnostic(f"link {link!r}", message, "note" if np.isfinite(ratio) else "warning")


def _twins(names: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yield the pairs of names that differ by the word for the side alone."""
    known = {name.lower(): name for name in names}
    for lower, name in known.items():
        for word in re.finditer(r"left|(?<![a-z])[a-z]{1,2}(?![a-z])", lower):
            other = SIDES.get(word[0])
            if other and (twin := lower[: word.start()] + other + lower[word.end() :]) in known:
                yield name, known[twin]
