"""A stage's task on Arrow batches does what PySpark's own way does: the same requests, the same rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from types import SimpleNamespace
from typing import Any

import pandas as pd
import pyarrow as pa
import pyspark.worker
import pytest
from pyspark import cloudpickle
from pyspark.serializers import CPickleSerializer
from pyspark.sql.streaming.stateful_processor import StatefulProcessor
from pyspark.sql.streaming.stateful_processor_util import TransformWithStateInPandasUdfUtils
from pyspark.sql.types import BinaryType, IntegerType, StructField, StructType
from pyspark.util import PythonEvalType
from pyspark.worker_message import UDFInfo
from statekit import StateServer

from firesteel.engine.spark.arrow_tasks import install
from firesteel.engine.spark.stage import StageProcessor

FRAME = StructType([StructField("r", IntegerType()), StructField("f", BinaryType())])
KEY = StructType([StructField("r", IntegerType())])
KIND = PythonEvalType.SQL_TRANSFORM_WITH_STATE_PANDAS_UDF
INPUT = [[(5, b"a"), (5, b"b")], [(5, b"c"), (9, b"d")], []]


class Echo(StageProcessor):
    """Puts what it gets into its state, and sends it to its neighbour."""

    def __init__(self, failing: bool = False) -> None:
        self.failing = failing

    def run(self, token: int, cells: Iterable[bytes]) -> Iterator[tuple[list[int], list[bytes]]]:
        for cell in cells:
            self._map.updateValue((cell,), (cell,))
            if self.failing:
                raise ValueError("no such cell")
            yield [token, token + 1], [cell, cell.upper()]

    def close(self) -> None:
        """The server sees when it is closed."""
        self._map.updateValue((b"end",), (b"end",))


class Stranger(StatefulProcessor):
    """Not of ours."""

    def init(self, handle: Any) -> None:
        """It has no state."""

    def handleInputRows(self, key: Any, rows: Iterator[pd.DataFrame], timerValues: Any) -> Iterator[pd.DataFrame]:
        yield from rows

    def close(self) -> None:
        """Nothing is open."""


def command(processor: Any) -> UDFInfo:
    """What Spark sends of a function. The numbers: four follow, one key, its column, the columns of a row."""
    function = TransformWithStateInPandasUdfUtils(processor, "None").transformWithStateUDF
    pickled = cloudpickle.dumps((function, FRAME))
    return UDFInfo(udfs=[memoryview(pickled)], args=[4, 1, 0, 0, 1], kwargs={}, result_id=1)


def confs(port: int, **changes: Any) -> tuple[Any, Any]:
    runner = {
        "udf_profiler": None,
        "arrow_max_records_per_batch": 64,
        "arrow_max_bytes_per_batch": 1 << 20,
        "timezone": "UTC",
        "prefer_int_ext_dtype": False,
        "safecheck": True,
        "assign_cols_by_name": True,
        "int_to_decimal_coercion_enabled": False,
        **changes,
    }
    return SimpleNamespace(**runner), SimpleNamespace(state_server_socket_port=port, grouping_key_schema=KEY)


def batches() -> Iterator[pa.RecordBatch]:
    for rows in INPUT:
        arrays = [pa.array([row[0] for row in rows], pa.int32()), pa.array([row[1] for row in rows], pa.binary())]
        yield pa.RecordBatch.from_arrays(arrays, ["r", "f"])


@pytest.fixture
def worker() -> Any:
    """PySpark's worker module, as a copy: other tests have the module itself."""
    return SimpleNamespace(**vars(pyspark.worker))


@pytest.fixture
def server() -> Iterator[StateServer]:
    server = StateServer()
    server.answering.set()
    yield server
    server.close()


def run(worker: Any, info: UDFInfo, server: StateServer, **changes: Any) -> list[pa.RecordBatch]:
    function, profiler, *_ = worker.read_udfs(CPickleSerializer(), [info], KIND, *confs(server.port, **changes))
    assert profiler is None
    return list(function(0, batches()))


def rows(results: list[pa.RecordBatch]) -> list[dict[str, Any]]:
    assert {str(result.schema) for result in results} == {str(results[0].schema)}
    return [row["_0"] for result in results for row in result.to_pylist()]


def test_it_asks_and_answers_as_pyspark_does(worker: Any, server: StateServer) -> None:
    theirs = StateServer()
    theirs.answering.set()
    expected = run(worker, command(Echo()), theirs)
    assert install(worker)
    found = run(worker, command(Echo()), server)
    assert rows(found) == rows(expected)
    assert str(found[0].schema) == str(expected[0].schema)
    assert server.requests == theirs.requests
    assert server.requests.count("setImplicitKey") == 2
    assert server.requests[-2:] == ["mapStateCall", "setHandleState"], "it is closed before the task is"
    assert server.states == theirs.states == ["INITIALIZED", "DATA_PROCESSED", "TIMER_PROCESSED", "CLOSED"]
    theirs.close()


def test_the_function_is_read_once_and_each_batch_has_its_connection(worker: Any, server: StateServer) -> None:
    read = []
    usual = worker.read_command
    worker.read_command = lambda *arguments: read.append(1) or usual(*arguments)
    assert install(worker)
    info, second = command(Echo()), StateServer()
    second.answering.set()
    assert rows(run(worker, info, server)) == rows(run(worker, info, second))
    assert server.requests == second.requests
    assert len(read) == 1
    second.close()


def test_another_function_is_read(worker: Any, server: StateServer) -> None:
    assert install(worker)
    run(worker, command(Echo()), server)
    second = StateServer()
    second.answering.set()
    with pytest.raises(ValueError, match="no such cell"):
        run(worker, command(Echo(failing=True)), second)
    second.close()


def test_a_failure_is_raised_before_the_server_hears_of_an_end(worker: Any, server: StateServer) -> None:
    assert install(worker)
    with pytest.raises(ValueError, match="no such cell"):
        run(worker, command(Echo(failing=True)), server)
    assert server.requests == ["getMapState", "setHandleState", "setImplicitKey", "mapStateCall"]


@pytest.mark.parametrize("why", ["another's function", "a profiler"])
def test_others_are_left_to_pyspark(why: str, worker: Any, server: StateServer) -> None:
    asked = []
    usual = worker.read_udfs
    worker.read_udfs = lambda *arguments: asked.append(why) or usual(*arguments)
    assert install(worker)
    processor = Stranger() if why == "another's function" else Echo()
    run(worker, command(processor), server, udf_profiler="perf" if why == "a profiler" else None)
    assert asked == [why]


def test_a_worker_that_looks_different_is_left_alone(worker: Any) -> None:
    del worker.read_command
    usual = worker.read_udfs
    assert not install(worker)
    assert worker.read_udfs is usual
    assert not install(SimpleNamespace())
