"""Files as PyFlink wrote them (Avro, ORC, Parquet, JSON, Debezium): we read what it read of them, and write what it
wrote."""

from __future__ import annotations

import base64
import io
import json
import os
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.orc as orc
import pyarrow.parquet as pq
import pytest
from conftest import SETTINGS
from recordedkit import shown_value

from firesteel.common import Configuration
from firesteel.connectors.files.avro_codecs import decompressed
from firesteel.connectors.files.avro_files import avro_contents, codec_of
from firesteel.connectors.files.file_format import InputFile
from firesteel.errors import FiresteelError
from firesteel.table import EnvironmentSettings, TableEnvironment
from firesteel.table.sql import SqlValidationError

CASES: list[dict[str, Any]] = json.loads((Path(__file__).parent / "formats_by_pyflink.json").read_text())["cases"]
KEPT = os.environ.get("FIRESTEEL_KEEP_FILES")
"""Where our files are kept, for ``tools/record_formats.py --read-ours``."""
OURS = {
    "avro, timestamp(6)": "Flink refuses it, we write timestamp-micros",
    "avro, timestamp_ltz(3)": "Flink refuses it, we write timestamp-millis",
    "avro, timestamp_ltz(6)": "Flink refuses it, we write timestamp-micros",
    "parquet, timestamp(9)": "a literal has microseconds here",
    "orc, timestamp(9)": "a literal has microseconds here",
    "orc, timestamp_ltz(3)": "Flink refuses it, we write a moment",
    "parquet, LZ4": "Arrow writes the newer LZ4_RAW",
}
"""What is written otherwise, with the reason."""


def declared(env: TableEnvironment, case: dict[str, Any], folder: Path) -> None:
    given = "".join(f", '{key}' = '{value}'" for key, value in case["options"].items())
    # The zone of the process is one thing, that of the session another.
    env.get_config().set_local_timezone("UTC")
    env.execute_sql(
        f"CREATE TABLE f ({case['columns']}) WITH ('connector' = 'filesystem', 'path' = '{folder}', "
        f"'format' = '{case['format']}'{given})"
    )


def read(env: TableEnvironment, case: dict[str, Any]) -> list[Any]:
    with env.execute_sql(case["read"]).collect() as rows:
        kinds = case["format"] == "debezium-json"
        return [([str(row.get_row_kind())] if kinds else []) + shown_value(list(row)) for row in rows]


@pytest.fixture
def zone(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The time zone of the process while a case runs."""
    monkeypatch.setenv("TZ", request.param)
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def each(wanted: str, unwanted: str = "") -> pytest.MarkDecorator:
    """All cases that have something and lack something else, in their time zones."""
    cases = [case for case in CASES if wanted in case and unwanted not in case]
    ids = [case["name"].replace(" ", "-").replace(",", "") for case in cases]
    return pytest.mark.parametrize(
        ("zone", "case"), [(c.get("zone", "UTC"), c) for c in cases], ids=ids, indirect=["zone"]
    )


@pytest.mark.usefixtures("zone")
@each("rows")
def test_files_of_pyflink_are_read(case: dict[str, Any], env: TableEnvironment, tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(base64.b64decode(case["file"]))
    declared(env, case, tmp_path)
    assert read(env, case) == case["rows"]


@each("refused", "query")
@pytest.mark.usefixtures("zone")
def test_what_pyflink_does_not_read_is_refused(case: dict[str, Any], env: TableEnvironment, tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(base64.b64decode(case["file"]))
    declared(env, case, tmp_path)
    with pytest.raises(FiresteelError, match="debezium-json cannot read it"):
        read(env, case)


@pytest.mark.usefixtures("zone")
@each("query")
def test_files_are_written_as_pyflink_writes_them(case: dict[str, Any], env: TableEnvironment, tmp_path: Path) -> None:
    if "multiset" in case["name"]:
        # What changes cannot be written to files.
        config = Configuration.from_dict(SETTINGS)
        builder = EnvironmentSettings.new_instance().with_configuration(config)
        env = TableEnvironment.create(builder.in_batch_mode().build())
    declared(env, case, tmp_path)
    if "file" not in case and case["name"] not in OURS:
        with pytest.raises(SqlValidationError, match="Avro has"):
            env.execute_sql(f"INSERT INTO f {case['query']}")
        return
    env.execute_sql(f"INSERT INTO f {case['query']}").wait()
    (path,) = tmp_path.iterdir()
    if KEPT:
        Path(KEPT, case["name"]).mkdir(parents=True, exist_ok=True)
        shutil.copy(path, Path(KEPT, case["name"], "a"))
    if case["name"] not in OURS:
        ours, theirs = path.read_bytes(), base64.b64decode(case["file"])
        assert LOOKS[case["format"]](ours) == LOOKS[case["format"]](theirs)


def _avro(content: bytes) -> Any:
    """The schema, how blocks are compressed, and the bytes of all records."""
    opened = io.BytesIO(content)
    found = avro_contents(opened, InputFile("a", len(content), 0))
    parts = zip(found.places, found.places[1:], strict=False)
    codec = codec_of(found.header)
    blocks = [decompressed(found.content(content[begin:end]), codec) for begin, end in parts]
    return json.loads(found.header["meta"]["avro.schema"]), codec, b"".join(blocks)


def _parquet(content: bytes) -> Any:
    """How columns are stored and compressed, and their values."""
    file = pq.ParquetFile(pa.BufferReader(content))
    columns = [
        (
            column.physical_type,
            str(column.logical_type),
            column.length,
            column.max_definition_level,
            column.max_repetition_level,
            file.metadata.row_group(0).column(index).compression,
            # Flink's reader fails for decimals by a dictionary.
            column.physical_type == "FIXED_LEN_BYTE_ARRAY"
            and any("DICTIONARY" in each for each in file.metadata.row_group(0).column(index).encodings),
        )
        for index, column in enumerate(file.schema)
    ]
    return columns, [[repr(value) for value in column.to_pylist()] for column in file.read().columns]


def _orc(content: bytes) -> Any:
    """The types of columns, how they are compressed, and their values."""
    file = orc.ORCFile(pa.BufferReader(content))
    columns = [[repr(value) for value in column.to_pylist()] for column in file.read().columns]
    return file.schema.types, file.compression, columns


LOOKS = {"avro": _avro, "orc": _orc, "parquet": _parquet, "json": bytes.splitlines, "debezium-json": bytes.splitlines}


@pytest.mark.usefixtures("zone")
@pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin", "America/New_York"], indirect=True)
def test_timestamps_of_all_years_are_in_parquet(env: TableEnvironment, tmp_path: Path) -> None:
    times = ["0001-01-01 00:00:00.000", "1600-03-01 12:00:00.125", "2300-01-01 00:00:00.000", "9999-12-31 23:59:59.999"]
    env.execute_sql(f"""CREATE TABLE f (at TIMESTAMP(3), several ARRAY<TIMESTAMP(6)>)
        WITH ('connector' = 'filesystem', 'path' = '{tmp_path / "f"}', 'format' = 'parquet')""")
    rows = ", ".join(f"(TIMESTAMP '{each}', ARRAY[TIMESTAMP '{each}'])" for each in times)
    env.execute_sql(f"INSERT INTO f VALUES {rows}").wait()
    with env.execute_sql("SELECT CAST(at AS STRING), CAST(several[1] AS STRING) FROM f").collect() as found:
        assert sorted(tuple(row) for row in found) == [(each, f"{each}000") for each in times]


@pytest.mark.parametrize("form", ["avro", "csv", "json", "orc", "parquet"])
def test_a_row_of_constants_is_written(form: str, env: TableEnvironment, tmp_path: Path) -> None:
    env.execute_sql(f"""CREATE TABLE f (n INT) WITH ('connector' = 'filesystem', 'path' = '{tmp_path / "f"}',
        'format' = '{form}')""")
    env.execute_sql("INSERT INTO f SELECT 7").wait()
    with env.execute_sql("SELECT n FROM f").collect() as found:
        assert [tuple(row) for row in found] == [(7,)]


@pytest.mark.parametrize(
    ("columns", "options", "told"),
    [
        ("t TIME(3)", "", "ORC has nothing for column 't' of the type time32.ms.. Cast it to another type"),
        ("r ROW<a INT, t TIME(3)>", "", "ORC has nothing for column 'r.t'"),
        ("n INT", ", 'orc.compress' = 'LZO'", "orc.compress is 'LZO'; Arrow writes ORC with NONE, ZLIB"),
        ("n INT", ", 'orc.stripe.size' = 'large'", "orc.stripe.size is a number, got 'large'"),
    ],
)
def test_what_orc_has_not(columns: str, options: str, told: str, env: TableEnvironment, tmp_path: Path) -> None:
    given = f"'connector' = 'filesystem', 'path' = '{tmp_path}', 'format' = 'orc'{options}"
    env.execute_sql(f"CREATE TABLE f ({columns}) WITH ({given})")
    with pytest.raises(SqlValidationError, match=told):
        env.execute_sql("SELECT * FROM f")
