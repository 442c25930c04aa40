# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Results of simulations as motion data, and their files."""

import numpy as np
import pytest
from mechanisms import random_mechanism
from twins import mixed

from mbs_dynamics.errors import ArgumentError
from mbs_dynamics.integrate import simulate
from mbs_dynamics.model.coordinates import position_names, velocity_names
from mbs_dynamics.timeseries import TimeSeries

CHAIN = random_mechanism(2, [-1, 0, 1], ["revolute"]).model
START = np.array([0.4, -0.7, 0.9]), np.array([0.5, -0.3, 0.8])


@pytest.mark.parametrize("model", [CHAIN, mixed(0, ("free", "revolute")).model], ids=["3", "free"])
@pytest.mark.parametrize("suffix", [".npz", ".csv"])
def test_a_motion_is_read_back_from_its_file(tmp_path, suffix, model):
    control = {"control": lambda t, q, qd: -qd}
    motion = simulate(model, model.random_state().q, np.arange(model.n), duration=0.02, **control)
    motion.save(tmp_path / f"motion{suffix}")
    read = TimeSeries.read(tmp_path / f"motion{suffix}")
    for name in ("t", "q", "qd", "qdd", "tau"):
        np.testing.assert_array_equal(getattr(read, name), getattr(motion, name))
    assert read.positions == position_names(model.joints)
    assert read.joints == velocity_names(model.joints)
    np.testing.assert_array_equal(read.columns["kinetic"], motion.kinetic)
    np.testing.assert_array_equal(read.columns["potential"], motion.potential)
    momentum = np.stack([read.columns[x] for x in ("Lx", "Ly", "Lz", "Px", "Py", "Pz")], axis=1)
    np.testing.assert_array_equal(momentum, motion.momentum)
    assert f"Motion (21, {model.nq}), to 0.02 s, rk4" in repr(motion)


def test_a_batch_and_other_endings_are_refused(tmp_path):
    batch = simulate(CHAIN, [START[0]] * 2, duration=0.01)
    with pytest.raises(ArgumentError, match=r"one simulation, not a batch \(2,\)"):
        batch.save(tmp_path / "batch.csv")
    with pytest.raises(ArgumentError, match=r"\.csv or \.npz"):
        simulate(CHAIN, *START, duration=0.01).save(tmp_path / "motion.bag")
    assert not list(tmp_path.iterdir())
