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
"""The equations of the papers for a whole mechanism at once, as short products of large matrices.

The twists of all bodies, one below the other, are one column V (6 nb,). A recursion from body to
body is then a single equation between block matrices, and its solution a product of them. Nothing
here is fast. It is there to be read beside the papers, and as an oracle for the algorithms, with
which it shares no recursion: poses are products of exponentials of the screws at q = 0, and all
else is written down block by block. The equations of one body are in rigid_body.py.
"""

from mbs_dynamics.closed_form.accelerations import MovingSystem
from mbs_dynamics.closed_form.dynamics import DynamicSystem
from mbs_dynamics.closed_form.kinematics import System

__all__ = ["DynamicSystem", "MovingSystem", "System"]
