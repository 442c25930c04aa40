# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Every algorithm takes models with joints of several degrees of freedom, few joints, or none."""

from __future__ import annotations

import numpy as np
import pytest
from cases import mostly_slow
from urdf_reference import load

import mbs_dynamics as mbs
from mbs_dynamics.model.joints import Connection, joint

M_BODY = mbs.spatial_inertia(2.0, (0.1, -0.05, 0.2), np.diag((0.02, 0.03, 0.04)))
X, Y, Z = np.eye(3)


def tree(*kinds, star=False):
    """Return a model of bodies in a row, or all on the first one; kinds may have an axis."""
    connections = []
    for k, kind in enumerate(kinds):
        kind, axis = kind if isinstance(kind, tuple) else (kind, None)
        pitch = {"pitch": 0.1} if "screw" in kind else {}
        S = np.eye(4)
        S[:3, 3] = 0.2 * k, 0.1, 0.05
        connections.append(
            Connection(
                name=f"j{k}",
                joint=joint(kind, axis=axis, **pitch),
                body=f"b{k}",
                M_body=M_BODY,
                parent=None if k == 0 else f"b{0 if star else k - 1}",
                S_parent=S,
            )
        )
    return mbs.Model.from_joints(connections)


NOTHING = load(
    '<robot name="r"><link name="world"/><link name="b"/><joint name="j" type="fixed">'
    '<parent link="world"/><child link="b"/></joint></robot>'
)

MODELS = {
    "no joint": NOTHING,
    "one joint": tree("revolute"),
    "free body": tree("free"),
    "free body with a joint": tree("free", "revolute"),
    "quadrotor": tree("free", *["revolute"] * 4, star=True),
    "gantry": tree(("prismatic", X), ("prismatic", Y), ("prismatic", Z)),
    "planar": tree("planar", "revolute"),
    "cylindrical": tree("revolute", "cylindrical"),
    "spherical": tree("spherical", "spherical"),
    "screws": tree("planar_translation", "screw", "planar_screw"),
}

QUICK = "no joint", "free body", "gantry", "planar"


def values(model, rng, batch):
    """Return arguments of all algorithms by name."""
    n = model.n
    q = np.zeros((*batch, 0))
    if n:
        q = np.asarray(mbs.displaced(model, model.neutral(), 0.3 * rng.normal(size=(*batch, n))))
    names = ("qd", "qdd", "qddd", "qdddd", "tau", "u", "v")
    joints = tuple(joint.name for joint in model.joints if joint.nv == 1)[:1]
    return {
        **{name: rng.normal(size=(*batch, n)) for name in names},
        "q": q,
        "q2": q,
        "body": [*model.frames][-1],
        "reference": next(iter(model.frames)),
        "joints": joints,
        "order": 2,
        "screws": rng.normal(size=(*batch, len(joints), 6)),
        "point": rng.normal(size=(*batch, 3)),
        "target": np.broadcast_to(np.eye(4), (*batch, 4, 4)).copy(),
        "base_twist": rng.normal(size=(*batch, 6)),
        "base_acceleration": rng.normal(size=(*batch, 6)),
        "motion": rng.normal(size=(*batch, 4, n)),
    }


@pytest.mark.long
@pytest.mark.parametrize("batch", [(), (3,)], ids=["one state", "batch"])
@pytest.mark.parametrize("name", mostly_slow(MODELS, QUICK))
def test_every_algorithm_takes_the_model_or_says_why_not(name, batch):
    model, rng = MODELS[name], np.random.default_rng(0)
    given = values(model, rng, batch)
    for function in mbs.ALGORITHMS:
        parameters = [*function.__signature__.parameters.values()][1:]
        needed = {p.name: given[p.name] for p in parameters if p.default is p.empty}
        try:
            results = function(model, **needed)
        except mbs.TraceError as error:
            pytest.fail(f"{function.__name__}: {error}")
        except mbs.MbsError as error:
            known = any(word in str(error) for word in ("singular", "degrees of freedom", "no "))
            if not known:
                pytest.fail(f"{function.__name__}: {error}")
            continue
        for array in results if isinstance(results, tuple) else (results,):
            assert np.isfinite(array).all(), function.__name__
            assert np.shape(array)[: len(batch)] == batch, function.__name__
