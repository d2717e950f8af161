"""Nexmark's persons, auctions and bids as views of a table of numbers, in SQL: each engine makes the same events.

The proportions are those of ``nexmark_events``: of every 50 events the first is a person, the next three are auctions
and the others bids; half of the bids go to one hot auction, three quarters come from one hot person; ten events a
millisecond. Columns have the names and types that ``nexmark_files`` declares, so that the queries are the same. A
column that a query does not read is not made.
"""

BEGIN = 1_704_153_540_000
"""2024-01-01 23:59, a minute before midnight, so that queries by day see two."""
FILLER = "the quick brown fox jumps over the lazy dog and all the others look on in mild surprise"


def _moment(milliseconds: str) -> str:
    return f"CAST(TO_TIMESTAMP_LTZ({BEGIN} + {milliseconds}, 3) AS TIMESTAMP(3))"


def _one_of(number: str, *texts: str) -> str:
    """One of the texts, by the rest of a number."""
    cases = " ".join(f"WHEN {at} THEN '{text}'" for at, text in enumerate(texts))
    return f"CASE MOD({number}, {len(texts)}) {cases} END"


_EXTRA = _one_of("c", *(FILLER[: 4 * length] for length in range(8)))
_MIXED = (
    # Bits in the middle of a product look like chance; those at its end do not.
    "SELECT n, n / 50 AS r, MOD(n, 50) AS i, date_time, MOD(n * 2654435761, 4294967296) / 65536 AS a, "
    "MOD(n * 48271 + 11, 1000003) AS b, MOD(n * 69621 + 7, 2147483647) / 1024 AS c FROM numbers"
)

VIEWS = {
    "mixed": _MIXED,
    "person": (
        f"SELECT 1000 + r AS id, CONCAT({_one_of('a', 'Ada', 'Ben', 'Cleo', 'Dan', 'Eve', 'Finn', 'Gus')}, ' ', "
        f"{_one_of('b', 'Abel', 'Brook', 'Cole', 'Dean', 'Ellis')}) AS name, "
        "CONCAT(CAST(c AS STRING), '@mail.example') AS email_address, "
        "CONCAT(CAST(a AS STRING), ' ', CAST(b AS STRING)) AS credit_card, "
        f"{_one_of('a', 'Phoenix', 'Los Angeles', 'Boise', 'Portland', 'Seattle', 'Cheyenne')} AS city, "
        f"{_one_of('a', 'AZ', 'CA', 'ID', 'OR', 'WA', 'WY')} AS state, date_time, "
        f"{_EXTRA} AS extra FROM mixed WHERE i = 0"
    ),
    "auction": (
        "SELECT 1000 + r * 3 + i - 1 AS id, CONCAT('item ', CAST(b AS STRING)) AS item_name, "
        f"'{FILLER} {FILLER}' AS description, 100 + MOD(b, 1000) * MOD(b, 1000) / 10 AS initial_bid, "
        "200 + MOD(b, 1000) * MOD(b, 1000) / 5 AS reserve, date_time, "
        f"{_moment('n / 10 + 1 + MOD(c, 333)')} AS expires, "
        "CASE WHEN MOD(a, 4) > 0 THEN 1000 + r / 100 * 100 ELSE 1000 + GREATEST(0, r - MOD(b, 1000)) END AS seller, "
        f"10 + MOD(c, 5) AS category, '{FILLER}' AS extra FROM mixed WHERE i >= 1 AND i <= 3"
    ),
    "bid": (
        "SELECT CASE WHEN MOD(a, 2) = 0 THEN 1000 + (r * 3 + 2) / 100 * 100 "
        "ELSE 1000 + GREATEST(0, r * 3 + 2 - MOD(b, 100)) END AS auction, "
        "CASE WHEN MOD(c, 4) > 0 THEN 1000 + r / 100 * 100 ELSE 1000 + GREATEST(0, r - MOD(b, 1000)) END AS bidder, "
        "100 + MOD(b, 1000) * MOD(b, 1000) * MOD(b, 1000) / 10 AS price, "
        f"{_one_of('a / 4', 'web', 'phone', 'shop', 'partner')} AS channel, "
        "CONCAT('https://auctions.example/item/', CAST(c AS STRING)) AS url, date_time, "
        f"{_EXTRA} AS extra FROM mixed WHERE i > 3"
    ),
}


def declarations(events: int) -> list[str]:
    """The statements that make the tables. Events are in order; watermarks are some seconds behind nevertheless."""
    return [
        f"CREATE TABLE numbers (n BIGINT, date_time AS {_moment('n / 10')}, "
        "WATERMARK FOR date_time AS date_time - INTERVAL '4' SECOND) WITH ('connector' = 'datagen', "
        f"'fields.n.kind' = 'sequence', 'fields.n.start' = '0', 'fields.n.end' = '{events - 1}', "
        "'rows-per-second' = '1000000000')",
        *(f"CREATE VIEW {name} AS {query}" for name, query in VIEWS.items()),
    ]
