# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Twists and wrenches carried along the tree, from body to body."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from mbs_dynamics.lie.arrays import Array
from mbs_dynamics.model.body import Frame
from mbs_dynamics.representation.operators import Operator, Representation, after


def to_ancestors(rep: Representation, i: int, *loads: Any) -> Iterator[tuple[int, list[Any]]]:
    """Yield each body j between body i and the ground, with the loads of body i as seen from j.

    Loads are wrenches (6, m), pure moments (3, m), and objects with a method ``carried``.
    """
    seen = list(loads)
    for j, child in rep.model.supporting(i):
        carry = rep.transform(child)
        seen = [_carried(carry, load) for load in seen]
        yield j, seen


def _carried(carry: Operator, load: Any) -> Any:
    if not isinstance(load, np.ndarray):
        return load.carried(carry)
    return carry.T @ load if len(load) == 6 else carry.back(load)


def screws_at(rep: Representation, frame: Frame) -> list[Array]:
    """Return the screws (6, k) of the joint of each body, measured at a frame; zero off its path.

    From the frame inwards, with the map of twists to the frame, so that no screw is carried twice.
    """
    S = rep.model.zeros_per_joint(6)
    for i, to_frame in _to_frame(rep, frame):
        S[i] = to_frame @ rep.screw(i)
    return S


def _to_frame(rep: Representation, frame: Frame) -> Iterator[tuple[int, Operator]]:
    """Yield the bodies on the path, from the frame inwards, with the maps of their twists to it."""
    to_frame = rep.at(frame)
    for i, _ in rep.model.inward_to(frame.body):
        yield i, to_frame
        to_frame = after(to_frame, rep.transform(i))


def parameters_at(
    rep: Representation, frame: Frame, screws: Any, moved: Sequence[int]
) -> list[Array]:
    """Return the screws (6,) of geometric parameters, measured at a frame, by parameter.

    Each of ``screws`` is fixed before the joint of a body of ``moved``, given in the frame that the
    body has with this joint at zero. It is zero for bodies that do not move the frame.
    """
    to_frame = dict(_to_frame(rep, frame))
    return [
        to_frame[i] @ rep.of_parameter(i, screws[k]) if i in to_frame else np.zeros(6)
        for k, i in enumerate(moved)
    ]
