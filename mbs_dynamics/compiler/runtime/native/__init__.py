# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Calls from Python that are machine code, through CPython's vectorcall protocol.

Kernels, and the functions that choose them, are objects of a type whose vectorcall function is
machine code: see docs/internals/compiler.md, "The call".
"""
