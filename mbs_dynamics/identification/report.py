# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""A page with the results of identification, in one file without network access."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import date
from html import escape

import numpy as np

import mbs_dynamics as mbs
from mbs_dynamics.checks import FloatArray
from mbs_dynamics.identification.identify import Identification

WIDTH, HEIGHT, MARGIN, BELOW = 720, 150, 60, 30
"""Of the curves of a figure and of the room for its axes, in pixels."""

GAP = 6.0
"""Width in pixels between two stretches that do not follow each other."""

LABEL, LETTER = 14, 6
"""Height of a label and width of a letter in pixels."""

POINTS = 1500
"""Largest number of points of a curve."""

WELL = 0.1
"""A parameter is well known if its standard deviation is below this share of it."""

STYLE = """
:root { color-scheme: light dark; --ink: #1b1b1b; --paper: #ffffff; --grid: #d5d5d5;
        --measured: #0072b2; --predicted: #d55e00; --described: #009e73; --residual: #777777; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e8e8e8; --paper: #16181c; --grid: #3a3d44; --measured: #56b4e9;
          --predicted: #e69f00; --described: #2fd6a8; --residual: #a0a0a0; } }
body { font: 15px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper);
       max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
table { border-collapse: collapse; margin: 1rem 0; }
td, th { padding: 0.15rem 0.8rem; border-bottom: 1px solid var(--grid); text-align: right; }
td:first-child, th:first-child { text-align: left; }
svg { width: 100%; height: auto; } polyline { fill: none; stroke-width: 1.2; }
.measured { stroke: var(--measured); } .predicted { stroke: var(--predicted);
  stroke-dasharray: 5 3; }
.described { stroke: var(--described); stroke-dasharray: 2 3; }
.residual { stroke: var(--residual); } line { stroke: var(--grid); }
text { fill: var(--ink); font-size: 12px; } .scroll { overflow-x: auto; }
"""


def report(result: Identification, title: str) -> str:
    """Return the page as HTML."""
    parts = [
        f"<h1>{escape(title)}</h1>",
        _origin(result),
        _summary(result),
        "<h2>What to record next</h2>",
        _advice(result),
        "<h2>Torques</h2>",
        f"<p>Held-out data below {result.cutoff:.3g} Hz over the time in the recording, which a "
        "gap interrupts where the data do. <b style='color: var(--measured)'>measured</b> (line), "
        "<b style='color: var(--predicted)'>predicted</b> by the identified model (dashed), "
        "<b style='color: var(--described)'>description</b> without friction (dotted), "
        "<b style='color: var(--residual)'>residual</b>, measured less predicted (grey).</p>",
        *_figures(result),
        "<h2>Joints</h2>",
        _table(
            (
                "joint",
                "Coulomb [N m or N]",
                "viscous [N m s/rad]",
                "motor inertia [kg m²]",
                "offset",
            ),
            (
                (name, *(f"{value:.4g}" for value in one.values()))
                for name, one in result.joint_parameters.items()
            ),
        ),
        "<h2>Links: what changed</h2>",
        _links(result),
        "<h2>Identifiable parameters</h2>",
        _knowledge(result),
    ]
    if result.notes:
        listed = "".join(f"<li>{escape(note)}</li>" for note in result.notes)
        parts.append(f"<h2>Notes on the recordings</h2><ul>{listed}</ul>")
    head = (
        "<!doctype html><html lang='en'><head><meta charset='utf-8'>"
        "<meta name='viewport' content='width=device-width'>"
        f"<title>{escape(title)}</title><style>{STYLE}</style></head><body>"
    )
    return head + "\n".join(parts) + "</body></html>\n"


def _origin(result: Identification) -> str:
    """Return the names of the recordings, the date and the version."""
    held = dict.fromkeys(one.name for one in result.validation)
    known, unseen = (
        ", ".join(map(escape, filter(None, names))) for names in (result.recordings, held)
    )
    used = f"Identified from {known or 'recordings'}, compared with held-out data"
    return (
        f"<p>{used}{' of ' + unseen if unseen else ''}. Written on {date.today().isoformat()} by "
        f"mbs_dynamics {mbs.__version__}.</p>"
    )


def _summary(result: Identification) -> str:
    errors = result.errors
    rows = [("description", f"{100 * errors.description:.2f} %")]
    rows.append(
        ("description with fitted friction", f"{100 * errors.description_with_friction:.2f} %")
    )
    if errors.identified is not None:
        rows.append(("identified", f"{100 * errors.identified:.2f} %"))
    consistent = "All" if result.consistent else "Not all"
    return _table(("torques of", "relative error, held-out data"), rows) + (
        f"<p>{consistent} identified inertias are physically possible. The estimate minimises the "
        "error of the torques plus a weight times the distance of the inertias "
        "from those of the description, so that parameters which the data do not show remain near "
        "it. Of the weights tried, "
        f"{result.choice.weight:g} predicted data best that were left out in turn, with a relative "
        f"error of {100 * result.choice.best:.2f} %.</p>"
    )


def _figures(result: Identification) -> Iterable[str]:
    step = max(1, sum(len(one.b) for one in result.validation) // POINTS)
    described = result.torque_model.described()
    curves = []
    for one in result.validation:
        predicted = one.A @ result.x
        curves.append((one.b, predicted, one.A @ described, one.b - predicted))
    shares = np.linalg.norm(np.concatenate([each[3] for each in curves]), axis=0)
    shares /= np.maximum(
        np.linalg.norm(np.concatenate([each[0] for each in curves]), axis=0), 1e-12
    )
    model = result.torque_model.model
    for j, joint in enumerate(result.torque_model.joints):
        slides = not model.joint(joint).screws[:3].any()
        drawn = [np.stack([y[::step, j] for y in each]) for each in curves]
        yield f"<h3>{escape(joint)}: {100 * shares[j]:.1f} %</h3>" + _figure(
            drawn, _stretches(result, step), "N" if slides else "N m"
        )


def _stretches(result: Identification, step: int) -> list[tuple[str, float, FloatArray]]:
    """Return name, room before it in pixels, and times of the points of each stretch."""
    stretches, name, end = [], None, 0.0
    for one in result.validation:
        t = one.start + np.arange(0, len(one.b), step) / one.rate
        follows = name == one.name and t[0] - end < (step + 1) / one.rate
        stretches.append((one.name, 0.0 if follows or name is None else GAP, t))
        name, end = one.name, t[-1]
    return stretches


def _figure(
    curves: Sequence[FloatArray], stretches: Sequence[tuple[str, float, FloatArray]], unit: str
) -> str:
    """Return the curves (4, N) of stretches over time as SVG."""
    low, high = (float(f([f(y) for y in curves])) for f in (np.min, np.max))
    span = max(high - low, 1e-12)

    def height(value: FloatArray | float) -> FloatArray:
        return np.asarray(8 + (HEIGHT - 16) * (high - np.asarray(value)) / span)

    drawn = [f"<text x='0' y='{HEIGHT / 2:.0f}'>{unit}</text>"]
    apart = min(abs(height(0.0) - height(level)) for level in (low, high))
    for level in (low, high, *([0.0] if low < 0.0 < high and apart > LABEL else [])):
        y = height(level)
        drawn.append(f"<line x1='{MARGIN}' x2='{WIDTH}' y1='{y:.1f}' y2='{y:.1f}'/>")
        drawn.append(f"<text x='{MARGIN - 34}' y='{y + 4:.1f}'>{level:.3g}</text>")
    room = WIDTH - MARGIN - sum(before for _, before, _ in stretches)
    scale = room / max(sum(t[-1] - t[0] for *_, t in stretches), 1e-12)
    x, free, shown = float(MARGIN), 0.0, None
    for y, (name, before, t) in zip(curves, stretches, strict=True):
        x += before
        label = f"{t[0]:.3g} s" + (f" in {name}" if name != shown and name else "")
        if x >= free:
            drawn.append(f"<line x1='{x:.1f}' x2='{x:.1f}' y1='8' y2='{HEIGHT + 4}'/>")
            drawn.append(f"<text x='{x:.1f}' y='{HEIGHT + 18}'>{escape(label)}</text>")
            free, shown = x + LETTER * (len(label) + 1), name
        for kind, values in zip(("measured", "predicted", "described", "residual"), y, strict=True):
            pairs = zip(x + scale * (t - t[0]), height(values), strict=True)
            points = " ".join(f"{a:.1f},{b:.1f}" for a, b in pairs)
            drawn.append(f"<polyline class='{kind}' points='{points}'/>")
        x += scale * (t[-1] - t[0])
    return f"<svg viewBox='0 0 {WIDTH} {HEIGHT + BELOW}' role='img'>{''.join(drawn)}</svg>"


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


def _knowledge(result: Identification) -> str:
    base = result.base
    size = np.maximum(np.abs(base.values), 1e-300)
    relative = base.deviations / size
    rows = (
        (
            name,
            f"{value:.4g}",
            f"{deviation:.2g}" if np.isfinite(deviation) else "not seen",
            "yes" if share < WELL else "",
        )
        for name, value, deviation, share in zip(
            base.names, base.values, base.deviations, relative, strict=True
        )
    )
    return (
        f"<p>Torques depend on {len(base.values)} combinations of parameters; the data identify "
        f"{base.rank} of them, with a condition number of {base.condition:.3g}. Each is named by "
        "its first parameter; values are from weighted least squares, without physical "
        "consistency.</p>"
        + _table(("combination", "value (SI)", "standard deviation", "well known"), rows)
    )


def _advice(result: Identification) -> str:
    """Return the joints that should move more, from parameters that are not identified."""
    base = result.base
    poor = [
        name.rsplit(".", 1)[0]
        for name, value, deviation in zip(base.names, base.values, base.deviations, strict=True)
        if deviation > max(abs(float(value)), 1e-300)
    ]
    counts = sorted({name: poor.count(name) for name in poor}.items(), key=lambda one: -one[1])
    if not counts:
        return "<p>Every combination is known to better than itself.</p>"
    listed = ", ".join(f"{escape(name)} ({count})" for name, count in counts[:6])
    return (
        f"<p>Least is known of {listed}: combinations whose deviation is larger than they are. "
        "Move these faster, and through more of their range with the joints before them; "
        "<code>mbs-dynamics excite</code> plans such a motion.</p>"
    )


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    cells = "".join(f"<th>{escape(word)}</th>" for word in head)
    body = "".join(
        "<tr>" + "".join(f"<td>{escape(str(cell))}</td>" for cell in row) + "</tr>" for row in rows
    )
    return f"<div class='scroll'><table><tr>{cells}</tr>{body}</table></div>"
