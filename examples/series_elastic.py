# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Feed-forward for an arm with elastic joints: it follows a trajectory without any feedback.

Springs of stiffness K (N m/rad) lie between the motors and the links (Spong, Modeling and control
of elastic joint robots, 1987), with motor positions theta and rotor inertias B seen at the joints:

    M(q) qdd + h(q, qd) = K (theta - q)             the links, driven by the springs
    B thetadd + K (theta - q) = tau_motor           the rotors, driven by the motors

The link positions q are a flat output (De Luca and Book, Robots with flexible elements, 2016): a
trajectory q(t) that is four times differentiable determines all other quantities. With the spring
torque tau = M qdd + h and its rates, Mueller (dynamics), section 6.3:

    theta = q + K^-1 tau,    thetadd = qdd + K^-1 taudd,    tau_motor = B thetadd + tau

It prints the motions and torques of the motors, and the errors of a model without springs.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

import mbs_dynamics as mbs
from mbs_dynamics.resources import robot_path

FloatArray = NDArray[np.float64]


class FeedForward(NamedTuple):
    """Motion of the motors, each (..., n): rad, rad/s and N m."""

    theta: FloatArray
    thetad: FloatArray
    tau_motor: FloatArray


def feed_forward(arm: mbs.Model, motion: FloatArray, K: FloatArray, B: FloatArray) -> FeedForward:
    """Return the motion of the motors for ``motion`` (5, ..., n), q and its derivatives."""
    q, qd, qdd = motion[:3]
    tau = mbs.inverse_dynamics(arm, q, qd, qdd)
    taud, taudd = mbs.inverse_dynamics_rates(arm, *motion)
    return FeedForward(q + tau / K, qd + taud / K, B * (qdd + taudd / K) + tau)


def elastic_dynamics(
    arm: mbs.Model, x: FloatArray, tau_motor: FloatArray, K: FloatArray, B: FloatArray
) -> FloatArray:
    """Return the rate of the state x = (q, theta, qd, thetad), (4, n)."""
    q, theta, qd, thetad = x
    tau = K * (theta - q)
    return np.array([qd, thetad, mbs.forward_dynamics(arm, q, qd, tau), (tau_motor - tau) / B])


def rest_to_rest(start: FloatArray, goal: FloatArray, duration: float, t: FloatArray) -> FloatArray:
    """Return q and its first four derivatives (5, len(t), n), the latter zero at both ends."""
    shape = np.polynomial.Polynomial([0, 0, 0, 0, 0, 126, -420, 540, -315, 70])
    s = np.asarray(t) / duration
    rates = [shape(s)] + [shape.deriv(k)(s) / duration**k for k in range(1, 5)]
    motion: FloatArray = np.multiply.outer(np.array(rates), goal - start)
    motion[0] += start
    return motion


def main() -> None:
    """Print torques of the motors and windings of the springs along a motion of the arm."""
    arm = mbs.Model.from_urdf(robot_path("arm7"))
    K, B = np.full(arm.n, 300.0), np.full(arm.n, 0.3)
    start, goal = np.zeros(arm.n), np.linspace(0.9, -0.6, arm.n)
    t = np.linspace(0.0, 1.0, 6)
    motion = rest_to_rest(start, goal, 1.0, t)
    theta, _, tau_motor = feed_forward(arm, motion, K, B)
    print("  time   winding of the springs in mrad, and below it torques of the motors in N m")
    for k, now in enumerate(t):
        print(f"{now:4.1f} s", *(f"{1e3 * x:9.2f}" for x in theta[k] - motion[0, k]))
        print("      ", *(f"{x:9.2f}" for x in tau_motor[k]))
    rigid = mbs.inverse_dynamics(arm, *motion[:3]) + B * motion[2]
    winding, missing = np.abs(theta - motion[0]).max(), np.abs(tau_motor - rigid).max()
    print(f"Without springs in the model: off by up to {winding:.2f} rad and {missing:.1f} N m.")


if __name__ == "__main__":
    main()
