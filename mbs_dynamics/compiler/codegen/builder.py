# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""A builder of LLVM IR, for functions with control flow: its statements read as C does.

A value is an expression, whose operators emit instructions. A pointer has the type of its target:
``p[k]`` loads an element, ``p.field`` a field of a structure, and an assignment to either stores.
Variables live on the stack, and every statement has basic blocks of its own, even where they are
empty or never reached. LLVM's passes sroa and simplifycfg make registers and phi nodes of that (see
:class:`jit.machine_code.MachineCode`).
"""

from __future__ import annotations

import contextlib
import struct
from collections.abc import Callable, Iterator, Sequence
from typing import TypeAlias

I1, I32, I64, DOUBLE, PTR, VOID = "i1", "i32", "i64", "double", "ptr", "void"
WORD = 8
"""Bytes of a pointer, and of a 64-bit integer."""

Type: TypeAlias = "str | Pointer | Prototype"
"""A type: as LLVM writes it, or that of a pointer to something, or to a function."""

Operand: TypeAlias = "Value | float | None"
"""A value; or a number, the same in all lanes of a vector; or the null pointer."""

NULL = None


class Pointer:
    """The type of a pointer to elements of a type, or to structures."""

    def __init__(self, to: Type | Struct) -> None:
        self.to = to


class Inline:
    """A field that is an array itself, of any length. Its value is its address, as in C."""

    def __init__(self, of: Type | Struct) -> None:
        self.of = of


class Prototype:
    """A function: its name, empty if it is called by address, and its types."""

    def __init__(self, name: str, returns: Type, *parameters: Type) -> None:
        self.name, self.returns, self.parameters = name, returns, parameters

    def __str__(self) -> str:
        return f"{name_of(self.returns)} @{self.name}({', '.join(map(name_of, self.parameters))})"


class Struct:
    """A structure in memory: of each field the distance in bytes from the start, and the type."""

    def __init__(self, **fields: tuple[int, Type | Inline]) -> None:
        self.fields = fields

    @classmethod
    def of_words(cls, **types: Type | Inline) -> Struct:
        """Return the structure of these fields, each a word, one after the other."""
        return cls(**{name: (WORD * k, kind) for k, (name, kind) in enumerate(types.items())})

    @property
    def names(self) -> list[str]:
        """The names of its words in their order."""
        return [name for name, (_, kind) in self.fields.items() if not isinstance(kind, Inline)]

    def offset(self, field: str) -> int:
        """Return the distance in bytes of a field from the start."""
        return self.fields[field][0]

    def words(self, **values: int) -> list[int]:
        """Return the values of all words in their order."""
        assert values.keys() == set(self.names), (list(values), self.names)
        return [values[name] for name in self.names]


def _operation(name: str) -> Callable[[Value, Operand], Value]:
    """Return the operator that emits an instruction, on integers or doubles."""

    def operator(self: Value, other: Operand) -> Value:
        doubles = name_of(self.kind).rstrip(">").endswith(DOUBLE)
        return self.binary(f"f{name}" if doubles else name, other)

    return operator


def _comparison(condition: str) -> Callable[[Value, Operand], Value]:
    """Return the operator that compares signed integers, or pointers."""

    def operator(self: Value, other: Operand) -> Value:
        sign = "" if condition in ("eq", "ne") else "s" if self.kind in (I32, I64) else "u"
        other = self.code.operand(other, self.kind)
        return self.code.new(I1, f"icmp {sign}{condition} {self}, {other.text}")

    return operator


class Value:
    """A value of a function that is being built: a number, a vector or a pointer."""

    __slots__ = ("code", "kind", "text")
    __hash__ = None  # type: ignore[assignment]
    code: Function
    kind: Type
    text: str

    __add__, __sub__, __mul__ = _operation("add"), _operation("sub"), _operation("mul")
    __and__, __or__ = _operation("and"), _operation("or")
    __eq__, __ne__ = _comparison("eq"), _comparison("ne")  # type: ignore[assignment]
    __lt__, __le__ = _comparison("lt"), _comparison("le")
    __gt__, __ge__ = _comparison("gt"), _comparison("ge")

    def __init__(self, code: Function, kind: Type, text: str) -> None:
        for name, value in (("code", code), ("kind", kind), ("text", text)):
            object.__setattr__(self, name, value)  # the class's own stores fields

    def __bool__(self) -> bool:
        raise TypeError("this is known when the code runs, not when it is built: use if_, & and |")

    def __str__(self) -> str:
        return f"{name_of(self.kind)} {self.text}"

    def binary(self, operation: str, other: Operand) -> Value:
        """Return the result of an instruction of two operands of the same type."""
        other = self.code.operand(other, self.kind)
        return self.code.new(self.kind, f"{operation} {self}, {other.text}")

    def to(self, kind: Type) -> Value:
        """Return a pointer as one to something else, or an integer in another size."""
        if name_of(kind) == PTR:
            return Value(self.code, kind, self.text)
        convert = "sext" if self.kind == I32 else "trunc"
        return self.code.new(kind, f"{convert} {self} to {kind}")

    def byte(self, k: Operand) -> Value:
        """Return the pointer to the k-th byte."""
        at = self.code.operand(k, I64)
        return self.code.new(self.kind, f"getelementptr i8, {self}, {at}")

    def at(self, k: Operand) -> Value:
        """Return the pointer to the k-th element."""
        element, at = name_of(self._target()), self.code.operand(k, I64)
        return self.code.new(self.kind, f"getelementptr {element}, {self}, {at}")

    def __getitem__(self, k: Operand) -> Value:
        """Load the k-th element. Of structures, return the pointer to it."""
        at, to = self.at(k), self._target()
        return at if isinstance(to, Struct) else at.load(to)

    def __setitem__(self, k: Operand, value: Operand) -> None:
        to = self._target()
        assert not isinstance(to, Struct)
        self.at(k).store(self.code.operand(value, to))

    def __getattr__(self, field: str) -> Value:
        """Load a field. Of an array in the structure, return the pointer to it."""
        offset, kind = self._field(field)
        at = self.byte(offset)
        return at.to(Pointer(kind.of)) if isinstance(kind, Inline) else at.load(kind)

    def __setattr__(self, field: str, value: Operand) -> None:
        offset, kind = self._field(field)
        assert not isinstance(kind, Inline)
        self.byte(offset).store(self.code.operand(value, kind))

    def load(self, kind: Type, alignment: int | None = None) -> Value:
        """Load the value here; of vectors, the alignment in bytes may be less than theirs."""
        align = "" if alignment is None else f", align {alignment}"
        return self.code.new(kind, f"load {name_of(kind)}, {self}{align}")

    def store(self, value: Value, alignment: int | None = None) -> None:
        """Store a value here."""
        align = "" if alignment is None else f", align {alignment}"
        self.code.lines.append(f"  store {value}, {self}{align}")

    def _target(self) -> Type | Struct:
        assert isinstance(self.kind, Pointer), self
        return self.kind.to

    def _field(self, field: str) -> tuple[int, Type | Inline]:
        struct = self.kind.to if isinstance(self.kind, Pointer) else None
        if isinstance(struct, Struct) and field in struct.fields:
            return struct.fields[field]
        raise AttributeError(f"{self} has no field {field!r}")


def vector(lanes: int, of: str) -> str:
    """Return the type of a vector."""
    return f"<{lanes} x {of}>"


def real(x: float) -> str:
    """Return a double as LLVM writes it, to the bit."""
    return f"0x{struct.unpack('<Q', struct.pack('<d', x))[0]:016X}"


def name_of(kind: Type | Struct) -> str:
    """Return a type as LLVM writes it."""
    if isinstance(kind, str):
        return kind
    return f"[{len(kind.names)} x {I64}]" if isinstance(kind, Struct) else PTR


class Variable:
    """A variable of a function that is being built."""

    def __init__(self, code: Function, kind: Type, initial: Operand) -> None:
        self._at = code.array(kind, 1)
        self.value = initial

    @property
    def value(self) -> Value:
        """What it holds now. To assign to it stores."""
        return self._at[0]

    @value.setter
    def value(self, value: Operand) -> None:
        self._at[0] = value


class Block:
    """Statements of a function that is being built, of which the rest can be skipped."""

    def __init__(self, code: Function, end: str) -> None:
        self._code, self._end = code, end

    def leave(self) -> None:
        """Go on behind the block."""
        self._code.jump(self._end)

    def leave_if(self, condition: Value) -> None:
        """Go on behind the block if a condition holds."""
        self._code.branch(condition, self._end, following := self._code.label())
        self._code.begin(following)

    def leave_unless(self, condition: Value) -> None:
        """Go on behind the block unless a condition holds."""
        self._code.branch(condition, following := self._code.label(), self._end)
        self._code.begin(following)


class Function:
    """A function that is being built."""

    def __init__(
        self,
        prototype: Prototype,
        *,
        exported: bool = False,
        attributes: str = "",
    ) -> None:
        self.prototype = prototype
        types = enumerate(prototype.parameters)
        self.parameters = [Value(self, kind, f"%p{k}") for k, kind in types]
        self._head = "define" if exported else "define internal"
        self._attributes = f"{attributes} nounwind"
        self.lines: list[str] = []
        self.called: dict[str, Prototype] = {}
        """The functions that it calls by name."""
        self._allocas: list[str] = []
        self._names = 0
        self._else = 0

    def __str__(self) -> str:
        given = ", ".join(map(str, self.parameters))
        signature = f"{name_of(self.prototype.returns)} @{self.prototype.name}({given})"
        head = f"{self._head} {signature} {self._attributes} {{\nentry:\n"
        return head + "\n".join([*self._allocas, *self.lines]) + "\n  unreachable\n}\n"

    # -- values ------------------------------------------------------------------------------------

    def new(self, kind: Type, expression: str) -> Value:
        """Emit an instruction and return its value."""
        self._names += 1
        text = f"%r{self._names}"
        self.lines.append(f"  {text} = {expression}")
        return Value(self, kind, text)

    def operand(self, x: Operand, kind: Type) -> Value:
        """Return a value as it is, and a number as one of this type."""
        if isinstance(x, Value):
            return x
        if x is None:
            return Value(self, kind, "null")
        name = name_of(kind)
        text = real(x) if name.rstrip(">").endswith(DOUBLE) else str(int(x))
        element = name.rstrip(">").rpartition(" ")[2]
        return Value(self, kind, f"splat ({element} {text})" if name.startswith("<") else text)

    def symbol(self, name: str, kind: Type = PTR) -> Value:
        """Return the address that has a name."""
        return Value(self, kind, f"@{name}")

    def variable(self, kind: Type, initial: Operand) -> Variable:
        """Return a new variable."""
        return Variable(self, kind, initial)

    def array(self, kind: Type | Struct, count: int | Value) -> Value:
        """Return the address of so many elements on the stack, which are not initialized."""
        if isinstance(count, Value):
            return self.new(Pointer(kind), f"alloca {name_of(kind)}, {count}")
        text = f"%a{len(self._allocas)}"
        self._allocas.append(f"  {text} = alloca [{count} x {name_of(kind)}]")
        return Value(self, Pointer(kind), text)

    def product_plus(self, a: Value, b: Operand, c: Operand) -> Value:
        """Return a b + c of doubles, in one instruction and rounded once where there is such."""
        product = self.new(a.kind, f"fmul contract {a}, {self.operand(b, a.kind).text}")
        return self.new(a.kind, f"fadd contract {product}, {self.operand(c, a.kind).text}")

    def select(self, condition: Value, a: Operand, b: Operand, kind: Type = I64) -> Value:
        """Return the first value if a condition holds, else the second one."""
        a, b = self.operand(a, kind), self.operand(b, kind)
        return self.new(kind, f"select {condition}, {a}, {b}")

    def call(self, callee: Prototype | Value, *arguments: Operand) -> Value:
        """Return the result of a function, which is known by name or a pointer."""
        if isinstance(callee, Prototype):
            self.called[callee.name] = callee
            callee = self.symbol(callee.name, callee)
        prototype = callee.kind
        assert isinstance(prototype, Prototype), callee
        given = zip(arguments, prototype.parameters, strict=True)
        values = ", ".join(str(self.operand(x, kind)) for x, kind in given)
        call = f"call {name_of(prototype.returns)} {callee.text}({values})"
        if prototype.returns != VOID:
            return self.new(prototype.returns, call)
        self.lines.append(f"  {call}")
        return Value(self, VOID, "")

    # -- basic blocks ------------------------------------------------------------------------------

    def label(self) -> str:
        """Return a new name for a basic block."""
        self._names += 1
        return f"b{self._names}"

    def begin(self, label: str) -> None:
        """Begin a basic block. The one before has been ended."""
        self.lines.append(f"{label}:")

    def branch(self, condition: Value, then: str, otherwise: str) -> None:
        """End a basic block with a choice."""
        self.lines.append(f"  br {condition}, label %{then}, label %{otherwise}")

    def jump(self, label: str) -> None:
        """End a basic block. What follows is in one that is never reached."""
        self.lines.append(f"  br label %{label}")
        self.begin(self.label())

    # -- statements --------------------------------------------------------------------------------

    def ret(self, value: Operand = None) -> None:
        """Return from the function."""
        returns = self.prototype.returns
        self.lines.append(f"  ret {VOID if returns == VOID else self.operand(value, returns)}")
        self.begin(self.label())

    @contextlib.contextmanager
    def block(self) -> Iterator[Block]:
        """Run the statements, which may leave the block."""
        end = self.label()
        yield Block(self, end)
        self.lines += [f"  br label %{end}", f"{end}:"]

    @contextlib.contextmanager
    def if_(self, condition: Value) -> Iterator[None]:
        """Run the statements if a condition holds."""
        then, otherwise, end = self.label(), self.label(), self.label()
        self.branch(condition, then, otherwise)
        self.begin(then)
        yield
        to_end = f"  br label %{end}"
        self.lines += [to_end, f"{otherwise}:", to_end, f"{end}:"]
        self._else = len(self.lines)

    @contextlib.contextmanager
    def else_(self) -> Iterator[None]:
        """Run the statements if the condition of the ``if_`` right before does not hold."""
        assert self._else == len(self.lines), "else_ follows if_"
        end = self.lines[-2:]
        del self.lines[-2:]
        yield
        self.lines += end

    @contextlib.contextmanager
    def forever(self) -> Iterator[Block]:
        """Run the statements again and again, until they leave the block."""
        with self.block() as block:
            start = self.label()
            self.lines += [f"  br label %{start}", f"{start}:"]
            yield block
            self.jump(start)

    @contextlib.contextmanager
    def loop(self, first: Operand, last: Operand = None, step: int = 1) -> Iterator[Value]:
        """Run the statements for each number, counted as ``range`` does."""
        if last is None:
            first, last = 0, first
        number = self.variable(I64, first)
        with self.if_(number.value < last), self.forever() as block:
            k = number.value
            yield k
            number.value = following = k + step
            block.leave_unless(following < last)


def module(functions: Sequence[Function], variables: Sequence[str] = ()) -> str:
    """Return functions as a module, which declares what else they call and these variables."""
    called = {name: prototype for f in functions for name, prototype in f.called.items()}
    for function in functions:
        called.pop(function.prototype.name, None)
    declared = [f"@{name} = external global i8\n" for name in variables]
    declared += [f"declare {prototype}\n" for prototype in called.values()]
    return "".join([*declared, *map(str, functions)])
