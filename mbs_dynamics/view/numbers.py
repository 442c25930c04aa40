# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The numbers of a scene, as HTML tables."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

import numpy as np

from mbs_dynamics.algorithms import center_of_mass, kinetic_energy, potential_energy
from mbs_dynamics.model.coordinates import single_coordinates, velocity_names
from mbs_dynamics.representation import REPRESENTATIONS
from mbs_dynamics.view.layers import fixed
from mbs_dynamics.view.scene import Scene

TWIST = ("ωx", "ωy", "ωz", "vx", "vy", "vz")


def as_html(scene: Scene) -> str:
    """Return the numbers of a scene as tables with the classes mbs-joints, mbs-twist and so on."""
    parts = [_joints(scene), *([] if scene.qd is None else [_twist(scene)]), _pose(scene)]
    parts.append(_whole(scene))
    return f'<div class="mbs-numbers" style="{_STYLE}">{"".join(parts)}</div>'


def _joints(scene: Scene) -> str:
    shares, unlimited = scene.shares, ~np.isfinite(scene.model.effort_limits)
    rows = []
    at = {int(k): int(place) for place, k in single_coordinates(scene.model.joints)}
    for k, name in enumerate(velocity_names(scene.model.joints)):
        position = fixed(scene.q[at[k]], 3) if k in at else ""
        rate = "" if scene.qd is None else fixed(scene.qd[k], 3)
        share = "" if unlimited[k] else f"{100.0 * shares[k]:.0f} %"
        rows.append((name, position, rate, fixed(scene.torques[k], 3), share))
    header = ("joint", "rad or m", "rad/s or m/s", "N m or N", "of limit")
    return _table("joints", header, rows)


def _twist(scene: Scene) -> str:
    twists = [scene.twist(name) for name in REPRESENTATIONS]
    rows = [(part, *(fixed(V[k], 4) for V in twists)) for k, part in enumerate(TWIST)]
    return _table("twist", (f"twist of {scene.body_name}", *REPRESENTATIONS), rows)


def _pose(scene: Scene) -> str:
    rows = [
        (name, *(fixed(x, 4) for x in row)) for name, row in zip("xyz", scene.pose, strict=False)
    ]
    header = (f"pose of {scene.body_name}", "x axis", "y axis", "z axis", "origin, m")
    return _table("pose", header, rows)


def _whole(scene: Scene) -> str:
    model, q = scene.model, scene.q
    centre = center_of_mass(model, q)
    rows = [
        ("mass, kg", fixed(model.total_mass, 4)),
        ("centre of mass, m", ", ".join(fixed(x, 4) for x in centre)),
        ("potential energy, J", fixed(float(potential_energy(model, q)), 4)),
    ]
    if scene.qd is not None:
        rows.append(("kinetic energy, J", fixed(float(kinetic_energy(model, q, scene.qd)), 4)))
    return _table("whole", ("robot", ""), rows)


_STYLE = "font-size:0.72em;font-variant-numeric:tabular-nums;overflow-x:auto;padding:0 0.5em"


def _table(name: str, header: Sequence[str], rows: Iterable[Sequence[str] | Iterable[str]]) -> str:
    def line(tag: str, cells: Iterable[str]) -> str:
        parts = []
        for k, cell in enumerate(cells):
            side = "left" if k == 0 else "right"
            parts.append(f'<{tag} style="text-align:{side};padding:0 0.3em">{escape(cell)}</{tag}>')
        return f"<tr>{''.join(parts)}</tr>"

    body = "".join(line("td", row) for row in rows)
    return (
        f'<table class="mbs-{name}" style="width:100%;border-collapse:collapse;'
        f'margin-bottom:0.8em">{line("th", header)}{body}</table>'
    )
