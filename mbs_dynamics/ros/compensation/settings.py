# Copyright 2026 The mbs_dynamics authors
#
# Licensed under the Apache License, Version 2.0 (the "License");
# you may not use this file except in compliance with the License.
# You may obtain a copy of the License at
#
#     http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS,
# WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
# See the License for the specific language governing permissions and
# limitations under the License.
"""What can be set on the gravity compensation node: defaults, meanings, and what is refused.

Knows no ROS.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any

from mbs_dynamics import checks
from mbs_dynamics.errors import ArgumentError
from mbs_dynamics.ros.compensation.command_policy import ON_FAULT
from mbs_dynamics.ros.settings import (
    LARGEST_GRAVITY,
    DescribedSettings,
    check_gravity,
    check_once,
    setting,
)

AT_REST_ONLY = frozenset(
    {"compensates_itself", "effort_limits", "effort_scale", "effort_rate_limit", "ramp_time"}
)
"""What changes only while no torque is commanded or held."""


def by_joint(default: float, description: str, range: tuple[float, float]) -> Any:
    """Return a field with one number per joint of ``joints``; parameters ``<field>.<joint>``."""
    about = {
        "description": description,
        "read_only": False,
        "range": None,
        "constraints": "",
        "each": range,
        "each_default": default,
    }
    return field(default=(), metadata=about)


@dataclass(frozen=True)
class GravityCompensationSettings(DescribedSettings):
    """The parameters of the gravity compensation node; ArgumentError says what is wrong."""

    joints: tuple[str, ...] = setting(
        (),
        "Joints to command, in the order in which the controller takes them. Must be set.",
        read_only=True,
        constraints="Names of joints of the robot that mimic no other, each at most once.",
    )
    command_topic: str = setting(
        "/forward_effort_controller/commands",
        "Topic of the commands, std_msgs/Float64MultiArray in the order of joints.",
        read_only=True,
        constraints="A topic name; without a slash in front it is in the node's namespace.",
    )
    compensates_itself: bool | None = setting(
        None,
        "Whether the robot or its driver already compensates gravity. Must be set; only if it is "
        "false can torques be enabled.",
        constraints="Changes only while disabled.",
    )
    effort_limits: tuple[float, ...] = by_joint(
        0.0,
        "Largest torque of this joint, N m or N. 0: the URDF's limit times effort_scale. Changes "
        "only while disabled.",
        (0.0, 1e5),
    )
    effort_scale: float = setting(
        1.0,
        "Share of the URDF's effort limits that may be commanded.",
        range=(0.01, 1.0),
        constraints="Changes only while disabled.",
    )
    effort_rate_limit: float = setting(
        1000.0,
        "Largest change of each torque, N m/s or N/s.",
        range=(0.1, 1e6),
        constraints="Changes only while disabled. Times ramp_time at least the largest torque.",
    )
    ramp_time: float = setting(
        2.0,
        "Time in which torques come in and go out, and in which changes of gravity, payload and "
        "gains take effect, s.",
        range=(0.05, 10.0),
        constraints="Changes only while disabled.",
    )
    gravity_scale: tuple[float, ...] = by_joint(
        1.0, "Share of this joint's gravity torque that is commanded.", (0.0, 1.5)
    )
    damping: tuple[float, ...] = by_joint(
        0.0, "Viscous damping that is added at this joint, N m s/rad or N s/m.", (0.0, 1e4)
    )
    friction: tuple[float, ...] = by_joint(
        -1.0, "Coulomb friction of this joint, N m or N. -1: that of the URDF.", (-1.0, 1e4)
    )
    friction_scale: float = setting(
        0.0, "Share of the Coulomb friction that is compensated.", range=(0.0, 1.0)
    )
    friction_speed: float = setting(
        0.05,
        "Speed at which 76 % of that is reached, rad/s or m/s: smooth at zero.",
        range=(0.001, 10.0),
    )
    gravity: tuple[float, float, float] = setting(
        (0.0, 0.0, -9.81),
        "Free-fall acceleration in the root link's frame, m/s^2. The topic ~/gravity replaces it; "
        "what was set last is in force.",
        constraints=f"Three finite numbers, a length of at most {LARGEST_GRAVITY:g}.",
    )
    use_imu: bool = setting(
        False,
        "Take gravity, and the acceleration of the base, from the topic imu.",
        read_only=True,
    )
    imu_time_constant: float = setting(
        0.1, "Time constant of the low-pass on the imu, s. 0: none.", range=(0.0, 10.0)
    )
    on_fault: str = setting(
        "ramp_down",
        "What is done at a fault: hold (stop publishing), ramp_down, or zero.",
        constraints=f"One of {', '.join(ON_FAULT)}.",
    )
    stale_timeout: float = setting(
        0.2,
        "Without valid joint_states (and imu, if used) for this long, s, it stops.",
        range=(0.005, 10.0),
    )
    callback_timeout: float = setting(
        0.1, "A callback that takes longer than this, s, stops it.", range=(1e-6, 10.0)
    )
    position_margin: float = setting(
        0.05,
        "How far beyond its limit a joint may be, rad or m, before it stops.",
        range=(0.0, 1.0),
    )
    velocity_from_position: bool = setting(
        False, "Take velocities as differences of positions where a driver sends none."
    )
    autostart: bool = setting(
        True,
        "Configure and activate on start. False: wait for lifecycle transitions. Torques are "
        "enabled by the service alone.",
        read_only=True,
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        check_once("joints", "joint", self.joints)
        if self.on_fault not in ON_FAULT:
            raise ArgumentError(
                f"on_fault is {self.on_fault!r}; valid is one of {', '.join(ON_FAULT)}"
            )
        check_gravity("gravity", self.gravity)
        for item in fields(self):
            if "each" in item.metadata:
                self._fill(item.name, item.metadata["each_default"], *item.metadata["each"])

    def _fill(self, name: str, default: float, low: float, high: float) -> None:
        given = getattr(self, name) or (default,) * len(self.joints)
        values = checks.numbers(name, given, (len(self.joints),)).tolist()
        for joint, value in zip(self.joints, values, strict=True):
            if not low <= value <= high:
                raise ArgumentError(f"{name}.{joint} is {value:g}; valid is {low:g} to {high:g}")
        object.__setattr__(self, name, tuple(values))
