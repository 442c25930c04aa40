# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Bags whose recorder was killed: read as far as they go, with a note."""

from __future__ import annotations

import shutil

import numpy as np
import pytest
from bags import write_bag
from identification_bench import recorded

from mbs_dynamics.identification import RecordingError, read_recording

pytestmark = pytest.mark.backend_independent

SHORT = recorded(1, duration=3.0, rate=100.0)


@pytest.fixture
def bag(tmp_path, request):
    storage = request.param
    write_bag(tmp_path / "bag", SHORT, storage)
    suffix = {"sqlite3": "*.db3", "mcap": "*.mcap"}[storage]
    return next((tmp_path / "bag").glob(suffix))


@pytest.mark.parametrize("bag", ["mcap", "sqlite3"], indirect=True)
@pytest.mark.parametrize("share", [0.4, 0.9])
def test_a_file_that_is_cut_is_read_up_to_its_end_with_a_note(bag, share, tmp_path):
    data = bag.read_bytes()
    cut = tmp_path / f"cut{bag.suffix}"
    cut.write_bytes(data[: int(len(data) * share)])
    found = read_recording(cut)
    count = len(found.t)
    assert 10 < count < len(SHORT.t)
    assert any("not closed" in note and str(count) in note for note in found.notes)
    np.testing.assert_allclose(found.q, SHORT.q[:count])
    np.testing.assert_allclose(found.tau, SHORT.tau[:count])


@pytest.mark.parametrize("bag", ["mcap", "sqlite3"], indirect=True)
def test_files_of_a_split_bag_without_metadata_are_read_in_their_order(bag, tmp_path):
    folder = tmp_path / "killed"
    folder.mkdir()
    parts = np.array_split(np.arange(len(SHORT.t)), 11)
    for k, part in enumerate(parts):
        write_bag(
            tmp_path / f"part{k}",
            SHORT.samples(part),
            "mcap" if bag.suffix == ".mcap" else "sqlite3",
        )
        shutil.copy(
            next((tmp_path / f"part{k}").glob(f"*{bag.suffix}")), folder / f"run_{k}{bag.suffix}"
        )
    last = folder / f"run_10{bag.suffix}"
    last.write_bytes(last.read_bytes()[: -100 if bag.suffix == ".mcap" else None])
    found = read_recording(folder)
    assert any("metadata.yaml is missing" in note for note in found.notes)
    np.testing.assert_allclose(found.q, SHORT.q)


@pytest.mark.parametrize("bag", ["mcap"], indirect=True)
def test_a_bag_of_which_one_file_was_cut_is_read(bag):
    bag.write_bytes(bag.read_bytes()[:-200])
    found = read_recording(bag.parent)
    assert any("not closed" in note for note in found.notes)
    np.testing.assert_allclose(found.q, SHORT.q[: len(found.t)])


def test_folders_and_files_without_joint_states_are_refused(tmp_path):
    with pytest.raises(RecordingError, match=r"metadata\.yaml"):
        read_recording(tmp_path)
    for name, data in (("a.mcap", b"\x89MCAP0\r\n"), ("b.mcap", b"none"), ("c.db3", b"none")):
        (tmp_path / name).write_bytes(data)
        with pytest.raises(RecordingError, match="cannot be read as a bag"):
            read_recording(tmp_path / name)
