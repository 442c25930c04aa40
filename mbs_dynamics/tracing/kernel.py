# Copyright 2026 The mbs_dynamics authors
#
# Licensed under the Apache License, Version 2.0 (the "License");
# you may not use this file except in compliance with the License.
# You may obtain a copy of the License at
#
#     http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS,
# WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
# See the License for the specific language governing permissions and
# limitations under the License.
"""A compiled program that is called with arrays."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from mbs_dynamics.checks import FloatArray
from mbs_dynamics.errors import ArgumentError, SingularError, UnknownBackendError
from mbs_dynamics.tracing import llvm, native
from mbs_dynamics.tracing.c import emit_c
from mbs_dynamics.tracing.iteration import iterate
from mbs_dynamics.tracing.llvm_body import emit_llvm
from mbs_dynamics.tracing.program import Operations, Port, Program
from mbs_dynamics.tracing.python import Failed, compile_python, emit_python

BACKENDS = ("llvm", "python")


def default_backend() -> str:
    """Return the back end used when none is named.

    The environment variable MBS_BACKEND decides if it is set; else llvm where llvmlite is
    installed, and plain Python where it is not. Raises UnknownBackendError for another value of the
    variable.
    """
    named = os.environ.get("MBS_BACKEND")
    if named:
        return checked_backend(named)
    return "llvm" if importlib.util.find_spec("llvmlite") else "python"


def checked_backend(name: str) -> str:
    """Return the name of a back end, or raise UnknownBackendError."""
    if name not in BACKENDS:
        raise UnknownBackendError(name, BACKENDS)
    return name


class Kernel:
    """A program, compiled by one back end, as a callable on arrays.

    Called with the inputs in order or by name. Each may carry leading batch axes, which broadcast
    as those of NumPy's ufuncs; the outputs then carry the broadcast axes. Returns one float64
    array, or a tuple of arrays if the program has several outputs. Inputs with a default may be
    left out.

    ``out`` (for programs with one output) receives the result and must be a writeable, C-contiguous
    float64 array of the right shape. NaN and infinities in the input are computed with, as in
    NumPy, except where something has to be positive.

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
        self.program = program
        self.name = program.name
        self.backend = default_backend() if backend is None else checked_backend(backend)
        self.inputs: tuple[Port, ...] = program.inputs
        self.outputs: tuple[Port, ...] = program.outputs
        given = dict(defaults or {})
        self.required = sum(port.name not in given for port in self.inputs)
        if any(port.name in given for port in self.inputs[: self.required]):
            raise ArgumentError(f"{self.name}: inputs with a default must come last")
        self.defaults = tuple(
            np.array(given[port.name], dtype=np.float64, order="C")
            for port in self.inputs[self.required :]
        )
        for port, default in zip(self.inputs[self.required :], self.defaults, strict=True):
            if default.shape != port.shape:
                raise ArgumentError(
                    f"{self.name}: the default of {port.name} has shape {default.shape}; "
                    f"valid is {port.shape}"
                )
        self.call: Callable[..., Any]
        """The kernel itself, for calls with arrays in order and nothing else."""
        if self.backend == "llvm":
            self._compile_llvm()
        else:
            self._python = compile_python(program)
            self.call = self._call_python

    def __repr__(self) -> str:
        arguments = ", ".join(f"{port.name}{list(port.shape)}" for port in self.inputs)
        return f"<Kernel {self.name}({arguments}), {self.backend}, {self.operations}>"

    @property
    def operations(self) -> Operations:
        """The number of operations of each kind that one evaluation takes."""
        return self.program.operations

    def to_python(self) -> str:
        """Return the program as the source of a plain Python function of flat lists."""
        return emit_python(self.program)

    def to_llvm(self) -> str:
        """Return the program as LLVM IR."""
        return emit_llvm(self.program)

    def to_c(self) -> str:
        """Return the program as a C99 function that needs nothing but math.h."""
        return emit_c(self.program)

    def __call__(self, *args: Any, out: FloatArray | None = None, **named: Any) -> Any:
        """Evaluate the kernel; see the class."""
        if named or out is not None:
            return self._slow(*self._bound(args, named), out=out)
        return self.call(*args)

    def iterate(self, state: Any, /, *args: Any, steps: int, **named: Any) -> FloatArray:
        """Return the states that follow from feeding the output back into the first input.

        For kernels with one output of the shape of their first input, such as a step of an
        integrator. Row 0 of the result (steps + 1, ..., *shape) is ``state``, and row k + 1 is the
        kernel's output at row k. The loop over the steps is machine code.

        ``state`` may have leading batch axes. Each further input, in order or by name, has either
        the kernel's shape, or a leading axis with one value for each step (or 1), followed by axes
        that broadcast with those of ``state``. A kernel's defaults apply.

        Raises ArgumentError as a call does, and if the kernel cannot be iterated. Raises
        SingularError if something that must be positive is not; its attribute ``trajectory`` then
        holds the states up to the one at which that was found.
        """
        bound = self._bound((state, *args), named)
        return iterate(self, self._as_arrays(bound), steps)

    # -- back ends -------------------------------------------------------------------------------

    def _compile_llvm(self) -> None:
        program = self.program
        shared = llvm.shared()
        ir = emit_llvm(program)
        slow = self._slow
        builtin = native.supported()
        if builtin:
            ir += native.emit_builtin(program, self.required, self.defaults, slow)
        self._code = llvm.MachineCode(ir)
        function = self._code.address(program.name)
        ports, guards = len(self.inputs) + len(self.outputs), len(program.guards)

        def loop(states: int, pointers: int, strides: int) -> int:
            return int(shared.loop(function, states, pointers, strides, ports, guards))

        self._loop = loop
        self.call = (
            native.make_builtin(program, self._code, self.defaults, slow) if builtin else slow
        )

    def _call_python(self, *args: Any) -> Any:
        """Take neat arguments without further ado, and anything else through the slow path."""
        if len(args) == self.required:
            args = args + self.defaults
        if len(args) != len(self.inputs):
            return self._slow(*args)
        lists = []
        for x, port in zip(args, self.inputs, strict=True):
            if type(x) is not np.ndarray or x.dtype != np.float64 or x.shape != port.shape:
                return self._slow(*args)
            lists.append(x.tolist() if x.ndim == 1 else x.ravel().tolist())
        try:
            computed = self._python(*lists)
        except Failed:
            return self._slow(*args)  # which comes to the same guard, and says so
        results = [
            np.array(values).reshape(port.shape)
            for values, port in zip(computed, self.outputs, strict=True)
        ]
        return results[0] if len(results) == 1 else tuple(results)

    # -- anything that is not a neat array ---------------------------------------------------------

    def _slow(self, *args: Any, out: FloatArray | None = None) -> Any:
        arrays, batch = self._checked(args)
        outputs = [np.empty(batch + port.shape) for port in self.outputs]
        if out is not None:
            self._check_out(out, batch)
            shared = any(np.may_share_memory(out, array) for array in arrays)
            if out.flags.aligned and not shared:
                outputs = [out]
        states = int(np.prod(batch))
        flats, steps = [], []
        for array, port in zip(arrays, self.inputs, strict=True):
            batched = array.ndim > len(port.shape)
            each = np.broadcast_to(array, batch + port.shape) if batched else array
            flats.append(np.require(each, requirements=("C", "A")).reshape(-1))
            steps.append(port.size if batched else 0)
        flats += [array.reshape(-1) for array in outputs]
        steps += [port.size for port in self.outputs]
        status = self.evaluate(states, flats, steps)
        if status:
            state, guard = divmod(status - 1, len(self.program.guards))
            finite = all(np.isfinite(array).all() for array in arrays)
            raise self.singular(guard, np.unravel_index(state, batch), finite)
        if out is not None and outputs[0] is not out:
            out[...] = outputs[0]
            return out
        return outputs[0] if len(outputs) == 1 else tuple(outputs)

    def evaluate(self, states: int, flats: Sequence[FloatArray], steps: Sequence[int]) -> int:
        """Evaluate one state after the other, on arrays that have been checked; for this package.

        ``flats`` are the inputs and outputs as flat contiguous arrays of their entries, ``steps``
        the entries from one state to the next in each (0 to use the same ones for all). Returns 0,
        or for the first state i at which the guard k, counted from 1, fails, i times the number of
        guards, plus k.
        """
        if self.backend == "python":
            return self._evaluate_python(states, flats, steps)
        pointers = np.array([flat.ctypes.data for flat in flats], dtype=np.uint64)
        strides = np.array(steps, dtype=np.int64) * 8
        return self._loop(states, pointers.ctypes.data, strides.ctypes.data)

    def _evaluate_python(
        self, states: int, flats: Sequence[FloatArray], steps: Sequence[int]
    ) -> int:
        ports = (*self.inputs, *self.outputs)
        count = len(self.inputs)
        for state in range(states):
            rows = [
                flat[state * step : state * step + port.size]
                for flat, step, port in zip(flats, steps, ports, strict=True)
            ]
            try:
                computed = self._python(*[row.tolist() for row in rows[:count]])
            except Failed as failed:
                return state * len(self.program.guards) + int(failed.args[0]) + 1
            for row, values in zip(rows[count:], computed, strict=True):
                row[:] = values
        return 0

    def singular(
        self, guard: int, state: tuple[Any, ...], finite: bool, when: str = ""
    ) -> SingularError:
        """Return what to raise where a guard fails; for this package."""
        where = f" at state {[int(k) for k in state]} of the batch" if state else ""
        why = "" if finite else "; an input is not finite"
        return SingularError(f"{self.name}: {self.program.guards[guard][1]}{when}{where}{why}")

    def _bound(self, args: tuple[Any, ...], named: dict[str, Any]) -> list[Any]:
        """Return all arguments in order, from positional and named ones."""
        if len(args) > len(self.inputs):
            raise ArgumentError(self._signature(f"got {len(args)} arguments"))
        bound = {port.name: x for port, x in zip(self.inputs, args, strict=False)}
        for name, value in named.items():
            if name in bound:
                raise ArgumentError(self._signature(f"got two values for {name!r}"))
            bound[name] = value
        for port, default in zip(self.inputs[self.required :], self.defaults, strict=True):
            bound.setdefault(port.name, default)
        names = [port.name for port in self.inputs]
        missing = [name for name in names if name not in bound]
        unknown = [name for name in bound if name not in names]
        if missing or unknown:
            what = f"missing {missing}" if missing else f"got an unknown argument {unknown[0]!r}"
            raise ArgumentError(self._signature(what))
        return [bound[name] for name in names]

    def _signature(self, complaint: str) -> str:
        arguments = ", ".join(f"{port.name} {port.shape}" for port in self.inputs)
        return f"{self.name}: {complaint}; the arguments are: {arguments}"

    def _checked(self, args: tuple[Any, ...]) -> tuple[list[FloatArray], tuple[int, ...]]:
        """Return the arguments as float64 arrays, and the broadcast batch shape."""
        arrays = self._as_arrays(self._bound(args, {}))
        leading = [
            array.shape[: array.ndim - len(port.shape)]
            for array, port in zip(arrays, self.inputs, strict=True)
        ]
        try:
            return arrays, np.broadcast_shapes(*leading)
        except ValueError:
            said = ", ".join(
                f"{port.name} {array.shape}"
                for port, array in zip(self.inputs, arrays, strict=True)
            )
            raise ArgumentError(
                f"{self.name}: the batch axes do not broadcast together: {said}"
            ) from None

    def _as_arrays(self, values: Sequence[Any]) -> list[FloatArray]:
        """Return all arguments as float64 arrays with the right last axes."""
        return [
            _as_floats(self.name, port, value)
            for port, value in zip(self.inputs, values, strict=True)
        ]

    def _check_out(self, out: Any, batch: tuple[int, ...]) -> None:
        if len(self.outputs) != 1:
            raise ArgumentError(f"{self.name} has {len(self.outputs)} outputs: out is not possible")
        shape = batch + self.outputs[0].shape
        good = isinstance(out, np.ndarray) and out.dtype == np.float64 and out.shape == shape
        if not good or not out.flags.c_contiguous or not out.flags.writeable:
            came = f"{out.dtype} {out.shape}" if isinstance(out, np.ndarray) else repr(type(out))
            raise ArgumentError(
                f"{self.name}: out must be a writeable C-contiguous float64 array of shape "
                f"{shape}; got {came}"
            )


def _as_floats(name: str, port: Port, value: Any) -> FloatArray:
    try:
        array = np.asarray(value)
    except ValueError as error:
        raise ArgumentError(f"{name}: {port.name} is no array of numbers: {error}") from error
    if array.dtype.kind not in "fiu":
        raise ArgumentError(
            f"{name}: {port.name} must be real numbers; got {_kind_of(value, array)}"
        )
    core = array.ndim - len(port.shape)
    if core < 0 or array.shape[core:] != port.shape:
        batched = "(..., " + ", ".join(str(size) for size in port.shape) + ")"
        raise ArgumentError(
            f"{name}: {port.name} has shape {array.shape}; valid is {port.shape}, or {batched} "
            "for a batch"
        )
    return array.astype(np.float64, copy=False)


def _kind_of(value: Any, array: np.ndarray[Any, Any]) -> str:
    return "None" if value is None else f"dtype {array.dtype}"
