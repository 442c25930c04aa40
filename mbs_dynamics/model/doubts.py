# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Doubts about the physics of a model: what its user should know, said by name."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from mbs_dynamics.errors import ModelWarning
from mbs_dynamics.model.body import Body
from mbs_dynamics.model.joint import Joint

if TYPE_CHECKING:
    from mbs_dynamics.model.tree import Model

SINGULAR_TOLERANCE = 1e-13
"""Inertia along a joint, relative to the body's largest entry, that counts as none."""


class Doubt(NamedTuple):
    """Something about a model that its user should know."""

    subject: str
    """``"link 'forearm'"`` or ``"joint 'elbow'"``."""
    message: str
    severity: str = "warning"
    """``"warning"`` where physics is doubtful, ``"note"`` where something was merged."""

    def __str__(self) -> str:
        return f"{self.subject}: {self.message}"


def warn_of_doubts(model: Model) -> Model:
    """Say the doubts about a model's physics as one ModelWarning, and return the model."""
    worries = [str(doubt) for doubt in model.doubts if doubt.severity == "warning"]
    if worries:
        text = f"model {model.name!r} has {len(worries)} doubt(s):\n  " + "\n  ".join(worries)
        warnings.warn(text, ModelWarning, stacklevel=4)
    return model


def doubts_about_bodies(bodies: Sequence[Body]) -> list[Doubt]:
    """Return what is doubtful about the inertias of the bodies and the efforts of their joints."""
    said = []
    for body in bodies:
        said += [Doubt(f"link {body.name!r}", message) for message in body.inertia.doubts()]
        if body.inertia.mass == 0.0:
            said.append(Doubt(f"link {body.name!r}", "moves but has no mass of its own", "note"))
    for joint, moved in _coordinates(bodies):
        said += _doubts_about_mass(joint, moved, bodies)
        effort = joint.limits.effort
        if effort is None or effort <= 0.0:
            stated = "no effort limit" if effort is None else f"an effort limit of {effort:g}"
            said.append(Doubt(f"joint {joint.name!r}", f"has {stated}", "note"))
    return said


def _coordinates(bodies: Sequence[Body]) -> Iterator[tuple[Joint, list[int]]]:
    """Yield the joint that owns each coordinate, and the bodies whose joints it drives."""
    for body in bodies:
        if body.joint.mimics is None:
            k = body.joint.coordinate
            yield body.joint, [i for i, b in enumerate(bodies) if b.joint.coordinate == k]


def _doubts_about_mass(joint: Joint, moved: list[int], bodies: Sequence[Body]) -> list[Doubt]:
    """Return a doubt if the motion of one coordinate meets no inertia at all."""
    beyond = set(moved)
    for i, body in enumerate(bodies):  # parents come first
        if body.parent in beyond:
            beyond.add(i)
    if not any(bodies[i].inertia.mass or np.any(bodies[i].inertia.tensor) for i in beyond):
        what = "nothing that it moves has mass or inertia"
    elif beyond == set(moved) and all(_moved_inertia(bodies[i]) == 0.0 for i in moved):
        what = "there is no inertia along that motion"
    else:
        return []
    links = ", ".join(repr(bodies[i].name) for i in moved)
    message = f"moves link {links}, but {what}: the mass matrix is singular"
    return [Doubt(f"joint {joint.name!r}", message)]


def _moved_inertia(body: Body) -> float:
    """Return X^T M X, the body's share of the mass matrix, or zero where it is rounding."""
    X = body.joint.screw
    moved = float(X @ (body.inertia @ X))
    return moved if moved > SINGULAR_TOLERANCE * np.abs(body.inertia.matrix()).max() else 0.0
