"""An object store as the place of sinks, sources and savepoints: nothing lost, doubled or half visible."""

from __future__ import annotations

import gzip
import json
import pickle
import zipfile
from pathlib import Path
from typing import Any

import pytest
from s3kit import SECRET, Bucket
from savepointkit import Halves
from sourcekit import read

from firesteel.common import Encoder, WatermarkStrategy
from firesteel.common.secret import secrets_left_out
from firesteel.connectors.files.committer import FileCommitter
from firesteel.connectors.files.writer import FileWriter
from firesteel.connectors.text import TextFileEnumerator, TextFileReader
from firesteel.datastream import MapFunction, RuntimeContext
from firesteel.datastream.connectors import FileSink
from firesteel.datastream.connectors.base import CommitterContext, SinkIdentity, WriterContext
from firesteel.datastream.connectors.file_system import BucketAssigner, OutputFileConfig
from firesteel.datastream.connectors.number_seq import NumberSequenceSource
from firesteel.errors import InputError, ProgramError
from firesteel.filesystems import StorageOptions
from firesteel.testing import CommitCrashes, CrashPoint, memory_environment

NONE = WatermarkStrategy.no_watermarks()
TEXT = Encoder.simple_string_encoder()
RESTART = {
    "restart-strategy.type": "fixed-delay",
    "restart-strategy.fixed-delay.attempts": "3",
    "restart-strategy.fixed-delay.delay": "0 ms",
    "firesteel.batch.max-records": "10",
}


class ByParity(BucketAssigner):
    def get_bucket_id(self, element: Any, context: Any) -> str:
        return f"parity={int(element) % 2}"


def sink(path: str) -> FileSink:
    builder = FileSink.for_row_format(path, TEXT).with_bucket_assigner(ByParity())
    return builder.with_output_file_config(OutputFileConfig("numbers", ".txt")).build()


def expected(total: int) -> list[str]:
    return sorted(map(str, range(total)))


@pytest.mark.parametrize("point", [None, *CrashPoint])
def test_every_record_once_whatever_fails(point: CrashPoint | None, bucket: Bucket) -> None:
    with CommitCrashes({point: ["pass", "error"]} if point else {}) as crashes:
        env = memory_environment(2, config={**RESTART, **crashes.config, **bucket.settings})
        numbers = env.from_source(NumberSequenceSource(0, 39), NONE, "numbers").map(str)
        for scheme in ("s3", "s3a"):
            numbers.sink_to(sink(bucket.uri(f"out/{scheme}", scheme))).uid(scheme)
        env.execute("numbers")
        assert point is None or crashes.reached(point) > 2
    for scheme in ("s3", "s3a"):
        assert sorted(bucket.lines(f"out/{scheme}/")) == expected(40)
    assert not [name for name in bucket.names() if "/." in name], "nothing is left hidden"


class Bench:
    """A writer and the committer by hand."""

    def __init__(self, bucket: Bucket) -> None:
        self.bucket, self.identity = bucket, SinkIdentity()
        self.settings = sink(bucket.uri("out"))._settings

    def writer(self) -> FileWriter:
        return FileWriter(self.settings, WriterContext(self.identity, clock=lambda: 0, storage=self.bucket.options))

    def committer(self) -> FileCommitter:
        return FileCommitter(self.settings.base, CommitterContext(self.identity, storage=self.bucket.options))

    @staticmethod
    def write(writer: FileWriter, *values: int) -> None:
        moment: Any = type("Moment", (), {"current_processing_time": lambda self: 0})()
        for value in values:
            writer.write(str(value), moment)

    def batch(self, writer: FileWriter, *values: int) -> list[Any]:
        self.write(writer, *values)
        writer.flush(False)
        return writer.prepare_commit()


def test_a_commit_that_is_repeated_changes_nothing(bucket: Bucket) -> None:
    bench = Bench(bucket)
    committables = bench.batch(bench.writer(), 0, 1)
    assert bucket.lines() == [], "prepared is not visible"
    bench.committer().commit(committables)
    names = bucket.names()
    assert sorted(bucket.lines()) == ["0", "1"]
    again = bench.committer()
    again.commit(committables)
    again.recover(committables)
    again.recover_and_commit(committables)
    assert sorted(bucket.lines()) == ["0", "1"]
    assert [name for name in bucket.names() if "numbers-" in name] == [name for name in names if "numbers-" in name]


def test_a_commit_that_ended_between_copy_and_delete(bucket: Bucket) -> None:
    bench = Bench(bucket)
    committables = bench.batch(bench.writer(), 0)
    files, layout = bucket.files, bench.committer()._layout
    (path,) = (one.path for one in committables)
    files.write(layout.final(path), files.read(layout.hidden(path)))
    again = bench.committer()
    again.recover(committables)
    assert bucket.lines() == ["0"]
    again.recover_and_commit(committables)
    again.recover([])
    assert bucket.names() == [f"out/{path}"]


def test_what_a_killed_writer_left(bucket: Bucket) -> None:
    bench = Bench(bucket)
    prepared, killed = bench.writer(), bench.writer()
    lost = bench.batch(prepared, 0, 1)
    bench.write(killed, 2, 3)
    assert bucket.lines() == [], "neither what is prepared nor half of an object can be seen"
    committer = bench.committer()
    # The driver has never heard of them: their batch comes again, and is written by others.
    committer.recover([])
    assert bucket.names() == []
    committer.commit(bench.batch(bench.writer(), 0, 1, 2, 3))
    assert sorted(bucket.lines()) == ["0", "1", "2", "3"]
    # The killed one was not dead, and closes its objects.
    killed.close()
    committer.recover([])
    assert sorted(bucket.lines()) == ["0", "1", "2", "3"]
    assert all("parity=" in name and not name.startswith("out/.") for name in bucket.names())
    with pytest.raises(FileNotFoundError, match=r"is gone, and .* is not there either"):
        committer.commit(lost)


def test_a_savepoint_under_either_name(bucket: Bucket, tmp_path: Any) -> None:
    def build(stream: Any) -> Any:
        return stream.key_by(lambda n: n % 2).reduce(lambda a, b: a + b).uid("sum")

    halves = Halves(tmp_path)
    halves.folder = bucket.uri("savepoints")  # type: ignore[assignment]
    settings = {key.replace(".", "_").replace("-", "__"): value for key, value in bucket.settings.items()}
    halves.save(build, [[1, 2]], **settings)
    assert halves.path.startswith(bucket.uri("savepoints/savepoint-"))
    halves.path = halves.path.replace("s3://", "s3a://")
    assert sorted(halves.resume(build, [[1, 2], [3, 4]], **settings)) == [4, 6]
    assert SECRET.encode() not in b"".join(bucket.files.read(bucket.uri(name)) for name in bucket.names())


@pytest.mark.parametrize("ending", ["", ".gz"])
def test_text_files_are_read_and_read_on(ending: str, bucket: Bucket, tmp_path: Path) -> None:
    def put(name: str, numbers: range) -> None:
        content = "".join(f"{n}\n" for n in numbers).encode()
        bucket.files.write(bucket.uri(name + ending), gzip.compress(content) if ending else content)

    def run(settings: dict[str, str], scheme: str) -> list[str]:
        env = memory_environment(2, config={"firesteel.batch.max-records": "10", **bucket.settings, **settings})
        lines = env.read_text_file(bucket.uri("in", scheme)).uid("lines")
        with lines.execute_and_collect() as found:
            return list(found)

    put("in/a", range(100))
    put("in/b/c", range(100, 200))
    put("in/.hidden", range(9))
    put("in/_tmp/d", range(9))
    assert sorted(run({}, "s3"), key=int) == [str(n) for n in range(200)]
    with pytest.raises(ProgramError, match="there is no file or folder 's3://"):
        memory_environment(config=bucket.settings).read_text_file(bucket.uri("nothing"))


def test_a_text_object_that_was_replaced_is_told(bucket: Bucket) -> None:
    path = bucket.uri("in/a")
    bucket.files.write(path, b"one\n" * 1000)
    enumerator, reader = TextFileEnumerator.of(path, bucket.options), TextFileReader(options=bucket.options)
    end = json.loads(json.dumps(enumerator.latest(enumerator.initial(), 10)))
    before = read(reader, enumerator.plan(enumerator.initial(), end, 2))
    assert set(before) == {"one"}
    bucket.files.write(path, b"two\n" * 1001)
    with pytest.raises(InputError, match="it was replaced by another one"):
        enumerator.latest(end, 10)
    # What was added to an object by writing it anew is read on.
    bucket.files.write(path, b"one\n" * 1000 + b"two\n" * 5)
    again = pickle.loads(pickle.dumps(TextFileEnumerator.of(path, bucket.options)))
    rest = again.latest(end, 10**6)
    assert before + read(reader, again.plan(end, rest, 2)) == ["one"] * 1000 + ["two"] * 5
    assert again.ended(rest)


def test_keys_are_not_shown_and_not_kept(bucket: Bucket) -> None:
    assert SECRET not in repr(bucket.options) + str(bucket.options) + repr(vars(bucket.options))
    with secrets_left_out():
        assert SECRET.encode() not in pickle.dumps(bucket.options)
    assert pickle.loads(pickle.dumps(bucket.options)) == bucket.options


def test_access_as_hadoops_client_has_it() -> None:
    def given(**settings: str) -> dict[str, Any]:
        keys = {key.replace("_", "."): value for key, value in settings.items()}
        return StorageOptions.from_hadoop(keys.get).for_arrow()

    assert given() == {}, "Arrow looks into the environment then"
    assert given(endpoint="https://store:9000/") == {"endpoint_override": "store:9000"}
    assert given(endpoint="store", connection_ssl_enabled="false") == {
        "endpoint_override": "store",
        "scheme": "http",
    }
    assert given(endpoint="http://store") == {"endpoint_override": "store", "scheme": "http"}
    secrets = {"access_key": "a", "secret_key": "b", "session_token": "c"}
    assert given(endpoint_region="eu-west-3", **secrets) == {"region": "eu-west-3", **secrets}


def test_a_cached_file_comes_from_there(bucket: Bucket) -> None:
    env = memory_environment(config=bucket.settings)
    bucket.files.write(bucket.uri("tables/a.csv"), b"one")
    bucket.files.write(bucket.uri("tables/deep/b.csv"), b"two")
    env.register_cached_file(bucket.uri("tables/a.csv"), "file")
    env.register_cached_file(bucket.uri("tables"), "folder")

    class Look(MapFunction):
        def open(self, runtime_context: RuntimeContext) -> None:
            cache = runtime_context.get_distributed_cache()
            places = Path(cache.get_file("file")), Path(cache.get_file("folder"), "deep", "b.csv")
            self.found = [place.read_text() for place in places]

        def map(self, value: Any) -> Any:
            return self.found

    with env.from_collection([1]).map(Look()).execute_and_collect() as records:
        assert list(records) == [["one", "two"]]
    env = memory_environment(config=bucket.settings)
    env.register_cached_file(bucket.uri("tables/none.csv"), "file")
    env.from_collection([1]).print()
    with pytest.raises(ProgramError, match=r"register_cached_file\(\): there is no 's3://.*none\.csv'"):
        env.execute()


def test_code_and_archives_come_from_there(bucket: Bucket, tmp_path: Path) -> None:
    """With a wheel for the requirements beside them: no index is asked."""
    with zipfile.ZipFile(tmp_path / "model.zip", "w") as archive:
        archive.writestr("weights.txt", "heavy")
    wheel = tmp_path / "stored_package-1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("stored_package.py", "NAME = 'package'\n")
        metadata = "stored_package-1.0.dist-info"
        archive.writestr(f"{metadata}/METADATA", "Metadata-Version: 2.1\nName: stored-package\nVersion: 1.0\n")
        archive.writestr(f"{metadata}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{metadata}/RECORD", "")
    for path, content in {
        "code/stored_module.py": b"NAME = 'module'\n",
        "code/model.zip": (tmp_path / "model.zip").read_bytes(),
        "code/requirements.txt": b"stored-package\n",
        f"wheels/{wheel.name}": wheel.read_bytes(),
    }.items():
        bucket.files.write(bucket.uri(path), content)
    env = memory_environment(config=bucket.settings)
    env.add_python_file(bucket.uri("code/stored_module.py"))
    env.add_python_archive(bucket.uri("code/model.zip", "s3a"), "model")
    env.set_python_requirements(bucket.uri("code/requirements.txt"), bucket.uri("wheels"))

    class Look(MapFunction):
        def open(self, runtime_context: RuntimeContext) -> None:
            import stored_module
            import stored_package

            weights = Path(runtime_context.get_distributed_cache().get_file("model"), "weights.txt")
            self.found = [stored_module.NAME, stored_package.NAME, weights.read_text()]

        def map(self, value: Any) -> Any:
            return self.found

    with env.from_collection([1]).map(Look()).execute_and_collect() as records:
        assert list(records) == [["module", "package", "heavy"]]


@pytest.mark.parametrize(
    ("add", "text"),
    [
        (lambda env, uri: env.add_python_file(uri("none.py")), r"add_python_file\(\): there is no 's3://.*none\.py'"),
        (lambda env, uri: env.add_python_archive(uri("none.zip")), r"add_python_archive\(\): there is no 's3://.*zip'"),
        (lambda env, uri: env.add_python_archive(uri("text")), r"s3://.*text is neither a zip nor a tar file"),
        (lambda env, uri: env.set_python_requirements(uri("no.txt")), r"set_python_requirements\(\): there is no 's3:"),
    ],
)
def test_what_cannot_be_fetched_is_named(bucket: Bucket, add: Any, text: str) -> None:
    bucket.files.write(bucket.uri("text"), b"no archive")
    env = memory_environment(config=bucket.settings)
    add(env, bucket.uri)
    env.from_collection([1]).print()
    with pytest.raises(ProgramError, match=text):
        env.execute()
