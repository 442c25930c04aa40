# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Likely mistakes in the inertias of a URDF, with the values that were likely meant."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np

from mbs_dynamics.checks import FloatArray
from mbs_dynamics.model.inertia import Inertia

ENTRIES = ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")
UPPER = np.triu_indices(3)

POWERS = (-1, 1, -2, 2, -3, 3)
"""Powers of ten by which a shifted decimal point changes a number, the likely ones first."""

SAME = 1e-6
"""Relative difference up to which two entries were likely written as the same number."""

FAR = -0.2
"""Largest margin of a tensor for which a decimal point may be shifted; see :func:`_margin`."""

NONE, UNEQUAL = 1e-4, 0.05
"""Moments of inertia, relative to those of a twin, that count as zero, and the relative difference
between twins from which on it is reported."""


def tensor_slip(tensor: FloatArray) -> str:
    """Return the likely mistake in a tensor (3, 3) that no body can have, and what was meant.

    Empty if no single mistake explains it.
    """
    xx, xy, xz, yy, yz, zz = given = tensor[UPPER].tolist()
    negative = [k for k in (0, 3, 5) if given[k] < 0.0]
    if negative and _margin([abs(x) if k in negative else x for k, x in enumerate(given)]) > 0.0:
        values = ", ".join(f"{ENTRIES[k]} {-given[k]:g}" for k in negative)
        return f"the sign of a moment of inertia is likely wrong: {values}"
    if abs(yy - xy) <= SAME * abs(xy) and min(xx, yz) > 0.0 and xx * yz > xy * xy:
        return (
            "iyy equals ixy, so that the nine entries were likely written row by row: iyy is then "
            f"{yz:g}, iyz {zz:g}, and izz is unknown, from {abs(xx - yz):g} to {xx + yz:g}"
        )
    for order, meant in (
        ("ixx, iyy, izz, ixy, ixz, iyz, as in MJCF", [xx, yy, yz, xy, zz, xz]),
        ("ixx, ixy, iyy, ixz, iyz, izz, the lower triangle", [xx, xy, yy, xz, yz, zz]),
    ):
        if meant != given and _margin(meant) > 0.0:
            return f"its numbers are likely in the order {order}: {_stated(meant)}"
    shifted = []
    for k, rank in np.ndindex(6, len(POWERS) if _margin(given) < FAR else 0):
        meant = [*given]
        meant[k] *= 10.0 ** POWERS[rank]
        if given[k] and (margin := _margin(meant)) > 0.0:
            text = f"the decimal point of {ENTRIES[k]} is likely shifted: {ENTRIES[k]} {meant[k]:g}"
            shifted.append((rank // 2, -margin, text))
    return min(shifted)[2] if shifted else ""


def _stated(entries: Iterable[float]) -> str:
    return ", ".join(f"{name} {x:g}" for name, x in zip(ENTRIES, entries, strict=True))


def _margin(entries: Sequence[float]) -> float:
    """Return the smallest second moment of mass relative to their sum; negative if impossible."""
    xx, xy, xz, yy, yz, zz = entries
    T, half = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]), 0.5 * (xx + yy + zz)
    return float(np.linalg.eigvalsh(half * np.eye(3) - T)[0]) / half if half > 0.0 else -1.0


def twin_slips(inertias: Mapping[str, Inertia]) -> Iterator[tuple[str, str]]:
    """Yield the names of links that differ from their mirror image, and how.

    ``inertias`` are those of all links, in their frames.
    """
    for pair in _twins(inertias):
        masses = {name: inertias[name].mass for name in pair}
        moments = {name: float(np.trace(inertias[name].tensor_at_com)) for name in pair}
        sizes, what, unit = masses, "a mass", "kg"
        if max(masses.values()) <= min(masses.values()) * (1.0 + UNEQUAL):
            sizes, what, unit = moments, "moments of inertia with a sum", "kg m^2"
        small, large = sorted(pair, key=sizes.__getitem__)
        less, more = sizes[small], sizes[large]
        if more <= less * (1.0 + UNEQUAL):
            continue
        text = f"has {what} of {less:g} {unit}, its twin {large!r} {more:g}"
        if sizes is moments and less < NONE * more:
            text += f"; likely {_stated(inertias[large].tensor_at_com[UPPER])}, mirrored"
        elif less > 0.0:
            power = 10.0 ** round(np.log10(more / less))
            if power > 1.0 and abs(more / less / power - 1.0) < UNEQUAL:
                text += f": the factor is {power:g}, likely by a shifted decimal point"
        yield small, text


def _twins(names: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yield the pairs of names that differ by the word for the side alone: left, l, fl, lh, ..."""
    known = {name.lower(): name for name in names}
    for lower, name in known.items():
        for word in re.finditer(r"left|(?<![a-z])([a-km-z]?l|l[a-km-z])(?![a-z])", lower):
            other = "right" if word[0] == "left" else word[0].replace("l", "r")
            if twin := known.get(lower[: word.start()] + other + lower[word.end() :]):
                yield name, twin
