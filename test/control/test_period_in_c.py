# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The period in C against the same period in Python, over random histories with faults."""

import ctypes
import itertools
import shutil
import subprocess

import numpy as np
import pytest
from random_periods import MODEL, Histories, settings

from mbs_dynamics.control.period import transitions
from mbs_dynamics.control.period.export import export_period
from mbs_dynamics.control.period.function import Period
from mbs_dynamics.errors import ArgumentError

STRICT = ["-std=c99", "-pedantic", "-O1", "-Wall", "-Wextra", "-Werror"]

needs_gcc = pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc")
pytestmark = [pytest.mark.process, needs_gcc]

DRIVER = """
#include "arm_period.c"

void run(int count, const arm_State *s, const arm_Sample *x, const arm_Request *r,
         const arm_Settings *p, arm_State *next, arm_Output *o, arm_Verdict *v)
{
  for (int k = 0; k < count; ++k) arm_period(s + k, x + k, r + k, p + k, next + k, o + k, v + k);
}
"""


def built(layouts, folder, precision="double"):
    """Return a function that evaluates many periods in C."""
    export_period(layouts, settings(layouts), folder, prefix="arm", precision=precision)
    driver, library = folder / "driver.c", folder / f"{precision}.so"
    driver.write_text(DRIVER)
    options = [*STRICT, "-Wstack-usage=8192", "-shared", "-fPIC"]
    subprocess.run(["gcc", *options, "-o", library, driver, "-lm"], check=True)
    return ctypes.CDLL(str(library))


@pytest.fixture(scope="module")
def library(layouts, tmp_path_factory):
    return built(layouts, tmp_path_factory.mktemp("period"))


def evaluated(layouts, run, inputs, kind=np.float64):
    """Return state, output and verdict of periods, evaluated in C."""
    given = [np.ascontiguousarray(x, dtype=kind) for x in inputs]
    sizes = [layouts.state.size, layouts.output.size, layouts.verdict.size]
    results = [np.zeros((len(given[0]), size), dtype=kind) for size in sizes]
    pointers = [x.ctypes.data_as(ctypes.c_void_p) for x in (*given, *results)]
    run(len(given[0]), *pointers)
    return results


class Switching(Histories):
    """Enabled arms of which other laws are requested often, also while one takes over."""

    def request(self):
        row = super().request()
        enabled = self.rng.random(self.count) < 0.05
        row[:, 0] = np.where(enabled, transitions.ENABLE, row[:, 0])
        return row

    def _change_settings(self):
        super()._change_settings()
        changed = self.rng.random(self.count) < 0.01
        time = self.rng.choice([0.0, 0.02, 0.3, 3.0], self.count)
        place = self.layouts.settings.places["switch_time"].start
        self.settings[:, place] = np.where(changed, time, self.settings[:, place])

    def _change_motions(self):
        super()._change_motions()
        switched = self.rng.random(self.count) < 0.01
        law = self.layouts.request.places["law"].start
        chosen = self.rng.choice([0.0, 1.0, 2.0, 3.0, 4.0, 7.0, np.nan], self.count)
        self.motions[:, law] = np.where(switched, chosen, self.motions[:, law])


@pytest.mark.parametrize("kind", [Histories, Switching])
def test_the_period_in_c_is_that_in_python(layouts, library, kind):
    """Over 10^5 periods, to rounding: C may round sums another way, which no branch may show."""
    histories, laws = kind(200, 3, layouts, faults=0.001), set()
    with np.errstate(all="ignore"):
        for _ in range(500):
            before = histories.state
            histories.step()
            results = evaluated(layouts, library.run, (before, *histories.inputs))
            for found, expected in zip(results, histories.result, strict=True):
                np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)
            s = layouts.state.unpacked(results[0])
            on = s.mode == transitions.ON
            laws |= set(zip(s.law_before[on], s.law[on], strict=True))
    assert laws >= set(itertools.product([0.0, 1.0, 2.0], repeat=2)) or kind is Histories


def test_gravity_compensation_alone_fits_into_a_small_stack(tmp_path):
    alone = Period(MODEL)
    source, _ = export_period(alone, settings(alone), tmp_path, prefix="arm")
    strict = [*STRICT, "-Wstack-usage=4096", "-c", source, "-o", tmp_path / "arm.o"]
    subprocess.run(["gcc", *strict], check=True)


def test_constants_are_the_settings_and_the_first_state(layouts, library):
    kind = ctypes.c_double * layouts.settings.size
    found = np.array(kind.in_dll(library, "arm_settings"))
    np.testing.assert_array_equal(found, layouts.settings.packed(settings(layouts)).astype(float))


@pytest.mark.slow  # compiles the period again, for processors without doubles
def test_single_precision_commands_the_same_torques_while_times_are_small(layouts, tmp_path):
    """What it costs: 1e-4 of the limits in 2 s, as long as a float of the time counts 1 us."""
    library = built(layouts, tmp_path, "single")
    histories = Histories(20, 0, layouts, faults=0.0)
    histories.time[:] = 0.0
    with np.errstate(all="ignore"):
        for _ in range(500):
            before = histories.state
            histories.step()
            inputs = (before, *histories.inputs)
            results = evaluated(layouts, library.run, inputs, np.float32)
            torque, expected = (x[:, : MODEL.n] for x in (results[1], histories.result.output))
            np.testing.assert_allclose(torque, expected, atol=1e-4 * MODEL.effort_limits.max())


@pytest.mark.parametrize(("name", "value"), [("prefix", "1arm"), ("precision", "half")])
def test_bad_arguments_are_named(layouts, tmp_path, name, value):
    given = {"prefix": "arm", name: value}
    with pytest.raises(ArgumentError, match=f"{name}.*{value}"):
        export_period(layouts, settings(layouts), tmp_path, **given)
