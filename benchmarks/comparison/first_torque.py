# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Print the seconds of CPU time from the first import to the first torque of the arm in a URDF.

Those of this thread: threads that libraries start, such as those of OpenBLAS, keep nobody waiting.
Run as ``python first_torque.py URDF`` in a separate process.
"""

from time import thread_time

BEGIN = thread_time()

import sys  # noqa: E402

import numpy as np  # noqa: E402

import mbs_dynamics as mbs  # noqa: E402

MODEL = mbs.Model.from_urdf(sys.argv[1])
REST = np.zeros(MODEL.n)
mbs.inverse_dynamics(MODEL, REST, REST, REST)
print(thread_time() - BEGIN)
