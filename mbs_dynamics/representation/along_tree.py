# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Twists and wrenches transformed along the tree, from body to body."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from mbs_dynamics.lie.arrays import Array
from mbs_dynamics.model.body import GROUND, Frame
from mbs_dynamics.representation.operators import Operator, Representation, after


def to_ancestors(rep: Representation, i: int, *loads: Any) -> Iterator[tuple[int, list[Any]]]:
    """Yield each body j between body i and the ground, with the loads of body i transformed to j.

    Loads are wrenches (6, m), pure moments (3, m), and objects with a method ``carried``.
    """
    transformed = list(loads)
    for child, j in rep.model.inward_to(i):
        if j != GROUND:
            T = rep.transform(child)
            transformed = [_to_parent(T, load) for load in transformed]
            yield j, transformed


def _to_parent(T: Operator, load: Any) -> Any:
    if not isinstance(load, np.ndarray):
        return load.carried(T)
    return T.T @ load if len(load) == 6 else T.back(load)


def screws_at(rep: Representation, frame: Frame) -> list[Array]:
    """Return the screws (6, k) of each body's joint, measured at a frame; zero off its path."""
    S = rep.model.zeros_per_joint(6)
    for i, to_frame in _to_frame(rep, frame):
        S[i] = to_frame @ rep.screw(i)
    return S


def _to_frame(rep: Representation, frame: Frame) -> Iterator[tuple[int, Operator]]:
    """Yield the bodies from the frame to the root, with the maps of their twists to the frame."""
    to_frame = rep.at(frame)
    for i, _ in rep.model.inward_to(frame.body):
        yield i, to_frame
        to_frame = after(to_frame, rep.transform(i))


def parameters_at(
    rep: Representation, frame: Frame, screws: Any, moved: Sequence[int]
) -> list[Array]:
    """Return the screws (6,) of geometric parameters, measured at a frame, by parameter.

    ``screws[k]`` is fixed to the parent of body ``moved[k]``, and given in the frame that this body
    has with its joint at zero. The result is zero for bodies that do not move the frame.
    """
    to_frame = dict(_to_frame(rep, frame))
    return [
        to_frame[i] @ rep.of_parameter(i, screws[k]) if i in to_frame else np.zeros(6)
        for k, i in enumerate(moved)
    ]
