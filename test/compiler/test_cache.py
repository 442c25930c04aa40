# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The cache of compiled objects: what is kept, what is trusted, and what is not."""

import os
import stat
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mbs_dynamics.compiler import Kernel, sin, trace
from mbs_dynamics.compiler.jit import cache, machine_code

pytestmark = pytest.mark.skipif(not hasattr(os, "geteuid"), reason="files have no owners here")

NAME = cache.key("an object")


@pytest.fixture
def place(tmp_path, monkeypatch):
    folder = tmp_path / "kept" / "here"
    monkeypatch.setenv("MBS_CACHE_DIR", str(folder))
    monkeypatch.delenv("MBS_CACHE", raising=False)
    return folder


def the_file(place: Path) -> Path:
    (file,) = place.iterdir()
    return file


def test_the_folder(monkeypatch):
    for name in ("MBS_CACHE", "MBS_CACHE_DIR", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", "/home/someone")
    assert cache.folder() == "/home/someone/.cache/mbs_dynamics"
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    assert cache.folder() == "/home/someone/.cache/mbs_dynamics"
    monkeypatch.setenv("XDG_CACHE_HOME", "/caches")
    assert cache.folder() == "/caches/mbs_dynamics"
    monkeypatch.setenv("MBS_CACHE_DIR", "/kept")
    assert cache.folder() == "/kept"
    monkeypatch.setenv("MBS_CACHE", "1")
    assert cache.folder() == "/kept"
    monkeypatch.setenv("MBS_CACHE", "0")
    assert cache.folder() is None


def test_what_is_stored_is_found(place):
    assert cache.load(NAME) is None
    cache.store(NAME, b"machine code")
    assert cache.load(NAME) == b"machine code"
    assert cache.load(cache.key("another")) is None
    cache.store(NAME, b"")
    assert cache.load(NAME) == b""


def test_permissions_are_private(place):
    old = os.umask(0)
    try:
        cache.store(NAME, b"machine code")
    finally:
        os.umask(old)
    assert stat.S_IMODE(place.stat().st_mode) == 0o700
    assert stat.S_IMODE(the_file(place).stat().st_mode) == 0o600


def test_damaged_files_are_ignored_and_written_again(place):
    cache.store(NAME, b"machine code")
    file = the_file(place)
    whole = file.read_bytes()
    for k in (0, len(cache.VERSION), len(whole) - 1):
        wrong = bytearray(whole)
        wrong[k] ^= 1
        file.write_bytes(wrong)
        assert cache.load(NAME) is None
    for length in (0, 5, len(cache.VERSION), len(whole) - 1):
        file.write_bytes(whole[:length])
        assert cache.load(NAME) is None
    file.write_bytes(whole + b"x")
    assert cache.load(NAME) is None
    cache.store(NAME, b"machine code")
    assert cache.load(NAME) == b"machine code"
    other = cache.key("another")
    file.rename(place / (other + cache.SUFFIX))
    assert cache.load(other) is None


@pytest.mark.parametrize("mode", [0o770, 0o707, 0o1777])
def test_folders_that_others_can_write_are_not_used(place, mode):
    cache.store(NAME, b"machine code")
    place.chmod(mode)
    assert cache.load(NAME) is None
    cache.store(cache.key("another"), b"more")
    assert len(list(place.iterdir())) == 1


def test_what_belongs_to_others_is_not_used(place, monkeypatch):
    cache.store(NAME, b"machine code")
    monkeypatch.setattr(os, "geteuid", lambda: place.stat().st_uid + 1)
    assert cache.load(NAME) is None
    cache.store(cache.key("another"), b"more")
    assert len(list(place.iterdir())) == 1


def test_the_oldest_go_when_there_are_too_many(place, monkeypatch):
    names = [cache.key(str(k)) for k in range(6)]
    for k, name in enumerate(names):
        cache.store(name, bytes(1000))
        os.utime(place / (name + cache.SUFFIX), (1000.0 + k, 1000.0 + k))
    assert cache.load(names[0]) is not None  # used: the newest now
    (place / f"abandoned{cache.SUFFIX}").write_bytes(b"x")
    os.utime(place / f"abandoned{cache.SUFFIX}", (1000.0, 1000.0))
    (place / "notes").write_bytes(b"not ours")
    os.utime(place / "notes", (1000.0, 1000.0))
    monkeypatch.setattr(cache, "LARGEST", 3500)
    cache._tidy.cache_clear()  # as in a new process
    cache.store(cache.key("new"), bytes(10))
    left = {name for name in names if cache.load(name) is not None}
    assert left == {names[0], names[4], names[5]}
    assert {x.stem for x in place.iterdir()} == {*left, "notes", cache.key("new")}


def kernel(seed: float = 1.0) -> Kernel:
    pytest.importorskip("llvmlite")
    return Kernel(trace(lambda x: sin(x) * (1.0 + seed), {"x": (3,)}, name="f"), backend="llvm")


X = np.array([0.1, 0.2, -0.3])


def counted(monkeypatch: Any) -> list[str]:
    """Return a list that grows by the key of each object that is stored."""
    stored: list[str] = []
    store = cache.store

    def counting(name: str, contents: bytes) -> None:
        stored.append(name)
        store(name, contents)

    monkeypatch.setattr(cache, "store", counting)
    return stored


def test_a_kernel_is_compiled_once(place, monkeypatch):
    kernel(0.5)  # what all kernels share
    stored = counted(monkeypatch)
    first = kernel(2.0)(X)
    assert len(stored) == 1
    np.testing.assert_array_equal(kernel(2.0)(X), first)
    assert len(stored) == 1
    np.testing.assert_allclose(kernel(3.0)(X), 4.0 * np.sin(X), rtol=1e-15)
    assert len(stored) == 2


def test_other_processors_and_versions_have_other_objects(place, monkeypatch):
    kernel(0.5)
    stored = counted(monkeypatch)
    kernel(6.0)
    processor = machine_code._host()
    for k in range(len(processor)):
        changed = (*processor[:k], processor[k] + "x", *processor[k + 1 :])
        monkeypatch.setattr(machine_code, "_host", lambda changed=changed: changed)
        kernel(6.0)
    monkeypatch.setattr(machine_code, "_version", lambda: "another")
    kernel(6.0)
    assert len(stored) == len(set(stored)) == len(processor) + 2
