# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Arrays of a mechanism: positions, rates, torques and wrenches, also by the names of joints."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from mbs_dynamics import checks
from mbs_dynamics.checks import FloatArray
from mbs_dynamics.errors import ArgumentError, UnknownJointError
from mbs_dynamics.lie import se3
from mbs_dynamics.model.coordinates import bounded
from mbs_dynamics.model.mechanism import Mechanism

QUATERNION_TOLERANCE = 1e-3
"""How far the length of a quaternion may be from one before it is refused."""


class State(NamedTuple):
    """Positions (nq,), velocities (n,) and accelerations (n,)."""

    q: FloatArray
    qd: FloatArray
    qdd: FloatArray


class Arrays(Mechanism):
    """Makes and checks the arrays of a mechanism."""

    def neutral(self, *, within_limits: bool = False) -> FloatArray:
        """Return the positions (nq,) of the reference configuration: zeros and unit quaternions.

        With ``within_limits`` single coordinates are at the nearest limit if zero is beyond it.
        """
        q = np.concatenate([np.zeros(0), *(joint.group.neutral() for joint in self.joints)])
        if within_limits:
            q = self.with_singles(q, np.clip(np.zeros(self.n), self.lower, self.upper))
        return q

    def random_state(self, seed: int = 0) -> State:
        """Return a random state q (nq,), qd and qdd (n,), reproducible by ``seed``.

        Positions are uniform between the limits, or in +-pi for coordinates without two finite
        limits; orientations are uniform; velocities and accelerations are uniform in +-1.
        """
        rng = np.random.default_rng(seed)
        within = bounded(self.lower, self.upper)
        q = rng.uniform(np.where(within, self.lower, -np.pi), np.where(within, self.upper, np.pi))
        qd, qdd = rng.uniform(-1.0, 1.0, (2, self.n))
        if self.nq > self.n or len(self.single) < self.n:
            q = self.with_singles(rng.uniform(-np.pi, np.pi, self.nq), q)
            for joint in self.joints:
                if joint.group.has_quaternion:
                    end = self.positions_of(joint).stop
                    turn = rng.normal(size=4)
                    q[end - 4 : end] = turn / np.linalg.norm(turn)
        return State(q, qd, qdd)

    def with_singles(self, q: FloatArray, values: FloatArray) -> FloatArray:
        """Return positions q (nq,) with those of single coordinates from values (n,)."""
        at, k = self.single.T
        q[at] = values[k]
        return q

    def checked_positions(self, name: str, q: ArrayLike) -> FloatArray:
        """Return positions (..., nq) as finite floats, with quaternions of unit length.

        Raises ArgumentError for a wrong shape or type, and for a quaternion whose length differs
        from one by more than 1e-3.
        """
        positions = checks.numbers(name, q, (self.nq,), batch=True)
        for joint in self.joints:
            if joint.group.has_quaternion:
                end = self.positions_of(joint).stop
                turn = positions[..., end - 4 : end]
                length = np.linalg.norm(turn, axis=-1, keepdims=True)
                wrong = np.abs(length - 1.0) > QUATERNION_TOLERANCE
                if wrong.any():
                    given = turn[wrong[..., 0]][0].tolist()
                    raise ArgumentError(
                        f"{name}: entries {end - 4} to {end - 1} must be the unit quaternion x, y, "
                        f"z, w of joint {joint.name!r}; got {given}"
                    )
                turn /= length
        return positions

    def vector(self, values: Mapping[str, ArrayLike], rest: float = 0.0) -> FloatArray:
        """Return an array (n,) of rates, torques or the like from a mapping of joint names.

        Other joints get the value ``rest``. For joints with one degree of freedom these may be
        positions as well; a joint with k of them has k values. Raises UnknownJointError for a name
        of no coordinate, ArgumentError if ``values`` is not a mapping from names to finite numbers.
        """
        checks.mapping("values", values, "joint")
        array = np.full(self.n, float(rest))
        places = {joint.name: joint.velocities for joint in self.joints}
        for name, value in values.items():
            if name not in places:
                raise UnknownJointError(name, places)
            what, k = f"the value of joint {name!r}", places[name]
            array[k] = checks.numbers(what, value, () if len(k) == 1 else (len(k),))
        return array

    def by_joint(self, values: ArrayLike) -> dict[str, Any]:
        """Return an array (n,) of rates, torques or the like as a mapping from joint names.

        The inverse of :meth:`vector`: a number for a joint with one degree of freedom, else a list.
        Raises ArgumentError for a wrong shape or type.
        """
        array = checks.numbers("values", values, (self.n,))
        return {
            joint.name: array[joint.velocities].tolist() if joint.nv > 1 else float(array[k])
            for joint in self.joints
            for k in joint.velocities[:1]
        }

    def wrenches(self, by_link: Mapping[str, ArrayLike]) -> FloatArray:
        """Return body-fixed wrenches (..., nb, 6) on all bodies from a mapping of link names.

        Each value (..., 6), moment in N m first, then force in N, acts at the origin of its link in
        the axes of the link; wrenches on links of one body are added up. Leading axes are batches
        and broadcast. Algorithms and simulations take such a mapping in place of the array as well.
        Raises UnknownBodyError; ModelError for a link that does not move; ArgumentError for a wrong
        shape or type.
        """
        checks.mapping("by_link", by_link, "link")
        given = {}
        for link, wrench in by_link.items():
            frame = self._moving("a wrench", link)
            W = checks.numbers(f"the wrench on {link!r}", wrench, (6,), batch=True)
            given[link] = frame, W @ se3.Ad(se3.inverse(frame.placement))
        batch = checks.batch_of(**{link: W.shape[:-1] for link, (_, W) in given.items()})
        totals = np.zeros((*batch, self.nb, 6))
        for frame, W in given.values():
            totals[..., frame.body, :] += W
        return totals
