# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The same quantities from Pinocchio, by the names of joints and links."""

from __future__ import annotations

import numpy as np
import pinocchio as pin


class Reference:
    """A robot in Pinocchio, with joints in the order of ``joint_names``."""

    def __init__(self, text, joint_names):
        self.model = pin.buildModelFromXML(text, mimic=True)
        self.data = self.model.createData()
        self.columns = [self.model.joints[self.model.getJointId(n)].idx_v for n in joint_names]
        assert sorted(self.columns) == list(range(self.model.nv))

    def _order(self, values):
        ordered = np.zeros(self.model.nv)
        ordered[self.columns] = values
        return ordered

    def _configuration(self, q):
        """Pinocchio holds a continuous joint as cosine and sine."""
        full = pin.neutral(self.model)
        for joint in self.model.joints:
            if joint.nq == 1 and joint.nv == 1 and joint.id > 0:
                full[joint.idx_q] = q[joint.idx_v]
            elif joint.nq == 2:
                full[joint.idx_q : joint.idx_q + 2] = np.cos(q[joint.idx_v]), np.sin(q[joint.idx_v])
        return full

    def bias_torques(self, q, qd):
        q, qd = self._configuration(self._order(q)), self._order(qd)
        tau = pin.rnea(self.model, self.data, q, qd, np.zeros(self.model.nv))
        return tau[self.columns]

    def gravity_torques(self, q):
        return self.bias_torques(q, np.zeros(len(self.columns)))

    def jacobian(self, q, link, representation):
        """Return (6, n), linear part first."""
        frames = {
            "body_fixed": pin.LOCAL,
            "spatial": pin.WORLD,
            "hybrid": pin.LOCAL_WORLD_ALIGNED,
        }
        q = self._configuration(self._order(q))
        frame = self.model.getFrameId(link)
        J = pin.computeFrameJacobian(self.model, self.data, q, frame, frames[representation])
        return J[:, self.columns]
