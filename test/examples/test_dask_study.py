# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The studies on a local cluster of Dask: models, kernels and errors travel between processes."""

import importlib.util
import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("distributed")
pytest.importorskip("scipy")

import distributed

import mbs_dynamics as mbs
from mbs_dynamics.resources import robot_path

ARM = mbs.Model.from_urdf(robot_path("arm7"))


@pytest.fixture(scope="module")
def example():
    path = Path(__file__).parents[2] / "examples" / "dask_study.py"
    spec = importlib.util.spec_from_file_location("dask_study", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules["dask_study"] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def client(example):
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=None, silence_logs=50
        ) as cluster,
        cluster.get_client() as found,
    ):
        found.upload_file(example.__file__)
        yield found


@pytest.mark.process
def test_models_kernels_and_errors_travel_between_processes(client, example):
    masses, q = [0.1, 0.3, 0.5], np.linspace(-1.0, 1.0, 7)
    remote = client.gather(client.map(example.drift, [ARM] * 3, masses, duration=0.05))
    np.testing.assert_allclose(remote, [example.drift(ARM, m, 0.05) for m in masses], rtol=1e-12)
    kernel = mbs.compile(mbs.gravity_torques, ARM)
    np.testing.assert_allclose(client.submit(kernel, q).result(), kernel(q), rtol=1e-12)
    with pytest.raises(mbs.ModelError, match=r"mass.*-1 kg"):
        client.submit(example.drift, ARM, -1.0, 0.05).result()


@pytest.mark.process
@pytest.mark.slow  # the ensemble of simulations goes the same way
def test_an_ensemble_of_identifications_finds_the_mass(client, example, capsys):
    example.study(client, loads=4, runs=2, duration=10.0)
    said = capsys.readouterr().out
    assert "2 identifications: " in said
    found = float(said.partition("identifications: ")[2].partition(" kg")[0])
    heavy = ARM.with_payload("tool", 0.5).loaded()
    assert found == pytest.approx(heavy.bodies[-1].inertia.mass, rel=0.15)
    assert "errors of workers arrive as they were raised: ModelError" in said
