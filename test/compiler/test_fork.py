# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""A process that forks while another of its threads compiles."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from cases import mostly_slow

pytestmark = [
    pytest.mark.backend_independent,
    pytest.mark.skipif(not hasattr(os, "fork"), reason="this platform has no fork"),
]

PROGRAM = """
import faulthandler, os, sys, threading, time
import numpy as np
import mbs_dynamics as mbs
from mbs_dynamics.resources import robot_path
arm = mbs.Model.from_urdf(robot_path("arm7"))
state = np.zeros((3, 7))
thread = threading.Thread(target=lambda: mbs.forward_dynamics_derivatives(arm, *state))
thread.start()
time.sleep(float(sys.argv[1]))
child = os.fork()
if child == 0:
    faulthandler.dump_traceback_later(60, exit=True)
    mbs.gravity_torques(arm, state[0])
    mbs.forward_dynamics_derivatives(arm, *state)
    os._exit(0)
_, status = os.waitpid(child, 0)
thread.join()
sys.exit(status)
"""


@pytest.mark.parametrize("delay", mostly_slow([0.02, 0.1, 0.3], [0.1]))
def test_the_child_computes(delay):
    environment = {**os.environ, "MBS_CACHE": "0"}
    command = [sys.executable, "-c", PROGRAM, str(delay)]
    said = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert said.returncode == 0, said.stderr
