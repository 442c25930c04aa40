# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The page in the browser: its start, its sliders, scenes per second, and its cost to the nodes."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import mbs_dynamics as mbs
from benchmarks.mechanisms import urdf
from benchmarks.report import Table
from benchmarks.timing import median

RUNS = 5

REFRESHED = 200
"""Scenes drawn one after the other."""

MOVES = 30
"""Movements of a slider."""

RATE = 500
"""Joint states per second that dynamics_node receives."""

ROUNDS = 20
"""Seconds with and seconds without the live view, in turn."""


def view() -> Iterator[Table]:
    """Yield a table for each figure of the page."""
    yield _start()
    yield _refresh()
    yield _slider()


def _start() -> Table:
    rows = []
    with tempfile.TemporaryDirectory() as cache:
        environment = {**os.environ, "MBS_CACHE": "1", "MBS_CACHE_DIR": cache}
        for name in ("arm7", "UR5", "G1"):
            taken = [_until_served(urdf(name), environment) for _ in range(RUNS + 1)][1:]
            medians = (median(list(each)) for each in zip(*taken, strict=True))
            rows.append([name, *(f"{each:.2f} s" for each in medians)])
    title = "From the command to a served page with all meshes, kernels in the cache"
    return Table(title, ["robot", "start", "processor time"], rows)


def _until_served(path: Path, environment: dict[str, str]) -> tuple[float, float]:
    """Return the time in s until the page is served, and the processor time of it."""
    command = [sys.executable, "-m", "mbs_dynamics.cli", "view", str(path)]
    begun, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    process = subprocess.Popen(
        [*command, "--no-browser", "--port", "0"],
        stdout=subprocess.PIPE,
        env=environment,
        text=True,
    )
    assert process.stdout is not None
    line = process.stdout.readline()
    taken = time.perf_counter() - begun
    assert "http" in line
    process.kill()
    process.wait()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return taken, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def _refresh() -> Table:
    from mbs_dynamics.view.opening import open_page
    from mbs_dynamics.view.posing import Posing

    rows = []
    for name, layers in (("arm7", None), ("UR5", None), ("G1", None), ("G1", ["all"])):
        model = mbs.Model.from_urdf(urdf(name))
        opened = open_page(model, urdf(name), model_code="model", port=0)
        opened.page.choose(layers)
        posing = Posing(opened.page, model, qd=np.full(model.n, 0.3))
        taken = []
        for k in range(REFRESHED):
            wave = 0.3 * np.sin(0.1 * k + np.arange(model.n))
            posing.q = np.clip(wave, model.lower, model.upper)
            begun = time.perf_counter()
            opened.page.refresh(posing)
            taken.append(time.perf_counter() - begun)
        opened.page.close()
        slowest = float(np.quantile(taken[20:], 0.95))
        shown = "all layers" if layers else "default layers"
        cells = [f"{1e3 * median(taken[20:]):.1f} ms", f"{1e3 * slowest:.1f} ms"]
        rows.append([f"{name}, {shown}", *cells, f"{1.0 / slowest:.0f}"])
    head = ["robot", "median", "95 %", "scenes per second"]
    return Table("Time to compute a scene and to send it", head, rows)


def _slider() -> Table:
    """Return the time from a slider to the new scene, in a real browser."""
    rows = []
    for name in ("UR5", "G1"):
        taken = _slid(name)
        cells = [f"{1e3 * median(taken):.0f} ms", f"{1e3 * max(taken):.0f} ms", str(len(taken))]
        rows.append([name, *cells])
    head = ["robot", "median", "longest", "moves"]
    note = "From the websocket frame sent to the one received by the browser, drawing not included."
    return Table("From a slider in the browser to the new scene in the browser", head, rows, note)


def _slid(name: str) -> list[float]:
    from docs.browser import chromium
    from mbs_dynamics.view.opening import open_page
    from mbs_dynamics.view.posing import Posing

    model, over = mbs.Model.from_urdf(urdf(name)), threading.Event()
    opened = open_page(model, urdf(name), port=0)
    posing = Posing(opened.page, model)
    thread = threading.Thread(target=opened.page.run, args=(posing, over.is_set))
    thread.start()
    sent: list[float] = []
    answered: list[float] = []
    taken: list[float] = []

    def listen(websocket: Any) -> None:
        websocket.on("framesent", lambda _: sent.append(time.perf_counter()))
        websocket.on("framereceived", lambda _: answered.append(time.perf_counter()))

    with chromium() as started:
        page = started.new_page(viewport={"width": 400, "height": 300})
        page.on("websocket", listen)
        page.goto(opened.page.address)
        page.get_by_role("tab", name="Robot").wait_for()
        page.wait_for_timeout(3000)
        joint = page.get_by_text(model.joint_names[1], exact=True).first
        row = joint.locator("xpath=ancestor-or-self::div[.//input[@type='text']][1]")
        field = row.locator("input[type='text']").first
        for k in range(MOVES):
            sent.clear()
            answered.clear()
            field.fill(f"{-0.1 - 0.01 * k:.2f}")
            field.press("Enter")
            page.wait_for_timeout(400)
            later = [t for t in answered if sent and t > sent[0]]
            taken += [t - sent[0] for t in later[:1]]
    over.set()
    thread.join()
    opened.page.close()
    return taken
