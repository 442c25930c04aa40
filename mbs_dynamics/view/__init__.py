# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""A page that shows robots and motions in the browser.

A ``page`` draws the scenes of a source: controls (``posing``), a motion (``playback``) or ROS
topics. Each of the ``layers`` makes ``drawings`` of a ``scene``, a robot in a state, and a
``canvas`` draws them and the ``meshes`` with viser, before the ``cameras`` of a ``server`` for this
machine only.

:func:`show` and :func:`play` import viser and trimesh, of the extra ``view``, when they are called.
"""

from mbs_dynamics.view.options import PageOptions
from mbs_dynamics.view.showing import View, play, show
from mbs_dynamics.view.urdf_visuals import (
    Box,
    Capsule,
    Cylinder,
    Mesh,
    Sphere,
    Triangles,
    Visual,
)

__all__ = [
    "Box",
    "Capsule",
    "Cylinder",
    "Mesh",
    "PageOptions",
    "Sphere",
    "Triangles",
    "View",
    "Visual",
    "play",
    "show",
]
