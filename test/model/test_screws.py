# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Models from screws and joint frames, against products of exponentials written out here."""

from math import cos, sin, sqrt
from typing import Any

import numpy as np
import pytest
from mechanisms import KINDS, pose, screw
from moving_bodies import vee
from reference import exponential, hat

from mbs_dynamics.model.inertia import spatial_inertia
from mbs_dynamics.model.joint import one_screw
from mbs_dynamics.model.joints import Connection
from mbs_dynamics.model.model import Model
from mbs_dynamics.model.orders import path
from mbs_dynamics.model.screws import FRAMES

SEEDS = range(4)


def seen_from(poses, screws):
    """Each screw in the frame from which its own frame has the pose, by conjugation."""
    pairs = zip(poses, screws, strict=True)
    return np.array([vee(C @ hat(X) @ np.linalg.inv(C)) for C, X in pairs])


def inertia(rng):
    points = rng.uniform(-0.3, 0.3, (6, 3))
    masses = rng.uniform(0.1, 1.0, 6)
    com = masses @ points / masses.sum()
    arms = zip(masses, points - com, strict=True)
    Theta = sum(m * (r @ r * np.eye(3) - np.outer(r, r)) for m, r in arms)
    return spatial_inertia(masses.sum(), com, Theta)


class Mechanism:
    """A random tree, given by joint frames; its other descriptions by inverting 4x4 matrices."""

    def __init__(self, seed: int) -> None:
        rng = np.random.default_rng(seed)
        self.nb = 1 if seed == 0 else int(rng.integers(2, 10))
        self.parents = [int(rng.integers(-1, i)) for i in range(self.nb)]
        self.parents[0] = -1
        self.kinds = [str(kind) for kind in rng.choice(KINDS, self.nb)]
        self.S_parent = np.array([pose(rng) for _ in self.parents])
        self.S_body = np.array([pose(rng) for _ in self.parents])
        self.Z = np.array([screw(rng, kind) for kind in self.kinds])
        self.M = np.array([inertia(rng) for _ in self.parents])
        self.q = rng.uniform(-2.0, 2.0, self.nb)
        self.A = self.configuration(np.zeros(self.nb))
        self.B = self.S_parent @ np.linalg.inv(self.S_body)
        self.X, self.X_bar = seen_from(self.S_body, self.Z), seen_from(self.S_parent, self.Z)
        self.Y = seen_from(self.A, self.X)

    def configuration(self, q):
        """C_i by eq. (3), the one with the joint frames, down the tree."""
        C: list[Any] = [None] * self.nb + [np.eye(4)]
        for i, p in enumerate(self.parents):
            D = exponential(hat(self.Z[i]) * q[i])
            C[i] = C[p] @ self.S_parent[i] @ D @ np.linalg.inv(self.S_body[i])
        return np.array(C[:-1])

    def described(self, frame):
        homes = self.A if frame == "spatial" else self.B
        given = {"spatial": self.Y, "body_fixed": self.X, "parent": self.X_bar}[frame]
        return self.parents, homes, given, self.M

    def models(self):
        yield Model.from_joints(
            Connection(
                name=f"joint{i + 1}",
                joint=one_screw("Z", self.Z[i]),
                body=f"body{i + 1}",
                parent=None if p < 0 else f"body{p + 1}",
                S_parent=self.S_parent[i],
                S_body=self.S_body[i],
                M_body=self.M[i],
            )
            for i, p in enumerate(self.parents)
        )
        for frame in FRAMES:
            yield Model.from_screws(*self.described(frame), frame=frame)


def configuration(model, q):
    """C_i by eq. (8), upper line."""
    C: list[Any] = [None] * model.nb + [np.eye(4)]
    for i, p in enumerate(model.parents):
        C[i] = C[p] @ model.screws().homes[i] @ exponential(hat(model.screws().screws[i]) * q[i])
    return np.array(C[:-1])


@pytest.mark.parametrize("seed", SEEDS)
def test_all_descriptions_give_the_same_mechanism(seed):
    truth = Mechanism(seed)
    expected = truth.configuration(truth.q)
    for model in truth.models():
        np.testing.assert_allclose(configuration(model, truth.q), expected, atol=1e-12)
        np.testing.assert_allclose(model.screws().homes, truth.B, atol=1e-13)
        np.testing.assert_allclose(model.screws().screws, truth.X, atol=1e-13)
        np.testing.assert_allclose(model.screws().M_body, truth.M, atol=1e-15)
        assert model.parents == tuple(truth.parents)
        assert [joint.kind for joint in model.joints] == truth.kinds
        pitches = [Z[:3] @ Z[3:] if Z[:3].any() else np.inf for Z in truth.Z]
        np.testing.assert_allclose([j.pitch for j in model.joints], pitches, atol=1e-14)


@pytest.mark.parametrize("frame", FRAMES)
@pytest.mark.parametrize("seed", SEEDS)
def test_export_inverts_import(seed, frame):
    truth = Mechanism(seed)
    for model in truth.models():
        for got, given in zip(model.screws(frame=frame), truth.described(frame), strict=True):
            np.testing.assert_allclose(got, given, atol=1e-13)
        again = Model.from_screws(*model.screws(frame=frame), frame=frame)
        np.testing.assert_allclose(again.screws().homes, model.screws().homes, atol=1e-13)
        np.testing.assert_allclose(again.screws().screws, model.screws().screws, atol=1e-13)


@pytest.mark.parametrize("seed", SEEDS)
def test_exported_spatial_screws_satisfy_the_product_of_exponentials(seed):
    truth = Mechanism(seed)
    model = Model.from_screws(*truth.described("body_fixed"), frame="body_fixed")
    exported = model.screws(frame="spatial")
    for i, expected in enumerate(truth.configuration(truth.q)):
        C = np.eye(4)
        for j in path(model, i):
            C = C @ exponential(hat(exported.screws[j]) * truth.q[j])
        np.testing.assert_allclose(C @ exported.homes[i], expected, atol=1e-12)  # (10)


def test_the_surgical_robot_of_the_paper():
    # Mueller (kinematics), section 2.5, with e_4 and Y_4 as corrected.
    d2, d3, d4, d5, h4 = 0.31, 0.47, 0.83, 0.59, 0.22
    x1, x2, x3, x4, x5 = 0.11, 0.13, 0.17, 0.19, 0.23
    z1, z2, z3, z4, z5 = 0.29, 0.37, 0.41, 0.43, 0.53
    w = 1.0 / sqrt(2.0)
    Y = [
        (0, 0, 1, 0, 0, 0),
        (0, 0, 1, 0, d2, 0),
        (0, 0, 1, 0, -d3, 0),
        (-w, 0, w, 0, -d4 * w - h4 * w, 0),
        (0, 0, 1, 0, -d5, 0),
    ]
    A = np.array([np.eye(4)] * 5)
    A[3, :3, :3] = [[w, 0, -w], [0, 1, 0], [w, 0, w]]
    A[:, :3, 3] = [(-x1, 0, z1), (-x2, 0, -z2), (x3, 0, z3), (x4, 0, z4), (x5, 0, z5)]
    M = np.array([spatial_inertia(1.0, (0, 0, 0), np.eye(3))] * 5)
    model = Model.from_screws(range(-1, 4), A, Y, M, frame="spatial")
    X = [
        (0, 0, 1, 0, -x1, 0),
        (0, 0, 1, 0, d2 - x2, 0),
        (0, 0, 1, 0, -d3 + x3, 0),
        (0, 0, 1, 0, w * (-d4 - h4 + x4 + z4), 0),
        (0, 0, 1, 0, -d5 + x5, 0),
    ]
    np.testing.assert_allclose(model.screws().screws, X, atol=1e-15)
    q = np.array([0.3, -0.7, 1.1, 0.0, 0.0])
    a, b, c = np.cumsum(q[:3])
    C_3 = [
        [cos(c), -sin(c), 0, -d2 * cos(a) + (d2 + d3) * cos(b) + (x3 - d3) * cos(c)],
        [sin(c), cos(c), 0, -d2 * sin(a) + (d2 + d3) * sin(b) + (x3 - d3) * sin(c)],
        [0, 0, 1, z3],
        [0, 0, 0, 1],
    ]
    np.testing.assert_allclose(configuration(model, q)[2], C_3, atol=1e-14)
