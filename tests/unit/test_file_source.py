"""Files as a source: which ones, in which pieces, from which place on."""

from __future__ import annotations

import bz2
import gzip
import json
import os
import pickle
from pathlib import Path
from typing import Any

import pytest
from filesourcekit import LINES, Numbers, Pages, Words, all_of, nothing_is_small, source  # noqa: F401 - fixtures
from sourcekit import read, read_all

from firesteel.common.time import Duration
from firesteel.connectors.files import enumerator as enumerator_module
from firesteel.connectors.files.enumerator import FileEnumerator
from firesteel.connectors.files.known_files import MonitoredFiles
from firesteel.datastream.connectors.file_system import (
    FileSource,
    StreamFormat,
)
from firesteel.errors import CheckpointError, InputError, ProgramError


class TestWhichFiles:
    def test_folders_are_read_to_their_depth_without_what_is_hidden(self, tmp_path: Path) -> None:
        for name in ("b.txt", "a.txt", "deep/er/c.txt", ".hidden", "_temporary/d.txt", "deep/.fs/e.txt"):
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_text(f"{name}\n")
        (tmp_path / "empty").touch()
        assert all_of(LINES, tmp_path) == ["a.txt", "b.txt", "deep/er/c.txt"]

    def test_several_paths_each_file_once(self, tmp_path: Path) -> None:
        (tmp_path / "one").mkdir()
        (tmp_path / "one" / "a.txt").write_text("a\n")
        (tmp_path / "b.txt").write_text("b\n")
        found = all_of(LINES, tmp_path / "one", tmp_path / "b.txt", tmp_path / "one" / "a.txt")
        assert sorted(found) == ["a", "b"]

    def test_a_path_that_is_not_there(self, tmp_path: Path) -> None:
        with pytest.raises(ProgramError, match=r"there is no file or folder .*/nothing"):
            source(LINES, tmp_path / "nothing").create_enumerator()

    def test_an_empty_folder_ends_at_once(self, tmp_path: Path) -> None:
        assert all_of(LINES, tmp_path) == []

    def test_the_kinds_of_formats_are_told_apart(self, tmp_path: Path) -> None:
        with pytest.raises(ProgramError, match="belongs to for_bulk_file_format"):
            FileSource.for_record_stream_format(Pages(), tmp_path)  # type: ignore[arg-type]
        with pytest.raises(ProgramError, match="to for_record_stream_format"):
            FileSource.for_bulk_file_format(LINES, tmp_path)  # type: ignore[arg-type]
        with pytest.raises(ProgramError, match="at least one path"):
            FileSource.for_bulk_file_format(Pages())


@pytest.mark.parametrize("batch", [1, 3, 10**9])
@pytest.mark.parametrize("parallelism", [1, 3])
class TestEveryRecordOnce:
    def test_lines(self, tmp_path: Path, batch: int, parallelism: int) -> None:
        expected = [f"line {number} of many, with some more text to make it long enough" for number in range(40)]
        (tmp_path / "a").write_text("".join(f"{line}\n" for line in expected[:25]))
        (tmp_path / "b").write_text("".join(f"{line}\n" for line in expected[25:]))
        assert all_of(LINES, tmp_path, batch=batch, parallelism=parallelism) == expected

    @pytest.mark.parametrize("ending", [".gz", ".bz2"])
    def test_compressed_lines(self, tmp_path: Path, batch: int, parallelism: int, ending: str) -> None:
        expected = [f"line {number}" for number in range(40)]
        text = "".join(f"{line}\n" for line in expected).encode()
        (tmp_path / f"a{ending}").write_bytes((gzip if ending == ".gz" else bz2).compress(text))
        assert all_of(LINES, tmp_path, batch=batch, parallelism=parallelism) == expected

    def test_lines_behind_a_header(self, tmp_path: Path, batch: int, parallelism: int) -> None:
        for name, numbers in {"a": range(30), "b": range(30, 60)}.items():
            (tmp_path / name).write_text("number\n" + "".join(f"{number}\n" for number in numbers))
        assert all_of(Numbers(), tmp_path, batch=batch, parallelism=parallelism) == list(range(60))

    def test_a_stream_format(self, tmp_path: Path, batch: int, parallelism: int) -> None:
        expected = [f"{number:04}" for number in range(20)]
        (tmp_path / "a").write_text("".join(expected[:7]))
        (tmp_path / "b.gz").write_bytes(gzip.compress("".join(expected[7:]).encode()))
        assert all_of(Words(), tmp_path, batch=batch, parallelism=parallelism) == expected

    def test_a_bulk_format(self, tmp_path: Path, batch: int, parallelism: int) -> None:
        (tmp_path / "a").write_text("abcdefghij" * 7)
        (tmp_path / "b").write_text("0123456789" * 2)
        assert all_of(Pages(), tmp_path, batch=batch, parallelism=parallelism) == list(
            "abcdefghij" * 7 + "0123456789" * 2
        )


class TestWhoReads:
    def test_a_large_file_is_shared_out_where_its_format_allows_it(self, tmp_path: Path) -> None:
        (tmp_path / "a").write_text("abcdefghij" * 8)
        shares = [len(share) for share in _shares(source(Pages(), tmp_path))]
        assert shares == [1, 1, 1, 1]
        assert [len(share) for share in _shares(source(Pages(), tmp_path, whole=True))] == [1, 0, 0, 0]
        assert [len(share) for share in _shares(source(Words(), tmp_path))] == [1, 0, 0, 0]

    def test_small_files_are_not_opened_to_plan_a_batch(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(enumerator_module, "SMALL_FILE", 100)
        monkeypatch.setattr(Pages, "blocks", lambda self, file: pytest.fail("it was opened"))
        (tmp_path / "a").write_text("abcdefghij")
        assert [len(share) for share in _shares(source(Pages(), tmp_path))] == [1, 0, 0, 0]


def _shares(made: FileSource) -> list[Any]:
    planner = made.create_enumerator()
    return planner.plan(None, planner.latest(None, 10**9), 4)


class TestPositions:
    def test_a_batch_follows_from_its_positions_alone(self, tmp_path: Path) -> None:
        for name in "abc":
            (tmp_path / name).write_text(f"{name}\n" * 10)
        made = source(LINES, tmp_path)
        planner = made.create_enumerator()
        first = planner.latest(None, 1)
        second = json.loads(json.dumps(planner.latest(first, 1)))
        expected = read(made.create_reader(), planner.plan(first, second, 3))
        # Another process, which knows nothing of the folder.
        other = FileEnumerator(MonitoredFiles((), None, 1.0, None), LINES)
        assert read(made.create_reader(), other.plan(first, second, 3)) == expected == ["b"] * 10

    def test_one_of_a_newer_version_is_refused(self, tmp_path: Path) -> None:
        (tmp_path / "a").write_text("a\n")
        planner = source(LINES, tmp_path).create_enumerator()
        newer = {**planner.latest(None, 10), "format": 99}
        for ask in (lambda: planner.latest(newer, 10), lambda: planner.plan(None, newer, 1)):
            with pytest.raises(CheckpointError, match="The position of a file source has format 99, of a newer"):
                ask()

    def test_they_do_not_grow_with_the_files_of_a_static_set(self, tmp_path: Path) -> None:
        for number in range(300):
            (tmp_path / f"{number:05}").write_text("x\n")
        planner = source(LINES, tmp_path).create_enumerator()
        position, sizes = None, []
        while not planner.ended(position):
            position = planner.latest(position, 10)
            sizes.append(len(json.dumps(position)))
        assert len(sizes) == 30
        assert max(sizes) - sizes[0] < 20

    def test_those_of_a_monitored_folder_take_16_bytes_a_file(self, tmp_path: Path) -> None:
        for number in range(300):
            (tmp_path / f"{number:05}").write_text("x\n")
        planner = source(LINES, tmp_path, monitor=Duration.of_hours(1)).create_enumerator()
        position, sizes = planner.latest(None, 1), []
        for _ in range(100):
            position = json.loads(json.dumps(planner.latest(position, 1)))
            sizes.append(len(json.dumps(position)))
        assert 15 < (sizes[-1] - sizes[0]) / 99 < 18

    def test_planning_costs_what_it_plans(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """No file that was read before is looked at again, and none that is not yet due."""
        for number in range(50):
            (tmp_path / f"{number:05}").write_text("abcdefghij" * 2)
        planner = source(Pages(), tmp_path).create_enumerator()
        opened: list[str] = []
        blocks = Pages.blocks
        monkeypatch.setattr(Pages, "blocks", lambda self, file: opened.append(file.path) or blocks(self, file))  # type: ignore[func-returns-value]
        position = None
        for number in range(10):
            position = planner.latest(position, 20)
            assert [os.path.basename(path) for path in opened] == [f"{number:05}"]
            opened.clear()

    def test_it_goes_on_inside_a_file_in_a_program_that_is_built_anew(self, tmp_path: Path) -> None:
        (tmp_path / "a").write_text("abcdefghij" * 5)
        (tmp_path / "b.gz").write_bytes(gzip.compress(b"0123456789" * 5))
        for form, plain in ((Words(), "a"), (Words(), "b.gz"), (LINES, "a"), (Pages(), "a")):
            made = source(form, tmp_path / plain)
            expected = read_all(made.create_enumerator(), made.create_reader())
            position, found = None, []
            while True:
                # A new one for each batch, as after a crash.
                again = pickle.loads(pickle.dumps(source(form, tmp_path / plain)))
                planner = again.create_enumerator()
                if planner.ended(position):
                    break
                end = json.loads(json.dumps(planner.latest(position, 2)))
                found += read(again.create_reader(), planner.plan(position, end, 2))
                position = end
            assert found == expected


class TestErrors:
    def test_a_line_that_is_no_record_is_named(self, tmp_path: Path) -> None:
        (tmp_path / "a").write_text("number\n" + "12\n" * 20 + "twelve\n12\n")
        with pytest.raises(InputError, match=r"/a, line 22: this is no number. The line is b'twelve\\n'"):
            all_of(Numbers(), tmp_path, batch=1)

    def test_text_of_another_character_set(self, tmp_path: Path) -> None:
        (tmp_path / "a").write_bytes(b"fine\n\xe9t\xe9\n")
        with pytest.raises(InputError, match=r"/a, line 2: byte 0xe9 .* StreamFormat.text_line_format\(..., errors="):
            all_of(LINES, tmp_path)
        assert all_of(StreamFormat.text_line_format("latin-1"), tmp_path) == ["fine", "été"]
        with pytest.raises(ProgramError, match=r"text_line_format.*no character set 'klingon'"):
            StreamFormat.text_line_format("klingon")

    def test_a_damaged_file(self, tmp_path: Path) -> None:
        (tmp_path / "a.gz").write_bytes(gzip.compress(b"abcd" * 1000)[:-20])
        with pytest.raises(InputError, match=r"The file .*/a.gz cannot be read as gzip"):
            all_of(Words(), tmp_path)
