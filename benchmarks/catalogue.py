"""What is measured, on which engines, and what Firesteel aims at, in groups."""

from benchmarks.cases import (
    BYTEWAX,
    FIRESTEEL,
    FIRESTEEL_ROCKSDB,
    GRAPHFRAMES,
    NETWORKX,
    ONE_LOOP,
    PYFLINK,
    PYFLINK_10,
    PYFLINK_100,
    QUIX,
    TWO_LOOPS,
    Aim,
    Case,
)

ALL = (FIRESTEEL, PYFLINK, BYTEWAX, ONE_LOOP, TWO_LOOPS)
RECORDS = 5_000_000
NEXMARK_QUERIES = [f"q{number}" for number in range(23) if number not in (6, 13)]
"""Flink refuses q6, whose OVER is in the order of a column that is no time; q13 looks rows up in a system for which
PyFlink comes with no connector."""
PATIENCE = 90
"""Seconds that a large run of PyFlink may take in the groups below: some of its rates are 1,000 records a second."""

ENGINE = (
    Case(
        "stateless",
        "map and filter",
        "stateless",
        "rate",
        ALL,
        records=RECORDS,
        most_records={PYFLINK: 2_500_000},
        aims=(Aim(PYFLINK, 10),),
    ),
    Case(
        "keyed_count_10k",
        "count per key, 10,000 keys",
        "keyed_count",
        "rate",
        ALL,
        records=RECORDS,
        arguments=("--keys", "10000"),
        most_records={PYFLINK: 500_000},
        aims=(Aim(PYFLINK, 20), Aim(BYTEWAX, 2), Aim(TWO_LOOPS, 0.25)),
    ),
    Case(
        "keyed_count_1m",
        "count per key, 1,000,000 keys",
        "keyed_count",
        "rate",
        ALL,
        records=RECORDS,
        arguments=("--keys", "1000000"),
        most_records={PYFLINK: 100_000},
        aims=(Aim(PYFLINK, 20),),
    ),
    Case("startup", "process start to first output", "startup", "startup", (FIRESTEEL, PYFLINK)),
    Case("empty_batch", "a micro-batch with one record", "empty_batch", "report", (FIRESTEEL,)),
    Case("metrics", "what measuring costs", "metrics", "report", (FIRESTEEL,), records=400_000),
    Case("memory", "memory of the Python workers", "memory", "report", (FIRESTEEL,), records=20_000_000),
)

STATE_KINDS = {
    "list": "list append",
    "map": "map update and read",
    "aggregating": "aggregating state",
    "broadcast": "keyed broadcast join",
    "co_process": "co-process join",
}
"""The choices of ``state_datastream.py --kind`` and what they are called."""

KEY_COUNTS = {"10k": (10_000, 400_000), "1m": (1_000_000, 60_000)}
"""How many keys, and how many records PyFlink gets with them at most."""

STATE = (
    *(
        Case(
            f"state_{kind}_{size}",
            f"{title}, {keys:,} keys",
            "state",
            "rate",
            (FIRESTEEL, FIRESTEEL_ROCKSDB, PYFLINK),
            records=RECORDS,
            arguments=("--kind", kind, "--keys", str(keys)),
            most_records={PYFLINK: most},
            most_seconds={PYFLINK: PATIENCE},
        )
        for kind, title in STATE_KINDS.items()
        for size, (keys, most) in KEY_COUNTS.items()
    ),
    Case(
        "large_state",
        "10,000,000 keys of 100 characters each",
        "large_state",
        "report",
        (FIRESTEEL_ROCKSDB, FIRESTEEL),
        records=10_000_000,
    ),
)

WINDOW_KINDS = {
    "tumbling": ("tumbling count", 400_000),
    "sliding": ("sliding aggregate, six windows a record", 6_000),
    "session": ("session windows", 200_000),
    "join": ("window join", None),
    "interval_join": ("interval join", None),
}
"""The choices of ``windows_datastream.py --kind``, and PyFlink's records; None where it has no such operator."""

WINDOWS = tuple(
    Case(
        f"window_{kind}",
        f"{title}, 10,000 keys",
        "windows",
        "rate",
        (FIRESTEEL, PYFLINK) if most else (FIRESTEEL,),
        records=RECORDS,
        arguments=("--kind", kind),
        most_records={PYFLINK: most} if most else {},
        most_seconds={PYFLINK: PATIENCE},
    )
    for kind, (title, most) in WINDOW_KINDS.items()
)

QUERIES = {
    "q0": ("pass through", 1_000_000),
    "q1": ("currency conversion", 1_000_000),
    "q2": ("selection", 1_000_000),
    "q3": ("local item suggestion", 1_000_000),
    "q4": ("average price for a category", 400_000),
    "q5": ("hot items", 150_000),
    "q7": ("highest bid", 400_000),
    "q8": ("monitor new users", 1_000_000),
    "q11": ("user sessions", 200_000),
    "q12": ("processing-time windows", 400_000),
}
"""The queries of Nexmark, and how many events PyFlink gets at most."""

NEXMARK = tuple(
    Case(
        f"nexmark_{query}",
        f"Nexmark {query}, {title}",
        "nexmark",
        "rate",
        (FIRESTEEL, PYFLINK),
        records=RECORDS,
        arguments=("--query", query),
        most_records={PYFLINK: most},
        most_seconds={PYFLINK: PATIENCE},
    )
    for query, (title, most) in QUERIES.items()
)

RECOVERY = (
    Case(
        "checkpointing",
        "count per key with and without checkpoints every 10 s",
        "checkpointing",
        "report",
        (FIRESTEEL,),
        records=10_000_000,
    ),
    *(
        Case(
            f"recovery_{size}",
            f"savepoint, restart and restore, {keys:,} keys of 100 characters",
            "recovery",
            "report",
            (FIRESTEEL, FIRESTEEL_ROCKSDB),
            records=keys,
        )
        for size, keys in {"1m": 1_000_000, "10m": 10_000_000}.items()
    ),
)

KAFKA_ENGINES = (FIRESTEEL, PYFLINK, QUIX, BYTEWAX, TWO_LOOPS)

KAFKA = (
    *(
        Case(
            f"kafka_{work}_{size}",
            f"{title}, records of {size} bytes",
            "kafka",
            "rate",
            engines,
            records=3_000_000 if size == 100 else 1_000_000,
            arguments=arguments,
            most_records={PYFLINK: 300_000, QUIX: 200_000, BYTEWAX: 300_000},
            aims=aims,
            kafka_bytes=size,
        )
        for size in (100, 1000)
        for work, title, engines, arguments, aims in (
            ("count", "Kafka to count per key to Kafka", KAFKA_ENGINES, (), (Aim(PYFLINK, 10), Aim(QUIX, 2))),
            ("read", "reading Kafka", (FIRESTEEL, TWO_LOOPS), ("--read",), (Aim(TWO_LOOPS, 0.5),)),
        )
    ),
    Case("kafka_latency", "a record in Kafka to its result", "kafka", "latency", KAFKA_ENGINES, kafka_bytes=100),
)

LATENCY = (
    *(
        Case(
            f"latency_{rate}",
            f"a line of a socket to its count, {rate:,} a second",
            "latency",
            "live",
            (FIRESTEEL, PYFLINK_10, PYFLINK_100, BYTEWAX),
            live_rate=rate,
        )
        for rate in (200, 5000)
    ),
    Case(
        "start_ways",
        "a command to the first output: on its own, with the job manager, in its warm driver",
        "start_ways",
        "report",
        (FIRESTEEL,),
    ),
)

CEP = (
    Case(
        "cep_pattern",
        "three events within ten minutes, 10,000 keys; PyFlink: MATCH_RECOGNIZE",
        "cep",
        "rate",
        (FIRESTEEL, FIRESTEEL_ROCKSDB, PYFLINK),
        records=1_000_000,
        arguments=("--kind", "pattern"),
        most_seconds={PYFLINK: PATIENCE},
    ),
    Case(
        "cep_by_hand",
        "the same in a function written by hand",
        "cep",
        "rate",
        (FIRESTEEL, PYFLINK),
        records=1_000_000,
        arguments=("--kind", "by_hand"),
        most_records={PYFLINK: 200_000},
        most_seconds={PYFLINK: PATIENCE},
    ),
    Case(
        "cep_growth",
        "an event while many partial matches are open",
        "cep_growth",
        "report",
        (FIRESTEEL,),
        records=100_000,
    ),
)

SQL = tuple(
    Case(
        f"sql_group_{size}{suffix}",
        f"GROUP BY with COUNT and SUM, {keys:,} keys, {title}; PyFlink: SQL, in Java",
        "sql_group",
        "rate",
        (FIRESTEEL, FIRESTEEL_ROCKSDB, PYFLINK),
        records=40_000_000,
        arguments=("--keys", str(keys), *arguments),
        most_records={PYFLINK: 10_000_000},
        most_seconds={PYFLINK: PATIENCE},
        aims=(Aim(PYFLINK, 2 if keys < 1_000_000 else 1.5),),
    )
    for size, keys in (("10k", 10_000), ("1m", 1_000_000))
    for suffix, title, arguments in (
        ("", "every change", ()),
        ("_mini_batch", "what a micro-batch changed", ("--mini-batch",)),
    )
)

SQL += tuple(
    Case(
        f"sql_batch_{query}",
        f"Batch mode, {title}; PyFlink: SQL, in Java",
        "sql_batch",
        "rate",
        (FIRESTEEL, PYFLINK),
        records=40_000_000,
        arguments=("--query", query),
        most_records={PYFLINK: 10_000_000},
        most_seconds={PYFLINK: PATIENCE},
        aims=(Aim(PYFLINK, 1.5),),
    )
    for query, title in {
        "group": "GROUP BY with COUNT and SUM, 100,000 keys",
        "join": "a join with 100,000 rows, then groups",
        "top": "the first three of 1,000 partitions",
    }.items()
)

SQL += tuple(
    Case(
        f"sql_function_{kind}",
        f"{title} in SQL, in Python",
        "sql_function",
        "rate",
        (FIRESTEEL, PYFLINK),
        records=50_000_000,
        arguments=("--kind", kind),
        most_records={PYFLINK: 5_000_000},
        most_seconds={PYFLINK: PATIENCE},
        aims=(Aim(PYFLINK, least),),
    )
    for kind, title, least in (
        ("general", "a user's function of a column, arithmetic", 25),
        ("called", "a user's function that is called for each record", 10),
        ("pandas", "a user's pandas function of a column", 5),
        ("aggregate", "a user's aggregate, 10,000 groups", 20),
    )
)

SQL += tuple(
    Case(
        f"sql_{query}",
        f"{title}; PyFlink: SQL, in Java",
        "sql_streams",
        "rate",
        (FIRESTEEL, PYFLINK),
        records=20_000_000,
        arguments=("--query", query),
        most_records={PYFLINK: 5_000_000},
        most_seconds={PYFLINK: PATIENCE},
        aims=(Aim(PYFLINK, least),),
    )
    for query, title, least in (
        ("stateless", "a projection and a condition", 1.5),
        ("tumble", "windows of 10 s, 10,000 keys", 2),
        ("hop", "windows of a minute every 10 s, 10,000 keys", 2),
        ("cumulate", "windows of a minute every 10 s that begin together, 10,000 keys", 2),
        ("session", "sessions of 20 rows, 50,000 keys", 2),
        ("join", "a join with 100,000 rows", 1),
        ("window_join", "two streams joined in windows of 4 s, 10,000 keys", 1),
        ("temporal_join", "a join with the version of 10,000 keys at that time", 1),
        ("match", "MATCH_RECOGNIZE of three steps, 10,000 keys", 1),
        ("interval_join", "a join where times differ by at most 2 s, 10,000 keys", 1),
        ("top", "the first three of 10,000 partitions", 1),
        ("deduplicate", "the last row of 100,000 keys", 1),
        ("over", "a sum of the last ten rows of 10,000 keys", 1),
    )
)

NEXMARK_SQL = tuple(
    Case(
        f"nexmark_sql_{query}",
        f"Nexmark {query} as SQL; PyFlink: in Java",
        "sql_nexmark",
        "rate",
        (FIRESTEEL, PYFLINK),
        records=10_000_000,
        arguments=("--query", query),
        most_records={PYFLINK: 5_000_000},
        most_seconds={PYFLINK: PATIENCE},
        aims=(Aim(PYFLINK, 0.7),),
    )
    for query in NEXMARK_QUERIES
)

CONNECTORS = tuple(
    Case(
        f"connector_{system}",
        f"{title}, records a second into and out of it, beside its client in a bare loop",
        "connectors",
        "report",
        (FIRESTEEL,),
        # A server of one node in a small JVM takes a few thousand records a second.
        records=20_000 if system in ("opensearch", "cassandra") else 200_000,
        arguments=("--system", system),
    )
    for system, title in {
        "redis": "Redis",
        "mariadb": "MariaDB",
        "postgresql": "PostgreSQL",
        "sqlite": "SQLite",
        "files": "Text files",
        "mqtt": "MQTT",
        "rabbitmq": "RabbitMQ",
        "opensearch": "OpenSearch",
        "cassandra": "Cassandra",
        "polling": "A function that is polled",
        "hybrid": "One source after the other",
        "spark": "DataFrames",
    }.items()
)

GELLY_EDGES = 10_000_000

GELLY = tuple(
    Case(
        f"gelly_{kind}",
        f"{title}, R-MAT",
        "gelly",
        "rate",
        (FIRESTEEL, GRAPHFRAMES, NETWORKX),
        records=GELLY_EDGES,
        arguments=("--kind", kind),
        # It needs a kilobyte of memory for an edge.
        most_records={NETWORKX: 1_000_000},
        aims=(Aim(GRAPHFRAMES, 1),),
    )
    for kind, title in {"pagerank": "ten iterations of PageRank", "components": "connected components"}.items()
)

GROUPS: dict[str, tuple[Case, ...]] = {
    "engine": ENGINE,
    "state": STATE,
    "windows": WINDOWS,
    "nexmark": NEXMARK,
    "recovery": RECOVERY,
    "kafka": KAFKA,
    "latency": LATENCY,
    "cep": CEP,
    "gelly": GELLY,
    "sql": SQL,
    "nexmark_sql": NEXMARK_SQL,
    "connectors": CONNECTORS,
}

CASES = {case.name: case for cases in GROUPS.values() for case in cases}

MANY_KEYS = ("keyed_count_10k", "keyed_count_1m", 2.0)
"""A record among the many keys of the second case should cost at most twice one of the first."""

LIMITS = (
    ("checkpointing", "throughput_lost", 0.1),
    ("recovery_10m", "savepoint_seconds", 120.0),
    ("kafka_count_100", "commit_ms", 50.0),
    ("kafka_count_1000", "commit_ms", 50.0),
)
"""Figures that should not be higher: throughput that checkpoints cost, seconds of a savepoint, milliseconds of a
commit."""

LARGE_STATE = ("large_state", 1.3)
"""A batch of 1,000 records among many keys should take at most so many times as long as among 10,000."""
