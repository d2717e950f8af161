"""Sources: every record once, whatever the shares, the batches, the restarts."""

from __future__ import annotations

import itertools
import pickle
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sourcekit import read, read_all

from firesteel.connectors.blocks import blocks
from firesteel.connectors.collection import CollectionEnumerator, CollectionReader
from firesteel.connectors.sequence import GeneratorReader, IndexEnumerator, NumberReader
from firesteel.connectors.source import CHUNK_RECORDS, SplitRange
from firesteel.connectors.text import TextFileEnumerator, TextFileReader, TextFileSource
from firesteel.connectors.text_positions import FileState
from firesteel.connectors.text_reading import FileSplit
from firesteel.datastream.connectors.datagen import DataGeneratorSource
from firesteel.datastream.connectors.number_seq import NumberSequenceSource
from firesteel.errors import ProgramError


class TestBlocks:
    @given(st.integers(0, 1000), st.integers(0, 100), st.integers(1, 12))
    def test_contiguous_complete_and_of_nearly_equal_size(self, start: int, size: int, parts: int) -> None:
        found = blocks(start, start + size, parts)
        assert len(found) == parts
        numbers = [n for block in found if block is not None for n in range(*block)]
        assert numbers == list(range(start, start + size))
        sizes = [0 if block is None else block[1] - block[0] for block in found]
        assert max(sizes) - min(sizes) <= 1

    @pytest.mark.parametrize(("size", "parts"), [(1, 2), (1, 3), (2, 3), (3, 8)])
    def test_small_batches_go_to_all_by_turns(self, size: int, parts: int) -> None:
        seen = set()
        for start in range(0, size * parts, size):
            seen |= {n for n, block in enumerate(blocks(start, start + size, parts)) if block is not None}
        assert seen == set(range(parts))


class TestCollection:
    @settings(deadline=None)
    @given(st.lists(st.integers(), max_size=50), st.integers(1, 20), st.integers(1, 4))
    def test_every_element_once_and_in_order(self, values: list[int], batch: int, parallelism: int) -> None:
        assert read_all(CollectionEnumerator.of(values), CollectionReader(), batch, parallelism) == values

    def test_shares_across_the_borders_of_pieces(self) -> None:
        values = list(range(2 * CHUNK_RECORDS + 10))
        source = CollectionEnumerator.of(values)
        assert read_all(source, CollectionReader(), CHUNK_RECORDS - 7, 3) == values
        low, high = CHUNK_RECORDS - 2, CHUNK_RECORDS + 2
        assert read(CollectionReader(), source.plan(low, high, 1)) == values[low:high]

    def test_what_travels_to_tasks_has_no_data_but_reads_any_share(self) -> None:
        reader = CollectionReader()
        assert len(pickle.dumps(reader)) < 300
        assert read(reader, CollectionEnumerator.of(["x" * 1000]).plan(0, 1, 1)) == ["x" * 1000]

    def test_a_changed_list_changes_nothing(self) -> None:
        values = [[1]]
        source = CollectionEnumerator.of(values)
        values[0].append(2)
        values.append([3])
        assert read_all(source, CollectionReader()) == [[1]]


class TestSequence:
    @pytest.mark.parametrize(("start", "end"), [(1, 10), (-3, 3), (7, 7)])
    @pytest.mark.parametrize("batch", [1, 3, 100])
    def test_both_ends_included(self, start: int, end: int, batch: int) -> None:
        source = NumberSequenceSource(start, end)
        assert read_all(source.create_enumerator(), source.create_reader(), batch) == list(range(start, end + 1))

    def test_large_shares_come_in_chunks(self) -> None:
        sizes = [len(values) for values, _ in NumberReader(0).read(None, 0, 3 * CHUNK_RECORDS + 1)]
        assert sizes == [CHUNK_RECORDS] * 3 + [1]

    def test_an_empty_sequence_is_refused(self) -> None:
        with pytest.raises(ProgramError, match="needs start <= end, got 5 and 4"):
            NumberSequenceSource(5, 4)


class TestGenerator:
    def test_a_function_of_the_index(self) -> None:
        source = DataGeneratorSource(lambda index: index * index, 7)
        assert source.create_enumerator().bounded
        assert read_all(source.create_enumerator(), source.create_reader(), 3) == [0, 1, 4, 9, 16, 25, 36]

    def test_without_a_count_it_never_ends(self) -> None:
        source = IndexEnumerator(None)
        assert not source.bounded
        assert source.latest(10**12, 100) == 10**12 + 100
        assert not source.ended(10**12)

    def test_nothing_at_all(self) -> None:
        assert read_all(IndexEnumerator(0), GeneratorReader(str)) == []

    def test_what_is_refused(self) -> None:
        with pytest.raises(ProgramError, match="count must be 0 or more"):
            DataGeneratorSource(str, count=-1)
        with pytest.raises(ProgramError, match="records_per_second must be above 0, got 0"):
            DataGeneratorSource(str, records_per_second=0)
        with pytest.raises(ProgramError, match="Expected a MapFunction or a callable"):
            DataGeneratorSource("text")


def ranges(path: Path, *bounds: int) -> list[list[SplitRange[FileSplit]]]:
    """Shares of one file, with these bounds."""
    state = FileState(str(path), path.stat().st_size, path.stat().st_mtime_ns)
    return [[SplitRange(FileSplit(state, None), low, high)] for low, high in itertools.pairwise(bounds) if low < high]


class TestText:
    @settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
    @given(
        lines=st.lists(st.text(st.characters(exclude_characters="\r\n", exclude_categories=["Cs"]), max_size=8)),
        ends=st.data(),
        last=st.booleans(),
    )
    def test_any_cut_of_the_bytes_gives_every_line_once(
        self, tmp_path: Path, lines: list[str], ends: Any, last: bool
    ) -> None:
        """Line ends of both kinds, with and without one at the end of the file."""
        text = "".join(line + ends.draw(st.sampled_from(["\n", "\r\n"])) for line in lines)
        if not last and lines:
            text = text.removesuffix("\n").removesuffix("\r")
        expected = lines[:-1] if not last and lines and not lines[-1] else lines
        file = tmp_path / "text"
        content = text.encode()
        file.write_bytes(content)
        cuts = sorted(ends.draw(st.lists(st.integers(0, len(content)), max_size=4)))
        bounds = [0, *cuts, len(content)]
        assert read(TextFileReader(), ranges(file, *bounds)) == expected

    def test_every_single_cut(self, tmp_path: Path) -> None:
        content = "a\r\nbb\n\nçé\n\r\nlast".encode()
        file = tmp_path / "text"
        file.write_bytes(content)
        for cut in range(1, len(content)):
            assert read(TextFileReader(), ranges(file, 0, cut, len(content))) == ["a", "bb", "", "çé", "", "last"]

    @pytest.mark.parametrize("parallelism", [1, 3])
    def test_batches_smaller_than_a_line(self, tmp_path: Path, parallelism: int) -> None:
        lines = ["x" * 300, "y", "z" * 500]
        (tmp_path / "text").write_text("\n".join(lines))
        assert read_all(TextFileEnumerator.of(str(tmp_path / "text")), TextFileReader(), 1, parallelism) == lines

    def test_an_empty_file(self, tmp_path: Path) -> None:
        (tmp_path / "text").touch()
        source = TextFileEnumerator.of(str(tmp_path / "text"))
        assert source.ended(source.initial())
        assert read_all(source, TextFileReader()) == []

    def test_a_folder_is_read_file_by_file_without_hidden_ones(self, tmp_path: Path) -> None:
        (tmp_path / "b").write_text("b1\nb2")
        (tmp_path / "a").write_text("a1\n")
        (tmp_path / "empty").touch()
        (tmp_path / "_SUCCESS").write_text("no")
        (tmp_path / ".hidden").write_text("no")
        (tmp_path / "sub").mkdir()
        (tmp_path / "sub" / "c").write_text("c1")
        (tmp_path / "_tmp").mkdir()
        (tmp_path / "_tmp" / "d").write_text("no")
        for batch, parallelism in ((1, 1), (1000, 3)):
            source = TextFileEnumerator.of(f"file://{tmp_path}")
            assert read_all(source, TextFileReader(), batch, parallelism) == ["a1", "b1", "b2", "c1"]

    def test_a_single_carriage_return_belongs_to_the_line_end(self, tmp_path: Path) -> None:
        (tmp_path / "text").write_bytes(b"a\r\r\nb\rc\n")
        assert read_all(TextFileEnumerator.of(str(tmp_path / "text")), TextFileReader()) == ["a\r", "b\rc"]

    def test_other_character_sets(self, tmp_path: Path) -> None:
        (tmp_path / "text").write_bytes("é\nü".encode("latin-1"))
        assert read_all(TextFileEnumerator.of(str(tmp_path / "text")), TextFileReader("latin-1")) == ["é", "ü"]
        (tmp_path / "bom").write_bytes("é\nü".encode("utf-8-sig"))
        assert read_all(TextFileEnumerator.of(str(tmp_path / "bom")), TextFileReader("utf-8-sig")) == ["é", "ü"]

    def test_what_is_refused(self, tmp_path: Path) -> None:
        with pytest.raises(ProgramError, match=r"there is no file or folder '.*nothing'"):
            TextFileEnumerator.of(str(tmp_path / "nothing"))
        (tmp_path / "text").touch()
        with pytest.raises(ProgramError, match="Python knows no character set 'klingon'"):
            TextFileSource(str(tmp_path / "text"), "klingon").create_enumerator()
        for wide in ("UTF-16", "utf-16-be", "utf-32"):
            with pytest.raises(ProgramError, match=r"cannot be told apart by their bytes\. Convert the file"):
                TextFileSource(str(tmp_path / "text"), wide).create_enumerator()
