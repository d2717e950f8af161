"""What the engine relies on in Spark itself: where its hash puts a row, and its state store's protocol."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
from pyspark.sql import SparkSession
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from firesteel.runtime.partitions import murmur3_int, partition_tokens
from firesteel.runtime.state.spark_store import SparkStore


def test_each_subtask_has_a_spark_partition_of_its_own(spark: SparkSession) -> None:
    """For every parallelism from 1 to 32, asked of Spark's own hash in one job."""
    rows = [(p, subtask, token) for p in range(1, 33) for subtask, token in enumerate(partition_tokens(p))]
    frame = spark.createDataFrame(rows, "p int, subtask int, token int").coalesce(1)
    placed = frame.selectExpr("p", "subtask", "pmod(hash(token), p) as place", "hash(token) as hashed", "token")
    found = placed.collect()
    assert [(r.p, r.subtask) for r in found if r.place != r.subtask] == []
    assert [r.token for r in found if r.hashed != murmur3_int(r.token)] == []


def test_repartitioning_by_the_tokens_gives_one_subtask_a_partition(spark: SparkSession) -> None:
    for parallelism in (1, 2, 3, 5, 8, 32):
        tokens = partition_tokens(parallelism)
        frame = spark.createDataFrame([(token,) for token in tokens], "r int").coalesce(1)
        placed = frame.repartition(parallelism, "r").selectExpr("r", "spark_partition_id() as place").collect()
        assert {row.place: row.r for row in placed} == dict(enumerate(tokens))


def test_what_keeps_rocksdb_within_its_memory(spark: SparkSession) -> None:
    """The limit itself, indexes that fit into it, and (where it can be seen) few heaps for the JVM's many threads."""
    prefix = "spark.sql.streaming.stateStore.rocksdb."
    assert spark.conf.get(prefix + "boundedMemoryUsage") == "true"
    assert spark.conf.get(prefix + "maxMemoryUsageMB") == "512"
    assert spark.conf.get(prefix + "blockSizeKB") == "32"
    environment = Path(f"/proc/{spark.sparkContext._gateway.proc.pid}/environ")  # type: ignore[union-attr]
    if environment.exists():
        assert b"MALLOC_ARENA_MAX=2" in environment.read_bytes().split(b"\0")


CHANGES = [
    [(b"key-%d" % n, b"value-%d" % n) for n in range(200)],
    [(b"key-%d" % n, None) for n in range(0, 200, 3)] + [(b"key-%d" % n, b"new" * 1000) for n in range(1, 200, 3)],
    [
        (b"", b""),
        (b"\0\xff", b"\0" * 300_000),
        (b"key-0", b"back"),
        (b"key-0", b"again"),
        (b"no such", None),
        (b"every byte", bytes(range(256)) * 3),
    ],
]
PROBES = [b"key-%d" % n for n in range(210)] + [b"", b"\0\xff", b"no such", b"every byte"]


def both_ways() -> StatefulProcessor:
    """A processor that writes the same changes through pipelined and public calls, into two states, and reads each both
    ways. Made here, so that it travels by value: workers cannot import this module unless a job of ours told them."""

    def reading_in_between(store: SparkStore, changes: list[tuple[bytes, bytes | None]]) -> Iterator[Any]:
        """As tables do that look for the rest of what they change while others have begun to write."""
        for at, change in enumerate(changes):
            if at % 70 == 69:
                assert store.get_many([b"no such", b"nothing"]) == [None, None]
                assert store.get_many([b"nothing"]) == [None]
            yield change

    class Both(StatefulProcessor):
        def init(self, handle: StatefulProcessorHandle) -> None:
            self.states = [handle.getMapState(name, "k binary", "v binary") for name in ("pipelined", "public")]

        def handleInputRows(self, key: Any, rows: Iterator[pd.DataFrame], timerValues: Any) -> Iterator[pd.DataFrame]:
            for frame in rows:
                for number in frame["n"]:
                    written = [SparkStore(self.states[0], pipelined=True), SparkStore(self.states[1], pipelined=False)]
                    assert written[0]._client is not None, "PySpark's client is not the one that is known"
                    assert written[1]._client is None
                    for store in written:
                        store.write(reading_in_between(store, CHANGES[number]))
                    for state in self.states:
                        for pipelined in (True, False):
                            values = SparkStore(state, pipelined).get_many(PROBES)
                            yield pd.DataFrame({"text": [repr((number, values))]})

        def close(self) -> None:
            pass

    return Both()


def test_pipelined_and_public_calls_give_the_same(spark: SparkSession, tmp_path: Path) -> None:
    results: list[str] = []
    for number in range(len(CHANGES)):
        spark.createDataFrame([(0, number)], "r int, n int").coalesce(1).write.mode("append").json(f"{tmp_path}/in")
    spark.conf.set("spark.sql.shuffle.partitions", "1")
    stream = spark.readStream.schema("r int, n int").option("maxFilesPerTrigger", 1).json(f"{tmp_path}/in")
    query = (
        stream.groupBy("r")
        .transformWithStateInPandas(both_ways(), "text string", "Update", "none")
        .writeStream.foreachBatch(lambda frame, _: results.extend(row.text for row in frame.collect()))
        .option("checkpointLocation", f"{tmp_path}/checkpoint")
        .outputMode("update")
        .trigger(availableNow=True)
        .start()
    )
    try:
        assert query.awaitTermination(300)
    finally:
        query.stop()
    known: dict[bytes, bytes] = {}
    expected = []
    for number, changes in enumerate(CHANGES):
        for key, value in changes:
            if value is None:
                known.pop(key, None)
            else:
                known[key] = value
        expected += [repr((number, [known.get(probe) for probe in PROBES]))] * 4
    assert len(results) == len(expected)
    assert results == expected
