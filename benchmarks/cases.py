"""What a case and an engine are: plain data. The cases themselves are in ``catalogue.py``."""

from dataclasses import dataclass, field

FIRESTEEL = "firesteel"
FIRESTEEL_ROCKSDB = "firesteel_rocksdb"
PYFLINK = "pyflink"
PYFLINK_10, PYFLINK_100 = "pyflink_10_ms", "pyflink_100_ms"
"""PyFlink that hands records to Python after so many milliseconds, or after as many records as fit into a bundle."""
BYTEWAX = "bytewax"
QUIX = "quix"
GRAPHFRAMES, NETWORKX = "graphframes", "networkx"
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
    backend: str | None = None
    """The state backend that programs are told to use; None leaves it to the engine."""


ENGINES = {
    engine.name: engine
    for engine in (
        Engine(FIRESTEEL, "datastream", ("--engine", "firesteel")),
        Engine(FIRESTEEL_ROCKSDB, "datastream", ("--engine", "firesteel"), backend="rocksdb"),
        Engine(
            PYFLINK,
            "datastream",
            ("--engine", "pyflink"),
            environment="pyflink",
            variables={"_python_worker_execution_mode": "process"},
        ),
        *(
            Engine(
                name,
                "datastream",
                ("--engine", "pyflink", "--bundle-ms", bundle),
                environment="pyflink",
                variables={"_python_worker_execution_mode": "process"},
            )
            for name, bundle in ((PYFLINK_10, "10"), (PYFLINK_100, "100"))
        ),
        Engine(BYTEWAX, "bytewax", environment="bytewax"),
        Engine(QUIX, "quix", environment="quix"),
        Engine(GRAPHFRAMES, "graphframes", environment="graphframes"),
        Engine(NETWORKX, "networkx"),
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
    """``rate`` (records a second), ``startup`` (seconds to the first output), ``latency`` (from a record in Kafka to
    its result), ``live`` (from a line of a socket to its result) or ``report`` (figures only)."""
    engines: tuple[str, ...]
    records: int = 0
    arguments: tuple[str, ...] = ()
    most_records: dict[str, int] = field(default_factory=dict)
    """Slow engines get fewer records: the rate is a slope and does not depend on the size."""
    most_seconds: dict[str, int] = field(default_factory=dict)
    """How long the large run of an engine may take: where the warm-up shows that it would take longer, it gets fewer
    records still."""
    aims: tuple[Aim, ...] = ()
    live_rate: int = 0
    """How many lines a second a socket brings."""
    kafka_bytes: int = 0
    """The size of the records that a broker holds for this case; 0 means that it needs none."""

    def records_for(self, engine: str, asked: int | None, quick: bool) -> int:
        records = asked or self.records
        limit = self.most_records.get(engine, records)
        return max(1, min(records, limit) // (QUICK if quick else 1))


QUICK = 10
"""A quick run has one tenth of the records: it shows that everything works, not how fast it is."""
