# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Damaged copies of files: cut off, with flipped bits, or with bytes in other places."""

from __future__ import annotations

import random


def damaged(data, count, seed=0):
    """Yield copies of bytes, each with one to four random damages."""
    draw = random.Random(seed)
    for _ in range(count):
        some = bytearray(data)
        for _ in range(draw.randint(1, 4)):
            if not some:
                break
            place, length = draw.randrange(len(some)), 1 + int(2.0 ** draw.uniform(0.0, 8.0))
            kind = draw.choice(["cut", "flip", "flip", "remove", "repeat", "digits"])
            if kind == "cut":
                del some[place:]
            elif kind == "flip":
                some[place] ^= 1 << draw.randrange(8)
            elif kind == "remove":
                del some[place : place + length]
            elif kind == "repeat":
                some[place:place] = some[place : place + length]
            else:
                some[place : place + 1] = b"9" * length
        yield bytes(some)
