"""From the syntax tree of a function to an expression for columns, if all of it is known to mean the same there."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from firesteel.table.functions.column_functions.expression_nodes import (
    Argument,
    Bound,
    Choice,
    Constant,
    Let,
    Node,
    OneOf,
    Operation,
    Outer,
    Plain,
    Raises,
)

__all__ = ["BUILTINS", "NotTranslatedError", "Translated", "translated"]

BUILTINS: dict[str, Any] = {each.__name__: each for each in (abs, bool, float, int, len, max, min, round, str)}
"""What functions may call, as long as the names mean this."""

_MOST_NODES = 200
_DEEPEST = 40
"""How many nodes may be inside of one another: pickle goes down with them."""
_MOST_CHOICES = 12
"""How many conditions may be inside of one another."""

_BINARY: dict[type[ast.AST], tuple[str, Callable[[Any, Any], Any]]] = {
    ast.Add: ("+", operator.add),
    ast.Sub: ("-", operator.sub),
    ast.Mult: ("*", operator.mul),
    ast.Div: ("/", operator.truediv),
    ast.FloorDiv: ("//", operator.floordiv),
    ast.Mod: ("%", operator.mod),
    ast.BitAnd: ("&", operator.and_),
    ast.BitOr: ("|", operator.or_),
    ast.BitXor: ("^", operator.xor),
}
_UNARY: dict[type[ast.AST], tuple[str, Callable[[Any], Any]]] = {
    ast.USub: ("negative", operator.neg),
    ast.UAdd: ("positive", operator.pos),
}
_COMPARED: dict[type[ast.AST], str] = {
    ast.Eq: "==",
    ast.NotEq: "!=",
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
}
_METHODS = ("upper", "lower", "strip", "lstrip", "rstrip", "startswith", "endswith", "replace")
_NUMBERS = (bool, int, float)


class NotTranslatedError(Exception):
    """The function is called row by row, for this reason."""


@dataclass(frozen=True)
class Translated:
    """The expression, and the names that it takes from outside."""

    body: Node
    builtins: tuple[str, ...]
    outer: tuple[str, ...]
    collections: tuple[str, ...]


def translated(tree: ast.FunctionDef | ast.Lambda, skipped: int = 0) -> Translated:
    """The expression that a function is; its first ``skipped`` parameters have no arguments, and it does not use them.

    >>> translated(ast.parse("lambda n: n + 1", mode="eval").body).body
    Operation(name='+', operands=(Argument(index=0), Constant(value=1)), options=())
    """
    given = tree.args
    if given.vararg or given.kwarg or given.kwonlyargs or given.defaults:
        raise NotTranslatedError("it has other parameters than plain ones")
    names = [each.arg for each in (*given.posonlyargs, *given.args)]
    translator = _Translator(frozenset((*names, *_assigned(tree))), frozenset(names[:skipped]))
    known: dict[str, Node] = {name: Argument(at) for at, name in enumerate(names[skipped:])}
    if isinstance(tree, ast.Lambda):
        body = translator.expression(tree.body, known)
    else:
        body = translator.statements(tree.body, known)
    if _depth(body) > _DEEPEST:
        raise NotTranslatedError("it is too deep")
    return Translated(
        body, *(tuple(sorted(each)) for each in (translator.builtins, translator.outer, translator.collections))
    )


def _assigned(tree: ast.AST) -> set[str]:
    return {each.id for each in ast.walk(tree) if isinstance(each, ast.Name) and not isinstance(each.ctx, ast.Load)}


def _depth(node: Node) -> int:
    inner: list[Node] = []
    for value in vars(node).values():
        inner += value if isinstance(value, tuple) else [value]
    return 1 + max((_depth(each) for each in inner if isinstance(each, Node)), default=0)


@dataclass
class _Translator:
    local: frozenset[str]
    skipped: frozenset[str]
    builtins: set[str] = field(default_factory=set)
    outer: set[str] = field(default_factory=set)
    collections: set[str] = field(default_factory=set)
    slots: int = 0
    nodes: int = 0
    depth: int = 0

    # Statements: what follows them is a part of their expression.

    def statements(self, body: Sequence[ast.stmt], known: Mapping[str, Node]) -> Node:
        if not body:
            return Constant(None)
        first, rest = body[0], body[1:]
        match first:
            case ast.Return(value=value):
                return Constant(None) if value is None else self.expression(value, known)
            case ast.Raise():
                # What it raises is computed then, row by row.
                return Raises()
            case ast.Pass() | ast.Expr(value=ast.Constant()):
                return self.statements(rest, known)
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                return self._let(name, self.expression(value, known), rest, known)
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value, simple=1):
                return self._let(name, self.expression(value, known), rest, known)
            case ast.AugAssign(target=ast.Name(id=name), op=op, value=value):
                old = ast.copy_location(ast.Name(name, ast.Load()), first)
                changed = ast.copy_location(ast.BinOp(old, op, value), first)
                return self._let(name, self.expression(changed, known), rest, known)
            case ast.If(test=test, body=chosen, orelse=otherwise):
                return self._choice(
                    self.test(test, known),
                    lambda: self.statements([*chosen, *rest], known),
                    lambda: self.statements([*otherwise, *rest], known),
                )
        raise _unknown(first)

    def _let(self, name: str, value: Node, rest: Sequence[ast.stmt], known: Mapping[str, Node]) -> Node:
        if isinstance(value, Constant | Argument | Bound):
            # These cannot fail.
            return self.statements(rest, {**known, name: value})
        slot = self._slot()
        return Let(slot, value, self.statements(rest, {**known, name: Bound(slot)}))

    def _slot(self) -> int:
        self.slots += 1
        return self.slots - 1

    def _choice(self, test: Node, chosen: Callable[[], Node], otherwise: Callable[[], Node]) -> Node:
        self.depth += 1
        if self.depth > _MOST_CHOICES:
            raise NotTranslatedError("it has too many conditions inside of one another")
        found = Choice(test, chosen(), otherwise())
        self.depth -= 1
        return found

    # Expressions.

    def test(self, tree: ast.expr, known: Mapping[str, Node]) -> Node:
        """An expression that counts as true or false only."""
        match tree:
            case ast.BoolOp(op=op, values=[first, *rest]):
                rests: ast.expr = rest[0] if len(rest) == 1 else ast.copy_location(ast.BoolOp(op, rest), tree)
                if isinstance(op, ast.And):
                    return self._choice(
                        self.test(first, known), lambda: self.test(rests, known), lambda: Constant(False)
                    )
                return self._choice(self.test(first, known), lambda: Constant(True), lambda: self.test(rests, known))
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                return Operation("not", (self.test(operand, known),))
            case ast.Compare():
                return self.expression(tree, known)
        return Operation("bool", (self.expression(tree, known),))

    def expression(self, tree: ast.expr, known: Mapping[str, Node]) -> Node:
        self.nodes += 1
        if self.nodes > _MOST_NODES:
            raise NotTranslatedError("it is too long")
        match tree:
            case ast.Constant(value=value):
                return _constant(value, tree)
            case ast.Name(id=name):
                return self._name(name, tree, known)
            case ast.BinOp(left=left, op=op, right=right):
                return self._binary(tree, self.expression(left, known), op, self.expression(right, known))
            case ast.UnaryOp(op=ast.Not()):
                return self.test(tree, known)
            case ast.UnaryOp(op=op, operand=operand) if type(op) in _UNARY:
                name, compute = _UNARY[type(op)]
                inner = self.expression(operand, known)
                if isinstance(inner, Constant) and isinstance(inner.value, _NUMBERS):
                    return _constant(compute(inner.value), tree)
                return Operation(name, (inner,))
            case ast.BoolOp(op=op, values=values):
                return self._either(isinstance(op, ast.And), values, known)
            case ast.IfExp(test=test, body=chosen, orelse=otherwise):
                return self._choice(
                    self.test(test, known),
                    lambda: self.expression(chosen, known),
                    lambda: self.expression(otherwise, known),
                )
            case ast.Compare(left=left, ops=ops, comparators=others):
                return self._chain(left, ops, others, known)
            case ast.JoinedStr(values=parts):
                return self._formatted(parts, known)
            case ast.Subscript(value=value, slice=place):
                return self._part(self.expression(value, known), place, known)
            case ast.Call(func=function, args=args, keywords=[]):
                return self._call(tree, function, args, known)
        raise _unknown(tree)

    def _name(self, name: str, tree: ast.AST, known: Mapping[str, Node]) -> Node:
        if name in known:
            return known[name]
        if name in self.skipped:
            raise NotTranslatedError(f"it uses {name} in line {tree.lineno}")  # type: ignore[attr-defined]
        if name in self.local:
            raise NotTranslatedError(f"{name} may have no value in line {tree.lineno}")  # type: ignore[attr-defined]
        self.outer.add(name)
        return Outer(name)

    def _binary(self, tree: ast.expr, left: Node, op: ast.operator, right: Node) -> Node:
        if isinstance(op, ast.Pow):
            if isinstance(left, Constant) and isinstance(right, Constant):
                if type(left.value) is type(right.value) is int and 0 <= right.value < 64:
                    return _constant(left.value**right.value, tree)
            # A product of few factors.
            elif isinstance(right, Constant) and type(right.value) is int and 2 <= right.value <= 8:
                return Operation("**", (left,), (right.value,))
            raise _unknown(tree)
        if type(op) not in _BINARY:
            raise _unknown(tree)
        name, compute = _BINARY[type(op)]
        if isinstance(left, Constant):
            if name == "%" and isinstance(left.value, str):
                raise _unknown(tree)
            if isinstance(right, Constant) and isinstance(left.value, _NUMBERS) and isinstance(right.value, _NUMBERS):
                try:
                    return _constant(compute(left.value, right.value), tree)
                except (ArithmeticError, TypeError):
                    return Raises()
        return Operation(name, (left, right))

    def _either(self, stops_at_false: bool, values: Sequence[ast.expr], known: Mapping[str, Node]) -> Node:
        """``and`` and ``or`` give one of their operands."""
        first = self.expression(values[0], known)
        if len(values) == 1:
            return first
        slot = self._slot()
        test = Operation("bool", (Bound(slot),))

        def rest() -> Node:
            return self._either(stops_at_false, values[1:], known)

        def same() -> Node:
            return Bound(slot)

        choice = self._choice(test, rest, same) if stops_at_false else self._choice(test, same, rest)
        return Let(slot, first, choice)

    def _chain(
        self, left: ast.expr, ops: Sequence[ast.cmpop], others: Sequence[ast.expr], known: Mapping[str, Node]
    ) -> Node:
        """``a < b < c`` does not look at c unless a < b; b is computed once."""
        return self._compared(self.expression(left, known), ops, others, known)

    def _compared(
        self, left: Node, ops: Sequence[ast.cmpop], others: Sequence[ast.expr], known: Mapping[str, Node]
    ) -> Node:
        if len(ops) == 1:
            return self._comparison(left, ops[0], others[0], known)
        if any(type(op) not in _COMPARED for op in ops):
            raise _unknown(others[0])
        slot = self._slot()
        compared = Operation(_COMPARED[type(ops[0])], (left, Bound(slot)))
        choice = self._choice(
            compared, lambda: self._compared(Bound(slot), ops[1:], others[1:], known), lambda: Constant(False)
        )
        return Let(slot, self.expression(others[0], known), choice)

    def _comparison(self, left: Node, op: ast.cmpop, other: ast.expr, known: Mapping[str, Node]) -> Node:
        if isinstance(op, ast.Is | ast.IsNot):
            if not isinstance(other, ast.Constant) or other.value is not None:
                raise _unknown(other)
            same = Operation("is None", (left,))
            return same if isinstance(op, ast.Is) else Operation("not", (same,))
        if isinstance(op, ast.In | ast.NotIn):
            if isinstance(other, ast.Tuple | ast.List | ast.Set):
                found: Node = Operation("in", (left,), tuple(self._plain(each, known) for each in other.elts))
            elif isinstance(other, ast.Name) and other.id not in self.local:
                self.collections.add(other.id)
                found = OneOf(left, other.id)
            elif isinstance(left, Constant) and isinstance(left.value, str):
                found = Operation("contains", (self.expression(other, known),), (left.value,))
            else:
                raise _unknown(other)
            return found if isinstance(op, ast.In) else Operation("not", (found,))
        return Operation(_COMPARED[type(op)], (left, self.expression(other, known)))

    def _plain(self, tree: ast.expr | None, known: Mapping[str, Node]) -> Plain:
        found = Constant(None) if tree is None else self.expression(tree, known)
        if not isinstance(found, Constant):
            assert tree is not None
            raise _unknown(tree)
        return found.value

    def _formatted(self, parts: Sequence[ast.expr], known: Mapping[str, Node]) -> Node:
        texts: list[Node] = []
        for part in parts:
            match part:
                case ast.FormattedValue(value=value, conversion=-1 | 115, format_spec=None):
                    texts.append(Operation("str", (self.expression(value, known),)))
                case ast.Constant():
                    texts.append(self.expression(part, known))
                case _:
                    raise _unknown(part)
        return Operation("concat", tuple(texts)) if texts else Constant("")

    def _part(self, value: Node, place: ast.expr, known: Mapping[str, Node]) -> Node:
        if isinstance(place, ast.Slice):
            ends = self._plain(place.lower, known), self._plain(place.upper, known)
            if place.step is not None or any(each is not None and type(each) is not int for each in ends):
                raise _unknown(place)
            return Operation("slice", (value,), ends)
        index = self._plain(place, known)
        if type(index) is not int:
            raise _unknown(place)
        return Operation("character", (value,), (index,))

    def _call(self, tree: ast.Call, function: ast.expr, args: Sequence[ast.expr], known: Mapping[str, Node]) -> Node:
        if isinstance(function, ast.Attribute):
            return self._method(tree, function, args, known)
        if not isinstance(function, ast.Name) or function.id in self.local or function.id not in BUILTINS:
            raise _unknown(tree)
        if function.id == "round" and len(args) == 2:
            digits = self._plain(args[1], known)
            if type(digits) is not int or not 1 <= digits <= 15:
                raise _unknown(tree)
            self.builtins.add(function.id)
            return Operation("round", (self.expression(args[0], known),), (digits,))
        several = function.id in ("min", "max")
        if any(isinstance(each, ast.Starred) for each in args) or not (len(args) > 1 if several else len(args) == 1):
            raise _unknown(tree)
        self.builtins.add(function.id)
        if function.id == "bool":
            return self.test(args[0], known)
        return Operation(function.id, tuple(self.expression(each, known) for each in args))

    def _method(
        self, tree: ast.Call, function: ast.Attribute, args: Sequence[ast.expr], known: Mapping[str, Node]
    ) -> Node:
        if function.attr not in _METHODS:
            raise _unknown(tree)
        value = self.expression(function.value, known)
        options: tuple[Plain, ...]
        match function.attr, args:
            case (("startswith" | "endswith"), [ast.Tuple(elts=texts)]):
                options = tuple(self._plain(each, known) for each in texts)
            case _:
                options = tuple(self._plain(each, known) for each in args)
        match function.attr, options:
            case (("upper" | "lower" | "strip" | "lstrip" | "rstrip"), ()):
                pass
            case (("strip" | "lstrip" | "rstrip"), (None,)):
                pass
            case (("strip" | "lstrip" | "rstrip"), (str() as characters,)) if characters and characters.isascii():
                pass
            case (("startswith" | "endswith"), _) if all(isinstance(each, str) for each in options) and args:
                pass
            case "replace", (str() as old, str()) if old:
                pass
            case _:
                raise _unknown(tree)
        return Operation(function.attr, (value,), options)


def _constant(value: Any, tree: ast.AST) -> Constant:
    if value is not None and type(value) not in (bool, int, float, str):
        raise _unknown(tree)
    if type(value) is int and not -(1 << 63) <= value < 1 << 63:
        raise NotTranslatedError("it has an integer of more than 64 bits")
    if isinstance(value, str):
        try:
            value.encode()
        except UnicodeEncodeError:
            raise NotTranslatedError("it has a text that is no UTF-8") from None
    return Constant(value)


def _unknown(tree: ast.AST) -> NotTranslatedError:
    line = getattr(tree, "lineno", None)
    try:
        shown = repr(ast.unparse(tree).splitlines()[0][:60])
    except ValueError:
        # Before 3.12 there is no way to write some f-strings that can be read.
        shown = "an f-string"
    return NotTranslatedError(f"it has {shown}" + (f" in line {line}" if line is not None else ""))
