# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""MuJoCo's models of URDFs, without what this package has not: contacts, constraints, meshes."""

import re

import mujoco

INTEGRATORS = {
    "rk4": mujoco.mjtIntegrator.mjINT_RK4,
    "semi_implicit_euler": mujoco.mjtIntegrator.mjINT_EULER,
}
"""MuJoCo's integrators by the names that this package has for the same schemes."""

_SHAPES = re.compile(r"<(visual|collision)\b.*?</\1>|<(visual|collision)\b[^>]*/>", re.DOTALL)
_OPTIONS = (
    '<mujoco><compiler fusestatic="false" discardvisual="true" balanceinertia="false"/></mujoco>'
)


def mujoco_model(path, method="rk4", step=1e-3):
    """The arm of a URDF, without damping and friction in its joints."""
    text = _SHAPES.sub("", path.read_text())
    text = re.sub(r"(<robot\b[^>]*>)", rf"\1{_OPTIONS}", text, count=1)
    model = mujoco.MjModel.from_xml_string(text)
    off = mujoco.mjtDisableBit
    model.opt.disableflags |= off.mjDSBL_CONSTRAINT | off.mjDSBL_CONTACT
    model.opt.integrator, model.opt.timestep = INTEGRATORS[method], step
    model.dof_damping[:] = 0.0
    model.dof_frictionloss[:] = 0.0
    return model
