# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""MJCF, from packages and at random, and how far a model of it is from MuJoCo.

``python test/mjcf_trees.py FOLDER ...`` compares all MJCF below folders, such as wheels of
dm_control, robosuite and gymnasium-robotics that were unpacked there.
"""

import importlib.metadata
import sys
import warnings
from pathlib import Path

import mujoco
import numpy as np
from interpreted import evaluated

import mbs_dynamics as mbs
from mbs_dynamics.model.mjcf import UNSUPPORTED


def gymnasium_files() -> dict[str, Path]:
    """Return the MJCF of the package gymnasium, by name; empty where it is missing."""
    try:
        files = importlib.metadata.distribution("gymnasium").files or ()
    except importlib.metadata.PackageNotFoundError:
        return {}
    found = [Path(str(file.locate())) for file in files if file.suffix == ".xml"]
    return {path.stem: path for path in sorted(found)}


def random_mjcf(seed: int) -> str:
    """Return a tree with all kinds of joints, several in a body, and welded bodies."""
    rng = np.random.default_rng(seed)

    def numbers(size: int, low: float = -0.5, high: float = 0.5) -> str:
        return " ".join(map(str, rng.uniform(low, high, size)))

    def joint(kind: str) -> str:
        axis = "" if kind == "ball" else f'axis="{numbers(3)}" ref="{numbers(1)}"'
        return (
            f'<joint type="{kind}" pos="{numbers(3)}" armature="{numbers(1, 0.0)}" {axis} '
            f'damping="{numbers(1, 0.0)}" frictionloss="{numbers(1, 0.0)}"/>'
        )

    def inertia() -> str:
        if rng.random() < 0.5:
            kind = rng.choice(["box", "ellipsoid", "capsule", "cylinder"])
            shape = f'size="{numbers(3, 0.1)}" pos="{numbers(3)}" euler="{numbers(3)}"'
            return f'<geom type="{kind}" {shape}/>'
        return (
            f'<inertial pos="{numbers(3)}" quat="{numbers(4)}" mass="{numbers(1, 0.5, 2)}" '
            f'diaginertia="{numbers(3, 0.3, 0.5)}"/>'
        )

    def body(depth: int) -> str:
        kinds = rng.permutation(["hinge", "hinge", "slide", "slide", "ball"])
        kinds = sorted(kinds[: rng.integers(0, 4)], key="ball".__eq__)  # as MuJoCo wants them
        joints = "".join(map(joint, kinds))
        if depth == 0 and rng.random() < 0.5:
            joints = "<freejoint/>"
        inside = "".join(body(depth + 1) for _ in range(rng.integers(0, 3 - depth // 2)))
        place = f'pos="{numbers(3)}" quat="{numbers(4)}"'
        return f'<body {place}>{joints}{inertia()}<site name="s{rng.random()}"/>{inside}</body>'

    trees = "".join(body(0) for _ in range(3))
    gravity = f'<option gravity="{numbers(3, -9, 9)}"/>'
    moving = f'<body><joint/>{inertia()}<site name="tip" pos="{numbers(3)}"/></body>'
    return f"<mujoco>{gravity}<worldbody>{trees}{moving}</worldbody></mujoco>"


def differences(model: mbs.Model, m: mujoco.MjModel, seed: int = 0) -> dict[str, float]:
    """Return the differences from MuJoCo, relative to one plus the largest entry."""
    names = ("CONSTRAINT", "CONTACT", "ACTUATION", "SPRING", "DAMPER", "PASSIVE")
    flags = [getattr(mujoco.mjtDisableBit, f"mjDSBL_{name}", 0) for name in names]  # by version
    m.opt.disableflags |= int(np.bitwise_or.reduce([int(flag) for flag in flags]))
    m.body_gravcomp[:] = 0.0
    m.opt.density = m.opt.viscosity = 0.0
    d = mujoco.MjData(m)
    q, qd, _ = model.random_state(seed)
    tau = np.random.default_rng(seed).normal(size=model.n)
    state = mbs.to_mujoco(model, q, qd, tau=tau)
    d.qpos[:], d.qvel[:], d.qfrc_applied[:] = state.qpos, state.qvel, state.qfrc
    mujoco.mj_forward(m, d)
    M = np.zeros((m.nv, m.nv))
    for row, unit in zip(M, np.eye(m.nv), strict=True):
        mujoco.mj_mulM(m, d, row, unit)
    still = mbs.from_mujoco(model, state.qpos, state.qvel, np.zeros(m.nv))
    T = mbs.from_mujoco(model, state.qpos, np.eye(m.nv)).qd.T
    bias = evaluated(mbs.inverse_dynamics, model, q, qd, still.qdd)
    qdd = evaluated(mbs.forward_dynamics, model, q, qd, tau, method="mass_matrix")
    poses = evaluated(mbs.forward_kinematics, model, q, bodies=[*model.frames])
    C = dict(zip(model.frames, poses, strict=True))
    names = [m.body(i).name or f"body{i}" for i in range(m.nbody)]
    sites = {m.site(k).name: k for k in range(m.nsite) if m.site(k).name}
    sites = {f"{x}_site" if x in names else x: k for x, k in sites.items()}
    pairs = {
        "mass matrix": (T.T @ evaluated(mbs.mass_matrix, model, q) @ T, M),
        "bias": (mbs.to_mujoco(model, q, tau=bias).qfrc, d.qfrc_bias),
        "acceleration": (mbs.to_mujoco(model, q, qd, qdd).qacc, d.qacc),
        "positions": ([C[x][:3, 3] for x in names], d.xpos),
        "orientations": ([C[x][:3, :3] for x in names], d.xmat.reshape(-1, 3, 3)),
        "sites": ([C[x][:3] for x in sites], [_pose_of_site(d, k) for k in sites.values()]),
    }
    return {
        what: np.abs(np.asarray(a) - b).max(initial=0.0) / (1.0 + np.abs(b).max(initial=0.0))
        for what, (a, b) in pairs.items()
    }


def _pose_of_site(d, k):
    return np.column_stack([d.site_xmat[k].reshape(3, 3), d.site_xpos[k]])


def main(folders: list[str]) -> None:
    """Print the differences of all MJCF below some folders."""
    warnings.simplefilter("ignore", mbs.ModelWarning)
    worst, count = 0.0, 0
    for path in sorted(file for folder in folders for file in Path(folder).rglob("*.xml")):
        try:
            m = mujoco.MjModel.from_xml_path(str(path))
        except ValueError:  # a part that others include, without its meshes, or another language
            continue
        found = differences(mbs.Model.from_mjcf(m, leave_out=UNSUPPORTED), m) if m.nv else {}
        if found:
            worst, count = max(worst, *found.values()), count + 1
            print(f"{max(found.values()):.1e}  {m.nv:3d}  {path}")
    print(f"{count} trees, the largest difference is {worst:.1e}")


if __name__ == "__main__":
    main(sys.argv[1:])
