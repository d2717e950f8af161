"""A Spark standalone cluster on loopback: a master, two workers of one core each, the same programs."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from sparkkit import run_script, write_script

from chaos.cluster import standalone_cluster


@pytest.fixture(scope="module")
def master(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a cluster that is ready, and that is gone afterwards."""
    with standalone_cluster(tmp_path_factory.mktemp("cluster"), "tests") as address:
        yield address


WHERE = """
    import json
    import sys
    import time
    from dataclasses import dataclass
    from pathlib import Path

    from firesteel.common import Configuration, WatermarkStrategy
    from firesteel.datastream import StreamExecutionEnvironment
    from firesteel.datastream.connectors.datagen import DataGeneratorSource

    @dataclass(frozen=True)
    class Found:
        key: int
        executor: str
        python: str

    def look(n):
        # An executor runs in a folder named by its number, and so do its Python workers.
        folder = Path.cwd()
        executor = folder.name if folder.parent.name.startswith("app-") else "none"
        time.sleep(0.05)
        # It lies in a folder that only the driver looks in.
        from shipped_to_executors import NAME
        assert NAME == "shipped"
        return Found(n % 4, executor, sys.executable)

    if __name__ == "__main__":
        settings = Configuration.from_dict({"firesteel.batch.max-records": "10"})
        env = StreamExecutionEnvironment.get_execution_environment(settings)
        env.set_parallelism(2)
        env.add_python_file(sys.argv[1])
        source = DataGeneratorSource(lambda n: n, count=80)
        found = env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers").map(look)
        counted = found.key_by(lambda f: f.key).map(lambda f: (f.key, f.executor, f.python))
        with counted.execute_and_collect() as records:
            print(json.dumps(list(records)))
"""


def test_both_executors_work_with_the_master_as_the_only_change(master: str, tmp_path: Path) -> None:
    """Several batches, because the second executor may register after the first one has begun."""
    (tmp_path / "files").mkdir()
    shipped = write_script(tmp_path / "files", "NAME = 'shipped'", "shipped_to_executors.py")
    done = run_script(write_script(tmp_path, WHERE), str(shipped), FIRESTEEL_MASTER=master)
    assert (done.returncode, done.stderr) == (0, "")
    records = json.loads(done.stdout)
    assert sorted(key for key, _, _ in records) == sorted(n % 4 for n in range(80))
    assert {executor for _, executor, _ in records} == {"0", "1"}
    assert {os.path.realpath(python) for _, _, python in records} == {os.path.realpath(sys.executable)}


CANCELLED = """
    import sys
    import time
    from pathlib import Path

    from firesteel.common import WatermarkStrategy
    from firesteel.datastream import MapFunction, StreamExecutionEnvironment
    from firesteel.datastream.connectors.datagen import DataGeneratorSource

    folder = Path(sys.argv[1])

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

    if __name__ == "__main__":
        env = StreamExecutionEnvironment.get_execution_environment()
        env.set_parallelism(2)
        source = DataGeneratorSource(lambda n: n, records_per_second=200)
        numbers = env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers")
        numbers.map(Life("map")).key_by(lambda n: n % 7).map(Life("keyed")).print()
        client = env.execute_async("cancelled")
        while len(list(folder.glob("open-*"))) < 4:
            time.sleep(0.1)
        client.cancel().result()
"""


def test_cancel_closes_the_functions_in_all_executors(master: str, tmp_path: Path) -> None:
    (tmp_path / "life").mkdir()
    done = run_script(write_script(tmp_path, CANCELLED), str(tmp_path / "life"), FIRESTEEL_MASTER=master)
    assert done.returncode == 0, done.stderr
    places = [f"{name}-{n}" for name in ("keyed", "map") for n in (0, 1)]
    files = sorted(file.name for file in (tmp_path / "life").iterdir())
    assert files == sorted(f"{event}-{place}" for event in ("close", "open") for place in places)
