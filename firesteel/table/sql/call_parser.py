"""Calls of functions, with everything that SQL lets stand between their parentheses and behind them."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

from firesteel.table.sql.source import Span
from firesteel.table.sql.syntax import (
    Cast,
    Constant,
    Descriptor,
    FunctionCall,
    Name,
    NamedArgument,
    Node,
    OrderItem,
    Over,
    Query,
    Star,
    Subquery,
    Symbol,
    TableArgument,
    WindowFrame,
)
from firesteel.table.sql.tokens import TokenKind
from firesteel.table.sql.type_parser import TypeParser

__all__ = ["TIME_UNITS", "CallParser"]

TIME_UNITS = frozenset(
    [
        "MILLENNIUM",
        "CENTURY",
        "DECADE",
        "YEAR",
        "QUARTER",
        "MONTH",
        "WEEK",
        "DAY",
        "HOUR",
        "MINUTE",
        "SECOND",
        "MILLISECOND",
        "MICROSECOND",
        "NANOSECOND",
        "DOW",
        "DOY",
        "ISODOW",
        "ISOYEAR",
        "EPOCH",
        "SQL_TSI_SECOND",
        "SQL_TSI_MINUTE",
        "SQL_TSI_HOUR",
        "SQL_TSI_DAY",
        "SQL_TSI_WEEK",
        "SQL_TSI_MONTH",
        "SQL_TSI_QUARTER",
        "SQL_TSI_YEAR",
        "YEARS",
        "QUARTERS",
        "MONTHS",
        "WEEKS",
        "DAYS",
        "HOURS",
        "MINUTES",
        "SECONDS",
    ]
)
_JSON = frozenset(
    ["JSON_VALUE", "JSON_QUERY", "JSON_EXISTS", "JSON_OBJECT", "JSON_ARRAY", "JSON_OBJECTAGG", "JSON_ARRAYAGG"]
)


class CallParser(TypeParser):
    """Reads calls."""

    endless = True

    @abstractmethod
    def expression(self, strength: int = 0) -> Node:
        """Arguments are expressions."""

    @abstractmethod
    def query(self) -> Query:
        """Or queries."""

    def special_call(self, word: str) -> Node | None:
        """A function whose arguments have a grammar of their own, if it is one."""
        start = self.here
        if word in ("CAST", "TRY_CAST"):
            self.advance()
            self.expect_sign("(")
            operand = self.expression()
            self.expect_word("AS")
            kind = self.data_type()
            self.expect_sign(")")
            return Cast(operand, kind, word == "TRY_CAST", span=self.since(start))
        read = {
            "EXTRACT": self._extract,
            "POSITION": self._position,
            "SUBSTRING": self._substring,
            "TRIM": self._trim,
            "OVERLAY": self._overlay,
            "CEIL": self._rounded,
            "CEILING": self._rounded,
            "FLOOR": self._rounded,
            "TIMESTAMPADD": self._with_unit,
            "TIMESTAMPDIFF": self._with_unit,
            "DESCRIPTOR": None,
        }.get(word)
        if word == "DESCRIPTOR":
            self.advance()
            return Descriptor(tuple(self.enclosed(self.name)), span=self.since(start))
        if word in _JSON:
            return self._json(word)
        if read is None:
            return None
        name = Name((self.advance().text,), span=start)
        self.expect_sign("(")
        args = read()
        self.expect_sign(")")
        return FunctionCall(name, tuple(args), span=self.since(start))

    def _symbol(self) -> Symbol:
        token = self.token
        if token.kind is not TokenKind.WORD or token.upper not in TIME_UNITS:
            raise self.failure("YEAR", "MONTH", "DAY", "HOUR", "MINUTE", "SECOND")
        self.advance()
        word = token.upper.removeprefix("SQL_TSI_")
        if word.endswith("S") and word[:-1] in TIME_UNITS:
            word = word[:-1]
        return Symbol(word, span=token.span)

    def _extract(self) -> list[Node]:
        unit = self._symbol()
        self.expect_word("FROM")
        return [unit, self.expression()]

    def _position(self) -> list[Node]:
        # As far as comparisons: IN is the function's own.
        first = self.expression(6)
        if self.sign(","):
            return [first, self.expression()]
        self.expect_word("IN")
        found = [first, self.expression()]
        if self.word("FROM"):
            found.append(self.expression())
        return found

    def _substring(self) -> list[Node]:
        text = self.expression()
        return [text, *(self._place() if self.word("FROM") else self._further())]

    def _place(self) -> list[Node]:
        """A position, and FOR how many characters."""
        start = self.expression()
        return [start, self.expression()] if self.word("FOR") else [start]

    def _further(self) -> list[Node]:
        """More arguments, each behind a comma."""
        found = []
        while self.sign(","):
            found.append(self.expression())
        return found

    def _trim(self) -> list[Node]:
        start = self.here
        side = next((word for word in ("LEADING", "TRAILING", "BOTH") if self.word(word)), None)
        symbol = Symbol(side or "BOTH", span=self.since(start) if side else start)
        if self.word("FROM"):
            return [symbol, Constant("string", " ", span=start), self.expression()]
        first = self.expression()
        if self.word("FROM"):
            return [symbol, first, self.expression()]
        return [symbol, Constant("string", " ", span=start), first]

    def _overlay(self) -> list[Node]:
        text = self.expression()
        if not self.word("PLACING"):
            return [text, *self._further()]
        other = self.expression()
        self.expect_word("FROM")
        return [text, other, *self._place()]

    def _rounded(self) -> list[Node]:
        value = self.expression()
        if self.word("TO"):
            return [value, self._symbol()]
        return [value]

    def _with_unit(self) -> list[Node]:
        found: list[Node] = [self._symbol()]
        while self.sign(","):
            found.append(self.expression())
        return found

    def call(self, name: Name) -> FunctionCall:
        """Arguments, and FILTER, WITHIN GROUP, OVER behind them."""
        self.expect_sign("(")
        distinct = self.word("DISTINCT")
        if not distinct:
            self.word("ALL")
        args: list[Node] = []
        if not self.is_sign(")"):
            args = self.listed(self._argument)
        order: tuple[OrderItem, ...] = ()
        if self.is_word("ORDER", "BY"):
            order = self.order_by()
        nulls = self._nulls()
        self.expect_sign(")")
        return self._behind(FunctionCall(name, tuple(args), distinct, order, nulls=nulls, span=self.since(name.span)))

    def _behind(self, call: FunctionCall) -> FunctionCall:
        changed: dict[str, Any] = {"nulls": call.nulls or self._nulls()}
        if self.word("WITHIN", "GROUP"):
            self.expect_sign("(")
            changed["order"] = self.order_by()
            self.expect_sign(")")
        if self.is_word("FILTER") and self.peek().upper == "(":
            self.advance()
            self.expect_sign("(")
            self.expect_word("WHERE")
            changed["filter"] = self.expression()
            self.expect_sign(")")
        changed["nulls"] = changed["nulls"] or self._nulls()
        if self.is_word("OVER"):
            self.advance()
            changed["over"] = self._over()
        values = {name: getattr(call, name) for name in ("name", "args", "distinct", "order", "clauses")}
        return FunctionCall(**{**values, **changed}, span=self.since(call.span))

    def _nulls(self) -> str | None:
        for word in ("IGNORE", "RESPECT"):
            if self.word(word, "NULLS"):
                return word
        return None

    def _argument(self) -> Node:
        start = self.here
        if self.is_sign("*"):
            self.advance()
            return Star(span=start)
        if self.is_name() and self.peek().upper == "=>":
            name = self.identifier()
            self.advance()
            return NamedArgument(name, self._argument(), span=self.since(start))
        if self.is_word("TABLE"):
            return self._table_argument()
        if self.is_sign("(") and self.peek().upper in ("SELECT", "WITH", "VALUES"):
            return self._rows_by_key(start)
        if self.token.upper in ("SELECT", "WITH") and self.is_kind(TokenKind.WORD):
            return TableArgument(self.query(), span=self.since(start))
        return self.expression()

    def _table_argument(self) -> Node:
        start = self.here
        self.advance()
        if self.sign("("):
            table: Node = self.query()
            self.expect_sign(")")
        else:
            table = self.name("the name of a table")
        return self._arranged(table, start)

    def _rows_by_key(self, start: Span) -> Node:
        """A query, which is a table if PARTITION BY follows, else a value."""
        query = self.expression()
        if isinstance(query, Subquery) and self.is_word("PARTITION"):
            return self._arranged(query.query, start)
        return query

    def _arranged(self, table: Node, start: Span) -> Node:
        partition: tuple[Node, ...] = ()
        if self.word("PARTITION", "BY"):
            partition = self._partition()
        order = self.order_by() if self.is_word("ORDER", "BY") else ()
        return TableArgument(table, partition, order, span=self.since(start))

    def _partition(self) -> tuple[Node, ...]:
        if self.is_sign("("):
            return tuple(self.enclosed(self.expression))
        # A comma would begin the next argument.
        return (self.expression(),)

    def order_by(self) -> tuple[OrderItem, ...]:
        """``ORDER BY a DESC, b``."""
        self.expect_word("ORDER", "BY")
        return tuple(self.listed(self._order_item))

    def _order_item(self) -> OrderItem:
        expression = self.expression()
        descending = self.word("DESC")
        if not descending:
            self.word("ASC")
        nulls_last: bool | None = None
        if self.word("NULLS", "LAST"):
            nulls_last = True
        elif self.word("NULLS", "FIRST"):
            nulls_last = False
        return OrderItem(expression, descending, nulls_last, span=self.since(expression.span))

    def _over(self) -> Over:
        start = self.here
        if not self.is_sign("("):
            return Over(self.identifier("the name of a window or ("), (), (), None, span=self.since(start))
        return self.window()

    def window(self) -> Over:
        """``(PARTITION BY a ORDER BY b ROWS ...)``."""
        start = self.here
        self.expect_sign("(")
        name = None
        if self.is_name() and self.token.upper not in ("PARTITION", "ORDER", "ROWS", "RANGE"):
            name = self.identifier()
        partition = tuple(self.listed(self.expression)) if self.word("PARTITION", "BY") else ()
        order = self.order_by() if self.is_word("ORDER", "BY") else ()
        frame = self._frame() if self.token.upper in ("ROWS", "RANGE") else None
        self.expect_sign(")")
        return Over(name, partition, order, frame, span=self.since(start))

    def _frame(self) -> WindowFrame:
        start = self.here
        rows = self.advance().upper == "ROWS"
        if self.word("BETWEEN"):
            first = self._bound()
            self.expect_word("AND")
            return WindowFrame(rows, first, self._bound(), span=self.since(start))
        return WindowFrame(rows, self._bound(), None, span=self.since(start))

    def _bound(self) -> tuple[Node | None, str]:
        if self.word("CURRENT", "ROW"):
            return None, "CURRENT ROW"
        value = None if self.word("UNBOUNDED") else self.expression(6)
        for side in ("PRECEDING", "FOLLOWING"):
            if self.word(side):
                return value, side
        raise self.failure("PRECEDING", "FOLLOWING")

    # JSON functions.

    def _json(self, word: str) -> Node:
        start = self.here
        name = Name((self.advance().text,), span=start)
        self.expect_sign("(")
        args: list[Node] = []
        clauses: list[tuple[str, Any]] = []
        while not self.is_sign(")"):
            if not self._json_clause(word, clauses):
                args += self._json_argument(word)
                self.sign(",")
        self.expect_sign(")")
        return self._behind(FunctionCall(name, tuple(args), clauses=tuple(clauses), span=self.since(start)))

    def _json_argument(self, word: str) -> list[Node]:
        if word not in ("JSON_OBJECT", "JSON_OBJECTAGG"):
            return [self.expression()]
        self.word("KEY")
        key = self.expression()
        if not self.word("VALUE"):
            self.expect_sign(":")
        return [key, self.expression()]

    def _json_clause(self, word: str, clauses: list[tuple[str, Any]]) -> bool:
        if self.word("RETURNING"):
            clauses.append(("RETURNING", self.data_type()))
            return True
        for when in ("NULL", "ABSENT"):
            if self.word(when, "ON", "NULL"):
                clauses.append(("ON NULL", when))
                return True
        for wrapper in (
            ("WITHOUT", "ARRAY"),
            ("WITHOUT",),
            ("WITH", "CONDITIONAL"),
            ("WITH", "UNCONDITIONAL"),
            ("WITH",),
        ):
            for tail in (("ARRAY", "WRAPPER"), ("WRAPPER",)):
                if self.word(*wrapper, *tail):
                    clauses.append(("WRAPPER", " ".join(wrapper)))
                    return True
        return self._json_behaviour(clauses)

    def _json_behaviour(self, clauses: list[tuple[str, Any]]) -> bool:
        """``NULL ON EMPTY``, ``DEFAULT 0 ON ERROR``."""
        for words in (
            ("NULL",),
            ("ERROR",),
            ("TRUE",),
            ("FALSE",),
            ("UNKNOWN",),
            ("EMPTY", "ARRAY"),
            ("EMPTY", "OBJECT"),
        ):
            size = len(words)
            if (
                self.is_word(*words)
                and self.peek(size).upper == "ON"
                and self.peek(size + 1).upper in ("EMPTY", "ERROR")
            ):
                self.word(*words, "ON")
                clauses.append((f"ON {self.advance().upper}", " ".join(words)))
                return True
        if self.is_word("DEFAULT"):
            self.advance()
            value = self.expression()
            self.expect_word("ON")
            if self.token.upper not in ("EMPTY", "ERROR"):
                raise self.failure("EMPTY", "ERROR")
            clauses.append((f"ON {self.advance().upper}", value))
            return True
        return False
