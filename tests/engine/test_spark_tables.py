"""One query on Spark, in the SparkSession that all tests share: what the memory engine shows holds where batches cross
processes."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from firesteel.common import Configuration
from firesteel.table import AggregateFunction, EnvironmentSettings, TableEnvironment
from firesteel.table.udf import udaf, udf, udtf


def test_groups_on_spark() -> None:
    config = Configuration.from_dict({"firesteel.master": "local", "parallelism.default": "2"})
    env = TableEnvironment.create(EnvironmentSettings.new_instance().with_configuration(config).build())
    rows = [(index % 7, f"name-{index % 3}", index / 2) for index in range(2000)]
    env.create_temporary_view("t", env.from_elements(rows, ["k", "s", "v"]))
    query = "SELECT k, COUNT(*) AS n, SUM(v) AS total, MAX(UPPER(s)) FROM t WHERE k <> 3 GROUP BY k"
    changes: dict[int, list[tuple[str, Any]]] = defaultdict(list)
    with env.execute_sql(query).collect() as found:
        for row in found:
            changes[row[0]].append((str(row.get_row_kind()), tuple(row)[1:]))
    assert sorted(changes) == [0, 1, 2, 4, 5, 6]
    for key, of_key in changes.items():
        own = [row for row in rows if row[0] == key]
        assert [kind for kind, _ in of_key] == ["+I"] + ["-U", "+U"] * (len(own) - 1)
        assert of_key[-1] == ("+U", (len(own), sum(row[2] for row in own), "NAME-2"))


def test_functions_reach_workers() -> None:
    """Of a user's functions, classes and what they are made of: all of it is defined here, and in no module of a
    worker's."""
    factor = 3

    class Largest(AggregateFunction[Any, Any]):
        def create_accumulator(self) -> Any:
            return [0]

        def accumulate(self, accumulator: Any, *args: Any) -> None:
            accumulator[0] = max(accumulator[0], args[0])

        def get_value(self, accumulator: Any) -> Any:
            return accumulator[0]

        def get_result_type(self) -> str:
            return "BIGINT"

        def get_accumulator_type(self) -> str:
            return "ARRAY<BIGINT>"

    config = Configuration.from_dict({"firesteel.master": "local", "parallelism.default": "2"})
    env = TableEnvironment.create(EnvironmentSettings.new_instance().with_configuration(config).build())
    env.create_temporary_view("t", env.from_elements([(n % 5, n) for n in range(1000)], ["k", "n"]))
    env.create_temporary_function("times", udf(lambda n: n * factor, result_type="BIGINT"))
    env.create_temporary_function("plus", udf(lambda n: n + factor, result_type="BIGINT", func_type="pandas"))
    env.create_temporary_function("mirrored", udtf(lambda n: [n, -n], result_types="BIGINT"))
    env.create_temporary_function("largest", udaf(Largest()))
    query = "SELECT k, largest(plus(times(x))) FROM t, LATERAL TABLE(mirrored(n)) AS b(x) GROUP BY k"
    last: dict[int, int] = {}
    with env.execute_sql(query).collect() as found:
        for row in found:
            if str(row.get_row_kind()) in ("+I", "+U"):
                last[row[0]] = row[1]
    assert last == {key: (995 + key) * factor + factor for key in range(5)}
