"""Settings of tables over a stream program: those of the tables are for their statements, and win there."""

from __future__ import annotations

import pytest

from firesteel.common import Configuration
from firesteel.datastream import StreamExecutionEnvironment
from firesteel.errors import ConfigurationError
from firesteel.table import DataTypes, EnvironmentSettings, StreamTableEnvironment
from firesteel.table.udf import FunctionContext, ScalarFunction, udf

MEMORY = {"firesteel.master": "memory"}


class Told(ScalarFunction):
    """What a job tells its functions."""

    def open(self, function_context: FunctionContext) -> None:
        self.shop = function_context.get_job_parameter("shop", "none")
        self.subtasks = function_context.get_number_of_parallel_subtasks()

    def eval(self, n: int) -> str:
        return f"{self.shop} {self.subtasks}"


def program(**settings: str) -> StreamExecutionEnvironment:
    return StreamExecutionEnvironment.get_execution_environment(Configuration.from_dict({**MEMORY, **settings}))


def told(tables: StreamTableEnvironment) -> set[str]:
    """What functions behind a group are told, which have as many subtasks as the job."""
    tables.create_temporary_function("told", udf(Told(), result_type=DataTypes.STRING()))
    tables.execute_sql("""
        CREATE TABLE numbers (n BIGINT) WITH (
            'connector' = 'datagen', 'fields.n.kind' = 'sequence', 'fields.n.start' = '1', 'fields.n.end' = '9'
        )
    """)
    with tables.execute_sql("SELECT told(n) FROM (SELECT n FROM numbers GROUP BY n)").collect() as rows:
        return {row[0] for row in rows}


def test_settings_of_tables_reach_their_statements() -> None:
    env = program()
    env.set_parallelism(4)
    tables = StreamTableEnvironment.create(env)
    tables.get_config().set("pipeline.global-job-parameters", "shop:north").set("parallelism.default", "2")
    assert told(tables) == {"north 2"}


def test_the_program_keeps_its_own() -> None:
    env = program(**{"pipeline.global-job-parameters": "shop:south"})
    env.set_parallelism(3)
    tables = StreamTableEnvironment.create(env)
    tables.get_config().set("parallelism.default", "2").set("pipeline.max-parallelism", "64")
    assert told(tables) == {"south 2"}
    assert (env.get_parallelism(), env.get_max_parallelism()) == (3, -1)
    assert not env.get_configuration().contains_key("parallelism.default")


def test_what_the_program_sets_later_counts() -> None:
    env = program(**{"parallelism.default": "4"})
    tables = StreamTableEnvironment.create(env)
    env.set_parallelism(2)
    assert told(tables) == {"none 2"}


def test_settings_given_to_the_tables_win_over_those_of_the_program() -> None:
    settings = EnvironmentSettings.new_instance().with_configuration(
        Configuration.from_dict({"parallelism.default": "2"})
    )
    tables = StreamTableEnvironment.create(program(**{"parallelism.default": "4"}), settings.build())
    assert told(tables) == {"none 2"}


def test_a_setting_is_checked_before_a_statement_runs() -> None:
    tables = StreamTableEnvironment.create(program())
    tables.get_config().set("restart-strategy.type", "sometimes")
    with pytest.raises(ConfigurationError, match=r"restart-strategy\.type"):
        told(tables)


def test_set_and_reset() -> None:
    tables = StreamTableEnvironment.create(program(**{"parallelism.default": "3"}))
    tables.execute_sql("SET 'parallelism.default' = '2'")
    assert told(tables) == {"none 2"}
    tables.execute_sql("RESET 'parallelism.default'")
    with tables.execute_sql("SELECT told(n) FROM (SELECT n FROM numbers GROUP BY n)").collect() as rows:
        assert {row[0] for row in rows} == {"none 3"}


def test_settings_tell_the_mode() -> None:
    for made, mode in (
        (EnvironmentSettings.in_batch_mode(), "BATCH"),
        (EnvironmentSettings.in_streaming_mode(), "STREAMING"),
    ):
        assert made.get_configuration().get_string("execution.runtime-mode", "") == mode
