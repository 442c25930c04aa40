# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The system matrices of section 3 of Mueller, Screw and Lie group theory in multibody kinematics.

The equations are generalised from chains to trees: body i - 1 becomes the parent of body i, and
j <= i means that joint j lies on the path to body i. A has a block wherever j <= i, and D where j
is the parent of i. If nb joints share n coordinates, the constant matrix N (nb, n) maps coordinate
rates to joint rates, and V = A X N qd. Without mimic joints N is a permutation. A joint with k
degrees of freedom has k columns in X, Y and J and k rows in N, and a motion in place of exp(X_i
q_i).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from mbs_dynamics import checks
from mbs_dynamics.compiler import Symbol
from mbs_dynamics.errors import ModelError
from mbs_dynamics.lie import se3, so3
from mbs_dynamics.lie.arrays import Array
from mbs_dynamics.model.body import GROUND
from mbs_dynamics.model.coordinates import check_single
from mbs_dynamics.model.model import Model
from mbs_dynamics.representation import checked
from mbs_dynamics.representation.tree import Tree


class System:
    """All system matrices of a model at positions q (nq,), by their names in the paper.

    The letter after the underscore is the representation of twists: b body-fixed, s spatial, h
    hybrid, m mixed. A, D and T are (6 nb, 6 nb), X and Y (6 nb, m) for the m screws of all joints,
    J (6 nb, n). All methods except :meth:`rates_from_twists` accept traced symbols. Raises
    ArgumentError if q is not nq finite numbers.
    """

    def __init__(self, model: Model, q: ArrayLike) -> None:
        if not model.nb:
            raise ModelError(f"model {model.name!r} has no joint that moves: it has no equations")
        self.model = model
        tree = Tree(model)
        self.position = tree.joint_positions(vector("q", q, model.nq))
        self.paths = [tree.path(i) for i in range(model.nb)]
        home: list[Array] = []
        for body in model.bodies:
            above = np.eye(4) if body.parent == GROUND else home[body.parent]
            home.append(above @ body.home_rel)
        self.home: Array = np.array(home)
        """(nb, 4, 4) A_i, the poses at q = 0: (11)."""
        self.screws_body: list[Array] = [body.joint.screws for body in model.bodies]
        """nb matrices (6, k) X_i, the joint screws in the frames of the bodies: (5)."""
        self.screws_spatial: list[Array] = [
            se3.Ad(A) @ X for A, X in zip(self.home, self.screws_body, strict=True)
        ]
        """nb matrices (6, k) Y_i, the joint screws at q = 0 in the inertial frame: (12)."""
        self.of_joint: list[slice] = tree.columns_of
        """Columns of each joint among those of all."""
        self.N: Array = np.zeros((sum(X.shape[1] for X in self.screws_body), model.n))
        """(m, n) rate of each joint for a unit rate of each coordinate."""
        for columns, body in zip(self.of_joint, model.bodies, strict=True):
            self.N[columns, body.joint.velocities] = body.joint.ratio * np.eye(body.joint.nv)

    @cached_property
    def C(self) -> Array:
        """(nb, 4, 4) C_i = exp(Y_1 q_1) exp(Y_2 q_2) ... exp(Y_i q_i) A_i along the path: (10)."""
        poses = []
        for joints, A_i in zip(self.paths, self.home, strict=True):
            motion = np.eye(4)
            for j in joints:
                motion = motion @ self.motion(j)
            poses.append(motion @ A_i)
        return np.array(poses)

    @property
    def screw_body(self) -> Array:
        """(nb, 6) X_i of joints with one degree of freedom each; ModelError for others."""
        return self.single(self.screws_body, "screw_body", "screws_body")

    def single(self, screws: Sequence[Array], name: str, instead: str) -> Array:
        """Return (nb, 6), the screws of joints that have one each; ModelError for others."""
        check_single(
            self.model.joints, name, instead=f"{instead}, which is a matrix for each joint"
        )
        return np.array([S[:, 0] for S in screws]).reshape(-1, 6)

    def motion(self, j: int) -> Array:
        """Return exp(Y_j q_j) (4, 4), for several screws the motion of joint j seen from A_j."""
        if self.screws_spatial[j].shape[1] == 1:
            return se3.exp_screw(self.screws_spatial[j][:, 0], self.position[j][0])
        g = self.model.bodies[j].joint.motion(self.position[j])
        return self.home[j] @ g @ se3.inverse(self.home[j])

    @property
    def R(self) -> Array:
        """(nb, 3, 3) rotation matrices of the bodies."""
        return self.C[:, :3, :3]

    @property
    def r(self) -> Array:
        """(nb, 3) positions of the origins of the bodies."""
        return self.C[:, :3, 3]

    @cached_property
    def X_b(self) -> Array:
        """X^b = diag(1X_1, ..., nX_n), constant: (22)."""
        return self.diagonal(self.screws_body)

    @cached_property
    def D_b(self) -> Array:
        """D^b, with Ad_{C_i,i-1} where i - 1 is the parent, for V^b = D^b V^b + X^b qd: (22)."""
        return self.over_parents(lambda i, p: se3.Ad(self.C_rel(i, p)))

    @cached_property
    def A_b(self) -> Array:
        """A^b, with Ad_{C_i,j} for j <= i: (24)."""
        return self.over_paths(lambda i, j: se3.Ad(self.C_rel(i, j)))

    @cached_property
    def A_b_series(self) -> Array:
        """(I - D^b)^-1 = I + D^b + (D^b)^2 + ..., which is A^b: (25)."""
        return self.resolvent(self.D_b)

    @cached_property
    def A_b_inverse(self) -> Array:
        """(A^b)^-1 = I - D^b: (25)."""
        return self.identity - self.D_b

    @cached_property
    def J_b(self) -> Array:
        """J^b = A^b X^b N: (23)."""
        return self.A_b @ self.X_b @ self.N

    @cached_property
    def Y(self) -> Array:
        """Y^s = diag(Y_1, ..., Y_n), constant: (32)."""
        return self.diagonal(self.screws_spatial)

    @cached_property
    def A_sb(self) -> Array:
        """A^sb, with Ad_{C_j} for j <= i, the diagonal included: (33)."""
        return self.over_paths(lambda i, j: se3.Ad(self.C[j]))

    @cached_property
    def A_sb_inverse(self) -> Array:
        """(A^sb)^-1 = (I - D^b) diag(Ad_{C_1}^-1, ..., Ad_{C_n}^-1): (34), -1 restored."""
        return self.A_b_inverse @ self.diagonal([se3.Ad(se3.inverse(C)) for C in self.C])

    @cached_property
    def A_s(self) -> Array:
        """A^s = A^sb diag(Ad_{A_1}^-1, ..., Ad_{A_n}^-1): (33)."""
        return self.A_sb @ self.diagonal([se3.Ad(se3.inverse(A)) for A in self.home])

    @cached_property
    def A_s_inverse(self) -> Array:
        """(A^s)^-1 = diag(Ad_{A_1}, ..., Ad_{A_n}) (A^sb)^-1: below (34)."""
        return self.diagonal([se3.Ad(A) for A in self.home]) @ self.A_sb_inverse

    @cached_property
    def A_sh(self) -> Array:
        """A^sh, with Ad_{r_j} for j <= i, the diagonal included: (33)."""
        return self.over_paths(lambda i, j: shift(self.r[j]))

    @cached_property
    def A_sh_inverse(self) -> Array:
        """(A^sh)^-1 = (I - T^h) diag(Ad_{-r_1}, ..., Ad_{-r_n}), because A^sh = diag(Ad_r) A^h."""
        return self.A_h_inverse @ self.diagonal([shift(-r) for r in self.r])

    @cached_property
    def J_s(self) -> Array:
        """J^s = A^s Y^s N = A^sb X^b N = A^sh X^h N, computed in the first form: (32)."""
        return self.A_s @ self.Y @ self.N

    @cached_property
    def X_h(self) -> Array:
        """X^h = diag(0X_1^1, ..., 0X_n^n), where 0X_j^j = Ad_{R_j} jX_j by (38): (44)."""
        return self.diagonal(
            [turn(self.R[j], self.R[j]) @ X for j, X in enumerate(self.screws_body)]
        )

    @cached_property
    def T_h(self) -> Array:
        """T^h, with Ad_{r_i,i-1} where i - 1 is the parent: (45)."""
        return self.over_parents(lambda i, p: shift(self.r_rel(i, p)))

    @cached_property
    def A_h(self) -> Array:
        """A^h, with Ad_{r_i,j} for j <= i: (44)."""
        return self.over_paths(lambda i, j: shift(self.r_rel(i, j)))

    @cached_property
    def A_h_series(self) -> Array:
        """(I - T^h)^-1 = I + T^h + (T^h)^2 + ..., which is A^h: below (44)."""
        return self.resolvent(self.T_h)

    @cached_property
    def A_h_inverse(self) -> Array:
        """(A^h)^-1 = I - T^h: below (45)."""
        return self.identity - self.T_h

    @cached_property
    def J_h(self) -> Array:
        """J^h = A^h X^h N: (43)."""
        return self.A_h @ self.X_h @ self.N

    @cached_property
    def A_m(self) -> Array:
        """A^m, with [[R_i^T, 0], [r_i,j~, I]] of (50) for j <= i: (53).

        The diagonal blocks are diag(R_i^T, I) and not I as in (44).
        """
        zero, eye = np.zeros((3, 3)), np.eye(3)
        return self.over_paths(
            lambda i, j: np.block([[self.R[i].T, zero], [so3.hat(self.r_rel(i, j)), eye]])
        )

    @cached_property
    def A_m_inverse(self) -> Array:
        """(A^m)^-1 = (I - T^h) diag(R_1, I, ..., R_n, I), since A^m = diag(R_i^T, I) A^h: (53)."""
        return self.A_h_inverse @ self.diagonal([turn(R, np.eye(3)) for R in self.R])

    @cached_property
    def J_m(self) -> Array:
        """J^m = A^m X^m N with X^m = X^h: (53)."""
        return self.A_m @ self.X_h @ self.N

    def geometric_jacobian(self, representation: str) -> Array:
        """Return J (6 nb, n) from the joint axes as lines in space: (13), (27), (36), (46).

        The column of joint j for body i is (e_j, b x e_j + h_j e_j), or (0, e_j) if prismatic, with
        the axis e_j, the pitch h_j, and b from the reference point to any point on the axis. Raises
        UnknownRepresentationError.
        """
        checked(representation)
        columns = {}
        for i, joints in enumerate(self.paths):
            reference = np.zeros(3) if representation == "spatial" else self.r[i]
            to_body = self.R[i].T
            for j in joints:
                e, m = self.screw_body[j][:3], self.screw_body[j][3:]
                angular, linear = self.R[j] @ e, self.R[j] @ m
                if e.any():
                    on_axis = self.r[j] + self.R[j] @ np.cross(e, m)
                    linear = so3.hat(on_axis - reference) @ angular + (e @ m) * angular
                if representation in ("body_fixed", "mixed"):
                    angular = to_body @ angular
                if representation == "body_fixed":
                    linear = to_body @ linear
                columns[i, j] = np.concatenate([angular, linear])[:, None]
        return self.matrix(columns, 1) @ self.N

    def rates_from_twists(self, V: Array, representation: str) -> Array:
        """Return qd (n,) from the twists V (6 nb,) of all bodies: (26).

        qd = (X^T X)^-1 X^T A^-1 V, with X N for X if joints share coordinates. A^-1 is I - D^b in
        (26), (34) in Remark 14, and I - T^h for hybrid twists. If no qd satisfies V = J qd, the
        result minimises the norm of A^-1 V - X N qd, not of V - J qd as stated in Remark 9. Raises
        UnknownRepresentationError.
        """
        forms: Mapping[str, Callable[[], tuple[Array, Array]]] = {
            "body_fixed": lambda: (self.X_b, self.A_b_inverse),
            "spatial": lambda: (self.X_b, self.A_sb_inverse),
            "hybrid": lambda: (self.X_h, self.A_h_inverse),
            "mixed": lambda: (self.X_h, self.A_m_inverse),
        }
        X, A_inverse = forms[checked(representation)]()
        X = X @ self.N
        return np.linalg.solve(X.T @ X, X.T @ A_inverse @ np.asarray(V))

    def C_rel(self, i: int, j: int) -> Array:
        """Return C_i,j = C_i^-1 C_j (4, 4): (63)."""
        return se3.inverse(self.C[i]) @ self.C[j]

    def r_rel(self, i: int, j: int) -> Array:
        """Return r_i,j = r_j - r_i (3,), resolved in the inertial frame: above (39)."""
        return self.r[j] - self.r[i]

    def over_paths(self, block: Callable[[int, int], Array]) -> Array:
        """Return the matrix with ``block(i, j)`` wherever joint j lies on the path to body i."""
        return self.matrix({(i, j): block(i, j) for i, path in enumerate(self.paths) for j in path})

    def over_parents(self, block: Callable[[int, int], Array]) -> Array:
        """Return the matrix with ``block(i, p)`` wherever body p is the parent of body i."""
        return self.matrix(
            {(i, p): block(i, p) for i, p in enumerate(self.model.parents) if p != GROUND}
        )

    def diagonal(self, given: Sequence[Array] | Array) -> Array:
        """Return the block-diagonal matrix of nb matrices, (6, 6), or (6, k) for each joint."""
        widths = [np.shape(x)[1] for x in given]
        zeros = [[np.zeros((6, k)) for k in widths] for _ in given]
        for i, x in enumerate(given):
            zeros[i][i] = np.asarray(x)
        return np.block(zeros)

    def matrix(self, given: Mapping[tuple[int, int], Array], width: int = 6) -> Array:
        """Return the matrix (6 nb, width nb) with these blocks (6, width), and zeros elsewhere."""
        zero, indices = np.zeros((6, width)), range(self.model.nb)
        return np.block([[given.get((i, j), zero) for j in indices] for i in indices])

    def resolvent(self, D: Array) -> Array:
        """Return (I - D)^-1 as its von Neumann series, for a D as of :meth:`over_parents`: (25).

        D^k has blocks for ancestors of order k only, and is zero for k above the depth of the tree.
        """
        power = total = self.identity
        for _ in range(max(map(len, self.paths)) - 1):
            power = power @ D
            total = total + power
        return total

    @property
    def identity(self) -> Array:
        """The identity of size 6 nb."""
        return np.eye(6 * self.model.nb)


def shift(r: Array) -> Array:
    """Return Ad_r (6, 6), which shifts the reference point by -r: (75)."""
    return se3.Ad(se3.pose(np.eye(3), r))


def turn(angular: Array, linear: Array) -> Array:
    """Return diag(angular, linear) (6, 6) of two rotations; Ad_R if both are R: (75)."""
    zero = np.zeros((3, 3))
    return np.block([[angular, zero], [zero, linear]])


def vector(name: str, value: ArrayLike, n: int) -> Array:
    """Return n finite numbers, or traced symbols unchanged; raise ArgumentError otherwise."""
    if isinstance(value, np.ndarray) and any(isinstance(x, Symbol) for x in value.flat):
        return value
    return checks.numbers(name, value, (n,))
