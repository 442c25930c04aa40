# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Loader of machine code from object files of any compiler.

A kernel that was compiled before needs no compiler, whose import takes half as long as that of
NumPy. Its object needs little work: copy the sections to one place, and write addresses where the
relocations require them. Objects are relocatable ELF files of position-independent code for x86-64;
names and formulas are those of the System V ABI, AMD64 supplement, section 4.4: S + A - P and so
on. What lies outside, wherever it is, is reached through a table of addresses and called by jumps
through that table.
"""

from __future__ import annotations

import ctypes
import functools
import mmap
import os
import struct
import sys
from collections.abc import Callable, Iterator
from struct import Struct
from typing import NamedTuple

from mbs_dynamics.errors import BackendError

SUPPORTED = sys.platform == "linux" and os.uname().machine == "x86_64" and sys.maxsize > 1 << 32
"""Whether processes here run such code."""

FILE = Struct("<40xQ12xH2x")
"""The header of a file: where the headers of its sections begin, and how many there are."""
SECTION = Struct("<4xIQ8xQQIIQ8x")
SYMBOL = Struct("<IxxHQ8x")
RELOCATION = Struct("<QIIq")

SYMTAB, RELA, NOBITS = 2, 4, 8  # kinds of sections
ALLOC = 1 << 1  # a flag: the section is needed in memory
OUTSIDE = 0  # the section of symbols that the object does not have

ABS64, PC32, PLT32 = 1, 2, 4  # R_X86_64_64 and so on, kinds of relocations
GOTPCREL = 9, 41, 42  # and GOTPCRELX, REX_GOTPCRELX

ADDRESS, DISTANCE = Struct("<Q"), Struct("<i")
JUMP = Struct("<2si2x")
"""``jmp *distance(%rip)``, the distance counted from its end."""
JUMP_END, ENTRY = 6, 8
"""Bytes of a jump, and of what it or an address takes in its table."""


class _Section(NamedTuple):
    kind: int
    flags: int
    offset: int
    size: int
    link: int
    target: int
    alignment: int


class _File:
    """The tables of an object, and where in the image its sections go."""

    def __init__(self, contents: bytes) -> None:
        self._contents = contents
        start, count = FILE.unpack_from(contents)
        headers = contents[start : start + count * SECTION.size]
        self.sections = [_Section(*header) for header in SECTION.iter_unpack(headers)]
        (table,) = (section for section in self.sections if section.kind == SYMTAB)
        names = self.contents(self.sections[table.link])
        self.symbols = [  # the name, the section and the place in it
            (names[name : names.index(b"\0", name)].decode(), section, value)
            for name, section, value in SYMBOL.iter_unpack(self.contents(table))
        ]
        self.places: dict[int, int] = {}
        self.end = 0
        for k, section in enumerate(self.sections):
            if section.flags & ALLOC:
                self.places[k] = _aligned(self.end, max(section.alignment, 1))
                self.end = self.places[k] + section.size

    def contents(self, section: _Section) -> bytes:
        """Return the bytes of a section that has some."""
        return self._contents[section.offset : section.offset + section.size]

    def relocations(self) -> Iterator[tuple[int, int, int, int]]:
        """Yield the place in the image, the kind, the number of the symbol and the addend."""
        for section in self.sections:
            if section.kind == RELA and section.target in self.places:
                first = self.places[section.target]
                for offset, kind, symbol, addend in RELOCATION.iter_unpack(self.contents(section)):
                    yield first + offset, kind, symbol, addend


class Image:
    """An object in memory, ready to run. Its addresses hold as long as it lives.

    ``address_of`` returns the address of what the object needs and does not have. Raises
    BackendError if the system does not let new code run, or for an object of another kind.
    """

    def __init__(self, contents: bytes, address_of: Callable[[str], int]) -> None:
        file = _File(contents)
        count = len(file.symbols)
        table = _aligned(file.end, ENTRY)
        jumps = table + ENTRY * count
        self._memory, base = _new_memory(jumps + ENTRY * count)
        memory = self._memory
        for k, place in file.places.items():
            if file.sections[k].kind != NOBITS:  # memory is zero
                memory[place : place + file.sections[k].size] = file.contents(file.sections[k])
        self._addresses: dict[str, int] = {}
        S = [0] * count
        G = [base + table + ENTRY * k for k in range(count)]
        L = [base + jumps + ENTRY * k for k in range(count)]
        for k, (name, section, value) in enumerate(file.symbols):
            if section in file.places:
                S[k] = L[k] = self._addresses[name] = base + file.places[section] + value
            elif name and section == OUTSIDE:
                S[k] = address_of(name)
            ADDRESS.pack_into(memory, table + ENTRY * k, S[k])
            JUMP.pack_into(memory, jumps + ENTRY * k, b"\xff\x25", table - jumps - JUMP_END)

        targets = {PC32: S, PLT32: L, **dict.fromkeys(GOTPCREL, G)}
        for place, kind, k, A in file.relocations():
            if kind == ABS64:
                ADDRESS.pack_into(memory, place, S[k] + A)
                continue
            if kind not in targets:
                raise BackendError(f"machine code has a relocation of the kind {kind}")
            try:
                DISTANCE.pack_into(memory, place, targets[kind][k] + A - (base + place))
            except struct.error:
                name = file.symbols[k][0]
                raise BackendError(f"{name} is too far away from machine code") from None
        _let_run(base, len(memory))

    def address(self, name: str) -> int:
        return self._addresses[name]


def _aligned(place: int, alignment: int) -> int:
    return -(-place // alignment) * alignment


def _new_memory(size: int) -> tuple[mmap.mmap, int]:
    """Return memory of this process alone, and its address."""
    memory = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    return memory, ctypes.addressof(ctypes.c_char.from_buffer(memory))


def _let_run(address: int, size: int) -> None:
    if _process().mprotect(ctypes.c_void_p(address), ctypes.c_size_t(size), 1 | 4):  # read, execute
        error = ctypes.get_errno()
        raise BackendError(
            f"the system does not let new machine code run ({os.strerror(error)}); permit it (see "
            "SELinux's execmem, systemd's MemoryDenyWriteExecute), or use backend='python' or "
            "MBS_BACKEND=python"
        )


@functools.lru_cache(maxsize=1)
def check_execution() -> None:
    """Raise BackendError if the system forbids the execution of memory that was written to.

    SELinux and systemd can be configured so, and prctl(PR_SET_MDWE).
    """
    if hasattr(mmap, "MAP_ANONYMOUS"):  # elsewhere LLVM finds out
        memory, address = _new_memory(mmap.PAGESIZE)
        memory[0] = 0
        _let_run(address, len(memory))


@functools.lru_cache(maxsize=1)
def _process() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def address_in_process(name: str) -> int:
    """Return the address of a function of C or CPython. Raises BackendError if there is none."""
    try:
        return ctypes.cast(getattr(_process(), name), ctypes.c_void_p).value or 0
    except AttributeError:
        raise BackendError(f"machine code needs {name}, which this process lacks") from None
