# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Moving bodies by definition alone: heaps of mass points, and poses with exact rates.

Nothing of the package is used. The wrench on a body is the sum of m a over its points, with its
moment; twists are read off the rates of poses, and all else follows from the product rule.
"""

import numpy as np
from mechanisms import pose
from reference import axial, hat, twist


class Motion:
    """A pose C with its first and second rates: C exp(a t + b t^2 / 2) at t = 0."""

    def __init__(self, rng, moves=True):
        self.C = pose(rng)
        self.V_b, self.Vd_b = 2.0 * rng.normal(size=(2, 6)) if moves else np.zeros((2, 6))
        a, b = hat(self.V_b), hat(self.Vd_b)
        self.Cd, self.Cdd = self.C @ a, self.C @ (a @ a + b)

    @property
    def R(self):
        return self.C[:3, :3]

    def twist(self, representation):
        """The twist and the rate of its components, from the rates of the pose."""
        V = twist(self.C, self.Cd, representation)
        inverse = np.linalg.inv(self.C)
        spin = self.Cd @ inverse
        spatial = self.Cdd @ inverse - spin @ spin
        if representation == "spatial":
            return V, np.array([*axial(spatial), *spatial[:3, 3]])
        if representation == "body_fixed":
            return V, self.Vd_b
        turning = axial(spatial) if representation == "hybrid" else self.Vd_b[:3]
        return V, np.array([*turning, *self.Cdd[:3, 3]])


class Scene(Motion):
    """A body that moves. With ``at_com`` the frame of the body is at its centre of mass."""

    def __init__(self, seed, at_com=False):
        rng = np.random.default_rng(seed)
        super().__init__(rng)
        self.rng = rng
        self.m, s = rng.uniform(0.2, 1.0, 7), rng.uniform(-0.5, 0.5, (7, 3))
        if at_com:
            s = s - self.m @ s / self.m.sum()
        self.points = np.c_[s, np.ones(7)]
        self.p = (self.points @ self.C.T)[:, :3]
        self.M_b, self.M_s = self.inertia_of(s), self.inertia_of(self.p)
        self.M_h = self.inertia_of(self.p - self.C[:3, 3])

    def inertia_of(self, points):
        """Twice the kinetic energy as a quadratic form of the twist, the points being there."""
        J = [np.c_[-hat([*x, 0, 0, 0])[:3, :3], np.eye(3)] for x in points]  # velocity = J V
        return sum(m * j.T @ j for m, j in zip(self.m, J, strict=True))

    def sum_of(self, x):
        """(sum m p cross x, sum m x) over the points, about the origin of the inertial frame."""
        mx = self.m[:, None] * x
        return np.array([*np.cross(self.p, mx).sum(axis=0), *mx.sum(axis=0)])

    @property
    def velocities(self):
        return (self.points @ self.Cd.T)[:, :3]

    def wrench(self, representation):
        t, f = np.split(self.sum_of((self.points @ self.Cdd.T)[:, :3]), 2)
        if representation != "spatial":
            t = t - np.cross(self.C[:3, 3], f)
        if representation in ("body_fixed", "mixed"):
            t = self.R.T @ t
        return np.array([*t, *(self.R.T @ f if representation == "body_fixed" else f)])


def vee(A):
    """The screw of its matrix (4, 4)."""
    return np.array([*axial(A), *A[:3, 3]])


def Ad(C, Cd):
    """Ad_C and its rate, from C X^ C^-1 column by column."""
    I = np.linalg.inv(C)
    Id = -I @ Cd @ I
    units = [hat(e) for e in np.eye(6)]
    A = np.stack([vee(C @ E @ I) for E in units], axis=1)
    return A, np.stack([vee(Cd @ E @ I + C @ E @ Id) for E in units], axis=1)


def frames(scene):
    """A fixed frame away from the origin, the inertial frame, the body's, and a tumbling one."""
    fixed, inertial = Motion(scene.rng, moves=False), Motion(scene.rng, moves=False)
    inertial.C = np.eye(4)
    return {"fixed": fixed, "inertial": inertial, "body": scene, "tumbling": Motion(scene.rng)}


def twist_in(scene, frame):
    """The twist of the body in a moving frame, and the rate of its components there."""
    to_frame = np.linalg.inv(frame.C)
    A, A_rate = Ad(to_frame, -to_frame @ frame.Cd @ to_frame)
    V, Vd = scene.twist("spatial")
    return A @ V, A_rate @ V + A @ Vd


def local(scene, frame):
    """The inertia and the twist of the body in a moving frame, with the rates of their entries."""
    inverse = np.linalg.inv(scene.C)
    to_body = inverse @ frame.C  # Ad of it takes a twist from the frame to the body
    B, B_rate = Ad(to_body, inverse @ frame.Cd - inverse @ scene.Cd @ to_body)
    M_rate = B_rate.T @ scene.M_b @ B + B.T @ scene.M_b @ B_rate
    V, Vd = twist_in(scene, frame)
    return B.T @ scene.M_b @ B, M_rate, V, Vd
