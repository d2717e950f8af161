"""A savepoint takes along what sources keep in files, while their owners go on writing them."""

from __future__ import annotations

from pathlib import Path

import pytest

from firesteel.engine.savepoints.places import Place
from firesteel.engine.savepoints.taking import copy_sources


def write(path: Path, content: str = "") -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content)


def copied(sources: Path, target: Path) -> list[str]:
    copy_sources(str(sources), Place.of(str(target)))
    root = target / "sources"
    return sorted(str(path.relative_to(root)) for path in root.rglob("*") if path.is_file())


def test_what_is_published_after_the_log_was_copied_stays_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The query of the copy computes the batch again, from other rows: with the old one's files there it would throw
    them away as published before."""
    source = tmp_path / "sources" / "0"
    for number in range(2):
        write(source / "spark-query" / "offsets" / str(number))
        write(source / "spark-query" / "commits" / str(number))
        write(source / "batches" / f"{number:020d}" / "manifest.json")
    plain = Place.write

    def go_on(self: Place, content: bytes) -> None:
        """Spark logs the next batch and publishes it as soon as its log is being copied."""
        plain(self, content)
        if "offsets" in self.address:
            write(source / "spark-query" / "offsets" / "2")
            write(source / "batches" / f"{2:020d}" / "manifest.json")

    monkeypatch.setattr(Place, "write", go_on)
    found = copied(tmp_path / "sources", tmp_path / "savepoint")
    assert "0/spark-query/offsets/1" in found
    assert "0/spark-query/offsets/2" not in found
    assert [name for name in found if "batches" in name] == [
        f"0/batches/{number:020d}/manifest.json" for number in range(2)
    ]


def test_drafts_and_what_is_being_removed_stay_behind(tmp_path: Path) -> None:
    source = tmp_path / "sources" / "0"
    write(source / "spark-query" / "offsets" / "7")
    write(source / "spark-query" / "offsets" / ".8.tmp")
    write(source / "batches" / f"{6:020d}.gone" / "part-0.parquet")
    write(source / "batches" / f"{7:020d}" / "manifest.json")
    write(source / "drafts" / "8" / "part-0.parquet")
    write(tmp_path / "sources" / "feedback.json")
    assert copied(tmp_path / "sources", tmp_path / "savepoint") == [
        f"0/batches/{7:020d}/manifest.json",
        "0/spark-query/offsets/7",
    ]


def test_the_log_of_another_source_is_copied_as_it_is(tmp_path: Path) -> None:
    """Only a source that Spark computes for has batches that its query's log must know."""
    write(tmp_path / "sources" / "0" / "log", "a\nb\n")
    write(tmp_path / "sources" / "1" / "batches" / "9" / "part", "c\n")
    assert copied(tmp_path / "sources", tmp_path / "savepoint") == ["0/log", "1/batches/9/part"]
    assert (tmp_path / "savepoint" / "sources" / "0" / "log").read_text() == "a\nb\n"


def test_a_job_without_such_sources_has_nothing_to_copy(tmp_path: Path) -> None:
    write(tmp_path / "sources" / "feedback.json")
    target = Place.of(str(tmp_path / "savepoint"))
    assert not copy_sources(str(tmp_path / "sources"), target)
    assert not (tmp_path / "savepoint").exists()
    write(tmp_path / "sources" / "0" / "log")
    assert copy_sources(str(tmp_path / "sources"), target)
