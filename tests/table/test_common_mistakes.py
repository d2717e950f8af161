"""What is often written by mistake in SQL: the message says what was meant, and the mark is below the place."""

from __future__ import annotations

import re

import pytest

from firesteel.table import TableEnvironment
from firesteel.table.sql import SqlError


@pytest.fixture
def tables(env: TableEnvironment) -> TableEnvironment:
    columns = "id BIGINT, city STRING, price DECIMAL(10, 2), at TIMESTAMP(3), WATERMARK FOR at AS at"
    env.execute_sql(f"CREATE TABLE orders ({columns}) WITH ('connector' = 'datagen', 'number-of-rows' = '0')")
    env.execute_sql("CREATE VIEW cities AS SELECT city, 'x' AS country, id FROM orders")
    return env


@pytest.mark.parametrize(
    ("query", "told", "marked"),
    [
        (
            "SELECT id, city, FROM orders",
            "Expected an expression, got FROM. The comma before it is one too many.",
            "FROM",
        ),
        ("SELECT id, order FROM orders", "ORDER is reserved: as a name it is written `order`.", "order"),
        ("SELECT id FROM order", "got order. ORDER is reserved: as a name it is written `order`.", "order"),
        ("CREATE TABLE x (id INT, table INT)", "TABLE is reserved: as a name it is written `table`.", "table"),
        ("SELECT id) FROM orders", "got ). No ( is open here.", ")"),
        ("SELECT COUNT(id FROM orders", "Expected ), got FROM.", "FROM"),
        ("SELECT CONT(id) FROM orders", "There is no function CONT. Did you mean COUNT or", "CONT(id)"),
        ("SELECT sums(price) FROM orders", "There is no function SUMS. Did you mean SUM or SUM0?", "sums(price)"),
        ("SELECT NVL(city, 'a') FROM orders", "In Flink's SQL it is COALESCE(a, b).", "NVL(city, 'a')"),
        ("SELECT DATEADD(at, 1) FROM orders", "In Flink's SQL it is TIMESTAMPADD(DAY, 1, a).", "DATEADD(at, 1)"),
        ("SELECT SUM(id, price) FROM orders", "SUM takes 1 argument, got 2.", "SUM(id, price)"),
        ("SELECT COUNT(id, price) FROM orders", "COUNT takes one argument, as in Flink, got 2.", "COUNT(id, price)"),
        (
            "SELECT o.idd FROM orders AS o JOIN cities AS c ON o.city = c.city",
            "There is no column idd in o. Did you mean id?",
            "o.idd",
        ),
        (
            "SELECT id FROM orders AS o JOIN cities AS c ON o.city = c.city",
            "Column id is in o and c: write which of them is meant.",
            "id",
        ),
        ("SELECT t.id FROM (SELECT id FROM orders)", "has no name: (SELECT ...) AS t gives it one.", "t.id"),
        ("SELECT city, SUM(price) FROM orders", "city is neither in GROUP BY nor inside an aggregate", "city"),
        (
            "SELECT 1 FROM orders WHERE SUM(price) > 3",
            "WHERE has no aggregates: HAVING filters groups.",
            "SUM(price) > 3",
        ),
        ("SELECT id, ROW_NUMBER() FROM orders", "ROW_NUMBER needs the window that it is over: OVER (", "ROW_NUMBER()"),
        ("SELECT id FROM orders GROUP id", "Expected BY, got id.", "id"),
        ("SELECT id FROM orders ORDER price LIMIT 1", "Expected BY, got price.", "price"),
        ("SELECT id FROM orders WHERE city = 'Rome", "The string has no end: ' is missing.", "'"),
        ("SELECT id FROM orders WHERE city = 'It's'", "A quote inside a text is written twice: 'It''s'.", "'"),
        ('SELECT id FROM orders WHERE city = "Rome"', "Texts stand in single quotes ('Rome')", '"'),
        ("SELECT id FROM orders WHERE city = \u2018Rome\u2019", "Texts stand in single quotes ('Rome')", "\u2018"),
        ('CREATE TABLE x (id INT) WITH ("connector" = "print")', "Texts stand in single quotes", '"'),
        (
            "CREATE TABLE x (id INT) WITH (connector = 'print')",
            "name in quotes, got connector. Write 'connector'.",
            "connector",
        ),
        ("CREATE TABLE x (id INT) WITH ('connector' = print)", "value in quotes, got print. Write 'print'.", "print"),
        ("CREATE TABLE x (id INT) WITH ('connector' = 'print' 'a' = 'b')", "Expected , or ), got 'a'.", "'a'"),
        ("CREATE TABLE x (id INT) WITH ('connector', 'print')", "Expected =, got ,.", ","),
        ("CREATE TABLE x (id TEXT)", "Expected a type, got TEXT. Flink's type for it is STRING.", "TEXT"),
        ("SET a = 'b'", "Expected the setting's name in quotes, got a. Write 'a'.", "a"),
        ("SELECT ';' ; SELECT 2", "Expected the end of the statement, got SELECT.", "SELECT"),
        ("SELECT id FROM orders WHERE id == 1", "Two values are compared with one =.", "="),
        ("SELECT id FROM orders WHERE id > 1 && id < 3", "Conditions are combined with AND.", "&"),
        ("SELECT id FROM orders WHERE city LIKE %a%", "A pattern stands in quotes: '%a%'.", "%"),
        ("SELECT at + INTERVAL 1 DAY FROM orders", "The number stands in quotes: INTERVAL '1' DAY.", "INTERVAL"),
        ("SELECT id::STRING FROM orders", "CAST(a AS type) converts a value.", ":"),
        ("SELECT TOP 3 id FROM orders", "LIMIT 3 at the end takes the first rows.", "3"),
        (
            "SELECT id FROM orders WHERE city ILIKE 'a'",
            "UPPER(a) LIKE 'A%' does not care about capital letters.",
            "ILIKE",
        ),
        ("WITH a (SELECT 1) SELECT * FROM a", "Expected AS, got (.", "("),
        (
            "SELECT * FROM TABLE(TUMBLE(orders, DESCRIPTOR(at), INTERVAL '1' HOUR))",
            "TUMBLE takes a table first, which is written TABLE orders.",
            "orders",
        ),
        (
            "SELECT * FROM TABLE(TUMBLE(TABLE orders, at, INTERVAL '1' HOUR))",
            "TUMBLE takes its time column as DESCRIPTOR(at).",
            "at",
        ),
        ("USE", "Expected the name of a database or CATALOG or MODULES, got the end", ""),
    ],
)
def test_the_message_says_what_was_meant(tables: TableEnvironment, query: str, told: str, marked: str) -> None:
    with pytest.raises(SqlError, match=re.escape(told)) as caught:
        tables.execute_sql(query)
    assert caught.value.span is not None
    assert query[caught.value.span.start : caught.value.span.end] == marked


def test_semicolons_in_texts_end_nothing(tables: TableEnvironment) -> None:
    with tables.execute_sql("SELECT ';' AS a; ").collect() as rows:
        assert [row[0] for row in rows] == [";"]
