"""Rows of CSV files: quotes, columns by position, values that are missing; they are written by a bulk writer and read
again."""

import os
import tempfile

from firesteel.common import Types, WatermarkStrategy
from firesteel.datastream import StreamExecutionEnvironment
from firesteel.datastream.connectors.file_system import BucketAssigner, FileSink, FileSource, OutputFileConfig
from firesteel.datastream.formats.csv import CsvBulkWriters, CsvReaderFormat, CsvSchema

ORDER = "none"

FILES = {
    "a.csv": '1;pen;250;true\n2;"ink; blue";1000;false\n3;"a ""quoted"" word";-12;true\n',
    "b.csv": "4;;0;true\n5; spaces ;10;false\n",
}


def main() -> None:
    folder, out = tempfile.mkdtemp(), tempfile.mkdtemp()
    for name, content in FILES.items():
        with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
            file.write(content)
    schema = (
        CsvSchema.builder()
        .add_number_column("id")
        .add_string_column("item")
        .add_number_column("price")
        .add_boolean_column("paid")
        .set_column_separator(";")
        .build()
    )
    none = WatermarkStrategy.no_watermarks()

    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(2)
    source = FileSource.for_record_stream_format(CsvReaderFormat.for_schema(schema), folder).build()
    rows = env.from_source(source, none, "rows")
    rows.map(lambda row: f"read {row.id} {row.item!r} {row.price} {row.paid}", Types.STRING()).print()
    types = [Types.LONG(), Types.STRING(), Types.LONG(), Types.BOOLEAN()]
    written = rows.map(lambda row: row, Types.ROW_NAMED(["id", "item", "price", "paid"], types))
    sink = (
        FileSink.for_bulk_format(out, CsvBulkWriters.for_schema(schema))
        .with_bucket_assigner(BucketAssigner.base_path_bucket_assigner())
        .with_output_file_config(OutputFileConfig.builder().with_part_prefix("rows").with_part_suffix(".csv").build())
        .build()
    )
    written.sink_to(sink)
    env.execute("write")

    names = [name for name in os.listdir(out) if not name.startswith(".")]
    print("endings", sorted({os.path.splitext(name)[1] for name in names}))
    for name in names:
        with open(os.path.join(out, name), encoding="utf-8") as file:
            for line in file:
                print("line", repr(line))
    again = FileSource.for_record_stream_format(CsvReaderFormat.for_schema(schema), out).build()
    env.from_source(again, none, "again").map(lambda row: f"again {row.id} {row.item!r}", Types.STRING()).print()
    env.execute("read")


if __name__ == "__main__":
    main()
