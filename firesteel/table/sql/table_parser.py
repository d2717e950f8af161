"""CREATE TABLE and ALTER TABLE: columns, watermarks, keys, options."""

from __future__ import annotations

from dataclasses import dataclass, field

from firesteel.table.sql.pattern_parser import PatternParser
from firesteel.table.sql.source import Span
from firesteel.table.sql.statements import AlterTable, Column, CreateTable, LikeClause, PrimaryKey, Statement, Watermark
from firesteel.table.sql.syntax import Name
from firesteel.table.sql.tokens import TokenKind

__all__ = ["TableParser"]


@dataclass
class _Body:
    columns: list[Column] = field(default_factory=list)
    watermarks: list[Watermark] = field(default_factory=list)
    key: PrimaryKey | None = None


class TableParser(PatternParser):
    """Reads the definitions of tables."""

    def if_not_exists(self) -> bool:
        """``IF NOT EXISTS``."""
        return self.word("IF", "NOT", "EXISTS")

    def if_exists(self) -> bool:
        """``IF EXISTS``."""
        return self.word("IF", "EXISTS")

    def options(self) -> tuple[tuple[str, str], ...]:
        """``('key' = 'value', ...)``."""
        self.expect_sign("(")
        found: list[tuple[str, str]] = []
        while not self.is_sign(")"):
            key = self.string("the option's name in quotes")
            self.expect_sign("=")
            found.append((key, self.string("the option's value in quotes")))
            if not self.sign(","):
                break
        if self.sign(")") is None:
            raise self.failure(",", ")")
        return tuple(found)

    def comment(self) -> str | None:
        """``COMMENT 'text'``."""
        return self.string() if self.word("COMMENT") else None

    def create_table(self, start: Span, temporary: bool) -> CreateTable:
        """What follows CREATE TABLE."""
        if_not_exists = self.if_not_exists()
        name = self.name("the name of the table")
        body = _Body()
        names: tuple[Name, ...] = ()
        if self.is_sign("(") and self.peek(2).upper in (",", ")"):
            # Names alone: the columns of the query in another order.
            names = tuple(self.enclosed(self._column_name))
        elif self.sign("("):
            if not self.is_sign(")"):
                self.listed(lambda: self._element(body))
            self.expect_sign(")")
        comment = self.comment()
        if self.is_word("DISTRIBUTED"):
            raise self.error("DISTRIBUTED BY is not supported.", self.here)
        partitioned: tuple[str, ...] = ()
        partition_span: Span | None = None
        if self.word("PARTITIONED", "BY"):
            begin = self.here
            partitioned = tuple(self.enclosed(self.identifier))
            partition_span = self.since(begin)
        options = self.options() if self.word("WITH") else ()
        like = self._like() if self.is_word("LIKE") else None
        if names and not self.is_word("AS"):
            raise self.error("Columns without types need a query that has them: AS SELECT ....", names[0].span)
        query = self.query() if self.word("AS") else None
        return CreateTable(
            name,
            tuple(body.columns),
            tuple(body.watermarks),
            body.key,
            comment,
            partitioned,
            options,
            like,
            query,
            temporary,
            if_not_exists,
            partition_span=partition_span,
            column_names=names,
            span=self.since(start),
        )

    def _column_name(self) -> Name:
        start = self.here
        return Name((self.identifier("the name of a column"),), span=start)

    def _element(self, body: _Body) -> None:
        start = self.here
        if self.is_word("WATERMARK", "FOR"):
            body.watermarks.append(self._watermark())
        elif self.is_word("PRIMARY", "KEY") or self.is_word("CONSTRAINT"):
            if body.key is not None:
                raise self.error("The table has a primary key already.", start)
            body.key = self._primary_key()
        else:
            self._column_into(body)

    def _column_into(self, body: _Body) -> None:
        start = self.here
        if not self.is_kind(TokenKind.WORD, TokenKind.QUOTED_NAME) or not self.is_name():
            raise self.failure("the name of a column", "WATERMARK FOR", "PRIMARY KEY")
        name = self.advance().text
        if self.word("AS"):
            expression = self.expression()
            body.columns.append(Column(name, None, expression, comment=self.comment(), span=self.since(start)))
            return
        kind = self.data_type()
        if self.word("METADATA"):
            key = self.string() if self.word("FROM") else name
            virtual = self.word("VIRTUAL")
            comment = self.comment()
            column = Column(name, kind, metadata=key, virtual=virtual, comment=comment, span=self.since(start))
            body.columns.append(column)
            return
        if self.is_word("PRIMARY", "KEY") or self.is_word("CONSTRAINT"):
            if self.word("CONSTRAINT"):
                self.identifier()
            self.expect_word("PRIMARY", "KEY")
            body.key = PrimaryKey((name,), self._enforced(), span=self.since(start))
        body.columns.append(Column(name, kind, comment=self.comment(), span=self.since(start)))

    def _watermark(self) -> Watermark:
        start = self.here
        self.expect_word("WATERMARK", "FOR")
        column = self.name("a column")
        self.expect_word("AS")
        return Watermark(column, self.expression(), span=self.since(start))

    def _primary_key(self) -> PrimaryKey:
        start = self.here
        name = self.identifier() if self.word("CONSTRAINT") else None
        self.expect_word("PRIMARY", "KEY")
        columns = tuple(self.enclosed(self.identifier))
        return PrimaryKey(columns, self._enforced(), name, span=self.since(start))

    def _enforced(self) -> bool:
        if self.word("NOT", "ENFORCED"):
            return False
        self.word("ENFORCED")
        return True

    def _like(self) -> LikeClause:
        start = self.here
        self.expect_word("LIKE")
        table = self.name("the name of a table")
        choices: list[tuple[str, str]] = []
        if self.sign("("):
            while not self.is_sign(")"):
                choice = next((each for each in ("INCLUDING", "EXCLUDING", "OVERWRITING") if self.word(each)), None)
                if choice is None or not self.is_kind(TokenKind.WORD):
                    raise self.failure("INCLUDING", "EXCLUDING", "OVERWRITING")
                choices.append((choice, self.advance().upper))
                self.sign(",")
            self.expect_sign(")")
        return LikeClause(table, tuple(choices), span=self.since(start))

    def alter_table(self, start: Span) -> Statement:
        """What follows ALTER TABLE."""
        if_exists = self.if_exists()
        name = self.name("the name of the table")
        if self.word("RENAME"):
            return self._renamed(start, name, if_exists)
        if self.word("SET"):
            return AlterTable(name, if_exists, "SET", options=self.options(), span=self.since(start))
        if self.word("RESET"):
            keys = tuple(self.enclosed(self.string))
            return AlterTable(name, if_exists, "RESET", keys=keys, span=self.since(start))
        for action in ("ADD", "MODIFY"):
            if self.word(action):
                return self._changed(start, name, if_exists, action)
        if self.word("DROP"):
            return self._dropped(start, name, if_exists)
        raise self.failure("RENAME", "SET", "RESET", "ADD", "MODIFY", "DROP")

    def _renamed(self, start: Span, name: Name, if_exists: bool) -> Statement:
        if self.word("TO"):
            return AlterTable(name, if_exists, "RENAME", self.name("the new name"), span=self.since(start))
        old = self.identifier("TO or a column")
        self.expect_word("TO")
        new = self.name("the new name")
        return AlterTable(name, if_exists, "RENAME COLUMN", new, keys=(old,), span=self.since(start))

    def _changed(self, start: Span, name: Name, if_exists: bool, action: str) -> Statement:
        body = _Body()
        positions: list[str | None] = []
        self.word("COLUMN")

        def placed() -> None:
            before = len(body.columns)
            self._element(body)
            position: str | None = None
            if self.word("AFTER"):
                position = self.identifier("a column")
            elif self.word("FIRST"):
                position = ""
            positions.extend([position] * (len(body.columns) - before))

        if self.sign("("):
            self.listed(placed)
            self.expect_sign(")")
        else:
            placed()
        return AlterTable(
            name,
            if_exists,
            action,
            columns=tuple(body.columns),
            watermark=body.watermarks[0] if body.watermarks else None,
            primary_key=body.key,
            positions=tuple(positions),
            span=self.since(start),
        )

    def _dropped(self, start: Span, name: Name, if_exists: bool) -> Statement:
        for words in (("PRIMARY", "KEY"), ("WATERMARK",), ("CONSTRAINT",)):
            if self.word(*words):
                keys = (f" {' '.join(words)}",)
                if words == ("CONSTRAINT",):
                    self.identifier()
                return AlterTable(name, if_exists, "DROP", keys=keys, span=self.since(start))
        self.word("COLUMN")
        columns = tuple(self.enclosed(self.identifier)) if self.is_sign("(") else (self.identifier("a column"),)
        return AlterTable(name, if_exists, "DROP", keys=columns, span=self.since(start))
