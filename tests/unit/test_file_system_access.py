"""What is said of paths that cannot be opened, before a job runs or before a client of Arrow's does harm."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from pyarrow import fs

from firesteel.common import Encoder
from firesteel.connectors.text import TextFileEnumerator
from firesteel.datastream.connectors import FileSink
from firesteel.datastream.connectors.file_system import FileSource, StreamFormat
from firesteel.errors import ConfigurationError, FailureKind, ProgramError
from firesteel.filesystems import credentials, file_system_of

TEXT = Encoder.simple_string_encoder()
LINES = StreamFormat.text_line_format()
# As Arrow 26 says it.
GOOGLE = (
    "google::cloud::Status(UNAVAILABLE: Retry policy exhausted, with a last message of Could not create a OAuth2 "
    "access token to authenticate the request."
)
AZURE = (
    "Unknown error: Check for Hierarchical Namespace support on 'https://account.blob.core.windows.net/orders' failed: "
    "N5Azure4Core11Credentials23AuthenticationExceptionE: Failed to get token from DefaultAzureCredential."
)


@pytest.mark.parametrize("path", ["oss://bucket/orders", "ftp://ada:hunter2@host/orders", "viewfs://cluster/orders"])
@pytest.mark.parametrize(
    ("build", "what"),
    [
        (lambda path: FileSink.for_row_format(path, TEXT).build(), "The path of a file sink"),
        (lambda path: FileSource.for_record_stream_format(LINES, path).build(), "A path of a file source"),
        (TextFileEnumerator.of, "read_text_file(): the path"),
    ],
)
def test_schemes_that_workers_cannot_open_are_refused_when_a_program_is_built(
    build: Callable[[str], object], what: str, path: str
) -> None:
    with pytest.raises(ProgramError) as refused:
        build(path)
    scheme = path.partition(":")[0]
    assert str(refused.value) == (
        f"Cannot open {path.replace('hunter2', '******')}: {what} has the scheme '{scheme}'. Known are the schemes "
        "file, s3, gs, gcs, abfs, abfss, hdfs; hdfs needs pip install 'firesteel[hdfs]', or Hadoop's native library "
        "and a CLASSPATH. Other file systems can be mounted as a folder."
    )


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> Iterator[SimpleNamespace]:
    """A store of Arrow's that answers what the test says."""
    found = SimpleNamespace(type_name="store", uris=[], error=None)

    def answer(path: str) -> None:
        if found.error is not None:
            raise found.error

    def from_uri(uri: str) -> tuple[Any, str]:
        found.uris.append(uri)
        return SimpleNamespace(type_name="store", get_file_info=answer), uri.partition("://")[2].partition("?")[0]

    for name in credentials._VARIABLES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(fs, "FileSystem", SimpleNamespace(from_uri=from_uri))
    credentials._check.cache_clear()
    yield found
    credentials._check.cache_clear()


@pytest.mark.parametrize(
    ("path", "shown", "error", "remedy"),
    [
        ("gs://bucket/orders", "gs://bucket", GOOGLE, "Set GOOGLE_APPLICATION_CREDENTIALS to the JSON file"),
        (
            "abfss://orders:key@account/x",
            "abfss://orders:******@account",
            AZURE,
            "Set AZURE_TENANT_ID",
        ),
    ],
)
def test_without_credentials_a_store_is_not_opened(
    path: str, shown: str, error: str, remedy: str, store: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.error = OSError(error)
    with pytest.raises(ConfigurationError) as refused:
        file_system_of(path)
    assert str(refused.value).startswith(
        f"Cannot open {shown}: there are no credentials, or they are not accepted. {remedy}"
    )
    assert refused.value.kind is FailureKind.PERMANENT
    # Only the question was asked, and not for long.
    (uri,) = store.uris
    assert uri.endswith("/credentials?retry_limit_seconds=2" if path.startswith("gs:") else "/credentials")
    # Some are set: whoever gives tokens for them may be out of reach for a while.
    monkeypatch.setenv(credentials._VARIABLES[0], "key.json")
    with pytest.raises(ConfigurationError) as passing:
        file_system_of(path)
    assert passing.value.kind is FailureKind.PASSING
    # Given some, it works.
    store.error = None
    file_system_of(path)
    assert store.uris[-1] == path


def test_a_store_is_asked_once_for_each_bucket(store: SimpleNamespace) -> None:
    for path in ("gs://one/a", "gs://one/b", "gs://two/a"):
        file_system_of(path)
    assert [uri for uri in store.uris if "credentials" in uri] == [
        "gs://one/credentials?retry_limit_seconds=2",
        "gs://two/credentials?retry_limit_seconds=2",
    ]


def test_what_else_fails_is_left_to_those_who_use_the_store(store: SimpleNamespace) -> None:
    store.error = OSError("Connection reset by peer")
    file_system_of("gs://bucket/orders")
    assert store.uris[-1] == "gs://bucket/orders"
