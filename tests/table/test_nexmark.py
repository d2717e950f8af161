"""Nexmark's queries on streams and in batch: the tables that PyFlink 2.3 gave (``tools/record_nexmark.py``)."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from conftest import environment
from recordedkit import NEXMARK_EVENTS, NEXMARK_STRETCH, final, summary
from test_joins_of_pyflink import run

from firesteel.table import EnvironmentSettings, TableEnvironment

sys.path.append(str(Path(__file__).parents[2] / "benchmarks" / "programs"))

from nexmark_files import declarations, write_files
from nexmark_queries import QUERIES

RECORDED: dict[str, Any] = json.loads((Path(__file__).parent / "nexmark_by_pyflink.json").read_text())
RUN = [name for name, kept in RECORDED.items() if "refused" not in kept]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("nexmark")
    write_files(made, NEXMARK_EVENTS, NEXMARK_STRETCH)
    return made


@pytest.fixture(scope="module")
def streams(folder: Path) -> TableEnvironment:
    return declared(environment(), folder)


@pytest.fixture(scope="module")
def batch(folder: Path) -> TableEnvironment:
    made = TableEnvironment.create(EnvironmentSettings.in_batch_mode())
    made.get_config().set("firesteel.master", "memory")
    return declared(made, folder)


def declared(env: TableEnvironment, folder: Path) -> TableEnvironment:
    for statement in declarations(folder):
        env.execute_sql(statement)
    return env


def test_all_queries_were_recorded() -> None:
    assert RECORDED.keys() == QUERIES.keys()


@pytest.mark.parametrize("name", RUN)
def test_streams_end_with_the_table_of_pyflink(name: str, streams: TableEnvironment) -> None:
    columns, rows = run(streams, QUERIES[name])
    assert {"columns": columns, **summary(rows)} == RECORDED[name]


# Which of two bids of the same moment is the last one, only a stream knows.
@pytest.mark.parametrize("name", [name for name in RUN if name != "q18"])
def test_batch_gives_the_same_table(name: str, batch: TableEnvironment) -> None:
    columns, rows = run(batch, QUERIES[name])
    assert all(kind == "+I" for kind, *_ in rows)
    assert {"columns": columns, **summary(rows)} == RECORDED[name]


def test_mini_batches_give_the_same_tables(folder: Path) -> None:
    env = declared(environment(**{"table.exec.mini-batch.enabled": "true"}), folder)
    for name in ("q4", "q15", "q17"):
        rows = run(env, QUERIES[name])[1]
        assert summary(rows)["rows" if "rows" in RECORDED[name] else "digest"] == RECORDED[name].get(
            "rows", RECORDED[name].get("digest")
        )
        assert len(rows) < 2000, "changes of a mini-batch are consolidated"
        assert final(rows)


def test_what_pyflink_refuses_is_refused(streams: TableEnvironment) -> None:
    refused = [name for name, kept in RECORDED.items() if "refused" in kept]
    assert refused == ["q6"]
    with pytest.raises(Exception, match="time attribute") as caught:
        run(streams, QUERIES["q6"])
    assert type(caught.value).__module__.startswith("firesteel.")
