# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The line of progress on a terminal."""

from __future__ import annotations

import io

from mechanisms import random_mechanism

from mbs_dynamics import progress as progress_module
from mbs_dynamics.integrate import simulate
from mbs_dynamics.progress import Progress


def test_simulation_shows_how_much_time_is_simulated(capsys):
    simulate(random_mechanism(2, [-1]).model, [0.3], duration=0.25, progress=True)
    assert "0.25 of 0.25 s" in capsys.readouterr().err


class FlushedText(io.StringIO):
    """A stream whose text counts only once it is flushed, as that of a terminal may."""

    seen = ""

    def flush(self):
        self.seen = self.getvalue()


def test_progress_shows_share_and_remaining_time_at_once(monkeypatch):
    now = 100.0
    monkeypatch.setattr(progress_module.time, "monotonic", lambda: now)
    stream = FlushedText()
    progress = Progress(10.0, True, stream)
    progress.update(0.0)
    assert stream.seen.endswith(f"[{'':30}] 0 of 10 s, 0 s left ")
    now += 3.0
    progress.update(2.5)
    assert stream.seen.endswith(f"[{'#' * 7:30}] 2.5 of 10 s, 9 s left ")
    now += 0.1
    progress.update(5.0)
    assert stream.seen.count("left") == 2
    now += 0.2
    progress.update(11.0)
    assert stream.seen.endswith(f"[{'#' * 30}] 11 of 10 s, 0 s left ")
    progress.close()
    assert stream.seen.endswith("\n")


def test_progress_on_a_terminal_begins_after_two_seconds(monkeypatch):
    now = 100.0
    monkeypatch.setattr(progress_module.time, "monotonic", lambda: now)
    stream = FlushedText()
    monkeypatch.setattr(stream, "isatty", lambda: True)
    progress = Progress(10.0, None, stream)
    now += 1.9
    progress.update(2.5)
    progress.close()
    assert stream.getvalue() == ""
    now += 0.2
    progress.update(2.5)
    assert "2.5 of 10 s" in stream.seen
