"""Folders that a FileSource goes on looking at, and sets of files that are fixed."""

from __future__ import annotations

import json
import os
import pickle
import time
from pathlib import Path
from typing import Any

import pytest
from filesourcekit import LINES, Pages, Words, nothing_is_small, source  # noqa: F401 - fixtures
from sourcekit import read

from firesteel.common.time import Duration
from firesteel.connectors.files import known_files
from firesteel.datastream.connectors.file_system import (
    FileFormat,
    FileSource,
    StreamFormat,
)
from firesteel.errors import InputError, ProgramError


class TestStaticSet:
    def test_new_files_do_not_belong_to_it(self, tmp_path: Path) -> None:
        _old(tmp_path / "b", "b\n")
        position = source(LINES, tmp_path).create_enumerator().latest(None, 0)
        (tmp_path / "a").write_text("a\n")
        (tmp_path / "c").write_text("c\n")
        made = source(LINES, tmp_path)
        planner = made.create_enumerator()
        end = planner.latest(position, 10**6)
        assert read(made.create_reader(), planner.plan(position, end, 1)) == ["b"]
        assert planner.ended(end)

    @pytest.mark.parametrize("how", ["gone", "replaced", "another instead"])
    def test_a_file_that_was_not_begun_is_missed(self, tmp_path: Path, how: str) -> None:
        for name in "abc":
            _old(tmp_path / name, f"{name}\n")
        position = source(LINES, tmp_path).create_enumerator().latest(None, 1)
        if how == "gone":
            (tmp_path / "b").unlink()
        elif how == "another instead":
            (tmp_path / "b").rename(tmp_path / "b2")
        else:
            (tmp_path / "b").write_text("another\n")
        text = r"had 2 files left to read behind .*/a: .*/b " + ("was changed" if how == "replaced" else "is gone")
        with pytest.raises(InputError, match=text + r"\. Put them back"):
            source(LINES, tmp_path).create_enumerator().latest(position, 10)
        # Of a checkpoint without names.
        del position["known"]["next"]
        if how != "another instead":
            with pytest.raises(InputError, match=r"behind .*/a: 1 are gone or were changed\."):
                source(LINES, tmp_path).create_enumerator().latest(position, 10)

    def test_of_many_missing_ones_some_are_named(self, tmp_path: Path) -> None:
        for number in range(100):
            _old(tmp_path / f"{number:03}", "x\n")
        position = source(LINES, tmp_path).create_enumerator().latest(None, 1)
        for number in (3, 5, 7, 8, 90):
            (tmp_path / f"{number:03}").unlink()
        text = (
            "had 99 files left to read behind .*/000: .*/003 is gone, .*/005 is gone, .*/007 is gone, 2 more are gone"
        )
        with pytest.raises(InputError, match=text):
            source(LINES, tmp_path).create_enumerator().latest(position, 10)

    @pytest.mark.parametrize("form", [LINES, Words(), Pages()])
    def test_a_file_that_vanished_is_named(self, tmp_path: Path, form: FileFormat[Any]) -> None:
        (tmp_path / "a").write_text("abcdefghij" * 5)
        made = source(form, tmp_path)
        planner = made.create_enumerator()
        end = planner.latest(None, 10)
        (tmp_path / "a").unlink()
        with pytest.raises(InputError, match=r"The file .*/a is gone"):
            read(made.create_reader(), planner.plan(None, end, 1))
        if end["open"] is not None:
            with pytest.raises(InputError, match=r"The file .*/a is gone"):
                planner.latest(end, 10)

    @pytest.mark.parametrize("form", [LINES, Words(), Pages()])
    def test_a_file_that_was_replaced_is_named(self, tmp_path: Path, form: FileFormat[Any]) -> None:
        _old(tmp_path / "a", "abcdefghij" * 50)
        made = source(form, tmp_path)
        planner = made.create_enumerator()
        end = planner.latest(None, 3)
        assert end["open"] is not None
        (tmp_path / "a").write_text("ABCDEFGHIJ" * 50)
        with pytest.raises(InputError, match=r"The file .*/a was changed while a job reads it"):
            planner.latest(end, 3)
        with pytest.raises(InputError, match=r"The file .*/a was changed while a job reads it"):
            read(made.create_reader(), planner.plan(None, end, 1))

    def test_lines_may_be_added_to_a_file_that_is_read(self, tmp_path: Path) -> None:
        _old(tmp_path / "a", "one\n" * 100)
        made = source(LINES, tmp_path)
        planner = made.create_enumerator()
        first = planner.latest(None, 1)
        with (tmp_path / "a").open("a") as file:
            file.write("more\n")
        found = read(made.create_reader(), planner.plan(None, first, 1))
        while not planner.ended(first):
            second = planner.latest(first, 1)
            found += read(made.create_reader(), planner.plan(first, second, 1))
            first = second
        assert found == ["one"] * 100

    @pytest.mark.parametrize("form", [Words(), Pages()])
    def test_nothing_may_be_added_to_a_file_of_another_format(self, tmp_path: Path, form: FileFormat[Any]) -> None:
        _old(tmp_path / "a", "abcdefghij" * 50)
        planner = source(form, tmp_path).create_enumerator()
        first = planner.latest(None, 1)
        with (tmp_path / "a").open("a") as file:
            file.write("abcdefghij")
        with pytest.raises(InputError, match="it had 500 bytes and has 510 now"):
            planner.latest(first, 1)

    def test_a_file_that_was_put_back_is_the_same(self, tmp_path: Path) -> None:
        _old(tmp_path / "a", "abcdefghij" * 50)
        made = source(Pages(), tmp_path)
        planner = made.create_enumerator()
        first = planner.latest(None, 10)
        (tmp_path / "a").unlink()
        (tmp_path / "a").write_text("abcdefghij" * 50)
        second = planner.latest(first, 10)
        assert read(made.create_reader(), planner.plan(first, second, 1)) == list("abcdefghij")


class TestMonitoring:
    def test_new_files_are_read_once_the_oldest_first(self, tmp_path: Path) -> None:
        folder = _Folder(tmp_path)
        folder.add("b", age=20)
        folder.add("a", age=10)
        assert folder.batch() == ["b", "a"]
        assert folder.batch() == []
        folder.add("c", age=30)
        assert folder.batch() == ["c"]
        assert folder.batch(anew=True) == []
        folder.add("d", age=5)
        assert folder.batch(anew=True) == ["d"]

    def test_between_two_looks_at_the_folder_each_file_comes_once_as_well(self, tmp_path: Path) -> None:
        folder = _Folder(tmp_path, interval=Duration.of_hours(1))
        for name in "abc":
            folder.add(name, age=200 - ord(name))
        found = [folder.batch(records=1, look=False) for _ in range(4)]
        assert found == [["a"], ["b"], ["c"], []]
        folder.add("d")
        assert folder.batch(look=False) == []
        assert folder.batch() == ["d"]

    def test_it_never_ends_and_takes_a_folder_that_is_still_to_come(self, tmp_path: Path) -> None:
        folder = _Folder(tmp_path / "later")
        assert folder.batch() == []
        assert not folder.planner.ended(folder.position)
        folder.add("a")
        assert folder.batch() == ["a"]

    def test_files_of_a_batch_that_is_made_smaller_come_with_the_next_one(self, tmp_path: Path) -> None:
        folder = _Folder(tmp_path)
        for name in "abc":
            folder.add(name, age=100 - ord(name))
        folder.batch()
        for name in "def":
            folder.add(name, age=200 - ord(name))
        # The engine asks again for less when a batch would be too large.
        folder.planner.latest(folder.position, 10**6)
        assert folder.batch(records=1) == ["d"]
        assert folder.batch() == ["e", "f"]

    def test_a_file_that_grew_after_it_was_read_is_named(self, tmp_path: Path) -> None:
        folder = _Folder(tmp_path)
        folder.add("a")
        assert folder.batch() == ["a"]
        with (tmp_path / "a").open("a") as file:
            file.write("more\n")
        with pytest.raises(InputError, match=r"/a was changed .*it was read before and has another size now"):
            folder.batch(anew=True)

    def test_a_file_that_vanishes_before_it_was_read_is_left_out(
        self, tmp_path: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        folder = _Folder(tmp_path)
        folder.add("a", age=2)
        folder.add("b", age=1)
        assert folder.batch(records=1) == ["a"]
        (tmp_path / "b").unlink()
        assert folder.batch() == []
        assert "b was taken away before it was read" in caplog.text

    def test_with_a_retention_the_oldest_are_forgotten(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(known_files, "_CHUNK_ENTRIES", 4)
        folder = _Folder(tmp_path, retention=Duration.of_seconds(5))
        for number in range(10):
            folder.add(f"{number:02}", age=10 - number)
        assert len(folder.batch()) == 10
        assert folder.batch(anew=True) == []
        assert len(folder.position["known"]["seen"]) == 3
        folder.add("late", age=5)
        folder.add("too late", age=9)
        assert folder.batch(anew=True) == ["late"]
        # All of the first four are too old.
        assert len(folder.position["known"]["seen"]) == 2
        assert folder.batch(anew=True) == []
        folder.add("new", age=-4)
        assert folder.batch() == ["new"]
        assert len(folder.position["known"]["seen"]) == 1


class _Folder:
    """A monitored folder: a batch reads what is there."""

    def __init__(self, path: Path, retention: Duration | None = None, interval: Duration | None = None) -> None:
        self._path, self._retention, self._interval = path, retention, interval or Duration.of_millis(1)
        self._now = time.time()
        self.position: Any = None
        self._begin()

    def _begin(self) -> None:
        more = {} if self._retention is None else {"retention": self._retention}
        made = source(LINES, self._path, monitor=self._interval, **more)
        self.planner, self._reader = made.create_enumerator(), made.create_reader()

    def add(self, name: str, age: float = 0) -> None:
        self._path.mkdir(exist_ok=True)
        aside = self._path / f".{name}"
        aside.write_text(f"{name}\n")
        os.utime(aside, (self._now - age, self._now - age))
        aside.rename(self._path / name)

    def batch(self, records: int = 10**6, anew: bool = False, look: bool = True) -> list[str]:
        if anew:
            self._begin()
        if look:
            # As if its time had come, whatever the clock says.
            self.planner._files._asked = None  # type: ignore[attr-defined]
        end = json.loads(json.dumps(self.planner.latest(self.position, records)))
        found = read(self._reader, self.planner.plan(self.position, end, 1))
        self.position = end
        return found


def _old(path: Path, text: str) -> None:
    """A file that was there before whatever is written now."""
    path.write_text(text)
    os.utime(path, (1_700_000_000, 1_700_000_000))


def test_a_watched_folder_takes_files_whose_paths_match(tmp_path: Path) -> None:
    for name in ("a.csv", "b.txt"):
        (tmp_path / name).write_text(f"{name}\n")
    builder = FileSource.for_record_stream_format(StreamFormat.text_line_format(), tmp_path)
    watched = builder.monitor_continuously(Duration.of_millis(1)).match_paths(rf"{tmp_path}/.*\.csv").build()
    # It travels to the process that plans.
    planner = pickle.loads(pickle.dumps(watched.create_enumerator()))
    position = planner.latest(planner.initial(), 10**6)
    assert read(watched.create_reader(), planner.plan(planner.initial(), position, 1)) == ["a.csv"]
    with pytest.raises(ProgramError, match=r"match_paths\(\) takes a regular expression, got '\('"):
        builder.match_paths("(")


def test_a_watched_folder_that_was_stored_before_there_were_patterns_is_planned(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("a\n")
    watched = source(LINES, tmp_path, monitor=Duration.of_millis(1))
    planner: Any = watched.create_enumerator()
    state = planner._files.__getstate__()
    del state["_pattern"]
    stored = known_files.MonitoredFiles.__new__(known_files.MonitoredFiles)
    stored.__setstate__(state)
    planner._files = stored
    # A replay stores it anew.
    planner = pickle.loads(pickle.dumps(planner))
    position = planner.latest(planner.initial(), 10**6)
    assert read(watched.create_reader(), planner.plan(planner.initial(), position, 1)) == ["a"]
