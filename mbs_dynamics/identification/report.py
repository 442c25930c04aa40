# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The report of an identification: one HTML file that loads nothing from the network."""

from __future__ import annotations

import io
from collections.abc import Iterable, Sequence
from datetime import date
from html import escape
from string import Template
from typing import Any

import numpy as np

import mbs_dynamics as mbs
from mbs_dynamics.errors import missing_extra
from mbs_dynamics.identification.identify import Identification

POINTS = 1500
"""Approximate number of points of a curve."""

WELL = 0.1
"""A parameter is well known if its standard deviation is less than this share of its value."""

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
<p>Identified from $recordings, compared with held-out data of $held. Written on $date by
mbs_dynamics $version.</p>
$errors
<p>$consistent identified inertias are physically possible. The estimate minimises the error of the
torques plus a weight times the distance of the inertias from those of the description. Parameters
that the data do not determine therefore remain near the description. Cross-validation chose the
weight $weight, with a relative error of $best.</p>
<h2>What to record next</h2>
<p>$advice</p>
<h2>Torques</h2>
<p>Held-out data below $cutoff Hz, one stretch after the other: measured, predicted by the
identified model, and by the description without friction. The title of each plot states the
relative error of the joint.</p>
$figure
<h2>Joints</h2>
$joints
<h2>Links: what changed</h2>
$links
<h2>Identifiable parameters</h2>
<p>Torques depend on $count combinations of parameters. The data determine $rank of them, with a
condition number of $condition. Each combination is named after its first parameter. Values are from
weighted least squares, without constraints of physical consistency.</p>
$parameters
<h2>Notes on the recordings</h2>
<ul>$notes</ul>
</body></html>
""")


def report(result: Identification, title: str) -> str:
    """Return the page as HTML. Raises MbsError without matplotlib."""
    base, errors = result.base, result.errors
    shares = {
        "description": errors.description,
        "description with fitted friction": errors.description_with_friction,
        "identified": errors.identified,
    }
    held = ", ".join(dict.fromkeys(one.name for one in result.validation if one.name))
    return PAGE.substitute(
        title=escape(title),
        recordings=escape(", ".join(filter(None, result.recordings)) or "recordings"),
        held=escape(held or "the same"),
        date=date.today().isoformat(),
        version=mbs.__version__,
        errors=_table(
            ("torques of", "relative error, held-out data"),
            ((name, f"{100 * x:.2f} %") for name, x in shares.items() if x is not None),
        ),
        consistent="All" if result.consistent else "Not all",
        weight=f"{result.choice.weight:g}",
        best=f"{100 * result.choice.error:.2f} %",
        advice=_advice(result),
        cutoff=f"{result.cutoff:.3g}",
        figure=_figure(result),
        joints=_table(
            ("joint", "Coulomb [N m or N]", "viscous [N m s/rad]", "motor [kg m²]", "offset"),
            (
                (name, *(f"{value:.4g}" for value in one.values()))
                for name, one in result.joint_parameters.items()
            ),
        ),
        links=_links(result),
        count=len(base.values),
        rank=base.rank,
        condition=f"{base.condition:.3g}",
        parameters=_table(
            ("combination", "value (SI)", "standard deviation", "well known"),
            (
                (
                    name,
                    f"{value:.4g}",
                    f"{deviation:.2g}" if np.isfinite(deviation) else "not determined",
                    "yes" if deviation < WELL * abs(value) else "",
                )
                for name, value, deviation in zip(
                    base.names, base.values, base.deviations, strict=True
                )
            ),
        ),
        notes="".join(f"<li>{escape(note)}</li>" for note in result.notes),
    )


def _figure(result: Identification) -> str:
    """Return plots of the torques of all joints as SVG."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise missing_extra("reports need matplotlib", "plot", error) from error
    model, joints = result.torque_model.model, result.torque_model.joints
    step = max(1, sum(len(one.b) for one in result.validation) // POINTS)
    figure = Figure(figsize=(9.0, 1.8 * len(joints)), layout="constrained")
    axes: Any = figure.subplots(len(joints), 1, sharex=True, squeeze=False)[:, 0]
    described, begin = result.torque_model.described(), 0.0
    errors, sizes = np.zeros(len(joints)), np.zeros(len(joints))
    for one in result.validation:
        curves = {
            "measured": one.b,
            "identified": one.A @ result.x,
            "description": one.A @ described,
        }
        errors += np.square(curves["identified"] - one.b).sum(axis=0)
        sizes += np.square(one.b).sum(axis=0)
        t = begin + np.arange(0, len(one.b), step) / one.rate
        for j, ax in enumerate(axes):
            ax.axvline(begin, color="0.85", linewidth=0.8)
            for (label, y), style in zip(curves.items(), STYLES, strict=True):
                ax.plot(t, y[::step, j], label="" if begin else label, linewidth=1.2, **style)
        begin = float(t[-1])
    for j, ax in enumerate(axes):
        slides = not model.joint(joints[j]).screws[:3].any()
        share = np.sqrt(errors[j] / max(sizes[j], 1e-12))
        ax.set(ylabel="N" if slides else "N m", title=f"{joints[j]}: {100 * share:.1f} %")
    axes[-1].set_xlabel("s of held-out data")
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
    page = io.StringIO()
    figure.savefig(page, format="svg", metadata={"Date": None})
    text = page.getvalue()
    return text[text.index("<svg") :]


def _links(result: Identification) -> str:
    before = result.torque_model.described()[: result.torque_model.rigid].reshape(-1, 10)
    rows = []
    names = result.torque_model.model.body_names
    for name, old, new in zip(names, before, result.inertial, strict=True):
        centres = [x[1:4] / x[0] if x[0] > 0.0 else np.zeros(3) for x in (old, new)]
        shown = ["(" + ", ".join(f"{1e3 * c:.0f}" for c in centre) + ")" for centre in centres]
        rows.append((name, f"{old[0]:.3f}", f"{new[0]:.3f}", *shown))
    return _table(
        ("body", "mass before [kg]", "after [kg]", "centre of mass before [mm]", "after [mm]"), rows
    )


def _advice(result: Identification) -> str:
    """Return advice on which joints should move more, from parameters that are poorly known."""
    base = result.base
    poor = [
        name.rsplit(".", 1)[0]
        for name, value, deviation in zip(base.names, base.values, base.deviations, strict=True)
        if deviation > max(abs(float(value)), 1e-300)
    ]
    counts = sorted({name: poor.count(name) for name in poor}.items(), key=lambda one: -one[1])
    if not counts:
        return "The standard deviation of every combination is smaller than its value."
    listed = ", ".join(f"{escape(name)} ({count})" for name, count in counts[:6])
    return (
        f"Least is known about {listed}; in parentheses is the number of combinations whose "
        "standard deviation is larger than their value. Move these faster, and through more of "
        "their range with the joints before them; <code>mbs-dynamics excite</code> plans such a "
        "motion."
    )


def _table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    cells = "".join(f"<th>{escape(word)}</th>" for word in header)
    body = "".join(
        "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows
    )
    return f"<table><tr>{cells}</tr>{body}</table>"
