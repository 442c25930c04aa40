# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Requested gravity and loads of an arm, by link."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np

from mbs_dynamics import checks
from mbs_dynamics.checks import FloatArray
from mbs_dynamics.errors import ArgumentError, MbsError, ModelError, listed, quoted
from mbs_dynamics.model.body import GROUND
from mbs_dynamics.model.inertia import Inertia
from mbs_dynamics.model.model import STANDARD_GRAVITY, Model
from mbs_dynamics.model.payloads import Payload, Payloads
from mbs_dynamics.model.urdf import MAX_LENGTH

Vector = tuple[float, float, float]

LARGEST_LOAD = 1e6
"""Largest number in a load, in kg, m or kg m^2."""

WIDEST = MAX_LENGTH / math.sqrt(12.0)
"""Largest root mean square distance in m of the mass of a load from its centre: that of a rod."""

MOST_LOADS = 100
"""Largest number of links with loads."""

LARGEST_GRAVITY = 100.0
"""Largest length of a free-fall acceleration that is accepted, in m/s^2."""


class LinkGravity(NamedTuple):
    """A requested free-fall acceleration in m/s^2."""

    link: str
    """The link in whose frame it is resolved; empty for the root link of the description."""
    vector: Vector


class LinkLoad(NamedTuple):
    """A requested load, fixed to a link. A mass of zero removes it."""

    link: str
    mass: float
    """In kg."""
    com: Vector
    """Centre of mass in the link's frame, in m."""
    inertia_at_com: tuple[Vector, Vector, Vector]
    """(3, 3) in kg m^2, axes of the link's frame."""


def check_gravity(name: str, value: Any) -> FloatArray:
    """Return a free-fall acceleration (3,) in m/s^2, or raise ArgumentError."""
    gravity = checks.numbers(name, value, (3,))
    length = float(np.linalg.norm(gravity))
    if length > LARGEST_GRAVITY:
        raise ArgumentError(
            f"{name} has a length of {length:g} m/s^2; must be at most {LARGEST_GRAVITY:g}"
        )
    return gravity


def check_earthly(name: str, value: Any, tolerance: float) -> None:
    """Raise ArgumentError unless the length of a gravity (3,) is 9.81 m/s^2, within a share."""
    length = math.hypot(*check_gravity(name, value))
    standard = math.hypot(*STANDARD_GRAVITY)
    if abs(length - standard) > tolerance * standard:
        raise ArgumentError(
            f"{name} has a length of {length:g} m/s^2; must be "
            f"{max(0.0, 1.0 - tolerance) * standard:.4g} to {(1.0 + tolerance) * standard:.4g}"
        )


def fixed_links(model: Model) -> list[str]:
    """Return the fixed links, the root link of the description first."""
    return [frame.name for frame in model.frames.values() if frame.body == GROUND]


def root_gravity(model: Model, gravity: LinkGravity) -> FloatArray:
    """Return a gravity (3,) in m/s^2, resolved in the axes of the root link.

    Raises UnknownBodyError for an unknown link, ModelError for one that moves, and ArgumentError
    for invalid numbers.
    """
    vector = check_gravity("gravity", gravity.vector)
    link = gravity.link or next(iter(fixed_links(model)), "")
    if not link:
        return vector
    frame = model.frames[link]
    if frame.body != GROUND:
        raise ModelError(
            f"gravity is given in the frame of {quoted(gravity.link)}, which moves; valid: "
            f"the links that do not: {listed(fixed_links(model))}"
        )
    return np.asarray(frame.placement[:3, :3] @ vector)


def with_gravity(model: Model, gravity: LinkGravity) -> Model:
    """Return the model under another gravity; it shares the compiled kernels.

    Raises what :func:`root_gravity` raises.
    """
    return model.with_gravity(root_gravity(model, gravity))


def check_load(load: LinkLoad) -> None:
    """Raise ModelError or ArgumentError for an invalid load."""
    if not load.link:
        raise ModelError("a payload must name the link that carries it")
    what = f"payload at {quoted(load.link)}"
    largest = max(np.abs([load.mass, *load.com, *np.ravel(load.inertia_at_com)]))
    if LARGEST_LOAD < largest < np.inf:  # before a computation overflows
        raise ModelError(f"{what}: {largest:g} is too large; must be at most {LARGEST_LOAD:g}")
    try:
        violations = Inertia.from_com(load.mass, load.com, load.inertia_at_com).violations()
    except MbsError as error:
        raise ModelError(f"{what}: {error}") from error
    if violations:
        raise ModelError(f"{what}: {violations[0]}")
    if load.mass == 0.0 and np.any(load.inertia_at_com):
        raise ModelError(f"{what}: there is no inertia without mass")
    if load.mass > 0.0 and math.hypot(*load.com) > MAX_LENGTH:
        raise ModelError(
            f"{what}: its centre of mass is {math.hypot(*load.com):.4g} m from the link; must be "
            f"at most {MAX_LENGTH:g} m. Is it in m?"
        )
    if 0.5 * np.trace(load.inertia_at_com) > load.mass * WIDEST**2:
        radius = math.sqrt(0.5 * np.trace(load.inertia_at_com) / load.mass)
        raise ModelError(
            f"{what}: by its inertia, its mass is {radius:.3g} m from its centre (root mean "
            f"square); must be at most {WIDEST:.2g} m. Is the inertia in kg m^2?"
        )


def with_load(model: Model, load: LinkLoad) -> Model:
    """Return the model with a load in place of the present one of the link that carries it.

    Raises UnknownBodyError for an unknown link, ModelError or ArgumentError for one that does not
    move and for a load that cannot exist.
    """
    check_load(load)
    return model.with_payload(load.link, load.mass, load.com, load.inertia_at_com)


def in_force(model: Model, gravity: FloatArray, loads: FloatArray) -> Model:
    """Return a model under a gravity (3,), with the parameters (nb, 10) of loads of its bodies.

    All such models share their kernels.
    """
    rows = zip(model.body_names, range(model.nb), loads, strict=True)
    payloads = Payloads(Payload(*row) for row in rows)
    return model._sharing_kernels(gravity=gravity, payloads=payloads)


def payload_parameters(model: Model) -> FloatArray:
    """Return the inertial parameters (nb, 10) of the loads of a model, added up for each body."""
    parameters = np.zeros((model.nb, 10))
    parameters[list(model.payloads.bodies)] = model.payloads.parameters
    return parameters


def link_loads(model: Model) -> list[LinkLoad]:
    """Return the loads of a model in the frames of the links that carry them."""
    loads = []
    for payload in model.payloads:
        inverse = np.linalg.inv(model.frames[payload.link].placement)
        inertia = Inertia.from_parameters(payload.parameters).transformed(inverse)
        if inertia.mass > 0.0:
            x, y, z = (inertia.moment / inertia.mass).tolist()
            rows: Any = tuple(map(tuple, inertia.tensor_at_com.tolist()))
            loads.append(LinkLoad(payload.link, float(inertia.mass), (x, y, z), rows))
    return loads


def replaced(loads: Iterable[LinkLoad], load: LinkLoad) -> list[LinkLoad]:
    """Return loads with a load that replaces the one of its link; a mass of zero removes it.

    Raises ModelError if there are too many.
    """
    others = [other for other in loads if other.link != load.link]
    if load.mass > 0.0 and len(others) >= MOST_LOADS:
        raise ModelError(f"payloads are on {len(others)} links; must be at most {MOST_LOADS}")
    return [*others, load] if load.mass > 0.0 else others


class Environment(NamedTuple):
    """Requested gravity and loads of a robot, by link. They stay when its description changes."""

    gravity: LinkGravity
    loads: tuple[LinkLoad, ...] = ()
    """At most one of each link."""

    def with_load(self, load: LinkLoad) -> Environment:
        """Return this environment with a load in place of the one of its link.

        A mass of zero removes it. Raises what :func:`check_load` raises, and ModelError for too
        many loads.
        """
        check_load(load)
        return self._replace(loads=tuple(replaced(self.loads, load)))

    def applied_to(self, model: Model) -> Model:
        """Return the model under this gravity and with these loads; it shares compiled kernels.

        Raises what :func:`with_gravity` and :func:`with_load` raise.
        """
        model = with_gravity(model, self.gravity)
        for load in self.loads:
            model = with_load(model, load)
        return model

    def fitted(
        self, model: Model, gravity: Vector, check: Callable[[Environment], object]
    ) -> tuple[Environment, list[str]]:
        """Return what fits another model, and remarks on what is dropped.

        Where gravity does not fit, ``gravity`` in m/s^2 in the axes of the root link replaces it.
        ``check`` raises MbsError for an environment whose latest load does not fit.
        """
        remarks, fitted = [], Environment(self.gravity)
        try:
            root_gravity(model, self.gravity)
        except MbsError as error:
            remarks.append(f"the gravity in force before is dropped: {error}")
            fitted = Environment(LinkGravity("", gravity))
        for load in self.loads:
            try:
                more = fitted.with_load(load)
                check(more)
                fitted = more
            except MbsError as error:
                remarks.append(f"the payload at {quoted(load.link)} is dropped: {error}")
        return fitted, remarks
