"""A Spark standalone cluster on loopback: a master, two workers of one core each, the same programs."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sparkkit import run_script, write_script

from chaos.cluster import standalone_cluster


@pytest.fixture(scope="module")
def master(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a cluster that is ready, and that is gone afterwards."""
    with standalone_cluster(tmp_path_factory.mktemp("cluster"), "tests") as address:
        yield address


PROGRAM = """
    import json
    import sys
    import time
    from dataclasses import dataclass
    from pathlib import Path

    from firesteel.common import Configuration, WatermarkStrategy
    from firesteel.datastream import MapFunction, StreamExecutionEnvironment
    from firesteel.datastream.connectors.datagen import DataGeneratorSource

    folder = Path(sys.argv[2])

    @dataclass(frozen=True)
    class Found:
        key: int
        executor: str
        python: str

    def look(n):
        # An executor runs in a folder named by its number, and so do its Python workers.
        here = Path.cwd()
        executor = here.name if here.parent.name.startswith("app-") else "none"
        # The second executor may register long after the first one has begun. An executor has one core, so the other
        # subtask waits for it. The limit only ends what hangs.
        (folder / f"seen-{executor}").touch()
        end = time.monotonic() + 300
        while len(list(folder.glob("seen-*"))) < 2 and time.monotonic() < end:
            time.sleep(0.05)
        # It lies in a folder that only the driver looks in.
        from shipped_to_executors import NAME
        assert NAME == "shipped"
        return Found(n % 4, executor, sys.executable)

    class Life(MapFunction):
        def __init__(self, name):
            self.name = name

        def open(self, runtime_context):
            self.place = f"{self.name}-{runtime_context.get_index_of_this_subtask()}"
            (folder / f"open-{self.place}").touch()

        def map(self, value):
            return value

        def close(self):
            (folder / f"close-{self.place}").touch()

    def numbers(env, **options):
        source = DataGeneratorSource(lambda n: n, **options)
        return env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers")

    if __name__ == "__main__":
        light = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1"
        settings = Configuration.from_dict(
            {"firesteel.batch.max-records": "10", "spark.executor.extraJavaOptions": light}
        )
        env = StreamExecutionEnvironment.get_execution_environment(settings)
        env.set_parallelism(2)
        env.add_python_file(sys.argv[1])
        found = numbers(env, count=80).map(look)
        counted = found.key_by(lambda f: f.key).map(lambda f: (f.key, f.executor, f.python))
        with counted.execute_and_collect() as records:
            print(json.dumps(list(records)))

        # Another job, which is cancelled.
        env = StreamExecutionEnvironment.get_execution_environment()
        env.set_parallelism(2)
        life = numbers(env, records_per_second=200).map(Life("map")).key_by(lambda n: n % 7).map(Life("keyed"))
        life.filter(lambda n: False).print()
        client = env.execute_async("cancelled")
        while len(list(folder.glob("open-*"))) < 4:
            time.sleep(0.1)
        client.cancel().result()
"""


@pytest.fixture(scope="module")
def ran(master: str, tmp_path_factory: pytest.TempPathFactory) -> tuple[list[Any], Path]:
    """What the first job has found, and the folder in which functions of the second one have left their names."""
    folder = tmp_path_factory.mktemp("program")
    (folder / "files").mkdir()
    (folder / "life").mkdir()
    shipped = write_script(folder / "files", "NAME = 'shipped'", "shipped_to_executors.py")
    program = write_script(folder, PROGRAM)
    done = run_script(program, str(shipped), str(folder / "life"), FIRESTEEL_MASTER=master)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout), folder / "life"


def test_both_executors_work_with_the_master_as_the_only_change(ran: tuple[list[Any], Path]) -> None:
    records, _ = ran
    assert sorted(key for key, _, _ in records) == sorted(n % 4 for n in range(80))
    assert {executor for _, executor, _ in records} == {"0", "1"}
    assert {os.path.realpath(python) for _, _, python in records} == {os.path.realpath(sys.executable)}


def test_cancel_closes_the_functions_in_all_executors(ran: tuple[list[Any], Path]) -> None:
    _, life = ran
    places = [f"{name}-{n}" for name in ("keyed", "map") for n in (0, 1)]
    files = sorted(file.name for file in life.iterdir() if not file.name.startswith("seen-"))
    assert files == sorted(f"{event}-{place}" for event in ("close", "open") for place in places)
