"""One query on Spark, in the SparkSession that all tests share: what the memory engine shows holds where batches cross
processes."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from firesteel.common import Configuration
from firesteel.table import EnvironmentSettings, TableEnvironment


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
