# Copyright 2026 The mbs_dynamics authors
#
# Licensed under the Apache License, Version 2.0 (the "License");
# you may not use this file except in compliance with the License.
# You may obtain a copy of the License at
#
#     http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS,
# WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
# See the License for the specific language governing permissions and
# limitations under the License.
"""Which functions of the package a test enters: a plugin of pytest.

``pytest -p entered --entered FILE TESTS`` runs each test in a process of its own, forked before any
fixture is made, because what one test has compiled the next one does not trace again. FILE receives
JSON: for each test function without its parameters the places ``file:line`` of the functions that
it entered, and its outcome.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import threading
import traceback
from pathlib import Path

import pytest
from _pytest.runner import runtestprotocol

PACKAGE = str(Path(__file__).parents[1] / "mbs_dynamics")
PARAMETERS = 6
"""Of how many parameters of a test functions are gathered, at most."""


def place(code):
    """Return the place of a code object as ``file:line``."""
    return f"{code.co_filename}:{code.co_firstlineno}"


def pytest_addoption(parser):
    parser.addoption("--entered", type=Path, help="where to write what each test entered")


def pytest_configure(config):
    config.found = {}


def name_of(item):
    file, function = item.nodeid.split("[")[0].rsplit("::", 1)
    return f"{file.removeprefix('test/')}::{function}"


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item, nextitem):
    found = item.config.found.setdefault(name_of(item), {"entered": [], "failed": [], "runs": 0})
    if found["runs"] < PARAMETERS:
        found["runs"] += 1
        entered, failed = in_fork(lambda: run(item))
        found["entered"] = sorted({*found["entered"], *entered})
        found["failed"] += failed
    return True


def run(item):
    """Run one test; return the places entered, and what failed."""
    codes = set()

    def enter(frame, event, _):
        if event == "call":
            codes.add(frame.f_code)

    threading.setprofile(enter)
    sys.setprofile(enter)
    try:
        reports = runtestprotocol(item, nextitem=None, log=False)
    finally:
        sys.setprofile(None)
    entered = {place(code) for code in codes if code.co_filename.startswith(PACKAGE)}
    return sorted(entered), [report.longreprtext for report in reports if report.failed]


def in_fork(function):
    """Return what a function returns in a child of this process."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        status = 1
        with contextlib.suppress(BaseException):
            with os.fdopen(writing, "w") as pipe:
                try:
                    json.dump(function(), pipe)
                except BaseException:
                    json.dump(([], [traceback.format_exc()]), pipe)
            status = 0
        os._exit(status)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        text = pipe.read()
    os.waitpid(child, 0)
    return json.loads(text) if text else ([], ["the process ended"])


def pytest_sessionfinish(session):
    session.config.option.entered.write_text(json.dumps(session.config.found))
