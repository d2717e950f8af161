"""The parser: what it reads, what it says about what it cannot read, and that nothing breaks it."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from firesteel.table.sql import SqlError, SqlParseError, parse, parse_expression, parse_script
from firesteel.table.sql.source import Span
from firesteel.table.sql.statements import CreateTable, Insert, QueryStatement, StatementSetStatement
from firesteel.table.sql.syntax import (
    Binary,
    Constant,
    FunctionCall,
    Join,
    MatchRecognize,
    Name,
    Select,
    SetOperation,
    TableFunction,
    TableName,
)
from firesteel.table.sql.tokens import tokenize
from firesteel.table.sql.type_parser import parse_type

STATEMENTS = [
    "SELECT k, COUNT(*), SUM(v) FILTER (WHERE v > 1) AS s FROM t AS x WHERE a BETWEEN 1 AND 2 AND b NOT IN (1, 2)"
    " GROUP BY k HAVING COUNT(*) > 1",
    "SELECT window_start, SUM(p) FROM TABLE(TUMBLE(TABLE bid, DESCRIPTOR(ts), INTERVAL '10' MINUTES))"
    " GROUP BY window_start, window_end",
    "SELECT * FROM HOP(DATA => TABLE bid, TIMECOL => DESCRIPTOR(ts), SLIDE => INTERVAL '1' MINUTE,"
    " SIZE => INTERVAL '2' MINUTE)",
    "SELECT * FROM TABLE(SESSION(TABLE bid PARTITION BY (a, b), DESCRIPTOR(ts), INTERVAL '10' MINUTES))",
    "WITH a AS (SELECT 1), b(x, y) AS (VALUES (1, 2), (3, 4)) SELECT * FROM a, b LEFT JOIN c FOR SYSTEM_TIME AS OF"
    " o.proc AS cc ON a.x = cc.y UNION ALL SELECT t.* FROM t ORDER BY 1 DESC NULLS LAST LIMIT 3 OFFSET 2",
    "SELECT ROW_NUMBER() OVER (PARTITION BY a ORDER BY b ROWS BETWEEN 2 PRECEDING AND CURRENT ROW), LAG(x, 1) OVER w"
    " FROM t WINDOW w AS (ORDER BY ts RANGE INTERVAL '1' DAY PRECEDING) QUALIFY x = 1",
    "SELECT JSON_VALUE(a, '$.x' RETURNING INT NULL ON EMPTY DEFAULT 3 ON ERROR), JSON_OBJECT('a' VALUE 1, KEY 'b'"
    " VALUE 2 NULL ON NULL), JSON_QUERY(a, '$' WITH CONDITIONAL ARRAY WRAPPER), JSON_ARRAY(1, 2 ABSENT ON NULL)",
    "SELECT a[1].b, (x).y, ARRAY[1, 2], MAP['a', 1], ROW(1, 2), CASE a WHEN 1, 2 THEN b ELSE c END, NULLIF(a, b)",
    "SELECT TRIM(BOTH 'x' FROM s), EXTRACT(DAY FROM d), POSITION('a' IN b), FLOOR(ts TO HOUR), LEFT(s, 1),"
    " SUBSTRING(s FROM 2 FOR 3), OVERLAY(s PLACING 'x' FROM 1), TIMESTAMPADD(MINUTE, 1, ts), LISTAGG(DISTINCT s, ',')",
    "SELECT -INTERVAL '1-2' YEAR TO MONTH, DATE '2020-01-01', U&'\\00e4', x'ff00', 1e3, .5, a || b, TRY_CAST(a AS INT)",
    "SELECT a FROM t CROSS JOIN UNNEST(arr) WITH ORDINALITY AS u (x, i) WHERE EXISTS (SELECT 1 FROM b WHERE b.x = t.x"
    ") AND a > ALL (SELECT 1) AND a IN (SELECT 1) GROUP BY GROUPING SETS ((a, b), (a), ()), ROLLUP (c),"
    " CUBE (d, (e, f))",
    "SELECT * FROM t, LATERAL TABLE(split(a)) AS s(w) NATURAL LEFT JOIN u JOIN v USING (k)",
    "SELECT * FROM (a JOIN b ON a.x = b.x) JOIN ((SELECT 1) UNION (SELECT 2)) AS c ON TRUE",
    "CREATE TEMPORARY TABLE IF NOT EXISTS c.d.t (a INT NOT NULL PRIMARY KEY NOT ENFORCED COMMENT 'key', b AS a + 1,"
    " ts TIMESTAMP_LTZ(3) METADATA FROM 'timestamp' VIRTUAL, r ROW<x INT, y ARRAY<MAP<STRING, DECIMAL(10, 2)>>>,"
    " WATERMARK FOR ts AS ts - INTERVAL '5' SECOND) COMMENT 'all' PARTITIONED BY (a) WITH ('connector' = 'kafka')"
    " LIKE base (INCLUDING ALL OVERWRITING OPTIONS)",
    "CREATE TABLE t WITH ('connector' = 'print') AS SELECT 1",
    "CREATE OR REPLACE VIEW v (a, b) COMMENT 'x' AS SELECT 1, 2",
    "CREATE TEMPORARY SYSTEM FUNCTION f AS 'module.f' LANGUAGE PYTHON",
    "INSERT OVERWRITE sink /*+ OPTIONS('a' = 'b') */ PARTITION (d = '1') (x, y) SELECT"
    " /*+ STATE_TTL('a' = '1d') */ 1, 2",
    "EXECUTE STATEMENT SET BEGIN INSERT INTO a SELECT 1; INSERT INTO b VALUES (1); END",
    "ALTER TABLE t ADD (a INT, WATERMARK FOR ts AS ts)",
    "ALTER TABLE t RENAME a TO b",
    "ALTER TABLE t RESET ('a')",
    "EXPLAIN ESTIMATED_COST, CHANGELOG_MODE SELECT 1",
    "SHOW COLUMNS FROM t NOT LIKE 'a%'",
    "SHOW CREATE TABLE a.b.c",
    "USE CATALOG c",
    "SET 'a' = 'b'",
    "RESET",
    "DESC EXTENDED t",
    "DROP TEMPORARY VIEW IF EXISTS v",
]
PATTERN = (
    "SELECT * FROM Ticker MATCH_RECOGNIZE (PARTITION BY symbol ORDER BY rowtime MEASURES A.rowtime AS s, FINAL"
    " LAST(B.price) AS b ONE ROW PER MATCH AFTER MATCH SKIP TO LAST B PATTERN (A B+? C{2,} (D | E)? {- F -})"
    " WITHIN INTERVAL '1' HOUR SUBSET S = (A, B) DEFINE B AS B.price > A.price) AS m"
)


@pytest.mark.parametrize("text", [*STATEMENTS, PATTERN])
def test_it_reads_what_flink_reads(text: str) -> None:
    assert parse(text) == parse(text.lower() if "'" not in text and "`" not in text and text.isupper() else text + " ;")


def tree_of(text: str) -> Select:
    statement = parse(text)
    assert isinstance(statement, QueryStatement)
    body = statement.query.body
    assert isinstance(body, Select)
    return body


def test_operators_bind_as_in_sql() -> None:
    def show(node: object) -> str:
        if isinstance(node, Binary):
            return f"({show(node.left)} {node.operator} {show(node.right)})"
        return str(node) if isinstance(node, Name) else type(node).__name__

    assert show(parse_expression("a OR b AND c = d + e * f - g")) == "(a OR (b AND (c = ((d + (e * f)) - g))))"
    assert show(parse_expression("a = b OR c || d < e")) == "((a = b) OR ((c || d) < e))"
    not_less = parse_expression("NOT a < b")
    assert not_less == parse_expression("NOT (a < b)")
    assert parse_expression("a = b IS NULL") == parse_expression("(a = b) IS NULL")
    assert parse_expression("-a.b[1] * 2") == parse_expression("(-(a.b[1])) * 2")
    assert parse_expression("a BETWEEN 1 AND 2 AND b") == parse_expression("(a BETWEEN 1 AND 2) AND b")


def test_set_operations_bind_as_in_sql() -> None:
    statement = parse("SELECT 1 UNION SELECT 2 INTERSECT SELECT 3 EXCEPT ALL SELECT 4")
    assert isinstance(statement, QueryStatement)
    outer = statement.query.body
    assert isinstance(outer, SetOperation)
    assert (outer.operator, outer.all) == ("EXCEPT", True)
    assert isinstance(outer.left, SetOperation)
    assert isinstance(outer.left.right, SetOperation)
    assert outer.left.right.operator == "INTERSECT"


def test_every_node_knows_its_place() -> None:
    text = "SELECT a, SUM(b + 1)\nFROM t JOIN u ON t.x = u.x"
    select = tree_of(text)

    def at(span: Span) -> str:
        return text[span.start : span.end]

    total = select.items[1].expression
    assert isinstance(total, FunctionCall)
    assert at(total.span) == "SUM(b + 1)"
    assert at(total.args[0].span) == "b + 1"
    assert isinstance(select.source, Join)
    assert at(select.source.span) == "t JOIN u ON t.x = u.x"
    assert select.source.condition is not None
    assert at(select.source.condition.span) == "t.x = u.x"


def test_windows_hints_and_time_travel() -> None:
    select = tree_of("SELECT * FROM TABLE(CUMULATE(TABLE b, DESCRIPTOR(ts), INTERVAL '1' HOUR, INTERVAL '1' DAY)) w")
    assert isinstance(select.source, TableFunction)
    assert (select.source.call.name.parts, select.source.alias) == (("CUMULATE",), "w")
    select = tree_of("SELECT /*+ BROADCAST(a), STATE_TTL('a' = '1d') */ * FROM t /*+ OPTIONS('k' = 'v') */ AS x")
    assert [hint.name for hint in select.hints] == ["BROADCAST", "STATE_TTL"]
    assert isinstance(select.source, TableName)
    assert select.source.hints[0].options == (("k", "v"),)


def test_patterns() -> None:
    source = tree_of(PATTERN).source
    assert isinstance(source, MatchRecognize)
    assert (source.skip, source.alias) == (("LAST", "B"), "m")
    variable, repeated, at_least, choice, excluded = source.pattern.items
    assert (variable.variable, repeated.greedy, repeated.most) == ("A", False, None)
    assert (at_least.least, at_least.most) == (2, None)
    assert (choice.items[0].kind, excluded.kind) == ("alternative", "exclusion")


def test_tables() -> None:
    table = parse(STATEMENTS[13])
    assert isinstance(table, CreateTable)
    assert [column.name for column in table.columns] == ["a", "b", "ts", "r"]
    assert str(table.columns[3].type) == "ROW<`x` INT, `y` ARRAY<MAP<STRING, DECIMAL(10, 2)>>>"
    assert (table.columns[2].metadata, table.columns[2].virtual) == ("timestamp", True)
    assert table.primary_key is not None
    assert table.primary_key.columns == ("a",)
    assert table.like is not None
    assert table.like.choices == (("INCLUDING", "ALL"), ("OVERWRITING", "OPTIONS"))


def test_scripts_and_statement_sets() -> None:
    first, second = parse_script("-- a comment; with a sign\nSET 'a' = ';'; INSERT INTO t SELECT ';' /* ; */;")
    assert isinstance(second, Insert)
    assert str(first.span) == "Span(start=26, end=39)"
    found = parse("BEGIN STATEMENT SET; INSERT INTO a SELECT 1; END")
    assert isinstance(found, StatementSetStatement)


def test_strings_and_names_keep_what_stands_between_quotes() -> None:
    assert parse_expression("'it''s' ' not'") == Constant("string", "it's not", span=Span(0, 0))
    assert parse_expression("`a ``b`.`C`") == Name(("a `b", "C"), span=Span(0, 0))
    assert parse_expression("U&'\\00e4'") == Constant("string", "ä", span=Span(0, 0))


def test_names_may_have_dollars() -> None:
    assert parse_expression("$t$1.a$") == Name(("$t$1", "a$"), span=Span(0, 0))
    # In a pattern the sign alone is the end of the partition.
    assert [str(token) for token in tokenize("(^ A $)")][:5] == ["(", "^", "A", "$", ")"]


def test_a_join_may_begin_with_a_window_function() -> None:
    read = parse(
        "SELECT * FROM (TABLE(TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL '1' HOUR)) AS a JOIN u AS b ON a.x = b.x)"
    )
    assert isinstance(read, QueryStatement)
    assert isinstance(read.query.body, Select)
    assert isinstance(read.query.body.source, Join)


def test_intervals_may_say_how_many_digits_they_have() -> None:
    plain = parse_expression("INTERVAL '0.111' SECOND")
    assert parse_expression("INTERVAL '0.111' SECOND(1, 3)") == plain
    assert str(parse_type("INTERVAL SECOND(1, 3)")) == str(parse_type("INTERVAL SECOND(3)"))


def test_texts_and_bytes_without_a_length_have_no_bound() -> None:
    table = parse("CREATE TABLE t (a VARCHAR, b VARBINARY, c ARRAY<VARCHAR>, d CHAR, e BINARY, f CHARACTER VARYING)")
    assert isinstance(table, CreateTable)
    assert [str(column.type) for column in table.columns] == [
        *("STRING", "BYTES", "ARRAY<STRING>", "CHAR(1)", "BINARY(1)", "STRING"),
    ]
    # Where a program hands over a type, PyFlink reads it by other rules.
    assert str(parse_type("ROW<a VARCHAR, b VARBINARY>")) == "ROW<`a` VARCHAR(1), `b` VARBINARY(1)>"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "SELECT a\nFORM t",
            "FORM is taken for a name here. Did you mean FROM? (line 2, column 1)\n  FORM t\n  ^^^^",
        ),
        ("SELECT FROM t", "Expected an expression, got FROM. (line 1, column 8)\n  SELECT FROM t\n         ^^^^"),
        (
            "SELECT order FROM t",
            "got order. ORDER is reserved: as a name it is written `order`.",
        ),
        ("SELCT 1", "got SELCT. Did you mean SELECT"),
        ("CREATE TABLE t (a ITN)", "Expected a type, got ITN. Did you mean INT? (line 1, column 19)"),
        ("SELECT 'abc", "The string has no end: ' is missing. (line 1, column 8)"),
        ("SELECT 1abc", "A name that begins with a digit is written `1abc`."),
        ("SELECT /* abc", "The comment has no end"),
        ("SELECT CAST(a AS DECIMAL(50, 2))", "the precision is 1 to 38"),
        ("SELECT a FROM t WHERE", "Expected an expression, got the end of the statement. (line 1, column 22)"),
        ("SELECT a FROM t LEFT u", "Expected JOIN, got u."),
        ("INSERT INTO", "Expected the name of the table, got the end of the statement."),
        ("SELECT a FROM t; SELECT b", "Expected the end of the statement, got SELECT."),
        ("SELECT \x00", "'\\x00' has no meaning here."),
        ("SELECT " + "(" * 200 + "1", "nested more than 80 levels deep"),
    ],
)
def test_errors_say_where_and_what(text: str, expected: str) -> None:
    with pytest.raises(SqlParseError) as caught:
        parse(text)
    assert expected in str(caught.value)


def test_long_lists_are_read_and_long_chains_refused() -> None:
    select = tree_of("SELECT " + " AND ".join(["a"] * 2000))
    assert isinstance(select.items[0].expression, Binary)
    assert len(tree_of("SELECT " + ", ".join(["a"] * 5000)).items) == 5000
    with pytest.raises(SqlParseError, match="More than 300 operators"):
        parse("SELECT " + " + ".join(["a"] * 2000))


# Words that lead deep into the grammar, besides any characters at all.
WORDS = sorted({token.upper or token.text for text in [*STATEMENTS, PATTERN] for token in tokenize(text)} - {""})
PIECES = st.one_of(
    st.sampled_from(WORDS), st.sampled_from(["'x'", "`n`", "1.5", "(", ")", ",", "/*+", "*/"]), st.text(max_size=4)
)


@settings(max_examples=400, deadline=None)
@given(st.lists(PIECES, max_size=25).map(" ".join))
@example("MATCH_RECOGNIZE")
@example("SELECT * FROM t /*+")
def test_nothing_but_its_own_errors(text: str) -> None:
    with contextlib.suppress(SqlError):
        parse(text)


@settings(max_examples=300, deadline=None)
@given(st.sampled_from([*STATEMENTS, PATTERN]), st.data())
def test_nothing_but_its_own_errors_for_damaged_statements(text: str, data: st.DataObject) -> None:
    tokens = text.split(" ")
    for _ in range(data.draw(st.integers(1, 3))):
        place = data.draw(st.integers(0, len(tokens) - 1))
        change = data.draw(st.sampled_from(["drop", "double", "exchange"]))
        if change == "drop":
            tokens = tokens[:place] + tokens[place + 1 :] or [""]
        elif change == "double":
            tokens.insert(place, tokens[place])
        else:
            tokens[place] = data.draw(PIECES)
    with contextlib.suppress(SqlError):
        parse(" ".join(tokens))


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE TABLE t (a INT) WITH ('connector' = 'jdbc', 'password' 'hunter2')",
        "CREATE TABLE t (a INT) WITH ('username' = 'ada' 'password' = 'hunter2')",
        "CREATE TABLE t (a INT) WITH ('url' = 'mysql://ada:hunter2@db/shop' x)",
        "SELECT * FORM t /*+ OPTIONS('properties.sasl.jaas.config' = 'x password=\"hunter2\";') */",
        "CREATE TABLE t (a INT) WITH ('password' = 'hunter2",
    ],
)
def test_errors_show_no_secrets(statement: str) -> None:
    with pytest.raises(SqlParseError) as caught:
        parse(statement)
    assert "hunter2" not in str(caught.value)
    assert "hunter2" not in str(caught.value.__reduce__())
    assert len(str(caught.value).splitlines()[1]) == len(statement) + 2, "the mark is at its place"
