# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""An arm, the torques that hold it up, and what a load adds to them: the figure of the README.

python examples/arm_and_torques.py [FILE]     writes a figure, arm_and_torques.png by default
"""

from __future__ import annotations

import sys

import matplotlib as mpl

mpl.use("Agg")

import matplotlib.pyplot as plt
import numpy as np

import mbs_dynamics as mbs
from mbs_dynamics.resources import robot_path

POSTURE = np.array([0.3, 0.9, -0.2, 1.1, 0.0, 0.7, 0.1])
LOAD, COM = 2.0, (0.0, 0.0, 0.05)
"""A load in kg, and where its centre of mass is in the frame of the tool, in m."""

FREE, LOADED = "tab:blue", "tab:orange"


def torques(arm: mbs.Model) -> tuple[np.ndarray, np.ndarray]:
    """Return the torques (n,) in N m that hold the arm up, without the load and with it."""
    loaded = arm.with_payload("tool", mass=LOAD, com=COM)
    return mbs.gravity_torques(arm, POSTURE), mbs.gravity_torques(loaded, POSTURE)


def draw_arm(axes: plt.Axes, arm: mbs.Model) -> None:
    """Draw joints where they are, as large as their torque, and the weights of the links."""
    poses = mbs.forward_kinematics(arm, POSTURE, bodies=[*arm.body_names, "tool"])
    points = np.vstack([np.zeros(3), poses[:, :3, 3]])
    axes.plot(*points.T, color="0.35", linewidth=5, solid_capstyle="round")
    free, _ = torques(arm)
    axes.scatter(*points[1:-1].T, s=40 + 8 * np.abs(free), color=FREE, depthshade=False)
    for pose, body in zip(poses, arm.bodies, strict=False):
        com = pose[:3, :3] @ body.inertia.com + pose[:3, 3]
        axes.quiver(*com, 0, 0, -0.05 * body.inertia.mass, color="0.6", linewidth=1.2)
    load = poses[-1, :3, :3] @ COM + poses[-1, :3, 3]
    axes.scatter(*load, s=150, marker="s", color=LOADED, depthshade=False)
    axes.set(xlim=(-0.1, 0.8), ylim=(-0.45, 0.45), zlim=(0.0, 0.9), xlabel="m")
    axes.set_box_aspect((1, 1, 1), zoom=1.15)
    axes.view_init(elev=12, azim=-75)
    for axis in (axes.xaxis, axes.yaxis, axes.zaxis):
        axis.set_ticks([0.0, 0.4, 0.8] if axis is not axes.yaxis else [])


def draw_torques(axes: plt.Axes, arm: mbs.Model) -> None:
    """Draw the torques of the joints as bars."""
    free, loaded = torques(arm)
    rows = np.arange(arm.n)
    axes.barh(rows - 0.2, free, 0.4, color=FREE, label="the arm alone")
    axes.barh(rows + 0.2, loaded, 0.4, color=LOADED, label=f"with {LOAD:g} kg in its hand")
    axes.set_yticks(rows, arm.joint_names)
    axes.invert_yaxis()
    axes.axvline(0.0, color="0.35", linewidth=0.8)
    axes.set_xlabel("gravity torque, N m")
    axes.legend(loc="lower left", frameon=False)
    axes.spines[["top", "right"]].set_visible(False)


def main() -> None:
    """Write the figure."""
    arm = mbs.Model.from_urdf(robot_path("arm7"))
    figure = plt.figure(figsize=(9, 3.8), layout="constrained")
    draw_arm(figure.add_subplot(1, 2, 1, projection="3d"), arm)
    draw_torques(figure.add_subplot(1, 2, 2), arm)
    path = sys.argv[1] if len(sys.argv) > 1 else "arm_and_torques.png"
    figure.savefig(path, dpi=100, metadata={"Software": None})
    print(f"wrote {path}")


if __name__ == "__main__":
    main()
