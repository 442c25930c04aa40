# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Two versions of the package side by side, and processes that run them."""

from __future__ import annotations

import contextlib
import json
import os
import select
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

CHECKOUT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).resolve().parent
LIMIT = 900.0
"""Seconds after which a worker that does not answer is given up."""


class ComparisonError(Exception):
    """The comparison cannot start or go on; the text says why and what to do."""


class CaseError(Exception):
    """One function cannot be evaluated in one version; the others can."""


@dataclass(frozen=True)
class Version:
    """One version of the package: its name in the report, and the folder that contains it."""

    name: str
    folder: Path


@dataclass(frozen=True)
class Versions:
    """The revision, and a copy of the working tree, so that it may change meanwhile."""

    old: Version
    new: Version


@contextlib.contextmanager
def installed(revision: str) -> Iterator[Versions]:
    """Yield the revision and the working tree in a temporary folder, which is removed afterwards.

    Raises ComparisonError if git does not know the revision or it has no package.
    """
    commit = resolve(revision)
    _git("worktree", "prune")  # of comparisons that were killed
    folder = Path(tempfile.mkdtemp(prefix="mbs-against-"))
    old, new = folder / "old", folder / "new"
    try:
        _git("worktree", "add", "--quiet", "--detach", str(old), commit)
        if not (old / "mbs_dynamics" / "__init__.py").is_file():
            raise ComparisonError(f"revision {revision} contains no package mbs_dynamics")
        for part in ("mbs_dynamics", "benchmarks", "urdf"):
            ignored = shutil.ignore_patterns("__pycache__", "results")
            shutil.copytree(CHECKOUT / part, new / part, ignore=ignored)
        yield Versions(Version(commit[:7], old), Version(_working_tree(), new))
    finally:
        with contextlib.suppress(ComparisonError):
            _git("worktree", "remove", "--force", str(old))
        shutil.rmtree(folder, ignore_errors=True)


def resolve(revision: str) -> str:
    """Return the full name of a commit. Raises ComparisonError if there is none of this name."""
    if revision.startswith("-"):
        raise ComparisonError(f"{revision!r} is no revision")
    try:
        return _git("rev-parse", "--verify", "--quiet", f"{revision}^{{commit}}")
    except ComparisonError as error:
        raise ComparisonError(f"git knows no commit {revision!r} ({error})") from None


def _working_tree() -> str:
    name = _git("rev-parse", "--short=7", "HEAD")
    changed = _git("status", "--porcelain", "--", "mbs_dynamics")
    return f"{name} with uncommitted changes" if changed else name


def _git(*arguments: str) -> str:
    try:
        done = subprocess.run(["git", *arguments], cwd=CHECKOUT, capture_output=True, text=True)
    except FileNotFoundError:
        raise ComparisonError("git is not installed, and it has the revision") from None
    if done.returncode:
        cause = done.stderr.strip() or f"exit code {done.returncode}"
        raise ComparisonError(f"git {' '.join(arguments[:2])} failed: {cause}")
    return done.stdout.strip()


# -- processes -------------------------------------------------------------------------------------


def environment(folder: Path) -> dict[str, str]:
    """Return the environment of a process that imports the package from a folder.

    One thread, no cache, and none of the settings of the shell that started the comparison.
    """
    kept = {key: value for key, value in os.environ.items() if not key.startswith("MBS_")}
    kept.pop("PYTHONDONTWRITEBYTECODE", None)
    path = os.pathsep.join(filter(None, (str(folder), os.environ.get("PYTHONPATH", ""))))
    return {**kept, "PYTHONPATH": path, "MBS_CACHE": "0"}


class Worker:
    """A process that evaluates one version until it is closed; see ``worker``."""

    def __init__(self, version: Version) -> None:
        self.name = version.name
        self._said = tempfile.TemporaryFile(  # noqa: SIM115
            "w+", encoding="utf-8", errors="replace"
        )
        self._process = subprocess.Popen(
            [sys.executable, str(HERE / "worker.py"), str(version.folder)],
            cwd=version.folder,
            env=environment(version.folder),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._said,
            text=True,
        )
        try:
            self._answer("its start")
        except BaseException:
            self.close()
            raise

    def ask(self, do: str, **values: Any) -> dict[str, Any]:
        """Return the answer to a request.

        Raises CaseError if the request failed, ComparisonError if the process has died or does not
        answer in time.
        """
        assert self._process.stdin
        what = " ".join([do, *(str(x) for x in values.values() if isinstance(x, (str, int)))])
        with contextlib.suppress(BrokenPipeError):  # what has died is reported below
            self._process.stdin.write(json.dumps({"do": do, **values}) + "\n")
            self._process.stdin.flush()
        answer = self._answer(what)
        if "error" in answer:
            raise CaseError(answer["error"])
        return answer

    def _answer(self, what: str) -> dict[str, Any]:
        stdout = self._process.stdout
        assert stdout
        if not select.select([stdout], [], [], LIMIT)[0]:
            self._process.kill()
            raise ComparisonError(f"the worker of {self.name} did not finish {what} in {LIMIT:g} s")
        line = stdout.readline()
        if not line.endswith("\n"):
            code = self._process.wait()
            self._said.seek(0)
            lines = _last_lines(self._said.read())
            raise ComparisonError(
                f"the worker of {self.name} died during {what} (exit code {code}):\n{lines}"
            )
        answer: dict[str, Any] = json.loads(line)
        return answer

    def close(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout, self._said):
            if stream:
                with contextlib.suppress(BrokenPipeError):
                    stream.close()

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _last_lines(text: str, count: int = 15) -> str:
    return "\n".join(text.strip().splitlines()[-count:]) or "it printed nothing"
