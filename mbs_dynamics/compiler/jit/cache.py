# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Compiled objects on disk, so that the next start of a process loads instead of compiling.

What is loaded runs as machine code of this process. So the folder and each file must belong to the
user and be writeable by nobody else, or they are not used: who can write there could act as the
user. Each file carries a checksum over its key and its contents, which finds truncated and damaged
files, not forged ones. A file is written under another name and renamed, so that no reader sees a
part of it, whoever writes at the same time. Nothing fails if the folder cannot be used; kernels are
then compiled each time, which is logged if the folder is another user's. No folder is created in
that of another user, as root would with a user's HOME: it would be in that user's way.

The folder is MBS_CACHE_DIR, else mbs_dynamics in XDG_CACHE_HOME, else ~/.cache/mbs_dynamics. It can
be deleted at any time. MBS_CACHE=0 switches the cache off.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import stat
from collections.abc import Callable

from mbs_dynamics.errors import log_once

try:  # hashlib loads OpenSSL for algorithms that it does not need
    from _blake2 import blake2b
except ImportError:
    from hashlib import blake2b

VERSION = b"mbs-dynamics-2\n"
"""Begins each file. Another number makes all files of earlier ones worthless."""

LARGEST = 256 * 2**20
"""Bytes that the folder holds at most; beyond, the files that were not used for longest go."""

DIGEST = 32
"""Bytes of a checksum, and of a key."""

SUFFIX = ".object"

REMEDY = "Kernels are compiled each time; set MBS_CACHE_DIR to a folder of your own, or MBS_CACHE=0"

WRITES_PER_TIDYING = 100


def folder() -> str | None:
    """Return where objects are kept; None if that is switched off, or there is no such place."""
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
    digest = blake2b(digest_size=DIGEST)
    for part in parts:
        text = part.encode()
        digest.update(b"%d\n" % len(text))
        digest.update(text)
    return digest.hexdigest()


def load(name: str) -> bytes | None:
    """Return the object that was stored under a key; None if there is none that can be trusted."""
    place = folder()
    if place is None:
        return None
    with contextlib.suppress(OSError):
        if not _usable(place):
            return None
        # O_NONBLOCK: to open a FIFO would wait for a writer
        flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
        with open(os.open(os.path.join(place, name + SUFFIX), flags), "rb") as file:
            if not _private(os.fstat(file.fileno()), stat.S_ISREG):
                return None
            start, contents = file.read(len(VERSION) + DIGEST), file.read()
            if start == _start(name, contents):
                os.utime(file.fileno())  # used now: the oldest go first
                return contents
    return None


def store(name: str, contents: bytes) -> None:
    """Keep an object under a key, if that is possible."""
    import tempfile  # slow to import, and rarely needed

    place = folder()
    if place is None:
        return
    with contextlib.suppress(OSError):
        _create(os.path.abspath(place))
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


def _create(place: str) -> None:
    """Create a folder and those above it for this user alone, whatever the umask."""
    if os.path.isdir(place):
        return
    above = os.path.dirname(place)
    _create(above)
    if os.stat(above).st_uid not in (0, os.geteuid()):
        log_once("no compiled code is stored in %s: %s is another user's. %s", place, above, REMEDY)
        raise PermissionError(above)
    with contextlib.suppress(FileExistsError):
        os.mkdir(place, mode=0o700)
        os.chmod(place, 0o700)


def _usable(place: str) -> bool:
    """Return whether a folder is this user's alone; log it if not."""
    usable = _private(os.stat(place), stat.S_ISDIR)
    if not usable:
        valid = "a folder that no other user owns or can write to"
        log_once("%s is not used for compiled code; valid is %s. %s", place, valid, REMEDY)
    return usable


def _private(status: os.stat_result, kind: Callable[[int], bool]) -> bool:
    """Whether a file or folder belongs to this user and nobody else can write to it."""
    shared = stat.S_IWGRP | stat.S_IWOTH
    return kind(status.st_mode) and status.st_uid == os.geteuid() and not status.st_mode & shared


def _start(name: str, contents: bytes) -> bytes:
    return VERSION + blake2b(name.encode() + contents, digest_size=DIGEST).digest()


_writes = itertools.count()


def _tidy(place: str) -> None:
    """Bound the size of the folder, at the first write of a process and now and then after it."""
    if next(_writes) % WRITES_PER_TIDYING:
        return
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
