# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Options of a page: what it shows besides the state of the robot, and its address."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from mbs_dynamics.view.urdf_visuals import Visual


class PageOptions(NamedTuple):
    """Options of a page in the browser."""

    description: str | Path | None = None
    """Path of the URDF or MJCF with the meshes, or the text of a URDF. Without it, links are drawn
    as capsules."""
    geometry: Sequence[Visual] = ()
    """Your own shapes, on a link or on ``"world"``."""
    packages: Sequence[str | Path] = ()
    """Folders of packages for ``package://`` addresses of meshes."""
    layers: Sequence[str] | None = None
    """Names of the drawings that are switched on, or ``["all"]``."""
    dark: bool = False
    """Whether the page is in dark mode."""
    port: int | None = None
    """Port of this machine: by default 8080 or the next free one; 0 is any free one."""
