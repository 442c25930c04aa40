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
"""One robot of which gravity is compensated: what a description becomes. Knows no ROS."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import numpy as np

from mbs_dynamics.errors import ModelError, ModelWarning, UnknownJointError, UrdfError
from mbs_dynamics.model.body import GROUND
from mbs_dynamics.model.inertia import Inertia
from mbs_dynamics.model.tree import Model
from mbs_dynamics.ros.compensation.settings import GravityCompensationSettings
from mbs_dynamics.ros.compensation.torque_law import Gains, TorqueLaw
from mbs_dynamics.ros.compensation.watchdog import Continuity, Envelope
from mbs_dynamics.ros.joint_input import JointInput
from mbs_dynamics.ros.robot import Gravity, Load, root_gravity
from mbs_dynamics.tracing import default_backend


def parsed(text: str, settings: GravityCompensationSettings) -> Model:
    """Return the model that a robot description describes, or raise UrdfError or ModelError."""
    if not text.lstrip().startswith("<"):
        raise UrdfError(f"a robot description is XML; this one begins with {text[:40]!r}")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ModelWarning)  # they are among the model's doubts
        return Model.from_urdf(text, root=settings.root or None, tip=settings.tip or None)


class CompensatedArm:
    """A model, the joints that are commanded, and what is computed and watched for them.

    Raises UnknownJointError if a joint to be commanded or a fixed one is not in the model,
    ModelError if a joint to be commanded mimics another one or if no joint moves.
    """

    def __init__(self, model: Model, settings: GravityCompensationSettings) -> None:
        self.model = model
        self.joints = [_coordinate(model, name) for name in settings.joints]
        self.law = TorqueLaw(model, self.joints, self.gains(settings), settings.friction_speed)
        self.input = JointInput.of_model(
            model,
            stale_timeout=settings.stale_timeout,
            velocity_from_position=settings.velocity_from_position,
            fixed=settings.fixed,
        )
        self.continuity = Continuity(model)
        self.backend = default_backend()
        self.adapt(settings)

    def adapt(self, settings: GravityCompensationSettings) -> None:
        """Take up what takes effect at once: timeouts, margins and limits."""
        self.input.stale_timeout = settings.stale_timeout
        self.input.velocity_from_position = settings.velocity_from_position
        self.law.speed = settings.friction_speed
        self.envelope = Envelope(self.model, self.joints, settings.position_margin)
        self.efforts = tuple(
            own or settings.effort_scale * (self.model.joints[k].limits.effort or 0.0)
            for own, k in zip(settings.effort_limits, self.joints, strict=True)
        )

    def gains(self, settings: GravityCompensationSettings) -> Gains:
        """Return the gains that the settings ask for; friction that is not set is the URDF's."""
        friction = tuple(
            settings.friction_scale * (self.model.joints[k].friction if own < 0.0 else own)
            for own, k in zip(settings.friction, self.joints, strict=True)
        )
        return Gains(settings.gravity_scale, settings.damping, friction)

    def aim_gravity(self, gravity: Gravity, now: float, duration: float) -> None:
        """Move to another gravity.

        Raises UnknownBodyError for an unknown link, ModelError for one that moves, ArgumentError
        for numbers that cannot be.
        """
        self.law.gravity.aim(root_gravity(self.model, gravity), now, duration)

    def body(self, load: Load) -> int:
        """Return the body that carries a load.

        Raises UnknownBodyError for an unknown link, ModelError for one that does not move.
        """
        frame = self.model.frame(load.link)
        if frame.body == GROUND:
            raise ModelError(f"a payload at {load.link!r} has no effect: that link does not move")
        return frame.body

    def aim_loads(self, loads: Sequence[Load], now: float, duration: float) -> None:
        """Move to other loads, one a body, which exist; the others of before go.

        Raises what :meth:`body` raises.
        """
        goal = np.zeros((self.model.nb, 10))
        for load in loads:
            inertia = Inertia.from_com(load.mass, load.com, load.inertia_at_com)
            placed = inertia.transformed(self.model.frame(load.link).placement)
            goal[self.body(load)] = placed.parameters
        self.law.loads.aim(goal, now, duration)


def _coordinate(model: Model, name: str) -> int:
    if name in model.joint_names:
        return model.joint_names.index(name)
    try:
        joint = model.joint(name)
    except UnknownJointError:
        raise UnknownJointError(name, model.joint_names) from None
    raise ModelError(
        f"joint {name!r} follows joint {joint.mimics!r} and cannot be commanded; valid are "
        f"{', '.join(model.joint_names)}"
    )
