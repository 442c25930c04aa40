# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Settings that every test shares."""

import contextlib
import hashlib
import importlib
import os
import shutil
import signal

# Before NumPy is imported: with as many processes as cores, threads of BLAS wait for each other.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

from mbs_dynamics.ros.domain import unused_domain

ROOT = Path(__file__).parents[1]
BEYOND_UNIT = ("dds", "process", "browser", "network", "long", "serial", "slow")
"""Marks of tests that `pytest --unit` leaves out."""
UNIT_CASES = 2
"""As many cases of a parametrised test at most are unit tests."""

PROCESSES = ("subprocess.Popen", "os.fork", "os.posix_spawn")
unit_test_runs = False


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--unit", action="store_true", help="quick tests that need nothing else")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark tests by fixtures that need DDS or a browser; select those of `--unit`."""
    for item in items:
        fixtures = getattr(item, "fixturenames", ())
        for fixture, mark in (("ros", "dds"), ("browser", "browser")):
            if fixture in fixtures:
                item.add_marker(mark)
    if config.option.unit:
        quick = [x for x in items if not any(x.get_closest_marker(m) for m in BEYOND_UNIT)]
        chosen = {case for cases in by_test(quick).values() for case in evenly(cases)}
        config.hook.pytest_deselected(items=[x for x in items if x not in chosen])
        items[:] = [x for x in quick if x in chosen]


def by_test(items: list[pytest.Item]) -> dict[str, list[pytest.Item]]:
    """Return the cases of each test, by its name."""
    found: dict[str, list[pytest.Item]] = {}
    for item in items:
        found.setdefault(item.nodeid.split("[")[0], []).append(item)
    return found


def evenly(cases: list[pytest.Item]) -> list[pytest.Item]:
    """Return at most UNIT_CASES cases: the first, the last, and some between them."""
    if len(cases) <= UNIT_CASES:
        return cases
    return [cases[k * (len(cases) - 1) // (UNIT_CASES - 1)] for k in range(UNIT_CASES)]


def pytest_configure(config: pytest.Config) -> None:
    if config.option.unit:
        with contextlib.suppress(ImportError):  # its first import starts a process
            importlib.import_module("mujoco")
        sys.addaudithook(refuse_processes)
    if "MBS_CACHE" not in os.environ and "PYTEST_XDIST_WORKER" not in os.environ:
        os.environ["MBS_CACHE_DIR"] = stored_kernels()


def stored_kernels() -> str:
    """Return the folder of kernels that tests before have compiled, with this compiler.

    All workers of a run share it, and the processes that they start. Users' kernels are elsewhere.
    """
    compiler = sorted((ROOT / "mbs_dynamics" / "compiler").rglob("*.py"))
    digest = hashlib.sha256(b"".join(path.read_bytes() for path in compiler)).hexdigest()
    folder = ROOT / "build" / "kernels"
    folder.mkdir(parents=True, exist_ok=True)
    for other in folder.iterdir():
        if other.name != digest:
            shutil.rmtree(other, ignore_errors=True)
    return str(folder / digest)


def refuse_processes(event: str, arguments: tuple[Any, ...]) -> None:
    """Let a unit test fail that starts a process, or connects to another machine."""
    elsewhere = event == "socket.connect" and isinstance(arguments[1], tuple)
    if unit_test_runs and (
        event in PROCESSES or (elsewhere and not arguments[1][0].startswith(("127.", "::", "0.0.")))
    ):
        raise RuntimeError(f"unit tests start no processes and use no network: {event}")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    global unit_test_runs
    unit_test_runs = item.config.option.unit
    try:
        return (yield)
    finally:
        unit_test_runs = False


WORKER = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
WORKERS = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))


def domain_of_worker() -> int:
    """Return an unused ROS domain that no other worker of this run chooses."""
    while True:
        domain = unused_domain()
        if domain % WORKERS == WORKER:
            return domain


# The tests must not reach a robot in the same network.
os.environ["ROS_AUTOMATIC_DISCOVERY_RANGE"] = "LOCALHOST"
os.environ["ROS_DOMAIN_ID"] = str(domain_of_worker())
os.environ.pop("ROS_STATIC_PEERS", None)

# A shell ignores SIGINT and SIGQUIT in what it starts in the background, and nohup SIGHUP.
# Processes started here would ignore them, too.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
for ending in (signal.SIGQUIT, signal.SIGHUP):
    if signal.getsignal(ending) is signal.SIG_IGN:
        signal.signal(ending, signal.SIG_DFL)

# Figures need no screen.
os.environ["MPLBACKEND"] = "Agg"

# No deadline: it would measure how busy the machine is. CI repeats the same examples each time.
settings.register_profile(
    "mbs_dynamics", deadline=None, max_examples=40, derandomize="CI" in os.environ
)
settings.load_profile("mbs_dynamics")
