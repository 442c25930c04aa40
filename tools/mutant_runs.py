# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Tests run in forks of one process: what each of them executes, and whether a mutant fails one."""

from __future__ import annotations

import ast
import contextlib
import gc
import hashlib
import importlib
import importlib.abc
import importlib.machinery
import itertools
import os
import pickle
import re
import resource
import shutil
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mutant_sites import Mutant, lines_with

ROOT = Path(__file__).resolve().parents[1]
PACKAGE, TESTS, STORE = ROOT / "mbs_dynamics", ROOT / "test", ROOT / ".mutants"
ROOMS = (
    *("lie", "model", "representation", "algorithms", "closed_form", "integrate"),
    *("ros/compensation", "ros/dynamics", "ros/simulator"),
)
BUDGET = 120.0
"""Seconds of tests, as recorded, that a mutant must survive."""
SLOWER, STARTUP = 4.0, 20.0
"""A batch of tests may take this many times the recorded duration, plus seconds to start."""
QUICK = "not slow and not serial"
"""The tests that count: those of `make test` that do not need a quiet machine."""
MEMORY = 12 * 2**30
"""Bytes of address space of a fork. Processes that it starts may raise this limit."""
HEAVY = (
    *("numpy", "llvmlite.binding", "pinocchio", "mujoco", "pytest", "hypothesis", "coverage"),
    *("yaml", "rclpy.node", "launch", "sensor_msgs.msg", "diagnostic_msgs.msg"),
    *("trajectory_msgs.msg",),
)
"""Imports of tests that take long; those not installed are left out."""


# -- forks -----------------------------------------------------------------------------------------


def prepare() -> None:
    """Import what takes long, and set what all forks share."""
    for name in ("log", "tmp", "kernels"):
        (STORE / name).mkdir(parents=True, exist_ok=True)
        (STORE / name).chmod(0o700)
    os.environ.update(CI="true", MBS_CACHE="1", MBS_CACHE_DIR=str(STORE / "kernels"))
    os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")
    os.chdir(ROOT)
    sys.path.insert(0, str(ROOT))
    for name in HEAVY:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    assert "mbs_dynamics" not in sys.modules
    gc.freeze()


def fork(work: Callable[[], int], log: Path) -> int:
    """Start a function in a fork whose output goes to a file; its result is the exit status."""
    sys.stdout.flush()
    pid = os.fork()
    if pid:
        return pid
    status = 99
    try:
        os.setsid()
        out = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
        os.dup2(out, 1)
        os.dup2(out, 2)
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, resource.getrlimit(resource.RLIMIT_AS)[1]))
        status = work()
    finally:
        sys.stdout.flush()
        os._exit(status)


def in_forks(tasks: Iterator[tuple[Any, Callable[[], int], Path]]) -> Iterator[tuple[Any, int]]:
    """Run tasks, as many at a time as there are processors; yield each with its status."""
    running: dict[int, Any] = {}
    more = True
    while more or running:
        while more and len(running) < (os.cpu_count() or 1):
            task = next(tasks, None)
            if task is None:
                more = False
                break
            running[fork(*task[1:])] = task[0]
        if running:
            pid, status = os.wait()
            with contextlib.suppress(ProcessLookupError):  # whatever tests have started
                os.killpg(pid, signal.SIGKILL)
            shutil.rmtree(STORE / "tmp" / str(pid), ignore_errors=True)
            yield running.pop(pid), os.waitstatus_to_exitcode(status)


_calls = itertools.count()


def run_tests(files: Sequence[str], *plugins: object) -> int:
    """Run pytest in this process."""
    import pytest

    quiet = ("-q", "--no-header", "--tb=short", "-o", f"cache_dir={STORE / 'pytest'}")
    place = STORE / "tmp" / str(os.getpid()) / str(next(_calls))  # a library is loaded by its path
    place.parent.mkdir(parents=True, exist_ok=True)
    own = ("--basetemp", str(place), "--rootdir", str(ROOT))
    return int(pytest.main([*quiet, *own, "-m", QUICK, *files], list(plugins)))


class Quick:
    """Hypothesis neither shrinks nor explains what it has found."""

    def pytest_configure(self) -> None:
        from hypothesis import Phase, settings

        phases = (Phase.explicit, Phase.generate)
        settings.register_profile("mutants", parent=settings(), phases=phases, database=None)
        settings.load_profile("mutants")


# -- the record: which test executes what, and how long that takes ---------------------------------


@dataclass
class TestFile:
    """Data about a file of tests."""

    __test__ = False

    digests: dict[Path, str] = field(default_factory=dict)
    """Checksums of the file and of the modules that its tests execute."""
    overhead: float = 0.0
    """Seconds to import it and what it needs."""
    durations: dict[str, float] = field(default_factory=dict)
    """Seconds, by the id of each test that passes."""
    lines: dict[str, dict[str, int]] = field(default_factory=dict)
    """Lines that each test executes: a bit per line, by module."""


class Recorder:
    """Record what tests execute."""

    def __init__(self) -> None:
        import coverage

        rooms = [str(PACKAGE / room / "*") for room in ROOMS]
        self.coverage = coverage.Coverage(data_file=None, include=rooms, config_file=False)
        self.file = TestFile()
        self._failed: set[str] = set()
        self._start = time.perf_counter()
        self.coverage.start()

    def pytest_collection_finish(self) -> None:
        self.file.overhead = time.perf_counter() - self._start

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self.coverage.switch_context(nodeid)
        self._start = time.perf_counter()

    def pytest_runtest_logreport(self, report: Any) -> None:
        if not report.passed:
            self._failed.add(report.nodeid)

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        self.file.durations[nodeid] = time.perf_counter() - self._start
        self.coverage.switch_context("")

    def result(self, name: str) -> TestFile:
        """Return what is known now of the file with this name."""
        self.coverage.stop()
        data = self.coverage.get_data()
        for test in self._failed:
            self.file.durations.pop(test, None)
        for path in data.measured_files():
            module = str(Path(path).relative_to(PACKAGE))
            for line, tests in data.contexts_by_lineno(path).items():
                for test in tests:
                    lines = self.file.lines.setdefault(test, {})
                    lines[module] = lines.get(module, 0) | 1 << line
        own = [ROOT / name, *(Path(path) for path in data.measured_files())]
        self.file.digests = {path: digest(path) for path in own}
        return self.file


def digest(path: Path) -> str:
    """Return a checksum of a file, or an empty text if it is gone."""
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.exists() else ""


def record() -> dict[str, TestFile]:
    """Return what is known of every test file, from runs before as far as that is still true."""
    pickled = STORE / "record"
    kept: dict[str, TestFile] = pickle.loads(pickled.read_bytes()) if pickled.exists() else {}
    now = {path: digest(path) for path in {path for file in kept.values() for path in file.digests}}
    kept = {
        name: file
        for name, file in kept.items()
        if file.digests and all(now[path] == then for path, then in file.digests.items())
    }

    def observe(name: str) -> int:
        recorder = Recorder()
        status = run_tests([name], recorder)
        (STORE / "part" / name.replace("/", "+")).write_bytes(pickle.dumps(recorder.result(name)))
        return status

    new = sorted({str(path.relative_to(ROOT)) for path in TESTS.rglob("test_*.py")} - set(kept))
    if new:
        print(f"Recording what the tests of {len(new)} files execute", flush=True)
        (STORE / "part").mkdir(exist_ok=True)
        tasks = ((name, lambda name=name: observe(name), log_of(name)) for name in new)
        for name, status in in_forks(tasks):
            part = STORE / "part" / name.replace("/", "+")
            kept[name] = pickle.loads(part.read_bytes()) if part.exists() else TestFile()
            pickled.write_bytes(pickle.dumps(kept))
            if status not in (0, 5):
                print(f"{name}: pytest's status is {status}, see {log_of(name)}", flush=True)
        shutil.rmtree(STORE / "part")
    return kept


def log_of(name: str) -> Path:
    return STORE / "log" / re.sub(r"\W+", "-", name)


# -- a mutant --------------------------------------------------------------------------------------


def batches(
    mutant: Mutant, tree: ast.Module, known: dict[str, TestFile], budget: float = BUDGET
) -> list[tuple[float, list[str]]]:
    """Return tests to run one after the other, in lists with their duration: likely finders first.

    First those that execute the statement, or functions that use what a statement outside of
    functions assigns, in the folder of the same name and then elsewhere. Next, where the statement
    is executed as the module is imported, those that execute anything of the module. A kernel that
    a test has traced serves the tests after it, which then do not execute what they depend on:
    hence the rest of each file. What a module assigns outside of functions may be used without
    executing any line of it, as the page about parameters compares fields: hence all files of the
    folder that import it.
    """
    executed = [
        file.lines[test].get(mutant.file, 0)
        for file in known.values()
        for test in file.durations.keys() & file.lines.keys()  # not what is executed on import
    ]
    near = mutant.lines | (lines_with(tree, mutant.names) if mutant.names else frozenset())
    statement, room = sum(1 << line for line in near), mutant.file.split("/")[-2]
    whole = bool(mutant.names) or not any(lines & statement for lines in executed)
    files: list[tuple[bool, float, list[list[str]]]] = []
    for name, file in known.items():
        ranks: list[list[str]] = [[], [], []]
        for test in sorted(file.durations, key=file.durations.__getitem__):
            lines = file.lines.get(test, {}).get(mutant.file, 0)
            ranks[0 if lines & statement else 1 if lines and whole else 2].append(test)
        other = f"/{room}/" not in name
        imports = bool(mutant.names) and mutant.file in file.lines.get("", {})
        if ranks[0] or ranks[1] or (imports and not other):
            cost = file.overhead + sum(file.durations[test] for test in ranks[0][:10])
            files.append((other, cost, ranks))
    files.sort(key=lambda entry: entry[:2])
    order: list[str] = []
    for elsewhere in (False, True):
        own = [ranks for other, _, ranks in files if other == elsewhere]
        order += [test for ranks in own for test in ranks[0][:10]]
        order += [test for ranks in own for test in ranks[0]]
    order += [test for rank in (1, 2) for _, _, ranks in files for test in ranks[rank]]
    groups: list[tuple[float, list[str]]] = [(0.0, [])]
    imported: set[str] = set()
    for test in dict.fromkeys(order):
        name = test.split("::")[0]
        duration = known[name].durations[test]
        if name not in imported:
            duration += known[name].overhead
        if duration > budget:
            continue
        budget -= duration
        imported.add(name)
        if groups[-1][0] + duration > (6.0 if len(groups) == 1 else 15.0):
            groups.append((0.0, []))
        groups[-1] = groups[-1][0] + duration, [*groups[-1][1], test]
    return [batch for batch in groups if batch[1]]


class Selection:
    """Run the tests with these ids only, in this order, up to the first that fails."""

    def __init__(self, tests: Sequence[str], verdict: Path) -> None:
        self.order = {test: k for k, test in enumerate(tests)}
        self.verdict = verdict

    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        items[:] = [item for item in items if item.nodeid in self.order]
        items.sort(key=lambda item: self.order[item.nodeid])

    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.failed:
            self.verdict.write_text(report.nodeid)


class Hook(importlib.abc.MetaPathFinder):
    """Import one module from a syntax tree instead of its file."""

    def __init__(self, module: str, code: Any) -> None:
        self.module, self.code = module, code

    def find_spec(self, name: str, path: Any, target: Any = None) -> Any:
        if name != self.module:
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path)
        assert spec is not None
        assert spec.origin is not None
        code = self.code

        class Loader(importlib.machinery.SourceFileLoader):
            def get_code(self, fullname: str) -> Any:
                return code

        spec.loader = Loader(name, spec.origin)
        return spec


def try_mutant(code: Any, module: str, tests: list[tuple[float, list[str]]], verdict: Path) -> int:
    """Run batches of tests on a changed module; return 0 if all pass. An alarm ends what hangs."""
    sys.meta_path.insert(0, Hook(module, code))
    quick = Quick()
    for duration, batch in tests:
        verdict.write_text(f"a test of {batch[0].split('::')[0]}, by time or a crash")
        signal.setitimer(signal.ITIMER_REAL, STARTUP + SLOWER * duration)
        files = list(dict.fromkeys(test.split("::")[0] for test in batch))
        status = run_tests(["-x", *files], quick, Selection(batch, verdict))
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        if status == 5:
            return 98
        if status:
            return 1
    return 0


def module_of(file: str) -> str:
    """Return the dotted name of a file of the package."""
    parts = ("mbs_dynamics", *Path(file).with_suffix("").parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
