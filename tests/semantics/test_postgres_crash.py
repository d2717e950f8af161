"""PostgreSQL itself is killed while a job writes into it with two-phase commits."""

from __future__ import annotations

from collections import Counter

import postgreskit
import pytest
from kit import eventually
from postgres_server import PASSWORD, USER, PostgresServer

from firesteel.common import Types, WatermarkStrategy
from firesteel.datastream.connectors.datagen import DataGeneratorSource
from firesteel.datastream.connectors.jdbc import JdbcConnectionOptions, JdbcSink
from firesteel.testing import memory_environment

PAIR = Types.ROW_NAMED(["key", "n"], [Types.INT(), Types.LONG()])
TOTAL = 1500
FOR_EVER = {
    "firesteel.batch.max-records": "50",
    "restart-strategy.type": "fixed-delay",
    "restart-strategy.fixed-delay.attempts": "100000",
    "restart-strategy.fixed-delay.delay": "20 ms",
}


@pytest.mark.timeout(300)
def test_the_server_is_killed_and_every_row_is_there_once() -> None:
    if (missing := postgreskit.why_not()) is not None:
        pytest.skip(f"no PostgreSQL to test with: {missing}")
    with PostgresServer() as server:
        server.execute("CREATE TABLE results (key int, n bigint)")
        env = memory_environment(2, config=FOR_EVER)
        options = JdbcConnectionOptions.JdbcConnectionOptionsBuilder().with_url(server.url)
        options = options.with_user_name(USER).with_password(PASSWORD)
        source = DataGeneratorSource(lambda n: (n % 7, n), TOTAL, 500)
        numbers = env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers").key_by(lambda pair: pair[0])
        sink = JdbcSink.exactly_once_sink("INSERT INTO results VALUES (?, ?)", PAIR, options.build())
        numbers.map(lambda pair: pair, output_type=PAIR).sink_to(sink).uid("sink")
        job = env.execute_async("into PostgreSQL")

        def rows() -> int:
            ((count,),) = server.execute("SELECT count(*) FROM results")
            return int(count)

        for reached, seconds_down in ((100, 0.0), (400, 1.0), (700, 0.1)):
            assert eventually(lambda reached=reached: rows() >= reached, 60)  # type: ignore[misc]
            server.crash(seconds_down)
        job.get_job_execution_result().result()
        assert Counter(n for (n,) in server.execute("SELECT n FROM results")) == Counter(range(TOTAL))
        assert server.execute("SELECT gid FROM pg_prepared_xacts") == []
