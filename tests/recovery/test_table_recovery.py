"""State of operators on tables on Spark: through a failure, a savepoint and a change of parallelism."""

from pathlib import Path

from savepointkit import Halves
from sqlkit import FAILURES, RESTARTS, STEPS, Failing, left, undisturbed


def test_every_operator_survives_failures_and_a_change_of_parallelism(tmp_path: Path) -> None:
    """One job with all operators of SQL that have state. A batch of each half fails in its middle, and each half has
    another backend; the first one has so little memory that groups and joins are in pages. In memory, with more cuts:
    ``table/test_exactly_once`` and ``table/test_large_state``."""
    halves, failing = Halves(tmp_path, "local"), Failing(tmp_path, (FAILURES[1], FAILURES[2]))
    in_pages = {"state_backend_type": "rocksdb", "state_backend_rocksdb_memory_fixed__per__slot": "1 kb"}

    got = halves.save(failing, STEPS[:2], 1, **in_pages, **RESTARTS)
    got += halves.resume(failing, STEPS, 2, state_backend_type="hashmap", **RESTARTS)

    assert left(got) == undisturbed()
    assert failing.count() == 2
