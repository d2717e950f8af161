"""Orders into PostgreSQL: each one exactly once in a ledger, and each customer's total, kept up to date.

    python examples/postgres_orders.py jdbc:postgresql://localhost:5432/shop

User and password come from PGUSER and PGPASSWORD, or from ~/.pgpass. Without a database at hand::

    .venv/bin/python tools/postgres_server.py .venv/bin/python examples/postgres_orders.py

The ledger is written in transactions that become visible when their micro-batch is complete, so the server must allow
prepared transactions (max_prepared_transactions). The totals are upserts: written twice they are the same.
"""

import argparse
import os

import psycopg

from firesteel.common import Types
from firesteel.datastream import StreamExecutionEnvironment
from firesteel.datastream.connectors.jdbc import JdbcConnectionOptions, JdbcSink

ORDERS = [
    (1, "Ada", 20),
    (2, "Bob", 35),
    (3, "Ada", 10),
    (4, "Cid", 5),
    (5, "Bob", 15),
]
TABLES = """
    CREATE TABLE IF NOT EXISTS ledger (id int PRIMARY KEY, customer text, amount int);
    CREATE TABLE IF NOT EXISTS totals (customer text PRIMARY KEY, amount int);
    TRUNCATE ledger, totals;
"""


def main(url: str) -> None:
    address = url.removeprefix("jdbc:")
    with psycopg.connect(address) as connection:
        connection.execute(TABLES)

    options = JdbcConnectionOptions.JdbcConnectionOptionsBuilder().with_url(url).build()
    order = Types.ROW_NAMED(["id", "customer", "amount"], [Types.INT(), Types.STRING(), Types.INT()])
    total = Types.ROW_NAMED(["customer", "amount"], [Types.STRING(), Types.INT()])

    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(2)
    orders = env.from_collection(ORDERS, type_info=order)
    ledger = JdbcSink.exactly_once_sink("INSERT INTO ledger VALUES (?, ?, ?)", order, options)
    orders.sink_to(ledger).name("ledger")
    totals = (
        orders.map(lambda row: (row.customer, row.amount), output_type=total)
        .key_by(lambda row: row.customer)
        .reduce(lambda a, b: (a.customer, a.amount + b.amount))
    )
    totals.sink_to(JdbcSink.upsert_sink("totals", ["customer"], total, options)).name("totals")
    env.execute("orders")

    with psycopg.connect(address) as connection:
        for row in connection.execute("SELECT * FROM ledger ORDER BY id"):
            print("order", *row)
        for row in connection.execute("SELECT * FROM totals ORDER BY customer"):
            print("total", *row)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("url", nargs="?", default=os.environ.get("FIRESTEEL_POSTGRES_URL"), help="of the database")
    arguments = parser.parse_args()
    if arguments.url is None:
        parser.error("which database? Give its address: jdbc:postgresql://host:port/database")
    main(arguments.url)
