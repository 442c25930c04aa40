# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""A builder of functions in LLVM IR, whose statements read like C.

Operators of values emit instructions. A pointer knows the type of its target: ``p[k]`` loads an
element, ``p.field`` loads a field of a structure, and assignments store. Variables live on the
stack, and basic blocks may be empty or unreachable: LLVM's passes sroa and simplifycfg remove both
(see ``optimized`` of :class:`jit.machine_code.MachineCode`).
"""

from __future__ import annotations

import contextlib
import functools
import struct
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, TypeAlias

I1, I8, I32, I64, DOUBLE, PTR, VOID = "i1", "i8", "i32", "i64", "double", "ptr", "void"
WORD = 8
"""Bytes of a pointer, of a double, and of a 64-bit integer."""

LINE = 8
"""Words in a line of the cache, at multiples of which vectors are aligned."""

Type: TypeAlias = "str | Pointer | Prototype"
"""A type: its name in LLVM IR, a pointer type, or the type of a function."""

Operand: TypeAlias = "Value | float | None"
"""A value, a number (the same in all lanes of a vector), or the null pointer."""

NULL = None


class Pointer(NamedTuple):
    """Type of a pointer to elements of a type, or to structures."""

    to: Type | Struct


class Inline(NamedTuple):
    """Type of a field that is an array of any length. Its value is its address, as in C."""

    of: Type | Struct


class Prototype:
    """Name and types of a function. The name is empty if the function is called by address."""

    def __init__(self, name: str, returns: Type, *parameters: Type) -> None:
        self.name, self.returns, self.parameters = name, returns, parameters

    def __str__(self) -> str:
        return f"{name_of(self.returns)} @{self.name}({', '.join(map(name_of, self.parameters))})"


class Struct:
    """A structure in memory: offset in bytes and type of each field."""

    def __init__(self, **fields: tuple[int, Type | Inline]) -> None:
        self.fields = fields
        self.names = [name for name, (_, kind) in fields.items() if not isinstance(kind, Inline)]
        """The names of the words in order."""

    @classmethod
    def of_words(cls, **types: Type | Inline) -> Struct:
        """Return a structure of consecutive words with these types."""
        return cls(**{name: (WORD * k, kind) for k, (name, kind) in enumerate(types.items())})

    def offset(self, field: str) -> int:
        return self.fields[field][0]

    def words(self, **values: int) -> list[int]:
        """Return the values of all words in order."""
        assert len(values) == len(self.names), (list(values), self.names)
        return [values[name] for name in self.names]


@functools.cache
def name_of(kind: Type | Struct) -> str:
    """Return the name of a type in LLVM IR."""
    if isinstance(kind, str):
        return kind
    return f"[{len(kind.names)} x {I64}]" if isinstance(kind, Struct) else PTR


def vector(lanes: int, of: str) -> str:
    """Return the type of a vector, or of its element for one lane."""
    return of if lanes == 1 else f"<{lanes} x {of}>"


@functools.cache
def lanes_of(kind: Type) -> int:
    """Return the number of lanes of a type, 1 for scalars."""
    name = name_of(kind)
    return int(name[1:].partition(" ")[0]) if name.startswith("<") else 1


@functools.cache
def element_of(kind: Type) -> str:
    """Return the element type of a vector, or the name of any other type."""
    return name_of(kind).rstrip(">").rpartition(" ")[2]


def intrinsic(name: str, *kinds: Type) -> str:
    """Return the name of an LLVM intrinsic for operands of these types."""
    of = {DOUBLE: "f64", PTR: "p0", I64: "i64"}
    for kind in kinds:
        vectors = f"v{lanes_of(kind)}" if lanes_of(kind) > 1 else ""
        name += f".{vectors}{of[element_of(kind)]}"
    return f"llvm.{name}"


MALLOC, FREE = Prototype("malloc", PTR, I64), Prototype("free", VOID, PTR)
MASK_POINTER = Prototype(intrinsic("ptrmask", PTR, I64), PTR, PTR, I64)


def _operation(name: str) -> Callable[[Value, Operand], Value]:
    """Return an operator that emits an instruction for integers or doubles."""

    def operator(self: Value, other: Operand) -> Value:
        return self.binary(f"f{name}" if element_of(self.kind) == DOUBLE else name, other)

    return operator


def _comparison(condition: str) -> Callable[[Value, Operand], Value]:
    """Return an operator that compares doubles, signed integers or pointers."""

    def operator(self: Value, other: Operand) -> Value:
        element, other = element_of(self.kind), self.code.operand(other, self.kind)
        sign = "" if condition in ("eq", "ne") else "s" if element in (I32, I64) else "u"
        compare = f"fcmp o{condition}" if element == DOUBLE else f"icmp {sign}{condition}"
        return self.code.new(vector(lanes_of(self.kind), I1), f"{compare} {self}, {other.text}")

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
        store = object.__setattr__  # __setattr__ of this class stores fields of structures
        store(self, "code", code)
        store(self, "kind", kind)
        store(self, "text", text)

    def __bool__(self) -> bool:
        raise TypeError("the value is not known while code is built: use if_, & and |")

    def __str__(self) -> str:
        return f"{name_of(self.kind)} {self.text}"

    def binary(self, operation: str, other: Operand) -> Value:
        other = self.code.operand(other, self.kind)
        return self.code.new(self.kind, f"{operation} {self}, {other.text}")

    def cast(self, instruction: str, kind: Type) -> Value:
        return self.code.new(kind, f"{instruction} {self} to {name_of(kind)}")

    def to(self, kind: Type) -> Value:
        """Return a pointer with another target type, or an integer of another size."""
        if name_of(kind) == PTR:
            return Value(self.code, kind, self.text)
        return self.cast("sext" if self.kind == I32 else "trunc", kind)

    def lane(self, k: Operand) -> Value:
        at = self.code.operand(k, I64)
        return self.code.new(element_of(self.kind), f"extractelement {self}, {at}")

    def with_lane(self, k: int, x: Value) -> Value:
        return self.code.new(self.kind, f"insertelement {self}, {x}, {I64} {k}")

    def shuffled(self, other: Value, order: Sequence[int]) -> Value:
        """Return a vector of elements of this one (0, 1, ...) and the other (lanes, ...)."""
        lanes = ", ".join(f"{I32} {k}" for k in order)
        mask = f"<{len(order)} x {I32}> <{lanes}>"
        return self.code.new(self.kind, f"shufflevector {self}, {other}, {mask}")

    def byte(self, k: Operand) -> Value:
        return self._moved(I8, k)

    def at(self, k: Operand) -> Value:
        return self._moved(name_of(self._target()), k)

    def _moved(self, unit: str, k: Operand) -> Value:
        if not isinstance(k, Value) and not k:
            return self
        at = k if isinstance(k, Value) else f"{I64} {k}"
        return self.code.new(self.kind, f"getelementptr {unit}, {self}, {at}")

    def __getitem__(self, k: Operand) -> Value:
        """Load the k-th element. Of structures, return the pointer to it."""
        at = self.at(k)
        return at if isinstance(self._target(), Struct) else at.load()

    def __setitem__(self, k: Operand, value: Operand) -> None:
        self.at(k).store(self.code.operand(value, self._element()))

    def __getattr__(self, field: str) -> Value:
        """Load a field. Of an array in the structure, return the pointer to it."""
        offset, kind = self._field(field)
        at = self.byte(offset)
        return at.to(Pointer(kind.of)) if isinstance(kind, Inline) else at.load(kind)

    def __setattr__(self, field: str, value: Operand) -> None:
        offset, kind = self._field(field)
        assert not isinstance(kind, Inline)
        self.byte(offset).store(self.code.operand(value, kind))

    def load(
        self, kind: Type | None = None, mask: Value | None = None, *, volatile: bool = False
    ) -> Value:
        """Load the value at this address, by default of the element type.

        With a mask, lanes that it does not select are zero and not read.
        """
        kind = kind or self._element()
        if mask is None:
            way = "load volatile" if volatile else "load"
            return self.code.new(kind, f"{way} {name_of(kind)}, {self}{_alignment(kind)}")
        name = intrinsic("masked.load", kind, self.kind)
        callee = Prototype(name, kind, self.kind, I32, mask.kind, kind)
        return self.code.call(callee, self, WORD, mask, 0)

    def store(self, x: Value, mask: Value | None = None, *, volatile: bool = False) -> None:
        """Store a value at this address; with a mask, only the lanes that it selects."""
        if mask is None:
            way = "store volatile" if volatile else "store"
            self.code.lines.append(f"  {way} {x}, {self}{_alignment(x.kind)}")
            return
        name = intrinsic("masked.store", x.kind, self.kind)
        callee = Prototype(name, VOID, x.kind, self.kind, I32, mask.kind)
        self.code.call(callee, x, self, WORD, mask)

    def _target(self) -> Type | Struct:
        assert isinstance(self.kind, Pointer), self
        return self.kind.to

    def _element(self) -> Type:
        to = self._target()
        assert not isinstance(to, Struct), self
        return to

    def _field(self, field: str) -> tuple[int, Type | Inline]:
        struct = self.kind.to if isinstance(self.kind, Pointer) else None
        if isinstance(struct, Struct) and field in struct.fields:
            return struct.fields[field]
        raise AttributeError(f"{self} has no field {field!r}")


def _alignment(kind: Type) -> str:
    """Return the alignment of a vector in memory: that of its elements."""
    return f", align {WORD}" if lanes_of(kind) > 1 else ""


class Block:
    """A block of statements that can be left before its end."""

    def __init__(self, code: Function, end: str) -> None:
        self._code, self._end = code, end

    def leave_if(self, condition: Value) -> None:
        with self._code.if_(condition):
            self._code.jump(self._end)

    def leave_unless(self, condition: Value) -> None:
        self._code.branch(condition, following := self._code.label(), self._end)
        self._code.begin(following)


class Function:
    """A function under construction."""

    def __init__(
        self, prototype: Prototype, *, exported: bool = False, attributes: str = ""
    ) -> None:
        self.prototype = prototype
        types = enumerate(prototype.parameters)
        self.parameters = [Value(self, kind, f"%p{k}") for k, kind in types]
        self._head = "define" if exported else "define internal"
        self._attributes = attributes.split()
        self.lines: list[str] = []
        self.called: dict[str, Prototype] = {}
        """The functions that are called by name."""
        self._arrays: list[str] = []
        self._names = 0

    def __str__(self) -> str:
        given = ", ".join(map(str, self.parameters))
        signature = f"{name_of(self.prototype.returns)} @{self.prototype.name}({given})"
        head = " ".join([self._head, signature, "nounwind", *self._attributes, "{"])
        return "\n".join([head, *self._arrays, *self.lines, "  unreachable", "}\n"])

    def new(self, kind: Type, expression: str) -> Value:
        self._names += 1
        text = f"%r{self._names}"
        self.lines.append(f"  {text} = {expression}")
        return Value(self, kind, text)

    def operand(self, x: Operand, kind: Type) -> Value:
        """Return a value unchanged, and a number as a constant of this type."""
        if isinstance(x, Value):
            return x
        element = element_of(kind)
        if element == DOUBLE:  # exact, bit by bit
            text = "0x" + struct.pack(">d", x).hex().upper()
        else:
            text = "null" if x is None else str(int(x))
        return Value(self, kind, text if lanes_of(kind) == 1 else f"splat ({element} {text})")

    def symbol(self, name: str, kind: Type = PTR) -> Value:
        return Value(self, kind, f"@{name}")

    def array(self, kind: Type | Struct, count: int | Value) -> Value:
        """Return the address of ``count`` uninitialized elements on the stack."""
        if isinstance(count, Value):
            return self.new(Pointer(kind), f"alloca {name_of(kind)}, {count}")
        text = f"%a{len(self._arrays)}"
        self._arrays.append(f"  {text} = alloca [{count} x {name_of(kind)}]")
        return Value(self, Pointer(kind), text)

    def variable(self, kind: Type, initial: Operand) -> Value:
        """Return the address of a new variable; its field ``value`` is its value."""
        at = self.array(kind, 1).to(Pointer(Struct(value=(0, kind))))
        at.value = initial
        return at

    def heap(self, size: Operand) -> tuple[Value, Value]:
        """Return allocated memory, to be released by :data:`FREE`, and its first aligned address.

        Both are null if there is no memory.
        """
        line = WORD * LINE
        memory = self.call(MALLOC, self.operand(size, I64) + line)
        return memory, self.call(MASK_POINTER, memory.byte(line), -line)

    def product_plus(self, a: Value, b: Operand, c: Operand) -> Value:
        """Return a b + c of doubles, by one fused instruction where the processor has it."""
        return a.binary("fmul contract", b).binary("fadd contract", c)

    def select(self, condition: Value, a: Operand, b: Operand) -> Value:
        kind = next((x.kind for x in (a, b) if isinstance(x, Value)), I64)
        return self.new(
            kind, f"select {condition}, {self.operand(a, kind)}, {self.operand(b, kind)}"
        )

    def call(self, callee: Prototype | Value, *arguments: Operand) -> Value:
        """Return the result of a call, by name or through a pointer."""
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

    def label(self) -> str:
        self._names += 1
        return f"b{self._names}"

    def begin(self, label: str) -> None:
        """Begin a basic block; the previous one falls through to it."""
        self.jump(label)
        self.lines.append(f"{label}:")

    def branch(self, condition: Value, then: str, otherwise: str) -> None:
        """End a basic block with a conditional branch."""
        self.lines.append(f"  br {condition}, label %{then}, label %{otherwise}")

    def jump(self, label: str) -> None:
        self.lines.append(f"  br label %{label}")

    def ret(self, value: Operand = None) -> None:
        returns = self.prototype.returns
        self.lines.append(f"  ret {VOID if returns == VOID else self.operand(value, returns)}")

    @contextlib.contextmanager
    def block(self) -> Iterator[Block]:
        """Emit statements that may leave the block."""
        end = self.label()
        yield Block(self, end)
        self.begin(end)

    @contextlib.contextmanager
    def if_(self, condition: Value) -> Iterator[None]:
        then, end = self.label(), self.label()
        self.branch(condition, then, end)
        self.begin(then)
        yield
        self.begin(end)

    @contextlib.contextmanager
    def loop(self, first: Operand, last: Operand = None, step: int = 1) -> Iterator[Value]:
        """Emit a loop over the integers of ``range(first, last, step)``."""
        if last is None:
            first, last = 0, first
        first, last = self.operand(first, I64), self.operand(last, I64)
        before, start, again, end = (self.label() for _ in range(4))
        k, following = (Value(self, I64, f"%{label}.k") for label in (start, again))
        some = first < last
        self.begin(before)
        self.branch(some, start, end)
        self.lines += [
            f"{start}:",
            f"  {k.text} = phi {I64} [{first.text}, %{before}], [{following.text}, %{again}]",
        ]
        yield k
        self.begin(again)
        self.lines.append(f"  {following.text} = add {k}, {step}")
        self.branch(following < last, start, end)
        self.lines.append(f"{end}:")


def module(functions: Sequence[Function], variables: Sequence[str] = ()) -> str:
    """Return a module of functions, with declarations of other callees and of variables."""
    called = {name: prototype for f in functions for name, prototype in f.called.items()}
    for function in functions:
        called.pop(function.prototype.name, None)
    declared = [f"@{name} = external global i8\n" for name in variables]
    declared += [f"declare {prototype}\n" for prototype in called.values()]
    return "".join([*map(str, functions), *declared])
