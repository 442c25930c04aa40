# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""One step in joint coordinates: explicit Euler, semi-implicit Euler, and Runge-Kutta of order 4.

The state is x = (q, qd), (2, n). Motor torques and applied wrenches are held over a step of h. The
forces of :class:`JointForces` are added. They are stiff: friction of 5 N m that is smooth within
0.01 rad/s damps by 500 N m s/rad, and a stop is a hard spring. So they are taken implicitly, at the
end of the step, and linearised (:func:`stiff_forces`): the change delta of the rates obeys

    (M + h D + h^2 K) delta = h (f - D v - K (ahead - bound)),

where ``ahead`` is the position at which the spring is evaluated, less h delta. A joint at a stop
thus comes to rest in two steps however stiff the spring, M constant, and stays where the forces are
in balance. Each scheme needs its own ``ahead``:

=================  ========================================  =====  ==============================
method             the step                                  order  ahead
=================  ========================================  =====  ==============================
explicit_euler     q + h v,  v + delta                       1      q + 2 h v
semi_implicit      q + h (v + delta),  v + delta             1      q + h v
rk4                Runge-Kutta without friction and stops,   4      q' + h v' / 2
                   giving q', v'; then q' + h delta / 2,
                   v' + delta with f = 0
=================  ========================================  =====  ==============================

Viscous damping is implicit in the Euler schemes and explicit in rk4, which is stable for h < 2.7
I / d. Where friction or stops act, rk4 is of order 1; elsewhere of order 4.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from mbs_dynamics.algorithms import forward_dynamics, mass_matrix
from mbs_dynamics.algorithms.mass_matrix import factorize, solve
from mbs_dynamics.algorithms.newton_euler import Loads, newton_euler
from mbs_dynamics.integrate.joint_forces import Features, Stiff, stiff_forces
from mbs_dynamics.lie.arrays import Array
from mbs_dynamics.representation.tree import Tree


class Step:
    """The equations of one step of a model, over symbols or numbers."""

    def __init__(
        self,
        model: Tree,
        features: Features,
        representation: str,
        *,
        effort: Array,
        wrenches: Array | None,
        joints: Array | None,
    ) -> None:
        self.model = model
        self.features = features
        self.representation = representation
        self.effort = effort
        self.wrenches = wrenches
        self.joints = joints

    def acceleration(self, q: Array, v: Array) -> Array:
        """Return qdd (n,) under motors, wrenches, gravity and viscous damping."""
        tau = self.effort
        if self.features.damping and self.joints is not None:
            tau = tau - self.joints[0] * v
        form = self.representation
        found: Array = forward_dynamics(self.model, q, v, tau, self.wrenches, representation=form)
        return found

    def stiff(self, v: Array, ahead: Array) -> Stiff | None:
        """Return friction and stops, or None if there are none."""
        if self.joints is None or not (self.features.friction or self.features.stops):
            return None
        return stiff_forces(self.joints, self.features, v, ahead)

    def euler_change(self, q: Array, v: Array, ahead: Array, h: Any) -> Array:
        """Return delta (n,) of a step with all joint forces implicit."""
        stiff = self.stiff(v, ahead)
        if stiff is None and not self.features.damping:
            return h * self.acceleration(q, v)
        n = self.model.n
        D, K, excess = stiff or Stiff([0.0] * n, [0.0] * n, [0.0] * n)
        if self.features.damping and self.joints is not None:
            D = [D[k] + self.joints[0][k] for k in range(n)]
        loads = Loads(self.wrenches)
        bias = newton_euler(self.model, q, v, np.zeros(n), self.representation, loads)
        f = [self.effort[k] - bias[k] for k in range(n)]
        return self._implicit(q, f, v, Stiff(D, K, excess), h)

    def rest_change(self, q: Array, v: Array, stiff: Stiff, h: Any) -> Array:
        """Return delta (n,) by friction and stops alone, for rates v without them."""
        return self._implicit(q, [0.0] * self.model.n, v, stiff, h)

    def _implicit(self, q: Array, f: list[Any], v: Array, stiff: Stiff, h: Any) -> Array:
        """Return delta (n,) of (M + h D + h^2 K) delta = h (f - D v - K excess)."""
        M = np.array(mass_matrix(self.model, q, representation="body_fixed"), dtype=object)
        right = []
        for k, (d, spring, out) in enumerate(zip(*stiff, strict=True)):
            M[k, k] = M[k, k] + h * d + (h * h) * spring
            right.append(h * (f[k] - d * v[k] - spring * out))
        return solve(*factorize(self.model, M), np.array(right, dtype=object))


def explicit_euler(step: Step, q: Array, v: Array, h: Any) -> tuple[Array, Array]:
    """Return q and qd after a step with the rates of its beginning."""
    return q + h * v, v + step.euler_change(q, v, q + (2.0 * h) * v, h)


def semi_implicit_euler(step: Step, q: Array, v: Array, h: Any) -> tuple[Array, Array]:
    """Return q and qd after a step with the rates of its end; symplectic if M is constant."""
    v_new = v + step.euler_change(q, v, q + h * v, h)
    return q + h * v_new, v_new


def rk4(step: Step, q: Array, v: Array, h: Any) -> tuple[Array, Array]:
    """Return q and qd after a step of the classical Runge-Kutta scheme."""
    half = 0.5 * h
    a1 = step.acceleration(q, v)
    v2 = v + half * a1
    a2 = step.acceleration(q + half * v, v2)
    v3 = v + half * a2
    a3 = step.acceleration(q + half * v2, v3)
    v4 = v + h * a3
    a4 = step.acceleration(q + h * v3, v4)
    sixth = h * (1.0 / 6.0)
    q_new = q + sixth * (v + 2.0 * (v2 + v3) + v4)
    v_new = v + sixth * (a1 + 2.0 * (a2 + a3) + a4)
    stiff = step.stiff(v, q_new + half * v_new)
    if stiff is None:
        return q_new, v_new
    delta = step.rest_change(q, v_new, stiff, h)
    return q_new + half * delta, v_new + delta


STEPS: dict[str, Callable[[Step, Array, Array, Any], tuple[Array, Array]]] = {
    "explicit_euler": explicit_euler,
    "semi_implicit_euler": semi_implicit_euler,
    "rk4": rk4,
}
"""Schemes with a fixed step whose whole step is one kernel."""
