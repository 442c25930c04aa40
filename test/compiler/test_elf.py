# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Objects in memory: the same code placed by this package and by LLVM, and what is refused."""

from __future__ import annotations

import ctypes
import mmap
import subprocess
import sys
from pathlib import Path

import pytest

from mbs_dynamics.compiler.jit import elf, machine_code
from mbs_dynamics.errors import BackendError

pytest.importorskip("llvmlite")
pytestmark = [
    pytest.mark.backend_independent,  # the back end is llvm
    pytest.mark.skipif(not elf.SUPPORTED, reason="LLVM places objects here"),
]

INTEGERS = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)
NUMBERS = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double)

EVERY_KIND = """
@far = external global i64
@one.of = private constant [3 x ptr] [ptr @twice, ptr @squared, ptr @outside]
declare i64 @outside(i64)
declare double @cos(double)

define i64 @twice(i64 %x) noinline { %y = mul i64 %x, 2  ret i64 %y }
define i64 @squared(i64 %x) noinline { %y = mul i64 %x, %x  ret i64 %y }
define ptr @place.of.twice() { ret ptr @twice }
define i64 @at.a.distance(i64 %x) {
  %far = load i64, ptr @far
  %y = add i64 %x, %far
  %z = call i64 @outside(i64 %y)
  ret i64 %z
}
define i64 @chosen(i64 %k) {
  %place = getelementptr [3 x ptr], ptr @one.of, i64 0, i64 %k
  %function = load ptr, ptr %place
  %y = call i64 %function(i64 7)
  ret i64 %y
}
define i64 @switched(i64 %k) {
  switch i64 %k, label %other [ i64 0, label %a  i64 1, label %b  i64 2, label %c
                                i64 3, label %d  i64 4, label %e  i64 5, label %f ]
a: %A = call i64 @twice(i64 %k)  ret i64 %A
b: %B = call i64 @squared(i64 10)  ret i64 %B
c: %C = call i64 @outside(i64 20)  ret i64 %C
d: %D = call i64 @twice(i64 30)  ret i64 %D
e: %E = call i64 @squared(i64 40)  ret i64 %E
f: %F = call i64 @outside(i64 50)  ret i64 %F
other: ret i64 -1
}
define double @constants(double %x) {
  %a = fmul double %x, 3.25
  %b = call double @cos(double %a)
  %c = fadd double %b, 1.0e100
  %d = fsub double %c, 1.0e100
  %e = fadd double %b, %d
  ret double %e
}
"""


@pytest.fixture(scope="module")
def surroundings():
    """Return external symbols of the code, at distant addresses."""
    number = ctypes.c_int64(1000)
    function = INTEGERS(lambda x: x + 5)
    places = {
        "far": ctypes.addressof(number),
        "outside": ctypes.cast(function, ctypes.c_void_p).value,
    }
    yield lambda name: places.get(name) or elf.address_in_process(name)
    del number, function


def compiled(ir: str) -> bytes:
    """Return the object of IR."""
    binding = machine_code._binding()
    return machine_code._machine(binding).emit_object(binding.parse_assembly(ir))


@pytest.fixture(scope="module")
def image(surroundings):
    return elf.Image(compiled(EVERY_KIND), surroundings)


def kinds(contents: bytes) -> set[int]:
    return {kind for _, kind, _, _ in elf._File(contents).relocations()}


def test_the_code_has_every_kind_of_relocation():
    found = kinds(compiled(EVERY_KIND))
    assert {elf.ABS64, elf.PC32, elf.PLT32} < found
    assert found & set(elf.GOTPCREL)


def test_code_reaches_what_is_its_own_and_what_is_not(image):
    assert INTEGERS(image.address("at.a.distance"))(1) == 1006
    chosen = INTEGERS(image.address("chosen"))
    assert [chosen(k) for k in range(3)] == [14, 49, 12]
    switched = INTEGERS(image.address("switched"))
    assert [switched(k) for k in range(7)] == [0, 100, 25, 60, 1600, 55, -1]
    assert NUMBERS(image.address("constants"))(0.0) == 1.0
    place = ctypes.CFUNCTYPE(ctypes.c_void_p)(image.address("place.of.twice"))
    assert place() == image.address("twice")


def test_code_can_run_and_not_be_changed(image):
    address = image.address("twice")
    for line in Path("/proc/self/maps").read_text().splitlines():
        span, permissions, *_ = line.split()
        first, last = (int(edge, 16) for edge in span.split("-"))
        if first <= address < last:
            assert permissions == "r-xp"
            return
    raise AssertionError("the code is not in memory")


def test_memory_is_given_back(surroundings, young):
    contents = compiled(EVERY_KIND)

    def executable() -> int:
        """Bytes, because what lies side by side is listed as one."""
        found = 0
        for line in Path("/proc/self/maps").read_text().splitlines():
            span, permissions, *_ = line.split()
            first, last = (int(edge, 16) for edge in span.split("-"))
            found += (last - first) * (permissions == "r-xp")
        return found

    before = executable()
    images = [elf.Image(contents, surroundings) for _ in range(20)]
    assert executable() >= before + 20 * mmap.PAGESIZE
    images.clear()
    assert executable() == before


def test_what_is_nowhere_is_named(surroundings):
    contents = compiled(
        "declare i64 @nowhere.to.be.found()\n"
        "define i64 @f() { %x = call i64 @nowhere.to.be.found() ret i64 %x }"
    )
    with pytest.raises(BackendError, match=r"nowhere\.to\.be\.found"):
        elf.Image(contents, surroundings)


def test_what_is_too_far_away_is_named():
    """Code that takes for granted that a symbol is near reaches two gigabytes."""
    contents = compiled(
        "@near = external dso_local global i64\n"
        "define i64 @f() { %x = load i64, ptr @near ret i64 %x }"
    )
    with pytest.raises(BackendError, match="near"):
        elf.Image(contents, lambda name: 4096)


def test_unknown_relocations_are_refused(surroundings):
    contents = bytearray(compiled(EVERY_KIND))
    file = elf._File(bytes(contents))
    section = next(x for x in file.sections if x.kind == elf.RELA and x.target in file.places)
    contents[section.offset + 8] = 10  # R_X86_64_32
    with pytest.raises(BackendError, match="10"):
        elf.Image(bytes(contents), surroundings)


def test_systems_that_let_no_new_code_run(surroundings, monkeypatch):
    class Hardened:
        def mprotect(self, *_: object) -> int:
            ctypes.set_errno(13)
            return -1

    contents = compiled("define void @f() { ret void }")
    monkeypatch.setattr(elf, "_process", Hardened)
    with pytest.raises(BackendError, match="Permission denied"):
        elf.Image(contents, surroundings)


PROCESS = """
import sys
from mbs_dynamics.compiler.jit import elf
elf.SUPPORTED = {own}
import numpy as np
import mbs_dynamics as mbs

arm = mbs.Model.from_urdf("urdf/arm7.urdf")
q = np.linspace(-1.0, 1.0, 70).reshape(10, 7)
tau = mbs.gravity_torques(arm, q)
one = mbs.gravity_torques(arm, q[0])
print("llvmlite.binding" in sys.modules, tau.tobytes().hex(), one.tobytes().hex())
"""


def run(own: bool) -> list[str]:
    command = [sys.executable, "-c", PROCESS.format(own=own)]
    return subprocess.check_output(command, text=True).split()


def test_kept_kernels_run_without_llvm_and_as_llvm_places_them(tmp_path, monkeypatch):
    monkeypatch.setenv("MBS_CACHE_DIR", str(tmp_path / "kept"))
    monkeypatch.delenv("MBS_CACHE", raising=False)
    monkeypatch.setenv("MBS_BACKEND", "llvm")
    imported, *first = run(True)
    assert imported == "True"
    assert run(True) == ["False", *first]
    assert run(False) == ["True", *first]
