# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The screws of joints and of geometric parameters, measured at a frame that they move."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from mbs_dynamics.lie import se3
from mbs_dynamics.lie.arrays import Array
from mbs_dynamics.model.body import Frame
from mbs_dynamics.representation import formulas
from mbs_dynamics.representation.moves import Operator, Representation, after


def screws_at(rep: Representation, frame: Frame, longest: int | None = None) -> Any:
    """Return the screws (6, k) of the joints on the path to a frame, per body, measured there.

    Up to ``longest`` joints are carried from body to body, by default CARRIED_SCREWS. Of more, each
    is taken to the ground and from there to the frame, independently of all others.
    """
    longest = formulas.CARRIED_SCREWS if longest is None else longest
    model = rep.model
    if model.depth(frame.body) <= longest:  # all at once, so that none is carried twice
        S: Any = model.zeros_per_joint(6)
        for i, to_frame in _to_frame(rep, frame):
            S[i] = to_frame @ rep.screw(i)
        return S
    in_ground, S = model.per_body(), model.per_body()
    for i, _ in model.outward_to(frame.body):
        in_ground[i] = se3.Ad(rep.C(i)) @ model.bodies[i].joint.screws
    for i, _ in model.outward_to(frame.body):
        S[i] = rep.of_space(in_ground[i], rep.C(frame.body) @ frame.placement)
    return S


def _to_frame(rep: Representation, frame: Frame) -> Iterator[tuple[int, Operator]]:
    """Yield the bodies on the path, from the frame inwards, with the maps of their twists to it."""
    to_frame = rep.at(frame)
    for i, _ in rep.model.inward_to(frame.body):
        yield i, to_frame
        to_frame = after(to_frame, rep.transform(i))


def parameters_at(
    rep: Representation, frame: Frame, screws: Any, moved: Sequence[int], *, carried: int = 0
) -> list[Array]:
    """Return the screws (6,) of geometric parameters, measured at a frame, by parameter.

    Each of ``screws`` is fixed before the joint of a body of ``moved``, given in the frame that the
    body has with this joint at zero. It is zero for bodies that do not move the frame. Up to
    ``carried`` of them are carried from body to body; more are mapped directly, as joint screws
    are.
    """
    model = rep.model
    K = [np.zeros(6)] * len(moved)
    on_path = list(model.attached(moved, frame.body))
    if len(on_path) > carried:
        to_frame = dict(_to_frame(rep, frame))
        for k, i in on_path:
            K[k] = to_frame[i] @ rep.of_parameter(i, screws[k])
        return K
    for k, i in on_path:
        _, *beyond = model.since(k, i, frame.body)
        K[k] = rep.of_parameter(i, screws[k])
        for j in beyond:
            K[k] = rep.transform(j) @ K[k]
        K[k] = rep.at(frame) @ K[k]
    return K
