"""Nexmark's persons, auctions and bids as CSV files, and the tables that read them, for both engines.

Only the standard library is used: PyFlink's environment imports this module, too.
"""

import datetime
from pathlib import Path

import nexmark_events

BEGIN = datetime.datetime(2024, 1, 1, 23, 59)
"""A minute before midnight, so that queries by day see two."""

TABLES = {
    "person": (
        "id BIGINT, name STRING, email_address STRING, credit_card STRING, city STRING, state STRING, "
        "date_time TIMESTAMP(3), extra STRING"
    ),
    "auction": (
        "id BIGINT, item_name STRING, description STRING, initial_bid BIGINT, reserve BIGINT, date_time TIMESTAMP(3), "
        "expires TIMESTAMP(3), seller BIGINT, category BIGINT, extra STRING"
    ),
    "bid": (
        "auction BIGINT, bidder BIGINT, price BIGINT, channel STRING, url STRING, date_time TIMESTAMP(3), extra STRING"
    ),
}
_MOMENTS = {"person": (6,), "auction": (5, 6), "bid": (5,)}


def write_files(folder: Path, events: int, stretch: int) -> None:
    """Writes ``person.csv``, ``auction.csv`` and ``bid.csv``. A millisecond becomes ``stretch`` of them."""
    makers = {"person": nexmark_events.persons, "auction": nexmark_events.auctions, "bid": nexmark_events.bids}
    for name, make in makers.items():
        moments = _MOMENTS[name]
        with (folder / f"{name}.csv").open("w") as file:
            for number in range(events):
                for record in make(number):
                    cells = [
                        _moment(field * stretch) if index in moments else str(field)
                        for index, field in enumerate(record)
                    ]
                    file.write(",".join(cells) + "\n")


def _moment(milliseconds: int) -> str:
    moment = BEGIN + datetime.timedelta(milliseconds=milliseconds)
    return moment.isoformat(" ", "milliseconds")


def declarations(folder: Path, bounds: str = "4") -> list[str]:
    """The CREATE TABLE statements. Events are in order; watermarks are some seconds behind nevertheless."""
    return [
        f"CREATE TABLE {name} ({columns}, WATERMARK FOR date_time AS date_time - INTERVAL '{bounds}' SECOND) "
        f"WITH ('connector' = 'filesystem', 'path' = '{folder / name}.csv', 'format' = 'csv')"
        for name, columns in TABLES.items()
    ]
