# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The PUMA study in a short form: what is said in docs/examples/puma_study.md is so.

The times at which a simulation deviates depend on the integrator: in an unstable motion, every
decade of accuracy buys some 0.08 s. They are compared to 0.1 s.
"""

import numpy as np
import pytest
from reference import assert_close

import mbs_dynamics as mbs
from examples import puma_study as study


def test_the_desired_motion():
    """Eq. (38): from 0 to pi within T, at rest at both ends; its rates are its derivatives."""
    t = np.linspace(0.0, 10.0, 9)
    q, qd, qdd = study.desired(t)
    assert_close(q[0], np.zeros(6))
    assert_close(q[-1], np.full(6, np.pi))
    assert_close(qd[[0, -1]], np.zeros((2, 6)))
    h = 1e-5
    ahead, behind = study.desired(t + h), study.desired(t - h)
    assert_close((ahead[0] - behind[0]) / (2 * h), qd, 1e-9)
    assert_close((ahead[1] - behind[1]) / (2 * h), qdd, 1e-9)


def test_mass_matrix_is_regular_with_the_right_constant():
    """The smallest eigenvalue is 2.8e-4 kg m^2 or more: there is no zero eigenvalue."""
    values = study.smallest_eigenvalues(study.puma(), np.linspace(0.0, 10.0, 2001))
    assert 2.7e-4 < values.min() < 2.9e-4
    assert study.singular_instants(study.puma()) == []


def test_mass_matrix_is_singular_twice_with_the_printed_constant():
    model = study.puma(printed=True)
    assert_close(study.singular_instants(model), [4.520, 5.445], 1e-3)
    assert study.smallest_eigenvalues(model, np.array([5.0]))[0] < -0.1


def test_both_algorithms_solve_with_an_indefinite_matrix():
    """The methods of the package: test_puma_there_and_back_along_the_trajectory."""
    M, b = mbs.mass_matrix(study.puma(printed=True), study.desired(3.0)[0]), np.arange(6.0)
    for solve in study.UNGUARDED.values():
        assert_close(M @ solve(M, b), b, 1e-10)


@pytest.fixture(scope="module")
def simulated():
    return {
        name: study.forced(study.puma(), solver, 6.5, step=0.005)
        for name, solver in study.SOLVERS.items()
    }


@pytest.mark.long
def test_both_algorithms_deviate_together_with_the_right_constant(simulated):
    times = {name: study.first_deviations(x.t, x.q) for name, x in simulated.items()}
    assert_close(times["UDU^T"], times["Cholesky"], 0.005)
    for found in times.values():
        assert np.abs(found - [5.86, 5.85, 5.65, 5.83, 5.69, 5.65]).max() < 0.1


@pytest.mark.long
def test_power_balances_until_the_motion_is_unstable(simulated):
    motion = simulated["UDU^T"]
    wanted, found = study.powers(study.puma(), motion.t, motion.qd)
    assert np.abs(found - wanted)[motion.t < 5.0].max() < 1e-4
    assert np.abs(found - wanted)[motion.t > 6.0].max() > 0.1


@pytest.mark.long
def test_the_printed_constant_gives_the_printed_times():
    """UDU^T goes through the first singular instant and is lost at the second one."""
    model = study.puma(printed=True)
    t, states, _ = study.forced_unguarded(model, "UDU^T")
    found = study.first_deviations(t, states[:, 0])
    assert np.abs(found - study.TABLE_3["UDU^T"]).max() < 0.2
    assert 5.40 < found.min() <= found.max() < 5.45
    t, states, ended = study.forced_unguarded(model, "Cholesky")
    assert ended == "the mass matrix is not positive definite"
    assert 4.3 < t[-1] < 4.521
    with pytest.raises(mbs.errors.SimulationError, match="singular"):
        study.forced(model, "udut", step=0.01)


def test_the_motion_itself_is_unstable():
    model = study.puma()
    growth = study.growth_rates(model, np.array([2.0, 4.9, 5.25, 6.5]))
    assert (growth[:2] < 1.5).all()
    assert_close(growth[2:], [15.2, 32.7], 0.01)


@pytest.mark.long
def test_an_accurate_integrator_follows_for_five_seconds():
    motion = study.forced(study.puma(), "udut", 5.0, rtol=1e-12, atol=1e-12, step=0.01)
    assert np.abs(motion.q - study.desired(motion.t)[0]).max() < 1e-9


def test_without_gravity_the_simulation_follows_to_the_end():
    motion = study.forced(study.puma(gravity=0.0), "udut", 10.0, step=0.01)
    assert np.abs(motion.q - study.desired(motion.t)[0]).max() < 1e-3
