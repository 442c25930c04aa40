# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Long chains and large trees beside Pinocchio: their code is cut into chunks."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from cases import mostly_slow
from mechanisms import random_mechanism
from reference import assert_close

import mbs_dynamics as mbs

pin = pytest.importorskip("pinocchio")

PARENTS = {
    "chain of 30": range(-1, 29),
    "tree of 60": (-1, *(max(i - 1 - (i % 7 == 0) * 3, 0) for i in range(1, 60))),
}


class Pair:
    """One mechanism in both libraries, at one state."""

    def __init__(self, name: str) -> None:
        mechanism = random_mechanism(8, PARENTS[name], ("revolute",))
        self.model = mechanism.model
        self.theirs = pin.Model()
        joints = []
        for i, body in enumerate(self.model.bodies):
            joint = pin.JointModelRevoluteUnaligned(*body.joint.screw[:3])
            placed = self._placement(body)
            parent = 0 if body.parent < 0 else joints[body.parent]
            joints.append(self.theirs.addJoint(parent, joint, placed, body.name))
            inertia = body.inertia.transformed(self._behind(body))
            own = pin.Inertia(inertia.mass, inertia.com, inertia.tensor_at_com)
            self.theirs.appendBodyToJoint(joints[i], own, pin.SE3.Identity())
        self.theirs.gravity = pin.Motion(np.concatenate([self.model.gravity, np.zeros(3)]))
        self.data = self.theirs.createData()
        self.order = [self.theirs.joints[k].idx_v for k in joints]
        rng = np.random.default_rng(2)
        self.q, self.qd, self.qdd = rng.uniform(-1.0, 1.0, (3, self.model.n))

    @staticmethod
    def _behind(body: Any) -> Any:
        """Return the pose of the body in a frame with the same axes and its origin on the joint."""
        C = np.eye(4)
        C[:3, 3] = -np.cross(body.joint.screw[:3], body.joint.screw[3:])
        return C

    def _placement(self, body: Any) -> Any:
        before = np.eye(4) if body.parent < 0 else self._behind(self.model.bodies[body.parent])
        placed = before @ body.home_rel @ np.linalg.inv(self._behind(body))
        return pin.SE3(placed[:3, :3], placed[:3, 3])

    def there(self, x: Any) -> Any:
        y = np.zeros(self.model.n)
        y[self.order] = x
        return y

    def here(self, M: Any) -> Any:
        return np.asarray(M)[np.ix_(*[self.order] * np.ndim(M))]


@pytest.mark.long
@pytest.mark.parametrize("name", mostly_slow(PARENTS, list(PARENTS)[:1]))
def test_large_trees_beside_pinocchio(name):
    pair = Pair(name)
    model, theirs, data, here = pair.model, pair.theirs, pair.data, pair.here
    q, qd, qdd = pair.q, pair.qd, pair.qdd
    p, pd, pdd = (pair.there(x) for x in (q, qd, qdd))

    def check(function: Any, arguments: tuple[Any, ...], *expected: Any) -> None:
        kernel = mbs.compile(function, model)
        found = kernel(*arguments)
        found = found if isinstance(found, tuple) else (found,)
        for a, b in zip(found, expected, strict=True):
            assert_close(a, here(b), 1e-10 * np.abs(b).max(), function.__name__)

    tau = pin.rnea(theirs, data, p, pd, pdd)
    check(mbs.inverse_dynamics, (q, qd, qdd), tau)
    M = pin.crba(theirs, data, p)
    M = np.triu(M) + np.triu(M, 1).T
    check(mbs.mass_matrix, (q,), M)
    check(mbs.coriolis_matrix, (q, qd), pin.computeCoriolisMatrix(theirs, data, p, pd))
    by = pin.computeRNEADerivatives(theirs, data, p, pd, pdd)
    check(mbs.inverse_dynamics_derivatives, (q, qd, qdd), by[0], by[1], M)
