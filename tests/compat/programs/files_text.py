"""Lines of files and folders, as they are and compressed, without hidden ones; lines are written and read again."""

import gzip
import os
import tempfile

from firesteel.common import Encoder, Types, WatermarkStrategy
from firesteel.datastream import StreamExecutionEnvironment
from firesteel.datastream.connectors.file_system import (
    BucketAssigner,
    FileCompactor,
    FileCompactStrategy,
    FileSink,
    FileSource,
    OutputFileConfig,
    RollingPolicy,
    StreamFormat,
)

ORDER = "none"

FILES = {
    "a.txt": b"first\nsecond\r\n\nafter an empty line\nwithout an end",
    "deep/er/b.txt": "é and ü\n".encode(),
    "c.txt.gz": gzip.compress(b"packed one\npacked two\n"),
    "empty.txt": b"",
    ".hidden": b"hidden by a dot\n",
    "_temporary/d.txt": b"hidden by an underscore\n",
}


def main() -> None:
    folder, out = tempfile.mkdtemp(), tempfile.mkdtemp()
    for name, content in FILES.items():
        os.makedirs(os.path.dirname(os.path.join(folder, name)), exist_ok=True)
        with open(os.path.join(folder, name), "wb") as file:
            file.write(content)
    none = WatermarkStrategy.no_watermarks()

    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(2)
    source = FileSource.for_record_stream_format(StreamFormat.text_line_format(), folder)
    lines = env.from_source(source.process_static_file_set().build(), none, "lines")
    lines.map(lambda line: f"read {line!r}", Types.STRING()).print()
    strategy = FileCompactStrategy.builder().set_size_threshold(1024 * 1024).enable_compaction_on_checkpoint(5).build()
    sink = (
        FileSink.for_row_format(out, Encoder.simple_string_encoder())
        .with_bucket_assigner(BucketAssigner.base_path_bucket_assigner())
        .with_rolling_policy(RollingPolicy.on_checkpoint_rolling_policy())
        .with_output_file_config(OutputFileConfig.builder().with_part_prefix("lines").with_part_suffix(".txt").build())
        .enable_compact(strategy, FileCompactor.concat_file_compactor())
        .build()
    )
    lines.map(lambda line: line, Types.STRING()).sink_to(sink).uid("files")
    env.execute("write")

    names = [name for name in os.listdir(out) if not name.startswith(".")]
    print("endings", sorted({os.path.splitext(name)[1] for name in names}))
    latin = StreamFormat.text_line_format("ISO-8859-1")
    again = env.from_source(FileSource.for_record_stream_format(latin, out).build(), none, "again")
    again.map(lambda line: f"again {line!r}", Types.STRING()).print()
    env.execute("read")


if __name__ == "__main__":
    main()
