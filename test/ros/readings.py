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
"""Readings, for tests of what is made of them."""

from __future__ import annotations

import numpy as np

from mbs_dynamics.ros.joint_input import NO_EFFORTS, Efforts, Reading


def reading(q, qd, efforts=None, stamp=0):
    """Return a reading; ``qd`` None: no velocities; ``efforts`` None: none, or torques (n,)."""
    if efforts is None:
        efforts = Efforts(np.full(np.size(q), np.nan), NO_EFFORTS)
    elif not isinstance(efforts, Efforts):
        efforts = Efforts(efforts)
    return Reading(q, qd, "" if qd is not None else "none sent", efforts, stamp, False)
