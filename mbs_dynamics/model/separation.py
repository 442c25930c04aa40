# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Fixed joints as joints with k = 0 degrees of freedom, so that recursions return their wrench."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from mbs_dynamics.errors import UnknownJointError
from mbs_dynamics.model.body import GROUND, Body, chain, link_inertia, start_of
from mbs_dynamics.model.compiled import Compiled
from mbs_dynamics.model.inertia import Inertia
from mbs_dynamics.model.joint import Joint
from mbs_dynamics.model.model import Model
from mbs_dynamics.model.payloads import Payload, Payloads
from mbs_dynamics.model.subgroup import Subgroup


def separated(model: Model, joints: Sequence[str]) -> Model:
    """Return the model in which fixed joints among ``joints`` are joints with k = 0.

    Each of them moves another body, by the trivial subgroup of motions. The body consists of the
    links beyond the joint, up to the next of these joints, and has the axes of its former body. The
    other bodies keep their names and coordinates, and precede those separated from them. If a body
    carries loads, all bodies separated from it have a row of ``payloads.parameters``, of zeros
    without a load.

    Models that differ in gravity, loads and the like share the kernels of their separated models.
    Raises UnknownJointError, which lists the valid names.
    """
    moving = [body.joint.name for body in model.bodies]
    UnknownJointError.check(joints, [*moving, *model.fixed_joints])
    fixed = tuple(x for x in model.fixed_joints if x in joints and x not in moving)
    if not fixed:
        return model
    store = model.compiled
    with store.lock:
        result: Model | None = store.with_defaults.get((separated, fixed))
        if result is None:
            result = _separated(model, fixed)
            kernels = Compiled(store.get_or_create((separated, fixed), Compiled))
            result.__dict__.update(compiled=kernels)
            store.with_defaults[separated, fixed] = result
    return result


def _separated(model: Model, fixed: Sequence[str]) -> Model:
    joint_above = {model.fixed_joints[name].child.name: name for name in fixed}

    def part(body: int, link: str | None) -> tuple[int, str]:
        """Return the body of a link, and the nearest fixed joint above it, empty if none."""
        links = chain(model.frames, link)
        return body, next((joint_above[x] for x in links if x in joint_above), "")

    of_link = {name: part(frame.body, name) for name, frame in model.frames.items()}
    inertias: dict[tuple[int, str], Inertia] = {}
    for name, key in of_link.items():
        inertia = link_inertia(model.bodies, model.frames, name)
        inertias[key] = inertias.get(key, Inertia.zero()) + inertia
    bodies: list[Body] = []
    index = {(GROUND, ""): GROUND}
    for i in range(GROUND, model.nb):
        if i != GROUND:
            body = model.bodies[i]
            parent = index[part(body.parent, start_of(model.bodies, i))]
            index[i, ""] = len(bodies)
            inertia = inertias.get((i, ""), Inertia.zero())
            inertia = inertia if any(key[1] for key in inertias if key[0] == i) else body.inertia
            bodies.append(replace(body, parent=parent, inertia=inertia))
        here = [name for name in fixed if model.fixed_joints[name].child.body == i]
        for name in sorted(here, key=lambda name: -len(model.fixed_joints[name].links)):
            child = model.fixed_joints[name].child
            joint = Joint(name, Subgroup("fixed", np.zeros((6, 0))), 0)
            parent = index[part(i, child.parent)]
            index[i, name] = len(bodies)
            bodies.append(Body(f"beyond {name}", parent, np.eye(4), joint, inertias[i, name]))
    frames = {
        name: frame._replace(body=index[of_link[name]]) for name, frame in model.frames.items()
    }
    loads = [load._replace(body=index[of_link[load.link]]) for load in model.payloads]
    parts = [index[key] for key in index if key[0] in model.payloads.bodies]
    empty = {*parts} - {load.body for load in loads}
    loads += [Payload(bodies[i].name, i, np.zeros(10)) for i in empty]
    loads.sort(key=lambda load: (load.body, load.link))
    return replace(model, bodies=tuple(bodies), frames=frames, payloads=Payloads(loads))


def loads_on(model: Model, finer: Model, rows: Any) -> Any:
    """Return the parameters (k, 10) of loads on the bodies of a model, from those of a finer one.

    ``finer`` is the model with further fixed joints :func:`separated`. Rows may be symbols.
    """
    if finer is model:
        return rows
    carriers = {model.bodies[i].joint.name: k for k, i in enumerate(model.payloads.bodies)}
    total: Any = np.zeros((len(carriers), 10), dtype=object)
    for i, row in zip(finer.payloads.bodies, rows, strict=True):
        while finer.bodies[i].joint.name not in carriers:
            i = finer.bodies[i].parent
        total[carriers[finer.bodies[i].joint.name]] += row
    return total


def wrench_links(model: Model, joints: Any) -> list[str]:
    """Return the links of the rows of wrenches: moving bodies, then children of fixed joints.

    The fixed joints are those among ``joints``, names or None, that are joints of the model.
    """
    separate = {body.joint.name for body in model.bodies if not body.joint.nv}
    moving = [body.name for body in model.bodies if body.joint.nv]
    fixed = [name for name in joints or () if name in separate] if separate else []
    return [*moving, *(model.fixed_joints[name].child.name for name in fixed)]
