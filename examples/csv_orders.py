"""Orders from CSV files: what each customer has spent, as JSON lines, and the orders themselves as Avro files.

    python examples/csv_orders.py
    python examples/csv_orders.py --input orders/ --output out/

A value in quotes may hold delimiters and line ends. Needs pip install 'firesteel[avro]'.
"""

import argparse
import decimal
import os
import tempfile

from firesteel.common import Row, Types, WatermarkStrategy
from firesteel.common.serialization import Encoder
from firesteel.datastream import RuntimeExecutionMode, StreamExecutionEnvironment
from firesteel.datastream.connectors.file_system import BucketAssigner, FileSink, FileSource
from firesteel.datastream.formats.avro import AvroBulkWriters, AvroSchema
from firesteel.datastream.formats.csv import CsvReaderFormat, CsvSchema

ORDERS = '''id,customer,item,price
1,Ada,"pen, blue",2.50
2,Blaise,paper,5.00
3,Ada,"a note:
""to do""",12.25
'''

COLUMNS = (
    CsvSchema.builder()
    .add_number_column("id", Types.INT())
    .add_string_column("customer")
    .add_string_column("item")
    .add_number_column("price", Types.BIG_DEC())
    .set_use_header()
    .set_strict_headers()
    .build()
)

AVRO = AvroSchema.parse_string("""
    {"type": "record", "name": "Order", "fields": [
        {"name": "id", "type": "int"},
        {"name": "customer", "type": "string"},
        {"name": "item", "type": "string"},
        {"name": "price", "type": {"type": "bytes", "logicalType": "decimal", "precision": 12, "scale": 2}}
    ]}
""")


def spent(row: Row) -> tuple[str, decimal.Decimal]:
    return row.customer, row.price


def main() -> None:
    parser = argparse.ArgumentParser(description="Sums up orders of CSV files.")
    parser.add_argument("--input", help="a CSV file or a folder of such; some orders are made up if none is given")
    parser.add_argument("--output", help="a folder; a temporary one if none is given")
    options = parser.parse_args()
    folder = options.output or tempfile.mkdtemp()
    given = options.input or os.path.join(tempfile.mkdtemp(), "orders.csv")
    if options.input is None:
        with open(given, "w") as file:
            file.write(ORDERS)

    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    # In batch mode each customer has one result, the final one.
    env.set_runtime_mode(RuntimeExecutionMode.BATCH)
    source = FileSource.for_record_stream_format(CsvReaderFormat.for_schema(COLUMNS), given).build()
    orders = env.from_source(source, WatermarkStrategy.no_watermarks(), "orders")

    totals = (
        orders.map(spent, output_type=Types.TUPLE([Types.STRING(), Types.BIG_DEC()]))
        .key_by(lambda pair: pair[0])
        .reduce(lambda a, b: (a[0], a[1] + b[1]))
        .map(lambda pair: Row(customer=pair[0], spent=pair[1]))
    )
    lines = FileSink.for_row_format(os.path.join(folder, "totals"), Encoder.json_encoder())
    totals.sink_to(lines.with_bucket_assigner(BucketAssigner.base_path_bucket_assigner()).build())
    files = FileSink.for_bulk_format(os.path.join(folder, "orders"), AvroBulkWriters.for_generic_record(AVRO))
    orders.sink_to(files.with_bucket_assigner(BucketAssigner.base_path_bucket_assigner()).build())
    env.execute("orders")

    for name in sorted(os.listdir(os.path.join(folder, "totals"))):
        if not name.startswith(("_", ".")):
            with open(os.path.join(folder, "totals", name)) as result:
                print(result.read(), end="")


if __name__ == "__main__":
    main()
