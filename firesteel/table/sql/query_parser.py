"""Queries: SELECT, set operations, WITH, and what FROM may name."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import replace

from firesteel.table.sql.expression_parser import ExpressionParser
from firesteel.table.sql.syntax import (
    Cte,
    DerivedTable,
    GroupingSets,
    Hint,
    Join,
    Name,
    Node,
    OrderItem,
    Over,
    Query,
    Relation,
    RowConstructor,
    Select,
    SelectItem,
    SetOperation,
    Star,
    TableFunction,
    TableName,
    Unnest,
    Values,
)
from firesteel.table.sql.tokens import TokenKind

__all__ = ["QueryParser"]

_SET_OPERATIONS = ("UNION", "INTERSECT", "EXCEPT", "MINUS")


class QueryParser(ExpressionParser):
    """Reads queries."""

    def query(self) -> Query:
        """A query with its WITH, ORDER BY and LIMIT."""
        with self.nested():
            start = self.here
            ctes: list[Cte] = []
            if self.word("WITH"):
                self.word("RECURSIVE")
                ctes = self.listed(self._cte)
            body = self._set_operation(0)
            order: tuple[OrderItem, ...] = ()
            if self.is_word("ORDER", "BY"):
                order = self.order_by()
            limit, offset = self._limit()
            return Query(body, tuple(ctes), order, limit, offset, span=self.since(start))

    def _cte(self) -> Cte:
        start = self.here
        name = self.identifier()
        if self.is_sign("(") and self.peek().upper in ("SELECT", "VALUES", "WITH"):
            raise self.failure("AS")
        columns = tuple(self.enclosed(self.identifier)) if self.is_sign("(") else ()
        self.expect_word("AS")
        self.expect_sign("(")
        query = self.query()
        self.expect_sign(")")
        return Cte(name, columns, query, span=self.since(start))

    def _limit(self) -> tuple[Node | None, Node | None]:
        limit: Node | None = None
        offset: Node | None = None
        while True:
            if limit is None and self.word("LIMIT"):
                if self.word("ALL"):
                    continue
                limit = self.expression()
                if self.sign(","):
                    limit, offset = self.expression(), limit
            elif offset is None and self.word("OFFSET"):
                offset = self.expression()
                if not self.word("ROWS"):
                    self.word("ROW")
            elif limit is None and self.is_word("FETCH"):
                self.advance()
                if not self.word("FIRST"):
                    self.expect_word("NEXT")
                limit = self.expression()
                if not self.word("ROWS"):
                    self.expect_word("ROW")
                self.expect_word("ONLY")
            else:
                return limit, offset

    def _set_operation(self, strength: int) -> Node:
        left = self._term()
        while self.token.upper in _SET_OPERATIONS and self.is_kind(TokenKind.WORD):
            own = 2 if self.token.upper == "INTERSECT" else 1
            if own <= strength:
                break
            operator = "EXCEPT" if self.token.upper == "MINUS" else self.token.upper
            self.advance()
            every = self.word("ALL")
            if not every:
                self.word("DISTINCT")
            right = self._set_operation(own)
            left = SetOperation(operator, every, left, right, span=left.span.to(right.span))
        return left

    def _term(self) -> Node:
        start = self.here
        if self.is_word("SELECT"):
            return self._select()
        if self.word("VALUES"):
            return Values(tuple(self.listed(self._values_row)), span=self.since(start))
        if self.word("TABLE"):
            return TableName(name=self.name("the name of a table"), span=self.since(start))
        if self.sign("("):
            query = self.query()
            self.expect_sign(")")
            return query
        raise self.failure("SELECT", "VALUES", "WITH", "(")

    def _values_row(self) -> RowConstructor:
        expression = self.expression()
        if isinstance(expression, RowConstructor):
            return expression
        return RowConstructor((expression,), span=expression.span)

    def _select(self) -> Select:
        start = self.here
        self.expect_word("SELECT")
        hints = self.hints()
        self.word("STREAM")
        distinct = self.word("DISTINCT")
        if not distinct:
            self.word("ALL")
        items = tuple(self.listed(self.select_item))
        source = self._from() if self.word("FROM") else None
        where = self.expression() if self.word("WHERE") else None
        group_by = tuple(self._grouping()) if self.word("GROUP", "BY") else None
        having = self.expression() if self.word("HAVING") else None
        windows = tuple(self.listed(self._named_window)) if self.word("WINDOW") else ()
        qualify = self.expression() if self.word("QUALIFY") else None
        return Select(items, distinct, source, where, group_by, having, windows, qualify, hints, span=self.since(start))

    def select_item(self) -> SelectItem:
        """``a AS b`` or ``*``."""
        expression = self.expression()
        alias = None
        if not isinstance(expression, Star):
            alias = self._alias()
        return SelectItem(expression, alias, span=self.since(expression.span))

    def _alias(self) -> str | None:
        if self.word("AS"):
            return self.identifier("a name")
        return self.advance().text if self.is_name() else None

    def _grouping(self) -> list[Node]:
        return self.listed(self._grouping_element)

    def _grouping_element(self) -> Node:
        start = self.here
        for words in (("GROUPING", "SETS"), ("ROLLUP",), ("CUBE",)):
            if self.word(*words):
                elements = self.enclosed(self._grouping_set)
                return GroupingSets(" ".join(words), tuple(elements), span=self.since(start))
        if self.is_sign("(") and self.peek().upper == ")":
            self.advance()
            self.advance()
            return RowConstructor((), span=self.since(start))
        return self.expression()

    def _grouping_set(self) -> tuple[Node, ...] | GroupingSets:
        element = self._grouping_element()
        if isinstance(element, GroupingSets):
            return element
        return element.items if isinstance(element, RowConstructor) else (element,)

    def _named_window(self) -> tuple[str, Over]:
        name = self.identifier("the name of a window")
        self.expect_word("AS")
        return name, self.window()

    # FROM.

    def _from(self) -> Node:
        left = self._joined()
        while self.sign(","):
            right = self._joined()
            left = Join(left=left, right=right, kind="COMMA", span=left.span.to(right.span))
        return left

    def _joined(self) -> Node:
        left = self._relation()
        links = 0
        while True:
            joined = self._join(left)
            if joined is None:
                return left
            left = joined
            links += 1
            if links > 100:
                raise self.error("More than 100 joins follow one another.", self.here)

    def _join(self, left: Node) -> Node | None:
        natural = self.word("NATURAL")
        kind = next((each for each in ("LEFT", "RIGHT", "FULL", "INNER", "CROSS") if self.word(each)), None)
        if kind in ("LEFT", "RIGHT", "FULL"):
            self.word("OUTER")
        if not self.word("JOIN"):
            if natural or kind is not None:
                raise self.failure("JOIN")
            return None
        right = self._relation()
        condition: Node | None = None
        using: tuple[str, ...] = ()
        if self.word("ON"):
            condition = self.expression()
        elif self.word("USING"):
            using = tuple(self.enclosed(self.identifier))
        return Join(
            left=left,
            right=right,
            kind=kind or "INNER",
            natural=natural,
            condition=condition,
            using=using,
            span=self.since(left.span),
        )

    def _relation(self) -> Node:
        with self.nested():
            relation = self._aliased(self._bare_relation())
            while self.is_word("MATCH_RECOGNIZE"):
                relation = self._aliased(self.match_recognize(relation))
            return relation

    @abstractmethod
    def match_recognize(self, relation: Node) -> Relation:
        """Patterns in rows."""

    def _aliased(self, relation: Node) -> Node:
        if not isinstance(relation, Relation):
            return relation
        alias = self._alias()
        if alias is None:
            return relation
        columns = tuple(self.enclosed(self.identifier)) if self.is_sign("(") else ()
        return replace(relation, alias=alias, column_aliases=columns, span=self.since(relation.span))

    def _bare_relation(self) -> Node:
        start = self.here
        lateral = self.word("LATERAL")
        if self.is_word("UNNEST"):
            self.advance()
            self.expect_sign("(")
            expression = self.expression()
            self.expect_sign(")")
            ordinality = self.word("WITH", "ORDINALITY")
            return Unnest(expression=expression, ordinality=ordinality, span=self.since(start))
        if self.is_word("TABLE"):
            self.advance()
            self.expect_sign("(")
            name = self.name("a table function")
            call = self.call(name)
            self.expect_sign(")")
            return TableFunction(call=call, lateral=lateral, span=self.since(start))
        if self.is_sign("("):
            return self._parenthesised_relation(lateral)
        name = self.name("a table, a query in parentheses, TABLE(...) or UNNEST(...)")
        if self.is_sign("("):
            return TableFunction(call=self.call(name), lateral=lateral, span=self.since(start))
        return self._table(name)

    def _parenthesised_relation(self, lateral: bool) -> Node:
        start = self.here
        ahead = 0
        while self.peek(ahead).upper == "(":
            ahead += 1
        first, second = self.peek(ahead).upper, self.peek(ahead + 1).upper
        # TABLE t is a query, TABLE(f(...)) what a join may begin with.
        if first in ("SELECT", "VALUES", "WITH") or (first == "TABLE" and second != "("):
            self.advance()
            query = self.query()
            self.expect_sign(")")
            return DerivedTable(query=query, lateral=lateral, span=self.since(start))
        self.advance()
        inner = self._from()
        self.expect_sign(")")
        return inner

    def _table(self, name: Name) -> Node:
        hints = self.hints()
        as_of: Node | None = None
        if self.word("FOR", "SYSTEM_TIME"):
            self.expect_word("AS", "OF")
            as_of = self.expression()
        hints += self.hints()
        if self.word("EXTEND") or self.is_word("TABLESAMPLE"):
            raise self.error("TABLESAMPLE and EXTEND are not supported.", self.here)
        return TableName(name=name, hints=hints, as_of=as_of, span=self.since(name.span))

    def hints(self) -> tuple[Hint, ...]:
        """``/*+ STATE_TTL('a' = '1d'), BROADCAST(t) */``."""
        found: list[Hint] = []
        while self.sign("/*+"):
            while not self.is_sign("*/"):
                if self.is_kind(TokenKind.END):
                    raise self.failure("*/")
                found.append(self._hint())
                self.sign(",")
            self.advance()
        return tuple(found)

    def _hint(self) -> Hint:
        start = self.here
        name = self.identifier("the name of a hint").upper()
        options: list[tuple[str, str]] = []
        words: list[str] = []
        if self.sign("("):
            while not self.is_sign(")"):
                if self.is_kind(TokenKind.STRING):
                    key = self.string()
                    if self.sign("="):
                        options.append((key, self.string("the option's value in quotes")))
                    else:
                        words.append(key)
                elif self.peek().upper == "=":
                    key = self.identifier("an option")
                    self.advance()
                    options.append((key, self.string("the option's value in quotes")))
                else:
                    words.append(str(self.name("an option or a table")))
                if not self.sign(","):
                    break
            self.expect_sign(")")
        return Hint(name, tuple(options), tuple(words), span=self.since(start))
