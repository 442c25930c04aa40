# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Dry friction of a step: some joints slide, the others stand.

Friction is set-valued: at the end of a step its torques r obey

    v_i > 0: r_i = -F_i,    v_i < 0: r_i = F_i,    v_i = 0: |r_i| <= F_i

in all joints at once, with the Coulomb friction F of each. Each joint is assigned a direction: 1
or -1 if it slides, 0 if it stands. A joint that stands gets an armature that is large enough to
hold it; the torque that this takes is r. The directions begin with those of the rates, and are
projected onto the law: a joint that would slide against its direction stands, one that is held by
more than F slides. A fixed number of projections, each with one solution of the equations of
motion, is part of the step.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from mbs_dynamics.compiler import less, select
from mbs_dynamics.lie.arrays import Array

HOLD = 1e10
"""Armature that holds a joint, over the inertia that it moves at q = 0."""

SLACK = 1e-9
"""Relative tolerance on the bounds of friction."""

PROJECTIONS, FEW, LARGE = 8, 1, 32
"""Projections of the directions in a step; and of models with more than so many joints, whose
equations are long. Directions that do not fit yet dissipate energy as well, for one step."""


class Friction(NamedTuple):
    """Dry friction in a step of h: (n,) each."""

    v: Array
    """Rates at its begin."""
    signs: Array
    """Directions of the joints, 0 for those that stand."""
    bound: Array
    """Largest torques of friction."""
    inertia: Array
    """Inertia that each joint moves in the reference configuration."""
    h: Any

    @property
    def hold(self) -> Array:
        """Armature of the joints that stand, zero for others."""
        hold = select(less(0.0, self.bound), HOLD * self.inertia, 0.0)
        return select(less(0.0, self.signs * self.signs), 0.0, hold)

    @property
    def torque(self) -> Array:
        """Torques on joints that slide, and those that take its rate off one that is to stand."""
        return -1.0 * self.signs * self.bound - (1.0 / self.h) * self.hold * self.v

    def projected(self, ahead: Array) -> Friction:
        """Return the friction with directions that fit the rates ``ahead`` at the end of the step.

        These are the ones that follow from the present directions.
        """
        hold, v = self.hold, self.v
        reaction = (-1.0 / self.h) * (hold * ahead)
        rounding = (1e-15 / self.h) * hold * select(less(v, 0.0), -1.0 * v, v)
        limit = (1.0 + SLACK) * self.bound + rounding
        slides = select(less(self.signs * ahead, 0.0), 0.0, self.signs)
        pushed = select(less(reaction, -1.0 * limit), 1.0, 0.0)
        pushed = select(less(limit, reaction), -1.0, pushed)
        signs = select(less(0.0, self.signs * self.signs), slides, pushed)
        return self._replace(signs=select(less(0.0, self.bound), signs, 0.0))

    def stopped(self, v: Array) -> Array:
        """Return rates v without those of joints that stand, or move against their direction."""
        v = select(less(0.0, self.hold), 0.0, v)
        return select(less(self.signs * v, 0.0), 0.0, v)

    def velocity(self, v: Array) -> Array:
        """Return v (n,), but zero without rounding for joints that keep standing."""
        stand = select(less(0.0, self.v * self.v), v, 0.0)
        return select(less(0.0, self.hold), stand, v)
