"""Statements of all kinds."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from firesteel.table.sql.errors import SqlParseError, near_names
from firesteel.table.sql.refused import MOST_WORDS, refusal
from firesteel.table.sql.source import Span
from firesteel.table.sql.statements import (
    AlterCatalog,
    AlterDatabase,
    AlterFunction,
    AlterView,
    CreateCatalog,
    CreateDatabase,
    CreateFunction,
    CreateView,
    Describe,
    Drop,
    Explain,
    Insert,
    OnConflict,
    QueryStatement,
    Reset,
    SetOption,
    Show,
    Statement,
    StatementSetStatement,
    Unsupported,
    Use,
    UseModules,
)
from firesteel.table.sql.syntax import Name, Node, Query
from firesteel.table.sql.table_parser import TableParser
from firesteel.table.sql.tokens import TokenKind

__all__ = ["Parser", "parse", "parse_expression", "parse_query", "parse_script"]

_BEGINNINGS = (
    "SELECT",
    "WITH",
    "VALUES",
    "INSERT",
    "CREATE",
    "DROP",
    "ALTER",
    "EXPLAIN",
    "DESCRIBE",
    "SHOW",
    "USE",
    "SET",
    "RESET",
    "EXECUTE",
)
_CLAUSES = ("FROM", "WHERE", "GROUP", "HAVING", "ORDER", "LIMIT", "UNION", "JOIN")
_SHOWN = (
    ("CREATE", "TABLE"),
    ("CREATE", "VIEW"),
    ("CREATE", "CATALOG"),
    ("CURRENT", "CATALOG"),
    ("CURRENT", "DATABASE"),
    ("CATALOGS",),
    ("DATABASES",),
    ("TABLES",),
    ("VIEWS",),
    ("COLUMNS",),
    ("USER", "FUNCTIONS"),
    ("FUNCTIONS",),
    ("MODULES",),
    ("FULL", "MODULES"),
    ("PARTITIONS",),
    ("JARS",),
    ("MODELS",),
    ("MATERIALIZED", "TABLES"),
)

Tree = TypeVar("Tree")


class Parser(TableParser):
    """Reads statements."""

    def statement(self) -> Statement:
        """One statement."""
        start, word = self.here, self.token.upper
        following = [self.peek(ahead) for ahead in range(MOST_WORDS)]
        refused = refusal(["" if token.kind is TokenKind.END else str(token).upper() for token in following])
        if refused is not None:
            while not self.is_kind(TokenKind.END) and not self.is_sign(";"):
                self.advance()
            return Unsupported(*refused, span=self.since(start))
        read = {
            "CREATE": self._create,
            "DROP": self._drop,
            "ALTER": self._alter,
            "INSERT": self._insert,
            "EXPLAIN": self._explain,
            "DESCRIBE": self._describe,
            "DESC": self._describe,
            "SHOW": self._show,
            "USE": self._use,
            "SET": self._set,
            "RESET": self._reset,
            "EXECUTE": self._execute,
            "BEGIN": self._execute,
        }.get(word if self.is_kind(TokenKind.WORD) else "")
        if read is not None:
            return read()
        if word in ("SELECT", "WITH", "VALUES", "TABLE") or self.is_sign("("):
            query = self.query()
            return QueryStatement(query, span=query.span)
        raise self.failure(*_BEGINNINGS)

    def end(self) -> None:
        """Nothing but semicolons may follow."""
        while self.sign(";"):
            pass
        if not self.is_kind(TokenKind.END):
            if self.is_word("GROUP") or self.is_word("ORDER"):
                self.advance()
                raise self.failure("BY")
            # SELECT a FORM t: a column with another name, and then nothing that could follow.
            misspelt = near_names(self.peek(-1).text, _CLAUSES) if self.peek(-1).upper not in _CLAUSES else ""
            if misspelt and self.peek(-1).kind is TokenKind.WORD:
                raise self.error(f"{self.peek(-1)} is taken for a name here.{misspelt}", self.peek(-1).span)
            raise self.failure("the end of the statement")

    # CREATE, DROP, ALTER.

    def _create(self) -> Statement:
        start = self.here
        self.expect_word("CREATE")
        or_replace = self.word("OR", "REPLACE")
        temporary = self.word("TEMPORARY")
        system = temporary and self.word("SYSTEM")
        if self.word("TABLE"):
            return self.create_table(start, temporary)
        if self.word("VIEW"):
            return self._create_view(start, temporary, or_replace)
        if self.word("FUNCTION"):
            return self._create_function(start, temporary, system)
        if self.word("DATABASE"):
            if_not_exists = self.if_not_exists()
            name = self.name("the name of the database")
            comment = self.comment()
            options = self.options() if self.word("WITH") else ()
            return CreateDatabase(name, comment, options, if_not_exists, span=self.since(start))
        if self.word("CATALOG"):
            if_not_exists = self.if_not_exists()
            name = self.name("the name of the catalog")
            comment = self.comment()
            options = self.options() if self.word("WITH") else ()
            return CreateCatalog(name, options, if_not_exists, comment, span=self.since(start))
        raise self.failure("TABLE", "VIEW", "FUNCTION", "DATABASE", "CATALOG")

    def _create_view(self, start: Span, temporary: bool, or_replace: bool) -> Statement:
        if_not_exists = self.if_not_exists()
        name = self.name("the name of the view")
        columns = tuple(self.enclosed(self.identifier)) if self.is_sign("(") else ()
        comment = self.comment()
        self.expect_word("AS")
        query, text = self._query_text()
        return CreateView(
            name, columns, comment, query, text, temporary, if_not_exists, or_replace, span=self.since(start)
        )

    def _query_text(self) -> tuple[Query, str]:
        query = self.query()
        return query, self.text[query.span.start : query.span.end]

    def _create_function(self, start: Span, temporary: bool, system: bool) -> CreateFunction:
        if_not_exists = self.if_not_exists()
        name = self.name("the name of the function")
        self.expect_word("AS")
        identifier = self.string("the function's place in quotes")
        language = "JAVA"
        if self.word("LANGUAGE"):
            language = next((each for each in ("PYTHON", "JAVA", "SCALA") if self.word(each)), "")
            if not language:
                raise self.failure("PYTHON", "JAVA", "SCALA")
        if self.word("USING"):
            raise self.error("Functions in jars are not supported: Firesteel runs Python.", self.here)
        return CreateFunction(name, identifier, language, temporary, system, if_not_exists, span=self.since(start))

    def _drop(self) -> Statement:
        start = self.here
        self.expect_word("DROP")
        temporary = self.word("TEMPORARY")
        system = temporary and self.word("SYSTEM")
        kinds = ("TABLE", "VIEW", "FUNCTION", "DATABASE", "CATALOG")
        kind = next((each for each in kinds if self.word(each)), None)
        if kind is None:
            raise self.failure(*kinds)
        if_exists = self.if_exists()
        name = self.name("a name")
        cascade = self.word("CASCADE")
        if not cascade:
            self.word("RESTRICT")
        return Drop(kind, name, temporary, system, if_exists, cascade, span=self.since(start))

    def _alter(self) -> Statement:
        start = self.here
        self.expect_word("ALTER")
        if self.word("TABLE"):
            return self.alter_table(start)
        if self.word("VIEW"):
            name = self.name("the name of the view")
            if self.word("RENAME"):
                self.expect_word("TO")
                return AlterView(name, self.name("the new name"), None, "", span=self.since(start))
            self.expect_word("AS")
            query, text = self._query_text()
            return AlterView(name, None, query, text, span=self.since(start))
        if self.word("DATABASE"):
            name = self.name("the name of the database")
            self.expect_word("SET")
            return AlterDatabase(name, self.options(), span=self.since(start))
        if self.word("CATALOG"):
            return self._alter_catalog(start)
        temporary = self.word("TEMPORARY")
        system = temporary and self.word("SYSTEM")
        if self.word("FUNCTION"):
            if_exists = self.if_exists()
            created = self._create_function(start, temporary, system)
            return AlterFunction(created, if_exists, span=self.since(start))
        raise self.failure("TABLE", "VIEW", "DATABASE", "CATALOG", "FUNCTION")

    def _alter_catalog(self, start: Span) -> AlterCatalog:
        name = self.name("the name of the catalog")
        if self.word("SET"):
            return AlterCatalog(name, options=self.options(), span=self.since(start))
        if self.word("RESET"):
            return AlterCatalog(name, keys=tuple(self.enclosed(self._key)), span=self.since(start))
        if not self.is_word("COMMENT"):
            raise self.failure("SET", "RESET", "COMMENT")
        return AlterCatalog(name, comment=self.comment(), span=self.since(start))

    # INSERT.

    def _insert(self) -> Insert:
        start = self.here
        self.expect_word("INSERT")
        overwrite = self.word("OVERWRITE")
        if not overwrite:
            self.expect_word("INTO")
        self.word("TABLE")
        target = self.name("the name of the table")
        hints = self.hints()
        partition: tuple[tuple[str, Node], ...] = ()
        if self.word("PARTITION"):
            partition = tuple(self.enclosed(self._partition_value))
        columns: tuple[Name, ...] = ()
        if self.is_sign("(") and self.peek().upper not in ("SELECT", "WITH", "VALUES", "("):
            columns = tuple(self.enclosed(self.name))
        query = self.query()
        conflict = self._on_conflict()
        return Insert(target, query, overwrite, partition, columns, hints, conflict, span=self.since(start))

    def _on_conflict(self) -> OnConflict | None:
        if not self.word("ON", "CONFLICT"):
            return None
        self.expect_word("DO")
        for chosen in OnConflict:
            if self.word(chosen.value):
                return chosen
        raise self.failure(*(each.value for each in OnConflict))

    def _partition_value(self) -> tuple[str, Node]:
        name = self.identifier("a column")
        self.expect_sign("=")
        return name, self.expression()

    def _execute(self) -> Statement:
        start = self.here
        if self.word("EXECUTE"):
            if not self.is_word("STATEMENT"):
                return self.statement()
            self.expect_word("STATEMENT", "SET", "BEGIN")
        else:
            self.expect_word("BEGIN", "STATEMENT", "SET")
            self.expect_sign(";")
        return self._inserts(start)

    def _inserts(self, start: Span) -> StatementSetStatement:
        """``INSERT ...; INSERT ...; END``."""
        inserts = []
        while not self.word("END"):
            inserts.append(self._insert())
            self.expect_sign(";")
        return StatementSetStatement(tuple(inserts), span=self.since(start))

    # EXPLAIN, DESCRIBE, SHOW, USE, SET.

    def _explain(self) -> Statement:
        start = self.here
        self.expect_word("EXPLAIN")
        details: list[str] = []
        kinds = ("ESTIMATED_COST", "CHANGELOG_MODE", "JSON_EXECUTION_PLAN", "PLAN_ADVICE")
        if self.word("PLAN"):
            self.expect_word("FOR")
        else:
            while self.token.upper in kinds:
                details.append(self.advance().upper)
                if not self.sign(","):
                    break
        inner = self.here
        if self.word("STATEMENT", "SET"):
            self.expect_word("BEGIN")
            return Explain(tuple(details), self._inserts(inner), span=self.since(start))
        return Explain(tuple(details), self.statement(), span=self.since(start))

    def _describe(self) -> Statement:
        start = self.here
        self.advance()
        kind = next((each for each in ("DATABASE", "CATALOG", "FUNCTION") if self.word(each)), "TABLE")
        extended = self.word("EXTENDED")
        return Describe(self.name(f"the name of a {kind.lower()}"), extended, kind, span=self.since(start))

    def _show(self) -> Statement:
        start = self.here
        self.expect_word("SHOW")
        kind = next((" ".join(words) for words in _SHOWN if self.word(*words)), None)
        if kind is None:
            following = [words[1] for words in _SHOWN if words[0] == self.token.upper and len(words) > 1]
            if following:
                self.advance()
            raise self.failure(*(following or dict.fromkeys(words[0] for words in _SHOWN)))
        name: Name | None = None
        if kind.startswith("CREATE"):
            name = self.name("a name")
        elif self.token.upper in ("FROM", "IN"):
            self.advance()
            name = self.name("a name")
        elif kind == "PARTITIONS":
            name = self.name("the name of a table")
            if self.word("PARTITION"):
                partition = tuple(self.enclosed(self._partition_value))
                return Show(kind, name, partition=partition, span=self.since(start))
        negated = (self.is_word("NOT", "LIKE") or self.is_word("NOT", "ILIKE")) and self.word("NOT")
        ignore_case = self.word("ILIKE")
        like = self.string("the pattern in quotes") if ignore_case or self.word("LIKE") else None
        return Show(kind, name, like, negated, ignore_case=ignore_case, span=self.since(start))

    def _use(self) -> Statement:
        start = self.here
        self.expect_word("USE")
        kind = "DATABASE"
        if self.word("CATALOG"):
            kind = "CATALOG"
        elif self.word("MODULES"):
            names = tuple(self.listed(self.identifier))
            return UseModules(names, span=self.since(start))
        what = "the name of a catalog" if kind == "CATALOG" else "the name of a database or CATALOG or MODULES"
        return Use(kind, self.name(what), span=self.since(start))

    def _set(self) -> Statement:
        start = self.here
        self.expect_word("SET")
        if self.is_kind(TokenKind.END) or self.is_sign(";"):
            return SetOption(None, None, span=self.since(start))
        key = self._key()
        self.expect_sign("=")
        value = self.string("the value in quotes")
        return SetOption(key, value, span=self.since(start))

    def _reset(self) -> Statement:
        start = self.here
        self.expect_word("RESET")
        at_end = self.is_kind(TokenKind.END) or self.is_sign(";")
        return Reset(None if at_end else self._key(), span=self.since(start))

    def _key(self) -> str:
        return self.string("the setting's name in quotes")


def parse(text: str) -> Statement:
    """One statement, with a semicolon behind it or without.

    >>> parse("SHOW TABLES LIKE 'a%'").like
    'a%'
    """
    return _read(text, lambda parser: parser.statement())


def parse_query(text: str) -> Query:
    """A query."""
    return _read(text, lambda parser: parser.query())


def parse_expression(text: str) -> Node:
    """An expression by itself."""
    return _read(text, lambda parser: parser.expression())


def parse_script(text: str) -> list[Statement]:
    """Statements with semicolons between them.

    >>> len(parse_script("SET 'a' = 'b'; SELECT 1;"))
    2
    """
    parser = Parser(text)
    found: list[Statement] = []
    while True:
        while parser.sign(";"):
            pass
        if parser.is_kind(TokenKind.END):
            return found
        found.append(parser.statement())
        if not parser.is_sign(";") and not parser.is_kind(TokenKind.END):
            raise parser.failure(";", "the end of the statement")


def _read(text: str, rule: Callable[[Parser], Tree]) -> Tree:
    parser = Parser(text)
    try:
        tree = rule(parser)
        parser.end()
    except RecursionError:
        raise SqlParseError("The statement is nested too deep.", text, parser.here) from None
    return tree
