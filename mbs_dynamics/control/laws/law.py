# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Interface of control laws that users write, and gravity compensation."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from mbs_dynamics.checks import FloatArray
from mbs_dynamics.errors import ArgumentError, quoted
from mbs_dynamics.model.model import Model


class Gravity:
    """Gravity compensation, as a law of a guarded arm.

    ``options`` are settings of the arm, as one value, one for each joint, or by name of the joint:
    ``gravity_scale``, ``damping`` in N m s/rad, ``friction`` in N m, ``friction_scale``,
    ``velocity_filter``, ``limit_zone``.
    """

    def __init__(self, **options: Any) -> None:
        self.options = options


class LawState(NamedTuple):
    """The state of an arm, as laws receive it. The arrays must not be changed."""

    q: FloatArray
    """(n,) positions in rad or m."""
    qd: FloatArray
    """(n,) velocities in rad/s or m/s, within the velocity limits."""
    efforts: FloatArray
    """(n,) measured efforts in N m or N, NaN where they are unknown."""
    time: float
    """In s."""
    joints: Sequence[int]
    """(m,) coordinates of the commanded joints, in the order of the torques of a law."""
    gravity: FloatArray
    """(n,) gravity torques of the arm with its loads."""
    period: float = 0.0
    """Time in s between two states, as set, or as measured before enabling; 0: not known yet."""
    gap: float = 0.0
    """Longest of the latest times in s between two states, at least the period.

    On a loaded machine some torques are held much longer than a period, and a law has to be stable
    with that too."""


Law = Callable[[Model, LawState, Any], Any]
"""Torques (m,) of the commanded joints, gravity included, of a model, a state and a reference.

The model has the gravity and loads in force; the reference is a
:class:`~mbs_dynamics.control.references.JointReference` or
:class:`~mbs_dynamics.control.references.PoseReference`. A law with an
attribute ``link`` follows poses of that link, any other law positions of joints. It is called once
before torques are enabled, with the arm at rest at its reference: raise ArgumentError for states
that it cannot control.
"""


def law_from(path: str) -> Law:
    """Return the law at an import path ``module:name``, an instance where that is a class.

    Raises ArgumentError for a path that cannot be imported or is not callable.
    """
    module, _, name = path.partition(":")
    if not module or not name:
        raise ArgumentError(f"law is {quoted(path)}; must be module:name")
    try:
        target = getattr(importlib.import_module(module), name)
        law = target() if isinstance(target, type) else target
    except Exception as error:  # a module of a user may raise anything
        raise ArgumentError(
            f"law {quoted(path)} cannot be imported: {type(error).__name__}: {error}"
        ) from error
    if not callable(law):
        raise ArgumentError(
            f"law {quoted(path)} is a {type(law).__name__}; must be a function of model, state "
            "and reference, or a class of them"
        )
    found: Law = law
    return found
