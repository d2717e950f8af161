"""MATCH_RECOGNIZE: patterns in the rows of a table."""

from __future__ import annotations

from firesteel.table.sql.query_parser import QueryParser
from firesteel.table.sql.syntax import MatchRecognize, Node, PatternNode, Relation, SelectItem

__all__ = ["PatternParser"]


class PatternParser(QueryParser):
    """Reads row patterns."""

    def match_recognize(self, relation: Node) -> Relation:
        """``MATCH_RECOGNIZE (PARTITION BY ... PATTERN (...) DEFINE ...)``."""
        self.expect_word("MATCH_RECOGNIZE")
        self.expect_sign("(")
        partition = tuple(self.listed(self.expression)) if self.word("PARTITION", "BY") else ()
        order = self.order_by() if self.is_word("ORDER", "BY") else ()
        measures = tuple(self.listed(self._measure)) if self.word("MEASURES") else ()
        all_rows = self._rows_per_match()
        skip = self._skip()
        self.expect_word("PATTERN")
        self.expect_sign("(")
        pattern = self._alternatives()
        self.expect_sign(")")
        within = self.expression() if self.word("WITHIN") else None
        subsets = tuple(self.listed(self._subset)) if self.word("SUBSET") else ()
        definitions: tuple[tuple[str, Node], ...] = ()
        if self.word("DEFINE"):
            definitions = tuple(self.listed(self._definition))
        self.expect_sign(")")
        return MatchRecognize(
            input=relation,
            partition=partition,
            order=order,
            measures=measures,
            all_rows=all_rows,
            skip=skip,
            pattern=pattern,
            within=within,
            subsets=subsets,
            definitions=definitions,
            span=self.since(relation.span),
        )

    def _measure(self) -> SelectItem:
        start = self.here
        if not self.word("FINAL"):
            self.word("RUNNING")
        expression = self.expression()
        self.expect_word("AS")
        return SelectItem(expression, self.identifier(), span=self.since(start))

    def _rows_per_match(self) -> bool:
        if self.word("ONE", "ROW"):
            self.expect_word("PER", "MATCH")
            return False
        if self.word("ALL", "ROWS"):
            self.expect_word("PER", "MATCH")
            return True
        return False

    def _skip(self) -> tuple[str, str | None]:
        if not self.word("AFTER", "MATCH"):
            # Flink's default; the standard's is PAST LAST ROW.
            return "NEXT ROW", None
        self.expect_word("SKIP")
        if self.word("PAST"):
            self.expect_word("LAST", "ROW")
            return "PAST LAST ROW", None
        self.expect_word("TO")
        if self.word("NEXT", "ROW"):
            return "NEXT ROW", None
        for side in ("FIRST", "LAST"):
            if self.word(side):
                return side, self.identifier("a variable of the pattern")
        return "LAST", self.identifier("NEXT ROW, FIRST or LAST")

    def _alternatives(self) -> PatternNode:
        with self.nested():
            start = self.here
            found = [self._sequence()]
            while self.sign("|"):
                found.append(self._sequence())
            if len(found) == 1:
                return found[0]
            return PatternNode("alternative", tuple(found), span=self.since(start))

    def _sequence(self) -> PatternNode:
        start = self.here
        found = [self._repeated()]
        while self.is_name() or self.is_sign("(", "{-", "^", "$"):
            found.append(self._repeated())
        return found[0] if len(found) == 1 else PatternNode("sequence", tuple(found), span=self.since(start))

    def _repeated(self) -> PatternNode:
        start = self.here
        part = self._part()
        bounds = self._quantifier()
        if bounds is None:
            return part
        # A question mark behind a quantifier makes it reluctant.
        greedy = self.sign("?") is None
        least, most = bounds
        return PatternNode("quantified", (part,), least=least, most=most, greedy=greedy, span=self.since(start))

    def _part(self) -> PatternNode:
        start = self.here
        if self.sign("("):
            inner = self._alternatives()
            self.expect_sign(")")
            return inner
        if self.sign("{-"):
            inner = self._alternatives()
            self.expect_sign("-}")
            return PatternNode("exclusion", (inner,), span=self.since(start))
        if self.sign("^", "$"):
            raise self.error("Anchors (^ and $) are not supported in patterns, as in Flink.", self.since(start))
        if self.is_word("PERMUTE") and self.peek().upper == "(":
            self.advance()
            return PatternNode("permute", tuple(self.enclosed(self._alternatives)), span=self.since(start))
        name = self.identifier("a variable of the pattern")
        return PatternNode("variable", variable=name, span=self.since(start))

    def _quantifier(self) -> tuple[int, int | None] | None:
        start = self.here
        sign = self.sign("*", "+", "?", "{")
        if sign in (None, "*", "+", "?"):
            return {None: None, "*": (0, None), "+": (1, None), "?": (0, 1)}[sign]
        least = 0 if self.is_sign(",") else self.integer("a number or ,")
        most: int | None = least
        if self.sign(","):
            most = None if self.is_sign("}") else self.integer("a number or }")
        self.expect_sign("}")
        if most is not None and most < least:
            raise self.error(f"At least {least} and at most {most}: the second number is smaller.", self.since(start))
        return least, most

    def _subset(self) -> tuple[str, tuple[str, ...]]:
        name = self.identifier()
        self.expect_sign("=")
        return name, tuple(self.enclosed(self.identifier))

    def _definition(self) -> tuple[str, Node]:
        name = self.identifier("a variable of the pattern")
        self.expect_word("AS")
        return name, self.expression()
