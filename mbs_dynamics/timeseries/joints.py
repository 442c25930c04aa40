# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Matching of joint names in a file with those of a model."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from mbs_dynamics.errors import listed
from mbs_dynamics.timeseries.columns import UNITS, unit_factor
from mbs_dynamics.timeseries.series import TimeSeriesError


def matched(
    source: str,
    names: Sequence[str],
    known: Sequence[str],
    columns: Mapping[str, str] | None = None,
) -> dict[str, str]:
    """Return the joint names of a file by those of a model, in the order of the model.

    Equal names match. If there are none, numbers from 0 or 1 are indices of the joints. Otherwise
    names match without a common prefix or suffix of whole words, such as ``left_`` or ``/joint``.
    More than half of the joints must match. ``columns`` are the names in the file of
    columns such as ``q_<name>``, for messages. Raises TimeSeriesError if none matches, several sets
    of names match equally well, or half of the joints or fewer are equal.
    """
    called = {name: (columns or {}).get(f"q_{name}", f"q_{name}") for name in names}
    whole = {name: name for name in known if name in names}
    if 2 * len(whole) > min(len(set(names)), len(known)):
        return whole
    if whole:
        other = next(name for name in names if name not in whole)
        missing = next(name for name in known if name not in whole)
        raise TimeSeriesError(
            f"{source}: has few joints of the model, only {listed(whole)} of {listed(known)}; it "
            f"has {listed(names)}. Declare whose they are, as in --columns "
            f"{called[other]}=q_{missing}"
        )
    numbers = sorted(int(name) for name in names if name.isdigit())
    if len(numbers) == len(known) and numbers in (
        [*range(len(known))],
        [*range(1, 1 + len(known))],
    ):
        return {one: str(number) for one, number in zip(known, numbers, strict=True)}
    if numbers:
        first = called[next(name for name in names if name.isdigit())]
        raise TimeSeriesError(
            f"{source}: has joints numbered {listed(numbers)}; the model has {len(known)} joints, "
            f"{listed(known)}. Declare the names, as in --columns {first}=q_{known[0]}"
        )
    found: list[dict[str, str]] = []
    for prefix in (True, False):
        for theirs in {cut for name in names for cut in _affixes(name, prefix)}:
            for ours in {cut for name in known for cut in _affixes(name, prefix)}:
                rests = {_rest(name, theirs, prefix): name for name in names}
                pairs = {
                    one: rests[rest]
                    for one in known
                    if (rest := _rest(one, ours, prefix)) and rest in rests
                }
                if 2 * len(pairs) > min(len(set(names)), len(known)):
                    found.append(pairs)
    best = {
        tuple(sorted(x.items()))
        for x in found
        if not any(x.items() < other.items() for other in found)
    }
    if not best:
        raise TimeSeriesError(
            f"{source}: no joint of the model is in it: it has {listed(names)}, and the model "
            f"{listed(known)}. Declare whose they are, as in --columns "
            f"{next(iter(called.values()), 'NAME')}=q_{known[0]}"
        )
    if len(best) > 1:
        sets = " or ".join(listed([name for _, name in pairs]) for pairs in sorted(best))
        one, name = sorted(best)[0][0]
        raise TimeSeriesError(
            f"{source}: several sets of joints match those of the model ({listed(known)}): "
            f"{sets}. Declare them, as in --columns {called[name]}=q_{one}"
        )
    pairs = dict(best.pop())
    for name in pairs.values():
        word = re.split("[_./ -]+", name)[-1]
        kind = next((k for k in UNITS if len(word) > 1 and unit_factor(k, word) is not None), None)
        if kind is not None:
            raise TimeSeriesError(
                f"{source}: {name!r} seems to end in a unit. Declare the names and units, as in "
                f"--columns {called[name]}=q_{known[0]}[{word}]"
            )
    return {one: pairs[one] for one in known if one in pairs}


def _affixes(name: str, prefix: bool) -> list[str]:
    """Return the prefixes (or suffixes) of whole words of a name, and the empty one."""
    places = [match.span() for match in re.finditer("[_./ -]+", name)]
    return ["", *(name[:end] if prefix else name[begin:] for begin, end in places)]


def _rest(name: str, affix: str, prefix: bool) -> str:
    """Return a name without a prefix or suffix; empty if it does not have it."""
    if prefix:
        return name.removeprefix(affix) if name.startswith(affix) else ""
    return name.removesuffix(affix) if name.endswith(affix) else ""
