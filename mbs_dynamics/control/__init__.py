# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Control of torque-driven arms without ROS: laws, checks, units of motors, sensors.

Nothing here has a clock or a thread: time is an argument, in s of one steady clock, and the same
calls give the same commands.
"""

from mbs_dynamics.control import laws
from mbs_dynamics.control.bring_up import BringUp
from mbs_dynamics.control.guard import linked
from mbs_dynamics.control.guarded_arm import Command, GuardedArm
from mbs_dynamics.control.motors import Frame, MotorCommand, Motors
from mbs_dynamics.control.references import JointTarget, PoseTarget
from mbs_dynamics.control.trajectory import Trajectory

__all__ = [
    "BringUp",
    "Command",
    "Frame",
    "GuardedArm",
    "JointTarget",
    "MotorCommand",
    "Motors",
    "PoseTarget",
    "Trajectory",
    "laws",
    "linked",
]
