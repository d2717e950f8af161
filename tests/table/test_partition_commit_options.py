"""Tables of files that mark their partitions: options, times of partitions, whole jobs through crashes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from conftest import environment

from firesteel.errors import InputError, JobExecutionError
from firesteel.table import EnvironmentSettings, TableEnvironment
from firesteel.table.physical.external.partition_commits import PartitionTimes
from firesteel.table.sql import SqlError
from firesteel.testing import CommitCrashes, CrashPoint

CLICKS = """
    CREATE TABLE clicks (
        n BIGINT, at AS TIMESTAMPADD(SECOND, CAST(n AS INT), TIMESTAMP '2024-01-01 23:59:30'), WATERMARK FOR at AS at
    ) WITH ('connector' = 'datagen', 'fields.n.kind' = 'sequence', 'fields.n.start' = '0', 'fields.n.end' = '199')
"""
PARTITION_TIME = {
    "sink.partition-commit.trigger": "partition-time",
    "sink.partition-commit.delay": "1 min",
    "sink.partition-commit.policy.kind": "success-file",
    "partition.time-extractor.timestamp-pattern": "$dt $hm:00",
}


def table(env: TableEnvironment, folder: Path, form: str = "csv", name: str = "minutes", **options: str) -> None:
    every = {"connector": "filesystem", "path": str(folder), "format": form, **options}
    written = ", ".join(f"'{key}' = '{value}'" for key, value in every.items())
    env.execute_sql(f"CREATE TABLE {name} (n BIGINT, dt STRING, hm STRING) PARTITIONED BY (dt, hm) WITH ({written})")


INSERT = "INSERT INTO minutes SELECT n, DATE_FORMAT(at, 'yyyy-MM-dd'), DATE_FORMAT(at, 'HH:mm') FROM clicks"


def marked(folder: Path, name: str = "_SUCCESS") -> list[str]:
    return sorted(str(path.parent.relative_to(folder)) for path in folder.rglob(name))


def numbers(folder: Path) -> list[int]:
    parts = [path for path in folder.rglob("*") if path.is_file() and path.name[0] not in "._"]
    return sorted(int(line) for path in parts for line in path.read_text().splitlines())


MINUTES = [
    "dt=2024-01-01/hm=23%3A59",
    "dt=2024-01-02/hm=00%3A00",
    "dt=2024-01-02/hm=00%3A01",
    "dt=2024-01-02/hm=00%3A02",
]


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_the_end_of_the_input_marks_every_partition(form: str, tmp_path: Path) -> None:
    env = environment(**{"parallelism.default": "2"})
    env.execute_sql(CLICKS)
    table(env, tmp_path, form, **PARTITION_TIME | {"sink.partition-commit.success-file.name": "_DONE"})
    env.execute_sql(INSERT).wait()
    assert marked(tmp_path, "_DONE") == MINUTES
    found = env.execute_sql("SELECT COUNT(*), COUNT(DISTINCT n) FROM minutes").collect()
    assert [tuple(row) for row in found][-1] == (200, 200)
    assert [path for path in tmp_path.rglob(".*") if path.is_file()] == []


def test_batch_mode_marks_every_partition(tmp_path: Path) -> None:
    env = TableEnvironment.create(EnvironmentSettings.in_batch_mode())
    env.get_config().set("firesteel.master", "memory")
    env.execute_sql(CLICKS)
    table(env, tmp_path, **PARTITION_TIME)
    env.execute_sql(INSERT).wait()
    assert marked(tmp_path) == MINUTES
    assert numbers(tmp_path) == list(range(200))


def test_a_partition_is_marked_while_the_job_runs(tmp_path: Path) -> None:
    """The job fails for good while the last partition is open."""
    env = environment(**{"firesteel.batch.max-records": "20", "restart-strategy.type": "none"})
    env.execute_sql(CLICKS)
    table(env, tmp_path, **PARTITION_TIME)
    failing = INSERT.replace("SELECT n", "SELECT n + n / (1 - n / 190) * 0")
    with pytest.raises(JobExecutionError):
        env.execute_sql(failing).wait()
    # The batch before ended with the watermark 00:02:29, which is a minute behind the time of the third partition.
    assert marked(tmp_path) == MINUTES[:3]
    kept = list(tmp_path.rglob(".*.partitions"))
    assert len(kept) == 1, "what is to be marked yet waits for the job that goes on"


@pytest.mark.parametrize("point", list(CrashPoint))
def test_partitions_are_marked_once_all_their_rows_are_there_through_crashes(point: CrashPoint, tmp_path: Path) -> None:
    with CommitCrashes({point: ["pass", "pass", "pass", "error"]}) as crashes:
        env = environment(
            **{
                "parallelism.default": "2",
                "firesteel.batch.max-records": "20",
                "restart-strategy.type": "fixed-delay",
                "restart-strategy.fixed-delay.attempts": "3",
                "restart-strategy.fixed-delay.delay": "0 ms",
            },
            **crashes.config,
        )
        env.execute_sql(CLICKS)
        statements = env.create_statement_set()
        for name in ("minutes", "copies"):
            table(env, tmp_path / name, name=name, **PARTITION_TIME)
            statements.add_insert_sql(INSERT.replace("minutes", name))
        statements.execute().wait()
        assert crashes.reached(point) > 3
    for name in ("minutes", "copies"):
        assert marked(tmp_path / name) == MINUTES
        assert numbers(tmp_path / name) == list(range(200))


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"sink.partition-commit.policy.kind": "succes-file"}, "success-file"),
        ({"sink.partition-commit.policy.kind": "metastore,success-file"}, "tables of Hive"),
        ({"sink.partition-commit.policy.kind": "custom"}, "a class of Java"),
        ({"sink.partition-commit.trigger": "partition-tim"}, "Did you mean partition-time"),
        ({"sink.partition-commit.delay": "soon"}, "a duration such as"),
        ({"sink.partition-commit.watermark-time-zone": "Europe/Rom"}, "a time zone such as"),
        (PARTITION_TIME | {"sink.partition-commit.success-file.name": "a/b"}, "the name of a file"),
        ({"partition.time-extractor.kind": "custom"}, "timestamp-pattern"),
        ({"partition.time-extractor.timestamp-pattern": "$day"}, r"a text with \$dt or \$hm"),
        ({"partition.time-extractor.timestamp-formatter": "yyyy-bb"}, "letter 'b'"),
        ({"sink.partition-commit.policy.kin": "success-file"}, "Did you mean sink.partition-commit.policy.kind"),
    ],
)
def test_wrong_options_are_told(options: dict[str, str], told: str, env: TableEnvironment, tmp_path: Path) -> None:
    env.execute_sql(CLICKS)
    table(env, tmp_path, **options)
    with pytest.raises(SqlError, match=told):
        env.execute_sql(INSERT)


def test_a_partition_without_a_time_is_told_with_its_table(env: TableEnvironment, tmp_path: Path) -> None:
    table(env, tmp_path, **PARTITION_TIME | {"partition.time-extractor.timestamp-pattern": "$dt at $hm"})
    with pytest.raises(JobExecutionError, match=r"(?s)minutes.*2024-01-01 at 10:00") as caught:
        env.execute_sql("INSERT INTO minutes VALUES (1, '2024-01-01', '10:00')").wait()
    assert "yyyy-MM-dd HH:mm:ss" in str(caught.value)


DAY = 86_400_000


@pytest.mark.parametrize(
    ("names", "pattern", "formatter", "zone", "folder", "time"),
    [
        (("dt",), None, None, "UTC", "dt=1970-01-02", DAY),
        (("dt",), None, None, "UTC", "dt=1970-1-2", DAY),
        (("dt",), None, None, "UTC", "dt=1970-01-01 24%3A00%3A00", DAY),
        (("dt",), None, None, "UTC", "dt=1969-13-02", DAY),
        (("dt", "h"), "$dt $h:00:00", None, "UTC", "dt=1970-01-02/h=3", DAY + 3 * 3_600_000),
        (("d", "dt"), "$dt", None, "UTC", "d=9/dt=1970-01-02", DAY),
        (("y", "m"), "$y-$m-01", None, "UTC", "y=1970/m=2", 31 * DAY),
        (("dt",), None, "yyyyMMdd", "UTC", "dt=19700102", DAY),
        (("dt", "h"), "$dt$h", "yyyyMMddHH", "UTC", "dt=19700102/h=03", DAY + 3 * 3_600_000),
        (("dt",), None, None, "Asia/Tokyo", "dt=1970-01-02", DAY - 9 * 3_600_000),
        # The clock goes from 2:00 to 3:00.
        (("dt",), None, None, "Europe/Berlin", "dt=2024-03-31 02%3A30%3A00", 1_711_848_600_000),
    ],
)
def test_times_of_partitions(
    names: tuple[str, ...], pattern: str | None, formatter: str | None, zone: str, folder: str, time: int
) -> None:
    assert PartitionTimes("t", names, pattern, formatter, zone)(folder) == time


@pytest.mark.parametrize("folder", ["dt=__DEFAULT_PARTITION__", "dt=1970-01", "dt=999999999-01-01"])
def test_folders_without_a_time(folder: str) -> None:
    times: Any = PartitionTimes("t", ("dt",))
    with pytest.raises(InputError, match="has no time"):
        times(folder)
