# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The line of progress on a terminal."""

import io

from mechanisms import random_mechanism

from mbs_dynamics import progress as progress_module
from mbs_dynamics.integrate import simulate
from mbs_dynamics.progress import Progress


def test_simulation_shows_how_much_time_is_simulated(capsys):
    simulate(random_mechanism(2, [-1]).model, [0.3], duration=0.25, progress=True)
    assert "0.25 of 0.25 s" in capsys.readouterr().err


class Terminal(io.StringIO):
    """A terminal, which shows what is flushed."""

    seen = ""

    def isatty(self):
        return True

    def flush(self):
        self.seen = self.getvalue()


def test_progress_begins_after_two_seconds_and_shows_share_and_remaining_time(monkeypatch):
    now = 100.0
    monkeypatch.setattr(progress_module.time, "monotonic", lambda: now)
    progress = Progress(10.0, None, terminal := Terminal())
    now = 101.9
    progress.update(1.0)
    progress.close()
    assert terminal.getvalue() == ""
    now = 103.0
    progress.update(2.5)
    assert terminal.seen.endswith(f"[{'#' * 7:30}] 2.5 of 10 s, 9 s left ")
    now = 103.01
    progress.update(5.0)
    assert terminal.seen.count("left") == 1
    now = 104.0
    progress.update(11.0)
    assert terminal.seen.endswith(f"[{'#' * 30}] 11 of 10 s, 0 s left ")
    progress.close()
    assert terminal.seen.endswith("\n")
