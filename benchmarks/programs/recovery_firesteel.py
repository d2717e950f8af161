"""What savepoints, restarts and checkpoints cost, with N keys of 100 characters each.

1. A job fills N keys and goes on with micro-batches of 1,000 records; its checkpoint is kept in a folder.
2. A savepoint of it while it runs: how long, how large. What a small batch writes, against the size of the state.
3. The job is cancelled and started again from the checkpoint: how long until a batch of it is done.
4. A job begins with the savepoint: how long until its first batch is done.
"""

import argparse
import shutil
import tempfile
import time
from pathlib import Path
from typing import Any

import measure
from filling import Numbers, Replace
from processes import Peaks

from firesteel.common import Configuration, JobClient, Types, WatermarkStrategy
from firesteel.datastream import StreamExecutionEnvironment

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--records", type=int, default=1_000_000, help="the keys")
parser.add_argument("--backend", choices=["hashmap", "rocksdb"], default="hashmap")
parser.add_argument("--batch", type=int, default=1_000, help="records of a small micro-batch")
options = parser.parse_args()

KEYS = options.records


def submit(folder: Path, **settings: str) -> JobClient:
    known = {"state.backend.type": options.backend, "firesteel.checkpoint.dir": str(folder), **settings}
    env = StreamExecutionEnvironment.get_execution_environment(Configuration.from_dict(known))
    env.set_parallelism(2)
    numbers = env.from_source(Numbers(KEYS, options.batch), WatermarkStrategy.no_watermarks(), "numbers").uid("numbers")
    pair = Types.TUPLE([Types.STRING(), Types.LONG()])
    users = numbers.map(lambda n: (f"user-{n * 2654435761 % KEYS}", n), pair).uid("users")
    values = users.key_by(lambda user: user[0], Types.STRING()).process(Replace(), Types.LONG()).uid("values")
    values.filter(lambda length: False).print()
    return env.execute_async(f"{KEYS} keys")


def wait_for(job: Any, batches: int) -> None:
    """Until so many batches are done."""
    ended = job.get_job_execution_result()
    while job.inbox.progress.batches < batches:
        if ended.done():
            ended.result()
            raise RuntimeError("the job ended")
        time.sleep(0.02)


def size_of(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def written_by_batches(folder: Path, batches: int, job: Any) -> float:
    """Bytes of state that a small batch leaves in the folder, on average."""
    before = {path: path.stat().st_size for path in folder.rglob("*") if path.is_file()}
    begun = job.inbox.progress.batches
    wait_for(job, begun + batches)
    state = folder / "query" / "state"
    new = [path for path in state.rglob("*.changelog") if path not in before]
    return sum(path.stat().st_size for path in new) / batches


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="firesteel-bench-") as place:
        folder, savepoints = Path(place) / "checkpoint", Path(place) / "savepoints"
        peaks = Peaks()
        peaks.start()
        begun = time.perf_counter()
        job: Any = submit(folder)
        while job.inbox.progress.records < KEYS:
            wait_for(job, job.inbox.progress.batches + 1)
        filled = time.perf_counter() - begun
        wait_for(job, job.inbox.progress.batches + 20)
        incremental = written_by_batches(folder, 20, job)
        begun = time.perf_counter()
        path = Path(job.trigger_savepoint(str(savepoints)).result())
        taken = time.perf_counter() - begun
        measure.progress(f"{KEYS:,} keys: filled in {filled:.0f} s, savepoint in {taken:.1f} s")
        job.cancel().result()

        begun = time.perf_counter()
        job = submit(folder)
        wait_for(job, 1)
        recovered = time.perf_counter() - begun
        job.cancel().result()
        measure.progress(f"recovered in {recovered:.1f} s")
        shutil.rmtree(folder)

        begun = time.perf_counter()
        job = submit(Path(place) / "second", **{"execution.state-recovery.path": str(path)})
        wait_for(job, 1)
        restored = time.perf_counter() - begun
        memory = peaks.stop()
        job.cancel().result()
        measure.progress(f"restored in {restored:.1f} s")
        state = KEYS * 110
        measure.report(
            {
                "keys": KEYS,
                "fill_seconds": filled,
                "savepoint_seconds": taken,
                "savepoint_mib": size_of(path) / 2**20,
                "recovery_seconds": recovered,
                "restore_seconds": restored,
                "small_batch_kib": incremental / 1024,
                "small_batch_part_of_state": incremental / state,
                "memory": memory,
            }
        )


main()
