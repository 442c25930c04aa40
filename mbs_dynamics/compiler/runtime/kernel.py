# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""A compiled program that is called with arrays."""

from __future__ import annotations

import functools
import math
import types
import weakref
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from mbs_dynamics.checks import FloatArray
from mbs_dynamics.compiler.codegen.c import emit_c
from mbs_dynamics.compiler.codegen.llvm import emit_llvm
from mbs_dynamics.compiler.codegen.python import emit_python
from mbs_dynamics.compiler.frontend.program import Program
from mbs_dynamics.compiler.ir.operations import Operations
from mbs_dynamics.compiler.passes.pipeline import lower
from mbs_dynamics.compiler.runtime.arguments import Signature, result_type, table_of
from mbs_dynamics.compiler.runtime.backends import checked_backend, default_backend
from mbs_dynamics.compiler.runtime.machine import Machine, PlainPython
from mbs_dynamics.compiler.runtime.native import table, vectorcall
from mbs_dynamics.compiler.runtime.native.call import emit_call


class Kernel(vectorcall.NativeCallable):
    """A program, compiled by one back end, as a callable on arrays.

    Called with the inputs in order or by name. Each may carry leading batch axes, which broadcast
    as those of NumPy's ufuncs; the outputs then carry the broadcast axes. Returns one C-contiguous
    float64 array, or a named tuple of arrays if the program has several outputs. Inputs with a
    default may be left out.

    Result arrays are recycled once nothing refers to them; ``resize`` in place therefore takes
    ``refcheck=False``.

    The back end llvm evaluates large batches as vector code, and lets other threads of Python run
    meanwhile. Arrays that are not C-contiguous are copied. NaN and infinities in the input are
    computed with, as in NumPy, except where something has to be positive.

    Raises ArgumentError if an argument is missing, unknown, or of a wrong shape or type, and
    SingularError if something that must be positive at this state is not.
    """

    def __init__(
        self,
        program: Program,
        *,
        backend: str | None = None,
        defaults: Mapping[str, FloatArray] | None = None,
    ) -> None:
        self.program, self.inputs, self.outputs = program, program.inputs, program.outputs
        signature = Signature(program, defaults or {})
        self.name = self.__name__ = program.name
        self.backend = default_backend() if backend is None else checked_backend(backend)
        self.result_type = result_type(program)
        """The named tuple that a call returns; None for a program with one output."""
        self._evaluator = Machine(program) if self.backend == "llvm" else PlainPython(program)
        self._set_signature(signature)

    def with_defaults(self, defaults: Mapping[str, FloatArray]) -> Kernel:
        """Return this kernel with these defaults of its last inputs, in place of its own.

        It shares program and machine code with this one: nothing is compiled. Names of no input are
        ignored. Raises ArgumentError for a wrong shape, and if inputs without a default follow.
        """
        made = object.__new__(type(self))
        made.__dict__.update(self.__dict__)
        made._set_signature(Signature(self.program, defaults))
        return made

    def _set_signature(self, signature: Signature) -> None:
        """Store the signature, and let calls run machine code if they can."""
        self.signature = signature
        self.required, self.defaults = signature.required, signature.defaults
        self._table: table.KernelTable | None = None
        if isinstance(self._evaluator, Machine) and table.is_supported(self.program):
            fallback = types.MethodType(Kernel.__call__, weakref.proxy(self))  # not a cycle
            self._table = table.KernelTable(signature, self.result_type, self._evaluator, fallback)
            vectorcall.attach(self, self._table.words, "mbs.call", emit_call)

    def __repr__(self) -> str:
        arguments = ", ".join(f"{port.name}{list(port.shape)}" for port in self.inputs)
        return f"<Kernel {self.name}({arguments}), {self.backend}, {self.operations}>"

    def __getattr__(self, name: str) -> Any:
        """Return the attributes that inspect.signature() reads, made on demand."""
        if name == "__signature__":
            return self.signature.python
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __reduce__(self) -> tuple[Any, ...]:
        """Return the program for pickling; unpickling compiles it, or loads it from the cache."""
        made = functools.partial(Kernel, backend=self.backend, defaults=self.signature.optional)
        return made, (self.program,)

    @property
    def operations(self) -> Operations:
        """The number of operations of each kind that one evaluation takes."""
        return self.program.operations

    def to_python(self) -> str:
        """Return the program as the source of a plain Python function of flat lists."""
        return emit_python(lower(self.program, "python"))

    def to_llvm(self) -> str:
        """Return the program as LLVM IR."""
        return emit_llvm(lower(self.program, "llvm"))

    def to_c(self) -> str:
        """Return the program as a C99 function that needs nothing but math.h."""
        return "#include <math.h>\n\n" + emit_c(lower(self.program, "c")).definition

    def __call__(self, *args: Any, **named: Any) -> Any:
        """Evaluate the kernel; see the class."""
        return self._slow(self.signature.bound(args, named))

    def iterate(self, state: Any, *inputs: Any, steps: int) -> FloatArray:
        """Return the states (steps + 1, *shape) from feeding the output back into the first input.

        For a kernel with one output, of the shape of its first input. Each further input has its
        own shape, or a leading axis of steps. The loop is machine code. Raises ArgumentError as a
        call does, SingularError with the states so far as its attribute ``trajectory``.
        """
        states = np.empty((steps + 1, *self.inputs[0].shape))
        states[0] = state
        arrays = self.signature.arrays([states[:-1], *inputs])
        tables = [table_of(x, port, (steps,)) for x, port in zip(arrays, self.inputs, strict=True)]
        status = self.evaluate(steps, [*tables, states[1:].reshape(steps, -1)], in_turn=True)
        if status:
            step, guard = divmod(status - 1, len(self.program.guards))
            states = states[: step + 1]
            finite = all(np.isfinite(x).all() for x in (states, *arrays[1:]))
            error = self.signature.singular(guard, (), finite)
            error.trajectory = states.copy()
            raise error
        return states

    def _slow(self, values: Sequence[Any]) -> Any:
        arrays = self.signature.arrays(values)
        batch = self.signature.batch(arrays)
        states = math.prod(batch)
        outputs = [np.empty(batch + port.shape) for port in self.outputs]
        tables = [table_of(x, port, batch) for x, port in zip(arrays, self.inputs, strict=True)]
        written = zip(outputs, self.outputs, strict=True)
        tables += [x.reshape(states, port.size) for x, port in written]
        status = self.evaluate(states, tables)
        if status:
            state, guard = divmod(status - 1, len(self.program.guards))
            finite = all(np.isfinite(array).all() for array in arrays)
            raise self.signature.singular(guard, np.unravel_index(state, batch), finite)
        return outputs[0] if self.result_type is None else self.result_type._make(outputs)

    def evaluate(self, states: int, tables: Sequence[FloatArray], *, in_turn: bool = False) -> int:
        """Evaluate states that have been checked; for this package.

        See ``evaluate`` of ``runtime.machine.Machine``. Raises MemoryError.
        """
        status = self._evaluator.evaluate(states, tables, in_turn=in_turn)
        if self._table is not None:
            self._table.take_vector_code()
        if status < 0:
            raise MemoryError(f"{self.name}: no memory for its intermediate values")
        return status
