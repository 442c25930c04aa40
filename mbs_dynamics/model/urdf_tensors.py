# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Likely slips in tensors of inertia: entries in other places, and lost zeros or decimal points.

A tensor that no body has, or that differs from that of the mirrored link on the other side of the
robot, is compared with what common slips make of a right one.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from mbs_dynamics.checks import FloatArray
from mbs_dynamics.model.diagnostics import Diagnostic
from mbs_dynamics.model.urdf_elements import Inertial, Link, Tensor

ENTRIES = Tensor._fields
"""The entries of a tensor, in the order in which URDF writes them."""

DIAGONAL = (0, 3, 5)
"""Their indices on the diagonal."""

ORDERS = {
    "first the diagonal, then ixy, ixz and iyz, as in MuJoCo": (0, 3, 4, 1, 5, 2),
    "the rows of the lower triangle": (0, 1, 3, 2, 4, 5),
}
"""Other orders in which six entries are written: where each entry of ENTRIES then stands."""

EQUAL = 0.01
"""Relative difference of mirrored entries that counts as none."""

SAME_MASS = 1.5
"""Ratio of the masses of mirrored links up to which their tensors are compared."""

MUCH = 20.0
"""Ratio of the moments of mirrored links of the same mass that only a slip explains."""

CLEARLY = 1.2
"""Ratio of the largest moment to the sum of the others from which a decimal point may be lost."""

TYPICAL = 0.015
"""Mean moment of inertia in kg m^2 of a link of 2 kg."""

SIDES = {"left": "right", "right": "left"}

TENFOLD = (1e-3, 1e-2, 1e-1, 1e1, 1e2, 1e3)
"""Factors of lost zeros and decimal points."""


def likely_slip(tensor: Tensor) -> str:
    """Return the slip that makes the entries of an impossible tensor from those of a possible one.

    The text is empty if no slip is known that does so.
    """
    t = np.array(tensor)
    xx, xy, xz, yy, yz, zz = t
    if yy == xy and xx > 0.0 and yz > 0.0 and xx * yz > xy * xy:
        right = _listed(("ixx", "ixy", "ixz", "iyy", "iyz"), (xx, xy, xz, yz, zz))
        return (
            "iyy is ixy once more: all nine entries were likely written row by row into the six "
            f"places, so that {right}, and izz is unknown"
        )
    for how, places in ORDERS.items():
        reordered = t[list(places)]
        if _possible(reordered):
            return f"likely written in another order, {how}: {_listed(ENTRIES, reordered)}"
    moments = np.linalg.eigvalsh(_matrix(t))
    if moments[2] < CLEARLY * (moments[0] + moments[1]):
        return ""
    mended = [x for x in itertools.product(range(6), TENFOLD) if t[x[0]] and _mends(t, *x)]
    if len(mended) != 1:
        return ""
    k, factor = mended[0]
    return f"a decimal point or zero is likely lost: {ENTRIES[k]}={t[k] * factor:.6g}"


def mirrored_tensors(links: Mapping[str, Link], names: Iterable[str]) -> list[Diagnostic]:
    """Return warnings about named links whose mass or tensor differs from that of a mirrored link.

    Both are compared as they are written; products of inertia may have other signs.
    """
    diagnostics = []
    for name in names:
        own = _stated(links[name].inertial)
        if own is None:
            continue
        for other in mirrored(name, links):
            if (image := _stated(links[other].inertial)) is not None:
                about = _compared(own, image, other)
                diagnostics += [Diagnostic(f"link {name!r}", text) for text in about]
                break
    return diagnostics


def mirrored(name: str, links: Mapping[str, Link]) -> Iterator[str]:
    """Yield the names of links that may be the mirror images of a link.

    ``left`` and ``right`` are exchanged, or l and r in words of one or two letters.
    """
    words = re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[^A-Za-z]+", name)
    swapped = [_like(word, SIDES[x]) if (x := word.lower()) in SIDES else word for word in words]
    candidates = ["".join(swapped)]
    for k, word in enumerate(words):
        if len(word) <= 2:
            for at, letter in enumerate(word):
                if letter in "lrLR":
                    side = letter.translate(str.maketrans("lrLR", "rlRL"))
                    turned = word[:at] + side + word[at + 1 :]
                    candidates.append("".join([*words[:k], turned, *words[k + 1 :]]))
    yield from (x for x in candidates if x != name and x in links)


def _compared(own: _Stated, other: _Stated, name: str) -> Iterator[str]:
    """Yield a message if a link is the one of two mirrored links that is likely wrong."""
    a, b = own.tensor, other.tensor
    if _unlikeliness(own.mass, a) <= _unlikeliness(other.mass, b):
        return
    there = f"its mirror image {name!r}"
    if _equal(a, b):
        if _factor(own.mass, other.mass):
            yield (
                f"has a mass of {own.mass:g} kg and the tensor of {there} of {other.mass:g} kg; "
                f"its mass is likely {other.mass:g} kg, with a zero or decimal point lost"
            )
        return
    if max(own.mass, other.mass) > SAME_MASS * min(own.mass, other.mass):
        return
    differ = [k for k in range(6) if not _equal(a[k], b[k])]
    wrong, factors = [ENTRIES[k] for k in differ], {_factor(a[k], b[k]) for k in differ}
    sums = sorted(float(t[list(DIAGONAL)].sum()) for t in (a, b))
    if len(factors) == 1 and None not in factors:
        likely = _listed(wrong, np.copysign(b[differ], a[differ]))
        yield (
            f"has {_listed(wrong, a[differ])} where {there} has {_listed(wrong, b[differ])}; "
            f"a zero or decimal point is likely lost: {likely}"
        )
    elif sums[1] > MUCH * max(sums[0], 0.0):
        kept = [k for k in range(6) if k in DIAGONAL or b[k]]
        entries = [ENTRIES[k] for k in kept]
        yield (
            f"has the moments {_listed(entries, a[kept])} kg m^2 for {own.mass:g} kg, unlike "
            f"{there} of {other.mass:g} kg; likely {_listed(entries, b[kept])}, as there"
        )


class _Stated(NamedTuple):
    mass: float
    tensor: FloatArray
    """(6,)."""


def _stated(inertial: Inertial | None) -> _Stated | None:
    """Return the mass and tensor of a link, None if it states none."""
    if inertial is None or inertial.inertia is None or not (inertial.mass or 0.0) > 0.0:
        return None
    return _Stated(float(inertial.mass or 0.0), np.array(inertial.inertia))


def _matrix(t: FloatArray) -> FloatArray:
    xx, xy, xz, yy, yz, zz = t
    return np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])


def _possible(t: FloatArray) -> bool:
    """Return whether a body can have these six entries."""
    lowest, middle, highest = np.linalg.eigvalsh(_matrix(t))
    return bool(lowest > 0.0 and highest < (1.0 + 1e-9) * (lowest + middle))


def _mends(t: FloatArray, k: int, factor: float) -> bool:
    changed = t.copy()
    changed[k] *= factor
    return _possible(changed)


def _equal(a: Any, b: Any) -> bool:
    """Return whether entries agree up to their signs and rounding."""
    a, b = np.abs(a), np.abs(b)
    return bool((np.abs(a - b) <= EQUAL * np.maximum(a, b)).all())


def _factor(a: float, b: float) -> float | None:
    """Return the factor of a lost zero or decimal point between two numbers, or None."""
    return next((x for x in TENFOLD if a and b and _equal(a * x, b)), None)


def _unlikeliness(mass: float, t: FloatArray) -> float:
    """Return how far moments are from those of a typical link of this mass, infinite for none.

    Impossible tensors are less likely than any possible one.
    """
    typical = TYPICAL * (mass / 2.0) ** (5.0 / 3.0)
    mean = float(t[list(DIAGONAL)].mean())
    if mean <= 0.0:
        return math.inf
    return abs(math.log(mean / typical)) + (0.0 if _possible(t) else 1e3)


def _like(word: str, side: str) -> str:
    """Return the other side in the letters of a word: left, Left or LEFT."""
    return side.upper() if word.isupper() else side.title() if word[0].isupper() else side


def _listed(names: Iterable[str], values: Any) -> str:
    return ", ".join(f"{x}={value + 0.0:.6g}" for x, value in zip(names, values, strict=True))
