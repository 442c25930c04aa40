# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Identify an arm from a recording, and draw held-out torques with both predictions.

python examples/identify_recording.py URDF RECORDING [FILE]     identify_recording.png by default
"""

from __future__ import annotations

import sys

import matplotlib as mpl

mpl.use("Agg")

import matplotlib.pyplot as plt
import numpy as np

import mbs_dynamics as mbs
from mbs_dynamics.identification import Identification, identify
from mbs_dynamics.identification.torque_model import stacked
from mbs_dynamics.timeseries import TimeSeries


def draw(found: Identification, file: str) -> None:
    """Draw the torques of the two joints with the largest torques, on held-out stretches."""
    stretches = [stacked([one]) for one in found.validation]
    joints = sum((measured**2).sum(axis=0) for _, measured in stretches).argsort()[:-3:-1]
    figure, axes = plt.subplots(2, 1, figsize=(7, 4.5), layout="constrained", sharex=True)
    for ax, joint in zip(axes, sorted(joints), strict=True):
        begin = 0
        for regressor, measured in stretches:
            samples = np.arange(begin, begin + len(measured))
            for label, torques, color, width in (
                ("measured", measured, "0.6", 3.0),
                ("description", regressor @ found.torque_model.described(), "C1", 1.2),
                ("identified", regressor @ found.x, "C0", 1.2),
            ):
                name = "" if begin else label
                ax.plot(samples, torques[:, joint], color=color, linewidth=width, label=name)
            begin += len(measured)
        ax.set(ylabel="torque, N m", title=found.torque_model.joints[joint])
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
    axes[1].set_xlabel("sample of the held-out stretches")
    figure.savefig(file, dpi=90)


if __name__ == "__main__":
    urdf, recording, *rest = sys.argv[1:]
    result = identify(mbs.Model.from_urdf(urdf), [TimeSeries.read(recording)])
    print(f"description {result.errors.description:.1%}, identified {result.errors.identified:.1%}")
    draw(result, rest[0] if rest else "identify_recording.png")
