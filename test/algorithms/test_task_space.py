# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Task space: Pinocchio on trees with all joints and floating robots, identities, bad input."""

import numpy as np
import pinocchio as pin
import pytest
from interpreted import evaluated
from mechanisms import MECHANISMS, random_mechanism
from reference import assert_close
from test_joints import ANGULAR_FIRST, twin
from test_joints import with_groups as every_twin

import mbs_dynamics as mbs
from mbs_dynamics.model.orders import path

pytestmark = pytest.mark.filterwarnings("ignore::mbs_dynamics.ModelWarning")
FRAMES = {"body_fixed": pin.LOCAL, "spatial": pin.WORLD, "hybrid": pin.LOCAL_WORLD_ALIGNED}
TASK = (mbs.operational_space_inertia, mbs.dynamically_consistent_inverse, mbs.null_space_projector)


def deepest(model):
    return max(model.body_names, key=lambda name: len(path(model, model.frames[name].body)))


@every_twin
def test_centroidal_matrices_are_those_of_pinocchio(t):
    t = twin(t)
    for seed in range(2):
        (q, v, vd), (pq, pv, _) = t.state(seed)
        pin.computeCentroidalMap(t.pin, t.data, pq)
        A = ANGULAR_FIRST @ t.data.Ag @ t.T
        assert_close(evaluated(mbs.centroidal_momentum_matrix, t.model, q), A, 1e-11)
        pin.dccrba(t.pin, t.data, pq, pv)
        Ad = ANGULAR_FIRST @ t.data.dAg @ t.T
        found = evaluated(mbs.centroidal_momentum_matrix_rate, t.model, q, v)
        assert_close(found, Ad, 1e-11)
        bias = evaluated(mbs.centroidal_momentum_bias, t.model, q, v)
        assert_close(bias, Ad @ v, 1e-11)
        J = pin.jacobianCenterOfMass(t.pin, t.data, pq) @ t.T
        assert_close(evaluated(mbs.center_of_mass_jacobian, t.model, q), J, 1e-11)
        pin.centerOfMass(t.pin, t.data, pq, pv, t.T @ vd)
        Jd = evaluated(mbs.center_of_mass_jacobian_rate, t.model, q, v)
        assert_close(J @ vd + Jd @ v, t.data.acom[0], 1e-11)


@every_twin
def test_operational_space_is_that_of_pinocchio(t):
    t = twin(t)
    (q, v, _), (pq, pv, _) = t.state(3)
    body = deepest(t.model)
    frame = t.pin.getFrameId(body)
    Mi = t.T.T @ pin.computeMinverse(t.pin, t.data, pq) @ t.T
    if len(t.T) > t.model.n:  # with joints that mimic others
        M = np.triu(pin.crba(t.pin, t.data, pq))
        Mi = np.linalg.inv(t.T.T @ (M + np.triu(M, 1).T) @ t.T)
    h = t.T.T @ pin.nonLinearEffects(t.pin, t.data, pq, pv)
    pin.computeJointJacobiansTimeVariation(t.pin, t.data, pq, pv)
    pin.updateFramePlacements(t.pin, t.data)
    for representation, kind in FRAMES.items():
        J, Jd = (
            ANGULAR_FIRST @ of(t.pin, t.data, frame, kind) @ t.T
            for of in (pin.getFrameJacobian, pin.getFrameJacobianTimeVariation)
        )
        damping = 0.3 if np.linalg.matrix_rank(J) < 6 else 0.0
        asked = {"body": body, "representation": representation, "damping": damping or None}
        inertia = np.linalg.inv(J @ Mi @ J.T + damping**2 * np.eye(6))
        inverse = Mi @ J.T @ inertia
        # Pinocchio's rounding: iCub's mass matrix has a condition of 1e8 (test_joints.py)
        tolerance = 1e-14 * np.linalg.cond(inertia) + 1e-16 * np.linalg.cond(Mi) + 1e-10
        for function, expected in zip(
            TASK, (inertia, inverse, np.eye(len(v)) - inverse @ J), strict=True
        ):
            assert_close(evaluated(function, t.model, q, **asked), expected, tolerance)
        bias = inertia @ (J @ Mi @ h - Jd @ v)
        found = evaluated(mbs.operational_space_bias, t.model, q, v, **asked)
        assert_close(found, bias, tolerance)


@pytest.mark.parametrize("rows", ["all", (3, 5, 4), (0,)])
@pytest.mark.parametrize("name", ["tree", "forest", "mimics", "revolute chain", "chain of 25"])
def test_identities_hold_for_any_rows_and_trees(name, rows):
    """Mimic joints are solved by the mass matrix, chains of 25 joints by articulated bodies."""
    long = name == "chain of 25"
    model = random_mechanism(6, range(-1, 24)).model if long else MECHANISMS[name].model
    body, chosen = deepest(model), [*range(6)] if rows == "all" else list(rows)
    q, qd, _ = model.random_state(5)
    J = evaluated(mbs.jacobian, model, q, body=body, representation="hybrid")[chosen]
    Mi = evaluated(mbs.inverse_mass_matrix, model, q)
    damping = None if np.linalg.matrix_rank(J) == len(chosen) else 0.2
    asked = {"body": body, "rows": rows, "representation": "hybrid", "damping": damping}
    inertia, inverse, N = (evaluated(function, model, q, **asked) for function in TASK)
    m, n = J.shape
    A = J @ Mi @ J.T + (damping or 0.0) ** 2 * np.eye(m)
    tolerance = 1e-14 * np.linalg.cond(A) * np.linalg.cond(Mi) + 1e-12
    assert_close(inertia @ A, np.eye(m), tolerance)
    assert (inertia == inertia.T).all()
    assert_close(inverse, Mi @ J.T @ inertia, tolerance)
    assert_close(N, np.eye(n) - inverse @ J, tolerance)
    if damping is None:
        assert_close(J @ inverse, np.eye(m), tolerance)
        assert_close(N @ N, N, tolerance)
        assert_close(J @ Mi @ N.T, 0.0 * J, tolerance)
        F, tau = np.arange(1.0, m + 1.0), np.cos(np.arange(n))
        bias = evaluated(mbs.operational_space_bias, model, q, qd, **asked)
        qdd = evaluated(mbs.forward_dynamics, model, q, qd, J.T @ F + N.T @ tau)
        Vd = evaluated(
            mbs.accelerations, model, q, qd, qdd, bodies=[body], representation="hybrid"
        )[0]
        assert_close(Vd[chosen], A @ (F - bias), tolerance)
