# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Accelerations and jerks of each body as sums of screw brackets: section 2 of Mueller, ... in
multibody dynamics.

All functions take a :class:`MovingSystem` and return one column (6 nb,) of all bodies, or a matrix
(6 nb, n). A sum over j <= i runs over the joints j on the path to body i, and j < k means that
joint j precedes joint k on it. Where a printed equation is wrong, the docstring states the
correction.
"""

import numpy as np

from mbs_dynamics.closed_form.accelerations import angular, linear
from mbs_dynamics.closed_form.kinematics import shift
from mbs_dynamics.lie import so3
from mbs_dynamics.lie.se3 import ad


def body_fixed_acceleration(moving):
    """Vd_i = sum_{j<=i} J_j qdd_j + sum_{j<k<=i} [J_j, J_k] qd_j qd_k, with J_j = J_i,j^b: (6)."""
    rate, rate2 = moving.rate, moving.rate2

    def of_body(i):
        J, path = _columns(moving, moving.A_b @ moving.X_b, i), moving.paths[i]
        total = sum(J[j] * rate2[j] for j in path)
        for j, k in _pairs(path):
            total = total + bracket(J[j], J[k]) * rate[j] * rate[k]
        return total

    return _stacked(moving, of_body)


def body_fixed_jerk(moving):
    """Vdd_i = sum J_j qddd_j + sum_{j<k} [J_j, J_k] (2 qdd_j qd_k + qd_j qdd_k) + ...: (13).

    The rest is the sum over j < k <= r <= i of w [[J_j, J_k], J_r] qd_j qd_k qd_r. Corrected: w is
    2 for k < r only, and 1 for k = r.
    """
    rate, rate2, rate3 = moving.rate, moving.rate2, moving.rate3

    def of_body(i):
        J, path = _columns(moving, moving.A_b @ moving.X_b, i), moving.paths[i]
        total = sum(J[j] * rate3[j] for j in path)
        for j, k in _pairs(path):
            JJ = bracket(J[j], J[k])
            total = total + JJ * (2.0 * rate2[j] * rate[k] + rate[j] * rate2[k])
            for r in path[path.index(k) :]:
                weight = 2.0 if k < r else 1.0
                total = total + weight * bracket(JJ, J[r]) * rate[j] * rate[k] * rate[r]
        return total

    return _stacked(moving, of_body)


def spatial_acceleration(moving):
    """Vd_i = sum_{j<=i} (J_j qdd_j + [V_j, J_j] qd_j), with J_j = J_j^s and V_j = V_j^s: (17)."""
    J, V = moving.screws_s, moving.bodies(moving.V_s)
    rate, rate2 = moving.rate, moving.rate2
    return _sum_over_paths(moving, lambda i, j: J[j] * rate2[j] + bracket(V[j], J[j]) * rate[j])


def spatial_jerk(moving):
    """Vdd_i = sum_{j<=i} (J_j qddd_j + 2 [V_j, J_j] qdd_j + ...), in the first form: (21).

    The rest is sum_{k<=j} [J_k qdd_k, J_j] qd_j + [V_{j-1} + V_j - V_i, [V_j, J_j]] qd_j.
    Corrected: the first sum runs over j <= i.
    """
    J, V = moving.screws_s, _with_ground(moving.bodies(moving.V_s))
    rate, rate2, rate3 = moving.rate, moving.rate2, moving.rate3

    def term(i, j):
        p, VJ = moving.model.parents[j], bracket(V[j], J[j])
        pushed = sum(J[k] * rate2[k] for k in moving.paths[j])
        return (
            J[j] * rate3[j]
            + 2.0 * VJ * rate2[j]
            + bracket(pushed, J[j]) * rate[j]
            + bracket(V[p] + V[j] - V[i], VJ) * rate[j]
        )

    return _sum_over_paths(moving, term)


def spatial_jerk_nested(moving):
    """Vdd_i = sum_{j<=i} (J_j qddd_j + [[V_j, J_j], V_i - 2 V_j] qd_j + ...), second form: (22).

    The rest is [sum_{k<=j} J_k qdd_k + [V_j, J_j] qd_j, J_j] qd_j + 2 [V_j, J_j] qdd_j.
    """
    J, V = moving.screws_s, moving.bodies(moving.V_s)
    rate, rate2, rate3 = moving.rate, moving.rate2, moving.rate3

    def term(i, j):
        VJ = bracket(V[j], J[j])
        pushed = sum(J[k] * rate2[k] for k in moving.paths[j])
        return (
            J[j] * rate3[j]
            + bracket(VJ, V[i] - 2.0 * V[j]) * rate[j]
            + bracket(pushed + VJ * rate[j], J[j]) * rate[j]
            + 2.0 * VJ * rate2[j]
        )

    return _sum_over_paths(moving, term)


def hybrid_jacobian_rate(moving):
    """Jd_i,j = [J_i,j, v(V_i - Ad_{r_i,j-1} V_j-1)] + [w V_j-1, J_i,j], all hybrid: (26).

    v and w select the linear and the angular part of a twist. Corrected: the second bracket, for
    the joints before j, which rotate the whole screw, is missing in print, as in (25) and (28).
    """
    V, r = _with_ground(moving.bodies(moving.V_h)), _with_ground(moving.r)
    J = moving.A_h @ moving.X_h

    def entry(i, j):
        p, S = moving.model.parents[j], _columns(moving, J, i)[j]
        relative = V[i] - shift(r[p] - r[i]) @ V[p]
        return (bracket(S, linear(relative)) + bracket(angular(V[p]), S))[:, None]

    rates = {(i, j): entry(i, j) for i, path in enumerate(moving.paths) for j in path}
    return moving.matrix(rates, 1) @ moving.N


def hybrid_acceleration(moving):
    """Vd_i = sum_{j<=i} J_j qdd_j + sum_{j<=k} [J_j, v J_k] qd_j qd_k + sum_{k<j} [w J_k, J_j] ...

    with J_j = J_i,j^h, v for the linear and w for the angular part: (28). Corrected: the last sum,
    over joints before j, is missing in print.
    """
    rate, rate2 = moving.rate, moving.rate2

    def of_body(i):
        J, path = _columns(moving, moving.A_h @ moving.X_h, i), moving.paths[i]
        total = sum(J[j] * rate2[j] for j in path)
        for j in path:
            total = total + bracket(J[j], linear(J[j])) * rate[j] * rate[j]
        for j, k in _pairs(path):
            turned = bracket(J[j], linear(J[k])) + bracket(angular(J[j]), J[k])
            total = total + turned * rate[j] * rate[k]
        return total

    return _stacked(moving, of_body)


def hybrid_jacobian_second_rate(moving):
    """Jdd_i,j = (ad_rdd + 2 ad_rd ad_w + Ad_r (ad_wd + ad_w ad_w)) 0X_j^j: (30).

    r = r_i,j with its derivatives, w and wd the angular velocity omega_j^s and its derivative.
    """

    def factor(i, j):
        r, ad_rd, ad_rdd, ad_w, ad_wd = _relative(moving, i, j)
        return ad_rdd + 2.0 * ad_rd @ ad_w + shift(r) @ (ad_wd + ad_w @ ad_w)

    return moving.over_paths(factor) @ moving.X_h @ moving.N


def hybrid_jerk(moving):
    """Vdd_i = sum_{j<=i} (J_i,j qddd_j + {...} 0X_j^j), with r, w as in (30): (31), (32).

    {...} = 2 ad_rd qdd_j + (ad_rdd + 2 ad_rd ad_w) qd_j + Ad_r (2 ad_w qdd_j + (ad_wd + ad_w ad_w)
    qd_j). Corrected: ad_wd for the second of three ad_w, and the brackets.
    """
    rate, rate2, rate3 = moving.rate, moving.rate2, moving.rate3

    def factor(i, j):
        r, ad_rd, ad_rdd, ad_w, ad_wd = _relative(moving, i, j)
        return (
            shift(r) * rate3[j]
            + 2.0 * ad_rd * rate2[j]
            + (ad_rdd + 2.0 * ad_rd @ ad_w) * rate[j]
            + shift(r) @ (2.0 * ad_w * rate2[j] + (ad_wd + ad_w @ ad_w) * rate[j])
        )

    return moving.over_paths(factor) @ moving.X_h @ np.ones(moving.model.nb)


def mixed_jerk(moving):
    """Vdd^m = diag(R^T, I) Vdd^h - (omega^b~ R^T omegadot^s, 0): (33).

    Corrected: the second term, for the rate of R^T, is missing in print.
    """
    omega, omegad = moving.bodies(moving.V_b)[:, :3], moving.bodies(moving.Vd_h)[:, :3]
    turning = [
        np.concatenate([so3.hat(w) @ R.T @ wd, np.zeros(3)])
        for w, R, wd in zip(omega, moving.R, omegad, strict=True)
    ]
    return moving.to_mixed @ hybrid_jerk(moving) - np.concatenate(turning)


def bracket(X, Y):
    """Return the screw product [X, Y] = ad_X Y (6,): (114)."""
    return ad(X) @ Y


def _columns(moving, J, i):
    """Return the columns of body i of a matrix (6 nb, nb), by joint on its path."""
    return {j: J[6 * i : 6 * i + 6, j] for j in moving.paths[i]}


def _pairs(path):
    return [(j, k) for position, j in enumerate(path) for k in path[position + 1 :]]


def _relative(moving, i, j):
    """Return r_i,j, and the ad of its two derivatives and of omega_j^s and its derivative."""
    V, Vd = moving.bodies(moving.V_h), moving.bodies(moving.Vd_h)
    ad_rd, ad_rdd = ad(linear(V[j] - V[i])), ad(linear(Vd[j] - Vd[i]))
    return moving.r_rel(i, j), ad_rd, ad_rdd, ad(angular(V[j])), ad(angular(Vd[j]))


def _with_ground(rows):
    """Return the rows with a row of zeros appended, for the index GROUND (-1)."""
    return np.concatenate([rows, np.zeros((1, rows.shape[1]))])


def _stacked(moving, of_body):
    return np.concatenate([of_body(i) for i in range(moving.model.nb)])


def _sum_over_paths(moving, term):
    """Return for each body i the sum of ``term(i, j)`` over j <= i."""
    return _stacked(moving, lambda i: sum(term(i, j) for j in moving.paths[i]))
