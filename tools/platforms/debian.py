# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Debian's Pythons, unpacked into a folder: nothing is installed, and nobody need be root.

A Debian package is an ``ar`` archive of ``tar`` archives, so that Python's standard library is
enough. The unpacked Python is run by the C library that is unpacked with it, through a script in
its place; for another processor, the script runs it under qemu. Virtual environments made of it,
and their scripts, work as usual.

    python3 tools/platforms/debian.py 3.15 /tmp/python3.15
"""

from __future__ import annotations

import argparse
import hashlib
import io
import lzma
import os
import platform
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import urllib.error
import urllib.request
from collections.abc import Iterable, Iterator
from pathlib import Path

MIRROR = "https://deb.debian.org/debian"
KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
TIMEOUT = 60.0  # s, of a connection that says nothing

ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
"""Debian's name of a processor by that of ``uname -m``."""
TRIPLETS = {"amd64": "x86_64-linux-gnu", "arm64": "aarch64-linux-gnu"}
LOADERS = {"amd64": "ld-linux-x86-64.so.2", "arm64": "ld-linux-aarch64.so.1"}
MERGED = ("bin", "sbin", "lib", "lib64")
"""Folders of the root that are links into usr."""
WHEELS = "/usr/share/python-wheels"
NEEDLESS = {
    "ca-certificates",
    "debconf",
    "dialog",
    "libc-gconv-modules-extra",
    "media-types",
    "net-tools",
    "netbase",
    "openssl-provider-legacy",
    "python3",
    "python3-setuptools-whl",
}
"""Packages that others depend on, but not what is run here."""


class NotAvailableError(Exception):
    """A download, a package or a tool cannot be had; the message says which and why."""


def fetch(address: str) -> bytes:
    """Return what is at an address of the mirror."""
    try:
        with urllib.request.urlopen(f"{MIRROR}/{address}", timeout=TIMEOUT) as answer:
            return bytes(answer.read())
    except (urllib.error.URLError, OSError) as error:
        why = getattr(error, "reason", None) or error
        raise NotAvailableError(f"{MIRROR}/{address} cannot be downloaded: {why}") from None


def verified(data: bytes, sha256: str, name: str) -> bytes:
    """Return the data if they have this SHA-256."""
    if hashlib.sha256(data).hexdigest() != sha256:
        raise NotAvailableError(f"{name} does not have the SHA-256 that Debian's index says")
    return data


def release(suite: str) -> str:
    """Return the signed text that lists a suite's indices; its signature is checked with gpgv."""
    signed = fetch(f"dists/{suite}/InRelease")
    if not shutil.which("gpgv") or not KEYRING.exists():
        print(f"debian: the signature of {suite} is not checked: no gpgv, or no {KEYRING}")
        return signed.decode()
    with tempfile.TemporaryDirectory() as folder:
        text, source = Path(folder, "Release"), Path(folder, "InRelease")
        source.write_bytes(signed)
        done = subprocess.run(
            ["gpgv", "--keyring", str(KEYRING), "--output", str(text), str(source)],
            capture_output=True,
            text=True,
        )
        if done.returncode:
            told = done.stderr.strip().splitlines()[-1:]
            raise NotAvailableError(f"{KEYRING} does not confirm Debian {suite}: {told}")
        return text.read_text()


class Suite:
    """The packages of a suite for an architecture, from its index."""

    def __init__(self, name: str, architecture: str) -> None:
        """Download the index, and check it."""
        self.name, self.architecture = name, architecture
        path = f"main/binary-{architecture}/Packages.xz"
        listed = re.search(rf"^ ([0-9a-f]{{64}}) +\d+ {path}$", release(name), re.MULTILINE)
        if not listed:
            raise NotAvailableError(f"Debian {name} has no {path}")
        index = verified(fetch(f"dists/{name}/{path}"), listed[1], path)
        self.packages: dict[str, dict[str, str]] = {}
        self.provided: dict[str, str] = {}
        for entry in lzma.decompress(index).decode().split("\n\n"):
            fields = dict(re.findall(r"^([\w-]+): (.*)$", entry, re.MULTILINE))
            if "Package" not in fields:
                continue
            self.packages[fields["Package"]] = fields
            for provided in re.findall(r"[^ ,(]+(?= \(|,|$)", fields.get("Provides", "")):
                self.provided.setdefault(provided, fields["Package"])

    def closure(self, names: Iterable[str]) -> list[dict[str, str]]:
        """Return the packages and all that they depend on."""
        packages: dict[str, dict[str, str]] = {}
        waiting = list(names)
        while waiting:
            name = waiting.pop()
            name = name if name in self.packages else self.provided.get(name, name)
            if name in packages or name in NEEDLESS:
                continue
            if name not in self.packages:
                raise NotAvailableError(
                    f"Debian {self.name} has no package {name} for {self.architecture}"
                )
            fields = packages[name] = self.packages[name]
            for field in ("Depends", "Pre-Depends"):
                for alternatives in fields.get(field, "").split(","):
                    first = re.match(r"[^ :(|]+", alternatives.strip())
                    if first:
                        waiting.append(first[0])
        return list(packages.values())

    def unpack(self, names: Iterable[str], root: Path) -> None:
        """Unpack packages and all that they depend on into a folder that becomes a root."""
        for name in MERGED:
            (root / "usr" / name).mkdir(parents=True, exist_ok=True)
            if not (root / name).is_symlink():
                (root / name).symlink_to(f"usr/{name}")
        for fields in self.closure(names):
            package = verified(fetch(fields["Filename"]), fields["SHA256"], fields["Package"])
            unpack(package, root)


def members(archive: bytes) -> Iterator[tuple[str, bytes]]:
    """Yield the names and the contents of an ar archive."""
    at = 8
    while at + 60 <= len(archive):
        name = archive[at : at + 16].decode().strip().rstrip("/")
        size = int(archive[at + 48 : at + 58])
        yield name, archive[at + 60 : at + 60 + size]
        at += 60 + size + size % 2


def unpack(package: bytes, root: Path) -> None:
    """Unpack the files of a Debian package into a folder."""
    name, data = next(
        (name, data) for name, data in members(package) if name.startswith("data.tar")
    )
    if name.endswith(".zst"):
        raise NotAvailableError(f"{name}: packages compressed with zstd are not read here")
    with tarfile.open(fileobj=io.BytesIO(data)) as files:
        for file in files:
            parts = Path(file.name).parts
            if ".." in parts:
                raise NotAvailableError(f"a package has a file {file.name}")
            if parts and parts[0] in MERGED:
                parts = ("usr", *parts)
            target = root.joinpath(*parts)
            if file.isdir():
                target.mkdir(parents=True, exist_ok=True)
                continue
            target.parent.mkdir(parents=True, exist_ok=True)
            target.unlink(missing_ok=True)
            if file.issym():
                link = file.linkname
                if link.startswith("/"):  # of the root, wherever that is
                    link = os.path.relpath(root / link.lstrip("/"), target.parent)
                target.symlink_to(link)
            elif file.islnk():
                os.link(root / file.linkname, target)
            elif file.isfile():
                content = files.extractfile(file)
                assert content is not None
                target.write_bytes(content.read())
                target.chmod(file.mode & 0o777 | 0o200)


def own_architecture() -> str:
    """Return Debian's name of the processor this runs on."""
    if sys.platform != "linux" or platform.machine() not in ARCHITECTURES:
        raise NotAvailableError(
            f"Debian's programs do not run on {sys.platform} {platform.machine()}"
        )
    return ARCHITECTURES[platform.machine()]


def emulator(folder: Path, suite: str = "trixie") -> Path:
    """Return the program that runs arm64 ones here, unpacked into a folder unless it is there."""
    program = folder / "qemu-aarch64"
    if not program.exists():
        fields = Suite(suite, own_architecture()).packages["qemu-user"]
        package = verified(fetch(fields["Filename"]), fields["SHA256"], "qemu-user")
        with tempfile.TemporaryDirectory(dir=folder.parent) as everything:
            unpack(package, Path(everything))
            folder.mkdir(exist_ok=True)
            (Path(everything) / "usr" / "bin" / program.name).rename(program)
    return program


def interpreter(
    version: str,
    root: Path,
    suite: str = "sid",
    architecture: str | None = None,
    beside: Iterable[str] = (),
) -> Path:
    """Return a Python of Debian, unpacked into a folder unless it is there.

    ``beside`` are packages that are unpacked with it. One of another architecture runs in qemu,
    which is unpacked beside the folder.
    """
    own = own_architecture()
    architecture = architecture or own
    program = root / "usr" / "bin" / f"python{version}"
    real = program.with_suffix(program.suffix + ".real")
    if real.exists():
        return root / "bin" / program.name
    # What wheels expect of a system beside the C library, and the headers that extensions need.
    names = [f"python{version}-venv", f"libpython{version}-dev", "libstdc++6", *beside]
    Suite(suite, architecture).unpack(names, root)
    for variables in (root / "usr/lib" / f"python{version}").glob("_sysconfigdata_*.py"):
        if not variables.is_symlink():  # where venv finds pip
            text = variables.read_text()
            variables.write_text(text.replace(WHEELS, f"{root}{WHEELS}"))
    libraries = root / "usr" / "lib" / TRIPLETS[architecture]
    if architecture == own:
        # What wheels of ROS 2 start Python anew with is searched too, after what belongs to Python.
        path = f'"{libraries}${{LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}}"'
        run = f'"{libraries / LOADERS[architecture]}" --argv0 "$0" --library-path {path}'
    else:
        qemu = emulator(root.parent / "qemu")
        run = f'"{qemu}" -L "{root}" -0 "$0"'
    program.rename(real)
    program.write_text(f'#!/bin/sh\nexec {run} "{real}" "$@"\n')
    program.chmod(0o755)
    return root / "bin" / program.name


def main() -> None:
    """Unpack a Python and say where it is."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("version", help="such as 3.15")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--suite", default="sid")
    parser.add_argument("--architecture", choices=sorted(TRIPLETS))
    given = parser.parse_args()
    try:
        print(interpreter(given.version, given.folder.resolve(), given.suite, given.architecture))
    except NotAvailableError as error:
        sys.exit(f"debian: {error}")


if __name__ == "__main__":
    main()
