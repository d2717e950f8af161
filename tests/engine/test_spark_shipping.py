"""Python files and requirements on their way to the workers, and jobs of one session that bring different ones."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from shippingkit import bring, brought, requirements_in
from sparkkit import spark_env


def test_two_jobs_with_different_files_of_one_name_side_by_side_and_one_after_the_other(tmp_path: Path) -> None:
    requirements = requirements_in(tmp_path)
    small = {"firesteel.batch.max-records": 5}
    readers: list[Iterator[Any]] = []
    for sides in ("triangle", "square"):
        readers.append(bring(spark_env(2, small), tmp_path / sides, requirements, sides).execute_and_collect())
    # Both have begun, and go on batch by batch in the same processes.
    first = [next(reader) for reader in readers]
    found = [sorted([one, *reader]) for one, reader in zip(first, readers, strict=True)]
    assert found == [brought("triangle"), brought("square")]
    with bring(spark_env(2), tmp_path / "third", requirements, "circle").execute_and_collect() as records:
        assert sorted(records) == brought("circle")
