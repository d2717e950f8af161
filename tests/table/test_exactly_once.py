"""Every operator of SQL with state in one job: cut anywhere, by a failure or by a savepoint, at another parallelism and
with another backend, it comes to what it comes to undisturbed. On Spark: ``recovery/test_table_recovery``."""

from __future__ import annotations

from pathlib import Path

import pytest
from savepointkit import Halves
from sqlkit import FAILURES, RESTARTS, STEPS, Failing, everything, left, undisturbed

from firesteel.common import Row, RowKind, Types
from firesteel.datastream import DataStream, StreamExecutionEnvironment
from firesteel.table import ChangelogMode, Schema, StreamTableEnvironment
from firesteel.testing import run_pipeline


@pytest.mark.parametrize(
    ("cut", "before", "after", "backends", "mini_batch"),
    [
        (1, 2, 3, ("hashmap", "hashmap"), "false"),
        (2, 3, 1, ("rocksdb", "rocksdb"), "false"),
        (3, 1, 2, ("hashmap", "rocksdb"), "false"),
        (2, 3, 2, ("rocksdb", "hashmap"), "true"),
    ],
)
def test_a_savepoint_and_another_parallelism(
    tmp_path: Path, cut: int, before: int, after: int, backends: tuple[str, str], mini_batch: str
) -> None:
    halves = Halves(tmp_path)
    mini = {"table_exec_mini__batch_enabled": mini_batch}

    got = halves.save(everything, STEPS[:cut], before, state_backend_type=backends[0], **mini)
    got += halves.resume(everything, STEPS, after, state_backend_type=backends[1], **mini)

    assert left(got) == undisturbed()


@pytest.mark.parametrize("mini_batch", ["false", "true"])
def test_a_failure_inside_every_batch(tmp_path: Path, mini_batch: str) -> None:
    failing = Failing(tmp_path, FAILURES)

    got = Halves(tmp_path).whole(failing, STEPS, 2, **RESTARTS, table_exec_mini__batch_enabled=mini_batch)

    assert left(got) == undisturbed()
    assert failing.count() == len(STEPS)


def test_rows_stay_in_their_order() -> None:
    """Behind a stream of one subtask, in a program of four: dealt out, a row before the last one would be the last."""

    def build(env: StreamExecutionEnvironment) -> DataStream:
        tables = StreamTableEnvironment.create(env)
        kind = Types.ROW_NAMED(["k", "n"], [Types.INT()] * 2)
        rows = env.from_collection(range(201)).map(lambda n: Row(k=1, n=n), output_type=kind).set_parallelism(1)
        schema = Schema.new_builder().column("k", "INT NOT NULL").column("n", "INT").primary_key("k").build()
        tables.create_temporary_view("newest", tables.from_changelog_stream(rows, schema, ChangelogMode.upsert()))
        return tables.to_changelog_stream(tables.sql_query("SELECT k, n FROM newest WHERE n > 5"))

    found = run_pipeline(build, parallelism=4)
    assert [row.n for row in found if row.get_row_kind() is not RowKind.UPDATE_BEFORE] == list(range(6, 201))
