# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Shared by tests of URDF: texts, poses of links, and Pinocchio's numbers."""

import warnings
from string import ascii_lowercase

import numpy as np
import pinocchio as pin
from interpreted import evaluated

import mbs_dynamics as mbs
from mbs_dynamics.errors import ModelWarning
from mbs_dynamics.model.model import Model


def load(source, **options):
    """The model, whatever it warns of."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ModelWarning)
        return Model.from_urdf(source, **options)


def notes(model, severity="note"):
    return [str(each) for each in model.diagnostics if each.severity == severity]


def link_poses(model, q):
    """The pose of every link by name."""
    poses = evaluated(mbs.forward_kinematics, model, q, bodies=[*model.frames])
    return dict(zip(model.frames, poses, strict=True))


def pin_positions(reference, positions):
    """Pinocchio's q from positions by joint name; it has cos and sin for a continuous joint."""
    q = pin.neutral(reference)
    for name, value in positions.items():
        joint = reference.joints[reference.getJointId(name)]
        entries = [value] if joint.nq == 1 else [np.cos(value), np.sin(value)]
        q[joint.idx_q : joint.idx_q + joint.nq] = entries
    return q


def pin_link_poses(reference, q):
    data = reference.createData()
    pin.framesForwardKinematics(reference, data, q)
    return {
        frame.name: data.oMf[k].homogeneous
        for k, frame in enumerate(reference.frames)
        if frame.type == pin.BODY
    }


def pin_inertia(inertia):
    """Mass, first moment and tensor about the frame's origin."""
    c = pin.skew(inertia.lever)
    return inertia.mass, inertia.mass * inertia.lever, inertia.inertia - inertia.mass * c @ c


def pin_model(source):
    """Pinocchio's model, in which mimic joints are free: not all in these files can it follow."""
    return pin.buildModelFromUrdf(str(source))


def assert_same_poses(model, reference, q, q_reference):
    expected = pin_link_poses(reference, q_reference)
    found = link_poses(model, q)
    assert expected.keys() <= found.keys()
    for name, C in expected.items():
        np.testing.assert_allclose(found[name], C, rtol=0, atol=1e-12, err_msg=name)


INERTIAL = """
  <inertial>
    <origin xyz="0.1 -0.2 0.3" rpy="0.4 -0.5 0.6"/>
    <mass value="2"/>
    <inertia ixx="0.03" ixy="0.001" ixz="-0.002" iyy="0.04" iyz="0.003" izz="0.05"/>
  </inertial>"""
ORIGIN = '<origin xyz="0.3 -0.1 0.2" rpy="0.7 -0.8 2.9"/>'


def link(name, inertial=INERTIAL):
    return f'<link name="{name}">{inertial}</link>\n'


def joint(name, parent, child, kind="revolute", more='<axis xyz="0 0 1"/>'):
    ends = f'<parent link="{parent}"/><child link="{child}"/>'
    return f'<joint name="{name}" type="{kind}">{ends}{more}</joint>\n'


STATED = '<axis xyz="0 0 1"/><limit lower="-3" upper="3" velocity="1" effort="1"/>'


def urdf(*elements):
    return f'<robot name="r">\n{"".join(elements)}</robot>'


def chain(*joints):
    """A chain a, b, c, ...; each joint is (name, type, what stands in it)."""
    names = ascii_lowercase[: len(joints) + 1]
    between = [
        joint(name, parent, child, kind, more)
        for (name, kind, more), parent, child in zip(joints, names, names[1:], strict=False)
    ]
    return urdf(*map(link, names), *between)


def reference_of(text):
    """Pinocchio's model of a text; it wants limits in each revolute joint."""
    return pin.buildModelFromXML(text)


def mimic(of, multiplier=None, offset=None):
    numbers = "" if multiplier is None else f' multiplier="{multiplier}"'
    numbers += "" if offset is None else f' offset="{offset}"'
    return f'<axis xyz="0 0 1"/><mimic joint="{of}"{numbers}/>'


def tree():
    """a - b - c - d - e, where c carries the arm f - g and the fixed link h."""
    kinds = dict.fromkeys(("ab", "bc", "cd", "de", "cf", "fg", "ch"), "revolute")
    kinds |= dict.fromkeys(("cd", "fg", "ch"), "fixed")
    return urdf(*map(link, "abcdefgh"), *(joint(x, *x, kind) for x, kind in kinds.items()))
