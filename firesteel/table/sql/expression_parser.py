"""Expressions: a Pratt parser. Each operator has a strength; stronger ones bind first."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from decimal import Decimal
from typing import Any

from firesteel.table.sql.call_parser import CallParser
from firesteel.table.sql.source import Span
from firesteel.table.sql.syntax import (
    ArrayConstructor,
    Between,
    Binary,
    Case,
    Constant,
    Exists,
    FieldAccess,
    FunctionCall,
    InList,
    InQuery,
    Interval,
    IsTest,
    ItemAccess,
    Like,
    MapConstructor,
    Name,
    Node,
    Quantified,
    Query,
    RowConstructor,
    Star,
    Subquery,
    Symbol,
    Unary,
)
from firesteel.table.sql.tokens import TokenKind

__all__ = ["BARE_FUNCTIONS", "ExpressionParser"]

_OR, _AND, _NOT, _IS, _COMPARE, _RANGE, _ADD, _MULTIPLY, _PREFIX = range(1, 10)
_SIGNS = {
    "=": _COMPARE,
    "<>": _COMPARE,
    "<": _COMPARE,
    "<=": _COMPARE,
    ">": _COMPARE,
    ">=": _COMPARE,
    "+": _ADD,
    "-": _ADD,
    "*": _MULTIPLY,
    "/": _MULTIPLY,
    "%": _MULTIPLY,
    "||": _MULTIPLY,
}
_LONGEST_CHAIN = 300
BARE_FUNCTIONS = frozenset(
    [
        "CURRENT_DATE",
        "CURRENT_TIME",
        "CURRENT_TIMESTAMP",
        "LOCALTIME",
        "LOCALTIMESTAMP",
        "CURRENT_DATABASE",
        "CURRENT_CATALOG",
        "PI",
        "E",
        "CURRENT_ROW_TIMESTAMP",
    ]
)
"""Functions that may be called without parentheses. PI and E need them."""
_CALLED_BARE = BARE_FUNCTIONS - {"PI", "E", "CURRENT_DATABASE", "CURRENT_ROW_TIMESTAMP"}
_QUERY_WORDS = ("SELECT", "WITH", "VALUES", "TABLE")
_INTERVAL_UNITS = ("YEAR", "MONTH", "DAY", "HOUR", "MINUTE", "SECOND")
_UNCOMMON = ("TRUE", "FALSE", "NULL", "UNKNOWN")


class ExpressionParser(CallParser):
    """Reads expressions."""

    @abstractmethod
    def query(self) -> Query:
        """A query, of which expressions may hold some."""

    def expression(self, strength: int = 0) -> Node:
        """An expression of operators that are stronger than that."""
        with self.nested():
            left = self._prefix()
            links = 0
            while True:
                after = self._infix(left, strength)
                if after is None:
                    return left
                left = after
                links += 1
                if links > _LONGEST_CHAIN and not (isinstance(left, Binary) and left.operator in ("AND", "OR")):
                    raise self.error(f"More than {_LONGEST_CHAIN} operators follow one another.", self.here)

    def _prefix(self) -> Node:
        start = self.here
        if self.is_word("NOT"):
            self.advance()
            return Unary("NOT", self.expression(_NOT), span=self.since(start))
        sign = self.sign("-", "+")
        if sign is not None:
            return Unary(sign, self.expression(_PREFIX), span=self.since(start))
        return self._postfix(self._primary())

    def _infix(self, left: Node, strength: int) -> Node | None:
        token = self.token
        if token.kind is TokenKind.SIGN:
            own = _SIGNS.get(token.upper)
            if own is None or own <= strength:
                return None
            self.advance()
            if own == _COMPARE and (self.token.upper in ("ALL", "ANY", "SOME")) and self.peek().upper == "(":
                return self._quantified(left, token.upper)
            right = self.expression(own)
            return Binary(token.upper, left, right, span=left.span.to(right.span))
        if token.kind is not TokenKind.WORD:
            return None
        return self._infix_word(left, token.upper, strength)

    def _infix_word(self, left: Node, word: str, strength: int) -> Node | None:
        if word in ("OR", "AND"):
            own = _OR if word == "OR" else _AND
            if own <= strength:
                return None
            self.advance()
            right = self.expression(own)
            return Binary(word, left, right, span=left.span.to(right.span))
        if word == "IS":
            return self._is_test(left) if strength < _IS else None
        negated = word == "NOT"
        key = self.peek().upper if negated else word
        if key not in ("BETWEEN", "IN", "LIKE", "SIMILAR", "OVERLAPS") or strength >= _RANGE:
            return None
        if negated:
            self.advance()
        self.advance()
        return self._range(left, key, negated)

    def _range(self, left: Node, key: str, negated: bool) -> Node:
        if key == "BETWEEN":
            symmetric = self.word("SYMMETRIC")
            if not symmetric:
                self.word("ASYMMETRIC")
            low = self.expression(_RANGE)
            self.expect_word("AND")
            high = self.expression(_RANGE)
            return Between(left, low, high, negated, symmetric, span=left.span.to(high.span))
        if key == "IN":
            return self._in(left, negated)
        if key == "OVERLAPS":
            right = self.expression(_RANGE)
            return Binary("OVERLAPS", left, right, span=left.span.to(right.span))
        if key == "SIMILAR":
            self.expect_word("TO")
        pattern = self.expression(_RANGE)
        escape = self.expression(_RANGE) if self.word("ESCAPE") else None
        operator = "SIMILAR TO" if key == "SIMILAR" else "LIKE"
        return Like(operator, left, pattern, escape, negated, span=self.since(left.span))

    def _in(self, left: Node, negated: bool) -> Node:
        self.expect_sign("(")
        if self.token.upper in _QUERY_WORDS:
            query = self.query()
            self.expect_sign(")")
            return InQuery(left, query, negated, span=self.since(left.span))
        items = tuple(self.listed(self.expression))
        self.expect_sign(")")
        return InList(left, items, negated, span=self.since(left.span))

    def _quantified(self, left: Node, operator: str) -> Node:
        every = self.advance().upper == "ALL"
        self.expect_sign("(")
        query = self.query()
        self.expect_sign(")")
        return Quantified(operator, left, every, query, span=self.since(left.span))

    def _is_test(self, left: Node) -> Node:
        self.advance()
        negated = self.word("NOT")
        for what in ("NULL", "TRUE", "FALSE", "UNKNOWN", "JSON"):
            if self.word(what):
                if what == "JSON" and self.token.upper in ("VALUE", "OBJECT", "ARRAY", "SCALAR"):
                    what = f"JSON {self.advance().upper}"
                return IsTest(left, what, negated, span=self.since(left.span))
        if self.word("DISTINCT", "FROM"):
            other = self.expression(_IS)
            return IsTest(left, "DISTINCT FROM", negated, other, span=left.span.to(other.span))
        raise self.failure("NULL", "TRUE", "FALSE", "UNKNOWN", "JSON", "DISTINCT FROM")

    def _postfix(self, left: Node) -> Node:
        while True:
            if self.sign("["):
                index = self.expression()
                self.expect_sign("]")
                left = ItemAccess(left, index, span=self.since(left.span))
            elif self.is_sign(".") and self.peek().kind in (TokenKind.WORD, TokenKind.QUOTED_NAME):
                self.advance()
                left = FieldAccess(left, self.advance().text, span=self.since(left.span))
            else:
                return left

    def _primary(self) -> Node:
        token, start = self.token, self.here
        if token.kind is TokenKind.NUMBER:
            self.advance()
            return Constant("number", _number(token.text), span=start)
        if token.kind is TokenKind.STRING:
            return self._string_constant()
        if token.kind is TokenKind.WORD:
            special = self._special()
            if special is not None:
                return special
        if self.is_sign("("):
            return self._parenthesis()
        if self.is_sign("*"):
            self.advance()
            return Star(span=start)
        if self.is_name() or (token.upper in ("LEFT", "RIGHT", "GROUPING") and self.peek().upper == "("):
            return self._named()
        raise self.failure("an expression")

    def _string_constant(self) -> Node:
        token, start = self.token, self.here
        self.advance()
        if token.upper == "X":
            return Constant("bytes", bytes.fromhex(token.text), span=start)
        value = token.text
        # Strings that follow one another are one string.
        while self.is_kind(TokenKind.STRING) and not self.token.upper:
            value += self.advance().text
        return Constant("string", value, span=self.since(start))

    def _named(self) -> Node:
        start = self.here
        if self.token.upper in ("LEFT", "RIGHT", "GROUPING"):
            name = Name((self.advance().text,), span=start)
        else:
            quoted = self.is_kind(TokenKind.QUOTED_NAME)
            name = self.name()
            if len(name.parts) == 1 and not quoted and name.parts[0].upper() in _CALLED_BARE:
                if self.is_sign("("):
                    return self.call(name)
                return FunctionCall(name, (), bare=True, span=name.span)
        if self.is_sign("("):
            return self.call(name)
        if self.is_sign(".") and self.peek().upper == "*":
            self.advance()
            self.advance()
            return Star(name.parts, span=self.since(start))
        return name

    def _parenthesis(self) -> Node:
        start = self.here
        self.expect_sign("(")
        if self.token.upper in _QUERY_WORDS and self.is_kind(TokenKind.WORD):
            query = self.query()
            self.expect_sign(")")
            return Subquery(query, span=self.since(start))
        items = self.listed(self.expression)
        self.expect_sign(")")
        if len(items) > 1:
            return RowConstructor(tuple(items), span=self.since(start))
        difference = items[0]
        if isinstance(difference, Binary) and difference.operator == "-" and self.token.upper in _INTERVAL_UNITS:
            return self._period(difference, start)
        return items[0]

    def _period(self, difference: Binary, start: Span) -> Node:
        """``(a - b) SECOND``, ``(a - b) DAY TO HOUR``: the time between two moments as an interval."""
        place = self.here
        unit = self._resolution()
        symbol = Symbol(unit, span=place)
        name = Name(("TIME DIFFERENCE",), span=place)
        return FunctionCall(name, (symbol, difference.left, difference.right), span=self.since(start))

    def _resolution(self) -> str:
        """What an interval consists of; its first unit."""
        unit = self.unit()
        self._size(2)
        if self.word("TO"):
            self.unit()
            self._size(6)
        return unit

    def _special(self) -> Node | None:
        """What begins with a word that has a grammar of its own."""
        token, start = self.token, self.here
        word, following = token.upper, self.peek()
        if word in _UNCOMMON:
            self.advance()
            if word in ("NULL", "UNKNOWN"):
                return Constant("null", None, span=start)
            return Constant("boolean", word == "TRUE", span=start)
        if word in ("DATE", "TIME", "TIMESTAMP") and following.kind is TokenKind.STRING:
            self.advance()
            return Constant(word.lower(), self.string(), span=self.since(start))
        if word == "INTERVAL" and (following.kind is TokenKind.STRING or following.upper in ("-", "+")):
            return self._interval()
        if word == "CASE":
            return self._case()
        if word == "EXISTS" and following.upper == "(":
            self.advance()
            self.expect_sign("(")
            query = self.query()
            self.expect_sign(")")
            return Exists(query, span=self.since(start))
        if word in ("ARRAY", "MAP") and following.upper == "[":
            self.advance()
            self.advance()
            items = [] if self.is_sign("]") else self.listed(self.expression)
            self.expect_sign("]")
            kind: Callable[..., Any] = ArrayConstructor if word == "ARRAY" else MapConstructor
            built: Node = kind(tuple(items), span=self.since(start))
            return built
        if word == "ROW" and following.upper == "(":
            self.advance()
            return RowConstructor(tuple(self.enclosed(self.expression)), span=self.since(start))
        if word == "DEFAULT":
            self.advance()
            return Symbol("DEFAULT", span=start)
        return self.special_call(word) if following.upper == "(" else None

    def _interval(self) -> Node:
        start = self.here
        self.advance()
        negative = self.sign("-", "+") == "-"
        text = self.string()
        unit = self.unit()
        self._digits_of_unit()
        to = self.unit() if self.word("TO") else None
        if to is not None:
            self._size(6)
        return Interval(text, unit, to, negative, span=self.since(start))

    def _case(self) -> Node:
        start = self.here
        self.advance()
        operand = None if self.is_word("WHEN") else self.expression()
        branches = []
        while self.word("WHEN"):
            # CASE a WHEN 1, 2 THEN b: any of them.
            conditions = self.listed(self.expression)
            self.expect_word("THEN")
            result = self.expression()
            branches += [(condition, result) for condition in conditions]
        if not branches:
            raise self.failure("WHEN")
        otherwise = self.expression() if self.word("ELSE") else None
        self.expect_word("END")
        return Case(operand, tuple(branches), otherwise, span=self.since(start))


def _number(text: str) -> int | Decimal | float:
    # As in Flink: nothing behind the point is a whole number.
    text = text.removesuffix(".")
    if "e" in text or "E" in text:
        return float(text)
    if "." in text:
        return Decimal(text)
    # A million digits would take minutes.
    return int(text) if len(text) < 400 else Decimal(text)
