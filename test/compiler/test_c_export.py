# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Algorithms written as C: compiled strictly, called, and held against the kernels."""

import ctypes
import dataclasses
import resource
import subprocess

import numpy as np
import pytest
from backends import COMPILER, STRICT, needs_compiler
from mechanisms import random_mechanism
from robots import robot

import mbs_dynamics as mbs
from mbs_dynamics.cli import main
from mbs_dynamics.resources import robot_path

ARM = mbs.Model.from_urdf(robot_path("arm7"))
PANDA = "panda_description/urdf/panda.urdf"
FUNCTIONS = (mbs.gravity_torques, mbs.inverse_dynamics, mbs.forward_dynamics, mbs.jacobian)

# what calls the functions; the arrays have exactly the sizes of the signature, so that the
# sanitizers see an access beyond one
DRIVER = """
#include <stdio.h>
#include "arm7.h"
int main(void)
{
  static double q[ARM7_JOINTS], qd[ARM7_JOINTS], tau[ARM7_JOINTS], qdd[ARM7_JOINTS], J[42];
  int k, status = 0;
  for (k = 0; k < ARM7_JOINTS; ++k) q[k] = 0.3 * k - 1.0;
  status |= arm7_gravity_torques(q, arm7_gravity, tau);
  status |= arm7_forward_dynamics(q, qd, tau, arm7_gravity, qdd);
  status |= arm7_jacobian(q, J);
  for (k = 0; k < ARM7_JOINTS; ++k)
    printf("%s %.17g %.17g\\n", arm7_joint_names[k], tau[k], qdd[k]);
  return status;
}
"""


def loaded(source, folder, *flags):
    library = folder / f"{source.stem}.so"
    subprocess.run([COMPILER, *STRICT, *flags, source, "-o", library, "-lm"], check=True)
    return ctypes.CDLL(str(library))


def evaluate(function, inputs, shape, kind=np.float64):
    arrays = [np.ascontiguousarray(x, dtype=kind) for x in inputs]
    result = np.full(shape, np.nan, dtype=kind)
    status = function(*[ctypes.c_void_p(x.ctypes.data) for x in (*arrays, result)])
    return status, result


def printed(driver, source, folder):
    """Return the output of a program, run under the sanitizers if the compiler has them."""
    main, program, empty = folder / "main.c", folder / "main", folder / "empty.c"
    main.write_text(driver)
    empty.write_text("int main(void) { return 0; }")
    strict = [flag for flag in STRICT if flag not in ("-shared", "-fPIC")]
    checks = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
    there = subprocess.run([COMPILER, *checks, empty, "-o", program], capture_output=True)
    if there.returncode:
        checks = []  # the numbers are compared
    subprocess.run([COMPILER, *strict, *checks, main, source, "-o", program, "-lm"], check=True)
    run = subprocess.run(
        [program], check=True, capture_output=True, text=True, preexec_fn=without_address_limit
    )
    return run.stdout


def without_address_limit():
    """Lift the limit of the address space: the address sanitizer reserves terabytes of it."""
    most = resource.getrlimit(resource.RLIMIT_AS)[1]
    resource.setrlimit(resource.RLIMIT_AS, (most, most))


@needs_compiler
def test_exported_functions_in_single_precision_are_the_kernels(tmp_path):
    model = mbs.Model.from_urdf(robot(PANDA)).with_payload("panda_hand", mass=2.0, com=(0, 0.1, 0))
    source, header = mbs.export_c(
        model, FUNCTIONS, tmp_path / "new", body="panda_hand", precision="single"
    )
    assert (source.name, header.name) == ("panda.c", "panda.h")
    library = loaded(source, tmp_path, "-Wdouble-promotion", "-Wfloat-conversion")
    kind, tolerance = np.float32, 2e-5
    random = np.random.default_rng(0)
    q, qd, qdd = random.uniform(-1.5, 1.5, (3, model.n))
    tau = mbs.inverse_dynamics(model, q, qd, qdd)
    carried = model.payloads.parameters
    dynamics = (model.gravity, carried)
    for name, inputs, expected in (
        ("gravity_torques", (q, *dynamics), mbs.gravity_torques(model, q)),
        ("inverse_dynamics", (q, qd, qdd, *dynamics), tau),
        ("jacobian", (q,), mbs.jacobian(model, q, "panda_hand")),
    ):
        status, found = evaluate(getattr(library, f"panda_{name}"), inputs, expected.shape, kind)
        assert status == 0
        assert np.abs(found - expected).max() <= tolerance * max(1.0, np.abs(expected).max())
    status, found = evaluate(
        library.panda_forward_dynamics, (q, qd, tau, *dynamics), qdd.shape, kind
    )
    assert status == 0
    # in single precision the inertia of the last links is near to rounding: only torques compare
    assert np.abs(mbs.inverse_dynamics(model, q, qd, found) - tau).max() <= 10 * tolerance * max(
        1.0, np.abs(tau).max()
    )


@needs_compiler
def test_constants_of_the_model(tmp_path):
    held = ARM.with_payload("tool", mass=1.5, com=(0.1, 0.0, 0.2)).with_gravity((1.0, 2.0, 3.0))
    held = held.with_armature({"joint2": 0.3})
    chosen = [mbs.gravity_torques, mbs.mass_matrix]
    source, header = mbs.export_c(held, chosen, tmp_path, prefix="held")
    library = loaded(source, tmp_path)
    gravity = (ctypes.c_double * 3).in_dll(library, "held_gravity")
    payload = (ctypes.c_double * 10).in_dll(library, "held_payload")
    armature = (ctypes.c_double * ARM.n).in_dll(library, "held_armature")
    np.testing.assert_array_equal(armature, held.armature)
    q, M = 0.1 * np.arange(ARM.n), mbs.mass_matrix(held, 0.1 * np.arange(ARM.n))
    inputs = q, held.payloads.parameters, held.armature
    status, found = evaluate(library.held_mass_matrix, inputs, M.shape)
    assert status == 0
    np.testing.assert_allclose(found, M, atol=1e-12)
    names = (ctypes.c_char_p * ARM.n).in_dll(library, "held_joint_names")
    np.testing.assert_array_equal(gravity, held.gravity)
    np.testing.assert_array_equal(payload, held.payloads.parameters.ravel())
    assert [name.decode() for name in names] == list(ARM.joint_names)
    text = header.read_text()
    assert "#define HELD_JOINTS 7" in text
    assert "rad or m" in text


@needs_compiler
def test_a_failed_guard_is_returned_and_listed(tmp_path):
    urdf = """<robot name="thin"><link name="base"/>
      <link name="arm"><inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="0" ixy="0"
        ixz="0" iyz="0"/></inertial></link>
      <joint name="j" type="continuous"><parent link="base"/><child link="arm"/>
        <axis xyz="0 0 1"/></joint></robot>"""
    with pytest.warns(mbs.ModelWarning):
        model = mbs.Model.from_urdf(urdf)
    loaded_model = model.with_payload("arm", mass=0.0, com=(0, 0, 0))
    source, header = mbs.export_c(loaded_model, [mbs.forward_dynamics], tmp_path)
    library = loaded(source, tmp_path)
    zeros = np.zeros(1)
    inputs = (zeros, zeros, zeros, model.gravity, loaded_model.payloads.parameters)
    status, _ = evaluate(library.thin_forward_dynamics, inputs, (1,))
    assert status == 1
    assert "Returns 1 if the mass matrix is singular: joint 'j'" in header.read_text()


@needs_compiler
def test_a_program_of_its_own_under_the_sanitizers(tmp_path):
    source, _ = mbs.export_c(ARM, FUNCTIONS, tmp_path, body="tool", representation="hybrid")
    out = printed(DRIVER, source, tmp_path)
    rows = [line.split() for line in out.splitlines()]
    assert [row[0] for row in rows] == list(ARM.joint_names)
    q = 0.3 * np.arange(ARM.n) - 1.0
    tau, qdd = np.array([[float(x) for x in row[1:]] for row in rows]).T
    np.testing.assert_allclose(tau, mbs.gravity_torques(ARM, q), atol=1e-12)
    np.testing.assert_allclose(qdd, 0.0, atol=1e-9)


@pytest.mark.parametrize(
    ("functions", "options", "said"),
    [
        ([], {}, "functions"),
        ([mbs.momenta, mbs.momenta], {}, "functions"),
        ([np.sin], {}, "'sin'"),
        ([mbs.momenta], {"body": "tool"}, "'body'"),
        ([mbs.jacobian], {}, r"jacobian.*'body'"),
        ([mbs.momenta], {"prefix": "7dof"}, r"prefix.*'7dof'"),
        ([mbs.momenta], {"precision": "half"}, "precision"),
    ],
)
def test_wrong_arguments_are_named_and_nothing_is_written(tmp_path, functions, options, said):
    with pytest.raises(mbs.MbsError, match=said):
        mbs.export_c(ARM, functions, tmp_path, **options)
    assert not list(tmp_path.iterdir())


def test_command(tmp_path, capsys):
    asked = ["--functions", "gravity_torques, jacobian", "--body", "tool", "--prefix", "arm"]
    assert main(["export", "arm7", *asked, "--out", str(tmp_path)]) == 0
    assert capsys.readouterr().out.split() == [str(tmp_path / "arm.c"), str(tmp_path / "arm.h")]
    assert (
        "int arm_jacobian(const double q[7], double out_jacobian[42]);"
        in (tmp_path / "arm.h").read_text()
    )


HOSTILE = (
    "j??/",
    "a\nb",
    "*/ int x; /*",
    'q"); //',
    "back\\",
    "机器\u2028",
    "??)(\x01\x7f",
    "%s",
    "**//",
)
"""Names of joints that would be code, in comments or strings."""


@needs_compiler
def test_names_are_never_code(tmp_path):
    model = random_mechanism(1, [-1, *range(len(HOSTILE) - 1)]).model
    bodies = [
        dataclasses.replace(body, joint=dataclasses.replace(body.joint, name=name))
        for body, name in zip(model.bodies, HOSTILE, strict=True)
    ]
    model = dataclasses.replace(model, name="??/\n*/x", bodies=tuple(bodies))
    written = mbs.export_c(model, [mbs.forward_dynamics], tmp_path, prefix="arm")
    assert all(path.read_bytes().isascii() for path in written)
    assert not any(b"??" in path.read_bytes() for path in written)
    main_c, program = tmp_path / "main.c", tmp_path / "main"
    main_c.write_text(
        '#include <stdio.h>\n#include "arm.h"\nint main(void) { int k; for (k = 0; k < ARM_JOINTS;'
        " ++k) { fputs(arm_joint_names[k], stdout); putchar(0); } return 0; }\n"
    )
    command = [COMPILER, "-std=c99", "-Wall", "-Wextra", "-Werror", "-trigraphs"]
    subprocess.run([*command, main_c, written[0], "-o", program, "-lm"], check=True)
    said = subprocess.run([program], capture_output=True, check=True).stdout
    assert said.decode().split("\0")[:-1] == list(HOSTILE)
