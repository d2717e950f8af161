"""What is measured, on which engines, and what Firesteel aims at: plain data."""

from dataclasses import dataclass, field

FIRESTEEL = "firesteel"
PYFLINK = "pyflink"
BYTEWAX = "bytewax"
ONE_LOOP = "one_bare_loop"
TWO_LOOPS = "two_bare_loops"


@dataclass(frozen=True)
class Engine:
    """How an engine's programs are called: ``programs/<program>_<suffix>.py`` with ``arguments``."""

    name: str
    suffix: str
    arguments: tuple[str, ...] = ()
    environment: str | None = None
    """The name of its own virtual environment under ``.bench``; None means the Python that runs this."""
    variables: dict[str, str] = field(default_factory=dict)


ENGINES = {
    engine.name: engine
    for engine in (
        Engine(FIRESTEEL, "datastream", ("--engine", "firesteel")),
        Engine(
            PYFLINK,
            "datastream",
            ("--engine", "pyflink"),
            environment="pyflink",
            variables={"_python_worker_execution_mode": "process"},
        ),
        Engine(BYTEWAX, "bytewax", environment="bytewax"),
        Engine(ONE_LOOP, "python", ("--parallelism", "1")),
        Engine(TWO_LOOPS, "python", ("--parallelism", "2")),
    )
}


@dataclass(frozen=True)
class Aim:
    """Firesteel's rate divided by that of ``against`` should be at least ``at_least``."""

    against: str
    at_least: float


@dataclass(frozen=True)
class Case:
    name: str
    title: str
    program: str
    kind: str
    """``rate`` (records a second), ``startup`` (seconds to the first output) or ``report`` (figures only)."""
    engines: tuple[str, ...]
    records: int = 0
    arguments: tuple[str, ...] = ()
    most_records: dict[str, int] = field(default_factory=dict)
    """Slow engines get fewer records: the rate is a slope and does not depend on the size."""
    aims: tuple[Aim, ...] = ()

    def records_for(self, engine: str, asked: int | None, quick: bool) -> int:
        records = asked or self.records
        limit = self.most_records.get(engine, records)
        return max(1, min(records, limit) // (QUICK if quick else 1))


QUICK = 10
"""A quick run has one tenth of the records: it shows that everything works, not how fast it is."""

ALL = (FIRESTEEL, PYFLINK, BYTEWAX, ONE_LOOP, TWO_LOOPS)

CASES = {
    case.name: case
    for case in (
        Case(
            "stateless",
            "map and filter",
            "stateless",
            "rate",
            ALL,
            records=5_000_000,
            most_records={PYFLINK: 2_500_000},
            aims=(Aim(PYFLINK, 10),),
        ),
        Case(
            "keyed_count_10k",
            "count per key, 10,000 keys",
            "keyed_count",
            "rate",
            ALL,
            records=5_000_000,
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
            records=5_000_000,
            arguments=("--keys", "1000000"),
            most_records={PYFLINK: 100_000},
            aims=(Aim(PYFLINK, 20),),
        ),
        Case("startup", "process start to first output", "startup", "startup", (FIRESTEEL, PYFLINK)),
        Case("empty_batch", "a micro-batch with one record", "empty_batch", "report", (FIRESTEEL,)),
        Case(
            "memory",
            "memory of the Python workers",
            "memory",
            "report",
            (FIRESTEEL,),
            records=20_000_000,
        ),
    )
}

MANY_KEYS = ("keyed_count_10k", "keyed_count_1m", 2.0)
"""A record among the many keys of the second case should cost at most twice one of the first."""
