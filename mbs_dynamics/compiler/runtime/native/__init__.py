# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Calls from Python that are machine code, through CPython's vectorcall protocol.

The call path of a kernel costs more than many kernels. So kernels, and the functions that choose
them, are objects of a type whose vectorcall function is machine code, which takes arrays that need
no conversion and hands anything else to Python. It relies on the layout of objects in ordinary
builds of CPython, which :mod:`.layout` probes; where it does not hold, kernels are called through
ctypes, which is reported once.
"""
