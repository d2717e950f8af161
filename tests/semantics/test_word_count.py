"""The word count, as a stream of updates and as final counts."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from kit import BATCH, STREAMING

from firesteel.common import Types
from firesteel.datastream import DataStream, RuntimeExecutionMode, StreamExecutionEnvironment

LINES = ["hello world", "hello flink", "hello java", "to be or not to be"]
WORDS = Counter(word for line in LINES for word in line.split())
PAIR = Types.TUPLE([Types.STRING(), Types.INT()])


def word_count(env: StreamExecutionEnvironment) -> DataStream:
    return (
        env.from_collection(LINES)
        .flat_map(lambda line: line.split())
        .map(lambda word: (word, 1), output_type=PAIR)
        .key_by(lambda pair: pair[0])
        .reduce(lambda a, b: (a[0], a[1] + b[1]))
    )


@pytest.mark.both_engines
def test_streaming_gives_every_update(run: Any, parallelism: int) -> None:
    updates = run(word_count, parallelism, mode=STREAMING)
    for word, count in WORDS.items():
        assert [n for w, n in updates if w == word] == list(range(1, count + 1))
    assert len(updates) == WORDS.total()


@pytest.mark.both_engines
@pytest.mark.spark_sample(parallelism=3)
def test_batch_gives_final_counts_only(run: Any, parallelism: int) -> None:
    counts = run(word_count, parallelism, mode=BATCH)
    assert sorted(counts) == sorted(WORDS.items())


def test_automatic_over_a_bounded_source_is_batch(run: Any) -> None:
    counts = run(word_count, mode=RuntimeExecutionMode.AUTOMATIC)
    assert sorted(counts) == sorted(WORDS.items())


def test_streaming_is_the_default(run: Any) -> None:
    assert len(run(word_count)) == WORDS.total()


@pytest.mark.parametrize("size", [1, 2, 3, 100])
def test_the_size_of_a_batch_changes_nothing(run: Any, parallelism: int, size: int) -> None:
    updates = run(word_count, parallelism, {"firesteel.batch.max-records": str(size)})
    assert Counter(updates) == Counter((w, n) for w, total in WORDS.items() for n in range(1, total + 1))


def test_print_shows_the_subtask(make_env: Any, capsys: pytest.CaptureFixture[str]) -> None:
    env = make_env(2)
    word_count(env).print()
    env.execute()
    lines = capsys.readouterr().out.splitlines()
    assert {line[:3] for line in lines} == {"1> ", "2> "}
    assert Counter(line[3:] for line in lines)["(to,2)"] == 1


def test_print_has_no_prefix_at_parallelism_one(make_env: Any, capsys: pytest.CaptureFixture[str]) -> None:
    env = make_env()
    env.from_collection(["a"]).print()
    env.from_collection(["b"]).print("mine")
    env.execute()
    assert sorted(capsys.readouterr().out.splitlines()) == ["a", "mine> b"]


def test_batch_mode_refuses_a_source_without_end(make_env: Any) -> None:
    from kit import slow_numbers

    from firesteel.common import WatermarkStrategy
    from firesteel.errors import ProgramError

    env = make_env(mode=BATCH)
    env.from_source(slow_numbers(), WatermarkStrategy.no_watermarks(), "numbers").print()
    with pytest.raises(ProgramError, match=r"BATCH mode needs sources that end, but 'Source: numbers'"):
        env.execute()
