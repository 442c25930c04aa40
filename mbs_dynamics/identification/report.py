# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The report of an identification: one HTML file that loads nothing from the network."""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Sequence
from datetime import date
from html import escape
from string import Template
from typing import Any

import numpy as np

import mbs_dynamics as mbs
from mbs_dynamics.checks import FloatArray
from mbs_dynamics.errors import missing_extra
from mbs_dynamics.identification.identify import Identification
from mbs_dynamics.identification.torque_model import stacked

POINTS = 1500
"""Approximate number of points of a curve."""

STYLES: tuple[dict[str, Any], ...] = (
    {"color": "0.6"},
    {"color": "C0", "ls": "--"},
    {"color": "C1", "ls": ":"},
)
"""Line styles of torques: measured, of the identified model, of the description."""

PAGE = Template("""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>$title</title><style>
body { font: 15px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
table { border-collapse: collapse; margin: 1rem 0; }
td, th { padding: 0.15rem 0.8rem; border-bottom: 1px solid #d5d5d5; text-align: right; }
td:first-child, th:first-child { text-align: left; }
svg { width: 100%; height: auto; }
</style></head><body>
<h1>$title</h1>
<p>Identified from $recordings, written on $date by mbs_dynamics $version.</p>
$errors
<p>All identified inertias are physically possible. Parameters that the data do not determine remain
near the description, by a weight of $weight that cross-validation chose.</p>
<h2>What to record next</h2>
<p>Joints and bodies with combinations of parameters whose standard deviation is larger than their
value, and the number of these: $least. Move these joints, and those before them, faster and through
more of their range; <code>mbs-dynamics excite</code> plans such a motion.</p>
<h2>Torques</h2>
<p>Held-out data of $held below $cutoff Hz, one stretch after the other: measured, predicted by the
identified model, and by the description without friction. Titles state the relative errors.</p>
$figure
<h2>Joints</h2>
$joints
<h2>Links: what changed</h2>
$links
<h2>Identifiable parameters</h2>
<p>Torques depend on $count combinations of parameters. The data determine $rank of them, with a
condition number of $condition; the standard deviations of others are infinite. Each combination is
named after its first parameter. Values are from weighted least squares, without constraints of
physical consistency.</p>
$parameters
<h2>Notes on the recordings</h2>
<ul>$notes</ul>
</body></html>
""")


def report(result: Identification, title: str) -> str:
    """Return the page as HTML. Raises MbsError without matplotlib."""
    base, model = result.base, result.torque_model
    held = dict.fromkeys(one.name for one in result.validation)
    before = model.described()[: model.rigid].reshape(-1, 10)
    bodies = zip(model.model.body_names, before, result.inertial, strict=True)
    combinations = list(zip(base.names, base.values, base.deviations, strict=True))
    poor = Counter(
        name.rsplit(".", 1)[0] for name, value, deviation in combinations if deviation > abs(value)
    )
    least = ", ".join(f"{name} ({count})" for name, count in poor.most_common(6))
    return PAGE.substitute(
        title=escape(title),
        recordings=escape(", ".join(result.recordings)),
        held=escape(", ".join(held)),
        date=date.today().isoformat(),
        version=mbs.__version__,
        errors=_table(
            ("torques of", "relative error, held-out data"),
            [
                (name.replace("_", " "), f"{100 * x:.2f} %")
                for name, x in vars(result.errors).items()
            ],
        ),
        weight=f"{result.choice.weight:g}",
        least=escape(least) or "none",
        cutoff=f"{result.cutoff:.3g}",
        figure=_figure(result),
        joints=_table(
            ("joint", "Coulomb [N m or N]", "viscous [N m s/rad]", "motor [kg m²]", "offset"),
            [
                (name, *(f"{value:.4g}" for value in one.values()))
                for name, one in result.joint_parameters.items()
            ],
        ),
        links=_table(
            ("body", "mass before [kg]", "after", "centre of mass before [mm]", "after"),
            [
                (name, f"{old[0]:.3f}", f"{new[0]:.3f}", _centre(old), _centre(new))
                for name, old, new in bodies
            ],
        ),
        count=len(base.values),
        rank=base.rank,
        condition=f"{base.condition:.3g}",
        parameters=_table(
            ("combination", "value (SI)", "standard deviation"),
            [(name, f"{value:.4g}", f"{deviation:.2g}") for name, value, deviation in combinations],
        ),
        notes="".join(f"<li>{escape(note)}</li>" for note in result.notes),
    )


def _figure(result: Identification) -> str:
    """Return plots of the torques of all joints as SVG."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise missing_extra("reports need matplotlib", "plot", error) from error
    torque_model, joints = result.torque_model, result.torque_model.joints
    A, b = stacked(result.validation)
    curves = {
        "measured": b,
        "identified": A @ result.x,
        "description": A @ torque_model.described(),
    }
    shares = np.linalg.norm(curves["identified"] - b, axis=0) / np.linalg.norm(b, axis=0)
    t = np.cumsum(
        np.concatenate([np.full(len(one.b), 1.0 / one.rate) for one in result.validation])
    )
    begins = np.cumsum([0, *(len(one.b) for one in result.validation[:-1])])
    shown = slice(None, None, max(1, len(t) // POINTS))
    figure = Figure(figsize=(9.0, 1.8 * len(joints)), layout="constrained")
    axes: Any = figure.subplots(len(joints), 1, sharex=True, squeeze=False)[:, 0]
    for j, ax in enumerate(axes):
        for begin in t[begins]:
            ax.axvline(begin, color="0.85", linewidth=0.8)
        for (label, y), style in zip(curves.items(), STYLES, strict=True):
            ax.plot(t[shown], y[shown, j], label=label, linewidth=1.2, **style)
        slides = not torque_model.model.joint(joints[j]).screws[:3].any()
        unit = "N" if slides else "N m"
        ax.set(ylabel=unit, title=f"{joints[j]}: {100 * shares[j]:.1f} %")
    axes[-1].set_xlabel("s of held-out data")
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
    page = io.StringIO()
    figure.savefig(page, format="svg", metadata={"Date": None})
    text = page.getvalue()
    return text[text.index("<svg") :]


def _centre(parameters: FloatArray) -> str:
    """Return the centre of mass of inertial parameters (10,) in mm."""
    centre = 1e3 * parameters[1:4] / max(parameters[0], 1e-300)
    return "({:.0f}, {:.0f}, {:.0f})".format(*centre)


def _table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return an HTML table of texts."""
    cells = [[f"<td>{escape(cell)}</td>" for cell in row] for row in rows]
    first = "".join(f"<th>{escape(word)}</th>" for word in header)
    others = "".join(f"<tr>{''.join(row)}</tr>" for row in cells)
    return f"<table><tr>{first}</tr>{others}</table>"
