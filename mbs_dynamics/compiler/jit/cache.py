# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Compiled objects on disk, so that the next start of a process loads instead of compiling.

What is loaded runs as machine code of this process. So the folder must belong to the user and be
writeable by nobody else, or it is not used: who can write there could act as the user. Each file
carries a checksum over its key and its contents, which finds truncated and damaged files, not
forged ones. A file is written under another name and renamed, so that no reader sees a part of it,
whoever writes at the same time. Nothing fails if the folder cannot be used; kernels are then
compiled each time, which is logged if others can write there.

The folder is MBS_CACHE_DIR, else mbs_dynamics in XDG_CACHE_HOME, else ~/.cache/mbs_dynamics. It can
be deleted at any time. MBS_CACHE=0 switches the cache off.
"""

from __future__ import annotations

import contextlib
import functools
import os
import stat
from hashlib import blake2b

from mbs_dynamics.errors import log_once

VERSION = b"mbs-dynamics-2\n"
"""Header of each file. Files with the header of another version are not used."""

LARGEST = 256 * 2**20
"""Maximum size of the folder in bytes. Above it the least recently used files are deleted."""

DIGEST = 32
"""Bytes of a checksum and of a key."""

SUFFIX = ".object"

REMEDY = "Kernels are compiled each time; set MBS_CACHE_DIR to a folder of your own, or MBS_CACHE=0"


def folder() -> str | None:
    """Return the folder of objects; None if the cache is switched off or there is no folder."""
    if os.environ.get("MBS_CACHE") == "0" or not hasattr(os, "geteuid"):
        return None
    named = os.environ.get("MBS_CACHE_DIR")
    if named:
        return named
    base = os.environ.get("XDG_CACHE_HOME", "")
    if not os.path.isabs(base):  # the standard wants relative paths to be ignored
        base = os.path.expanduser("~/.cache")
    return os.path.join(base, "mbs_dynamics") if os.path.isabs(base) else None


def key(*parts: str) -> str:
    """Return the key of an object made from these texts."""
    return blake2b("\0".join(parts).encode(), digest_size=DIGEST).hexdigest()


def load(name: str) -> bytes | None:
    """Return the object that was stored under a key; None if there is none that can be trusted."""
    place = folder()
    if place is None:
        return None
    with contextlib.suppress(OSError):
        if not _usable(place):
            return None
        with open(os.path.join(place, name + SUFFIX), "rb") as file:
            start, contents = file.read(len(VERSION) + DIGEST), file.read()
            if start == _start(name, contents):
                os.utime(file.fileno())  # mark as used: the oldest files are deleted first
                return contents
    return None


def store(name: str, contents: bytes) -> None:
    """Keep an object under a key, if that is possible."""
    import tempfile  # slow to import, and rarely needed

    place = folder()
    if place is None:
        return
    with contextlib.suppress(OSError):
        os.makedirs(place, mode=0o700, exist_ok=True)
        if not _usable(place):
            return
        _tidy(place)
        descriptor, temporary = tempfile.mkstemp(suffix=SUFFIX, dir=place)
        try:
            with open(descriptor, "wb") as file:
                file.write(_start(name, contents) + contents)
            os.replace(temporary, os.path.join(place, name + SUFFIX))
        except OSError:
            os.unlink(temporary)


def _usable(place: str) -> bool:
    """Return whether a folder is this user's and nobody else can write to it; log it if not."""
    status = os.stat(place)
    others = stat.S_IWGRP | stat.S_IWOTH
    usable = status.st_uid == os.geteuid() and not status.st_mode & others
    if not usable:
        log_once("%s is not used for compiled code: others can write there. %s", place, REMEDY)
    return usable


def _start(name: str, contents: bytes) -> bytes:
    return VERSION + blake2b(name.encode() + contents, digest_size=DIGEST).digest()


@functools.cache
def _tidy(place: str) -> None:
    """Bound the size of the folder, at the first write of a process."""
    files = []
    for entry in os.scandir(place):
        with contextlib.suppress(OSError):  # deleted by another process
            status = entry.stat(follow_symlinks=False)
            if entry.name.endswith(SUFFIX):  # also those that were never renamed
                files.append((status.st_mtime, status.st_size, entry.path))
    total = sum(size for _, size, _ in files)
    for _, size, path in sorted(files):
        if total <= LARGEST:
            return
        with contextlib.suppress(OSError):
            os.unlink(path)
        total -= size
