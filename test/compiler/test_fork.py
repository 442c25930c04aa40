# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""A process that forks while another of its threads compiles."""

import os

import pytest
from backends import run_python
from cases import mostly_slow

pytestmark = [
    pytest.mark.process,
    pytest.mark.skipif(not hasattr(os, "fork"), reason="this platform has no fork"),
]

PROGRAM = """
import faulthandler, os, sys, threading, time
import numpy as np
import mbs_dynamics as mbs
from mbs_dynamics.resources import robot_path

arm = mbs.Model.from_urdf(robot_path("arm7"))
state = np.zeros((3, 7))
first, every, most = map(float, sys.argv[1:])

def compiles():
    mbs.coriolis_matrix(arm, *state[:2])
    mbs.forward_dynamics_derivatives(arm, *state)

thread = threading.Thread(target=compiles)
thread.start()
time.sleep(first)
for _ in range(int(most)):
    child = os.fork()
    if child == 0:
        faulthandler.dump_traceback_later(600, exit=True)
        mbs.inverse_mass_matrix(arm, state[0])
        os._exit(0)
    _, status = os.waitpid(child, 0)
    if status or not thread.is_alive():
        break
    time.sleep(every)
thread.join()
sys.exit(os.waitstatus_to_exitcode(status))
"""


@pytest.mark.parametrize("first", mostly_slow([0.0, 0.01, 0.02, 0.04, 0.08, 0.16, 0.3], [0.0]))
@pytest.mark.parametrize("every", [0.0, 0.02])
def test_a_child_compiles_whenever_the_process_forks(first, every):
    ended = run_python(PROGRAM, first, every, 20, MBS_CACHE="0")
    assert ended.returncode == 0, ended.stderr
