"""A statement set is stopped with a savepoint, edited, and goes on: what did not change keeps its state, sources and
sinks go on where they were. And what the savepoint has can be read as tables."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import environment
from sparkkit import eventually

from firesteel.common import Types
from firesteel.datastream import DataStream, StreamExecutionEnvironment
from firesteel.errors import FiresteelError
from firesteel.state_processor import Savepoint
from firesteel.table import StreamTableEnvironment
from firesteel.testing import run_pipeline

GROUPS = "SELECT word, COUNT(*) AS n FROM words GROUP BY word"
COUNTS = f"INSERT INTO counts SELECT word, n FROM ({GROUPS})"
SOME = f"INSERT INTO counts SELECT word AS w, n AS how_many FROM ({GROUPS}) WHERE n < 1000"
MATCHES = "INSERT INTO matches SELECT w.word, w.price FROM words AS w JOIN names AS m ON w.word = m.word"
KNOWN = "INSERT INTO counts SELECT CONCAT(word, '!'), COUNT(*) FROM names GROUP BY word ON CONFLICT DO DEDUPLICATE"
NAMES = "INSERT INTO others SELECT word, CAST(0 AS BIGINT) FROM names"


class Shop:
    """Tables of files, and one of a database. Each run is a new environment, as after a deployment."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for name in ("words", "names", "matches", "others"):
            (folder / name).mkdir()
        self._database = sqlite3.connect(folder / "shop.db", timeout=120)
        self._database.execute("CREATE TABLE counts (word TEXT PRIMARY KEY, n BIGINT)")

    def add(self, table: str, file: str, text: str) -> None:
        (self.folder / file).write_text(text)
        (self.folder / file).rename(self.folder / table / file)

    def run(self, statements: list[str], wanted: Callable[[], bool], drain: bool, **settings: str) -> str:
        """A job with these statements, until what is wanted is there, and a savepoint then."""
        env = environment(**settings)
        for name, columns in (("words", "word STRING, price BIGINT"), ("names", "word STRING")):
            env.execute_sql(f"""
                CREATE TABLE {name} ({columns}) WITH ('connector' = 'filesystem', 'path' = '{self.folder / name}',
                    'format' = 'csv', 'source.monitor-interval' = '10 ms')
            """)
        for name in ("matches", "others"):
            env.execute_sql(f"""
                CREATE TABLE {name} (word STRING, price BIGINT) WITH (
                    'connector' = 'filesystem', 'path' = '{self.folder / name}', 'format' = 'csv')
            """)
        env.execute_sql(f"""
            CREATE TABLE counts (word STRING, n BIGINT, PRIMARY KEY (word) NOT ENFORCED) WITH (
                'connector' = 'jdbc', 'url' = 'jdbc:sqlite:{self.folder / "shop.db"}', 'table-name' = 'counts')
        """)
        statement_set = env.create_statement_set()
        for statement in statements:
            statement_set.add_insert_sql(statement)
        client = statement_set.execute().get_job_client()
        assert client is not None
        ended = client.get_job_execution_result()
        try:
            assert eventually(lambda: ended.done() or wanted())
            if ended.done():
                ended.result()
            return str(client.stop_with_savepoint(drain, str(self.folder / "savepoints")).result())
        finally:
            with contextlib.suppress(FiresteelError):
                client.cancel().result()

    def counts(self) -> dict[str, int]:
        return dict(self._database.execute("SELECT word, n FROM counts").fetchall())

    def lines(self, table: str) -> list[str]:
        """What readers see of a folder."""
        files = [path for path in (self.folder / table).rglob("*") if path.is_file() and path.name[0] not in "._"]
        return sorted(line for path in files for line in path.read_text().splitlines())


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    return Shop(tmp_path)


def first_run(shop: Shop) -> str:
    shop.add("words", "first", "ink,1\npen,2\nink,3\n")
    shop.add("names", "first", "ink\n")
    there = {"ink": 2, "pen": 1, "ink!": 1}
    return shop.run([COUNTS, MATCHES, KNOWN], lambda: shop.counts() == there, drain=False)


@pytest.mark.parametrize(
    "statements", [[NAMES, KNOWN, MATCHES, SOME], [SOME, NAMES, MATCHES, KNOWN]], ids=["first", "last"]
)
def test_an_edited_statement_set_goes_on(shop: Shop, statements: list[str]) -> None:
    """A statement more, in front of the others or between them; other names of columns, a condition above groups."""
    path = first_run(shop)
    shop.add("words", "second", "ink,5\ncup,7\n")

    shop.run(
        statements,
        lambda: shop.counts() == {"ink": 3, "pen": 1, "cup": 1, "ink!": 1},
        drain=True,
        **{"execution.state-recovery.path": path},
    )

    assert shop.lines("matches") == ["ink,1", "ink,3", "ink,5"]
    assert shop.lines("others") == [], "what was read before the savepoint is not read again"


def test_what_an_edit_takes_away_is_asked_for(shop: Shop) -> None:
    path = first_run(shop)
    restore = {"execution.state-recovery.path": path}
    with pytest.raises(FiresteelError, match="Join"):
        shop.run([COUNTS, KNOWN], lambda: False, drain=False, **restore)

    shop.add("words", "second", "ink,5\n")
    restore["execution.state-recovery.ignore-unclaimed-state"] = "true"
    shop.run([COUNTS, KNOWN], lambda: shop.counts() == {"ink": 3, "pen": 1, "ink!": 1}, drain=False, **restore)


def test_the_state_of_a_query_as_tables(shop: Shop) -> None:
    savepoint = Savepoint.load(first_run(shop))
    states = {(state.uid.rpartition("-")[0], state.name): state for state in savepoint.states() if state.rows > 1}
    places = {place: state.rows for place, state in states.items()}
    assert places == {("sql-aggregate", "groups"): 2, ("sql-join", "left"): 3}

    def rows(operator: str, name: str) -> list[Any]:
        return sorted(savepoint.items(states[operator, name].uid, name))

    assert rows("sql-aggregate", "groups") == [("ink", (2,)), ("pen", (1,))], "how many rows"
    # The key, the row's other columns; how often it is there, how many it has met.
    assert rows("sql-join", "left") == [(("ink", 1), (1, 0)), (("ink", 3), (1, 0)), (("pen", 2), (1, 0))]
    groups = savepoint.read_arrow(states["sql-aggregate", "groups"].uid, "groups", stored=True)
    assert sorted(groups.column("key").to_pylist()) == ["ink", "pen"], "keys can be read by anybody"


def test_two_streams_may_share_a_part_of_a_query() -> None:
    def build(env: StreamExecutionEnvironment) -> tuple[DataStream, DataStream]:
        tables = StreamTableEnvironment.create(env)
        tables.create_temporary_view("words", env.from_collection(["ink", "ink"], Types.STRING()))
        groups = "SELECT f0, COUNT(*) AS n FROM words GROUP BY f0"
        above = tables.sql_query(f"SELECT n FROM ({groups}) WHERE n > 1")
        return tables.to_changelog_stream(tables.sql_query(groups)), tables.to_changelog_stream(above)

    counts, above = run_pipeline(build)
    assert [tuple(row) for row in counts] == [("ink", 1), ("ink", 1), ("ink", 2)]
    assert [tuple(row) for row in above] == [(2,)]
