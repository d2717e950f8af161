"""Files through Hadoop's client, with a client that is made up."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest
from py4j.protocol import Py4JJavaError

from firesteel.engine.spark.hadoop import HadoopStorage


def failure(kind: str) -> Py4JJavaError:
    java = SimpleNamespace(
        _target_id="o1", getClass=lambda: SimpleNamespace(getName=lambda: kind), getMessage=lambda: "bad", toString=str
    )
    java._gateway_client = None
    return Py4JJavaError("bad", java)


def storage(answers: list[Any], monkeypatch: pytest.MonkeyPatch) -> HadoopStorage:
    """Each opening of a file gives the next answer."""

    def opened(place: Any) -> Any:
        answer = answers.pop(0)
        if isinstance(answer, Py4JJavaError):
            raise answer
        return SimpleNamespace(content=answer, close=lambda: None)

    io = SimpleNamespace(IOUtils=SimpleNamespace(toByteArray=lambda stream: stream.content))
    jvm = SimpleNamespace(org=SimpleNamespace(apache=SimpleNamespace(commons=SimpleNamespace(io=io))))
    context = SimpleNamespace(_jvm=jvm, _jsc=SimpleNamespace(hadoopConfiguration=lambda: None))
    made = HadoopStorage(cast("Any", SimpleNamespace(sparkContext=context)))
    monkeypatch.setattr(made, "_of", lambda path: (SimpleNamespace(open=opened), path))
    monkeypatch.setattr("tenacity.nap.time", SimpleNamespace(sleep=lambda seconds: None))
    return made


CHECKSUM = "org.apache.hadoop.fs.ChecksumException"


def test_a_file_that_is_being_renamed_is_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = [failure(CHECKSUM), failure(CHECKSUM), failure(CHECKSUM), b"content"]
    assert storage(answers, monkeypatch).read("/file") == b"content"


@pytest.mark.parametrize(
    ("kind", "times", "error"),
    [
        (CHECKSUM, 4, OSError),
        ("java.io.FileNotFoundException", 1, FileNotFoundError),
        ("java.io.IOException", 1, OSError),
    ],
)
def test_what_stays_wrong_is_an_error(
    kind: str, times: int, error: type[OSError], monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = [failure(kind) for _ in range(9)]
    with pytest.raises(error, match="/file: bad"):
        storage(answers, monkeypatch).read("/file")
    assert len(answers) == 9 - times
