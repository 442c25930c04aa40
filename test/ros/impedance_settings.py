# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Settings of the impedance control node without ROS."""

from gravity_bench import settings

from mbs_dynamics.ros.compensation.impedance import ImpedanceControlSettings
from mbs_dynamics.settings import parameters_of


def impedance_settings(**values):
    """Return the settings of the bench, soft enough for its period of 10 ms."""
    given = {one.name: getattr(settings(), one.name) for one in parameters_of(type(settings()))}
    return ImpedanceControlSettings(**(given | {"stiffness": (0.1,) * 7} | values))
