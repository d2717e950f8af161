"""Kafka and PostgreSQL for examples/kafka_clicks.py, clicks for it, a kill in the middle, and a look at the results.

    python examples/kafka_clicks_demo.py                  # about two minutes, most of it Spark that starts
    python examples/kafka_clicks_demo.py --clicks 20000 --rate 1000 --kills 3

Nothing has to be installed but Maven, which fetches Kafka once, and PostgreSQL's programs (Debian: apt-get install
maven postgresql). Both servers listen on loopback, on free ports, and are gone at the end.
"""

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition

sys.path.append(str(Path(__file__).resolve().parent))
sys.path.append(str(Path(__file__).resolve().parents[1] / "tools"))

from kafka_clicks import FAILURES, GAP_SECONDS, TABLE, Click
from kafka_server import KafkaServer
from postgres_server import PASSWORD, USER, PostgresServer

PROGRAM = Path(__file__).resolve().with_name("kafka_clicks.py")
PARTITIONS = 2
USERS = [f"user-{number:02}" for number in range(20)]
PAGES = ["/home"] * 6 + ["/shop"] * 6 + ["/cart"] * 2 + ["/paid"] + ["/login-failed"] * 5
BEGIN = 1_700_000_000_000
SECONDS_TO_FINISH = 300


def make_clicks(number: int, seed: int = 1) -> list[Click]:
    """Clicks in the order of their time, 50 ms apart. Most users pause for longer than a visit lasts now and then."""
    chance = random.Random(seed)
    clicks, silent = [], dict.fromkeys(USERS, 0)
    for moment in range(BEGIN, BEGIN + number * 50, 50):
        awake = [user for user in USERS if silent[user] <= moment] or USERS
        user = chance.choice(awake)
        clicks.append((user, chance.choice(PAGES), moment))
        if chance.random() < 0.01:
            silent[user] = moment + chance.randint(GAP_SECONDS, 3 * GAP_SECONDS) * 1000
    return clicks


def expected(clicks: list[Click]) -> tuple[Counter[Any], Counter[Any]]:
    """The visits and the alerts, worked out without any engine."""
    visits: list[list[Any]] = []
    current: dict[str, list[Any]] = {}
    alerts: Counter[Any] = Counter()
    failures: Counter[str] = Counter()
    for user, page, moment in clicks:
        visit = current.get(user)
        if visit is None or moment - visit[2] > GAP_SECONDS * 1000:
            visit = current[user] = [user, moment, moment, 0, False]
            visits.append(visit)
        visit[2], visit[3], visit[4] = moment, visit[3] + 1, visit[4] or page == "/paid"
        failures[user] = failures[user] + 1 if page == "/login-failed" else 0
        if failures[user] == FAILURES:
            alerts[user, moment] += 1
            failures[user] = 0
    return Counter(tuple(visit) for visit in visits), alerts


def send(servers: str, clicks: list[Click], rate: float | None = None, topic: str = "clicks") -> Iterator[int]:
    """Sends clicks, with pauses if there is a rate, and says how many are sent."""
    producer = Producer({"bootstrap.servers": servers, "enable.idempotence": True, "log_level": 0})
    began = time.monotonic()
    for number, (user, page, moment) in enumerate(clicks):
        value = json.dumps({"user": user, "page": page, "time": moment})
        producer.produce(topic, value, key=user)
        producer.poll(0)
        if rate is not None and number > (time.monotonic() - began) * rate:
            time.sleep(0.02)
        yield number + 1
    # Somebody comes by much later, in every partition: all visits before are over.
    late = json.dumps({"user": "clock", "page": "/home", "time": clicks[-1][2] + 3_600_000})
    for partition in range(PARTITIONS):
        producer.produce(topic, late, partition=partition)
    producer.flush()


def read_alerts(servers: str, topic: str = "alerts") -> Counter[Any]:
    """All alerts that are committed."""
    consumer = Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": "demo",
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
            "log_level": 0,
        }
    )
    consumer.assign([TopicPartition(topic, 0, 0)])
    found: Counter[Any] = Counter()
    while True:
        for message in consumer.consume(1000, 1):
            error = message.error()
            if error is None:
                alert = json.loads(message.value() or b"")
                found[alert["user"], alert["time"]] += 1
            elif error.code() == KafkaError._PARTITION_EOF:
                consumer.close()
                return found


def read_visits(address: str) -> Counter[Any]:
    """All visits that are committed."""
    with psycopg.connect(address) as connection:
        rows = connection.execute("SELECT person, began, ended, clicks, bought FROM visits WHERE person <> 'clock'")
        return Counter(rows.fetchall())


def start_job(checkpoint: Path, environment: dict[str, str]) -> subprocess.Popen[bytes]:
    program = [sys.executable, str(PROGRAM), "--checkpoint", str(checkpoint)]
    return subprocess.Popen(program, env=os.environ | environment)


def report(name: str, found: Counter[Any], wanted: Counter[Any]) -> bool:
    missing, more = wanted - found, found - wanted
    print(f"{name}: {found.total():,}, of which {missing.total()} are missing and {more.total()} too many")
    for one in sorted(found)[:3]:
        print("   ", *one)
    return not missing and not more


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clicks", type=int, default=4000)
    parser.add_argument("--rate", type=float, default=200, help="clicks a second")
    parser.add_argument("--kills", type=int, default=1, help="how often the job is killed and started again")
    chosen = parser.parse_args()
    clicks = make_clicks(chosen.clicks)
    wanted = expected(clicks)
    print("Kafka and PostgreSQL start.", flush=True)
    with KafkaServer() as kafka, PostgresServer() as postgres, tempfile.TemporaryDirectory() as temporary:
        kafka.create_topic("clicks", PARTITIONS)
        kafka.create_topic("alerts")
        address = postgres.url.removeprefix("jdbc:")
        environment = {"FIRESTEEL_KAFKA_SERVERS": kafka.servers, "FIRESTEEL_POSTGRES_URL": postgres.url}
        os.environ["PGUSER"], os.environ["PGPASSWORD"] = USER, PASSWORD
        with psycopg.connect(address) as connection:
            connection.execute(TABLE)
        job = start_job(Path(temporary), environment)
        try:
            print("The job starts, and people click.", flush=True)
            seen = 0
            kill_at = {chosen.clicks * number // (chosen.kills + 1) for number in range(1, chosen.kills + 1)}
            for sent in send(kafka.servers, clicks, chosen.rate):
                if sent in kill_at:
                    seen = wait_for(lambda: read_visits(address).total(), seen + 1, job)
                    print(
                        f"{sent:,} clicks sent, {seen:,} visits in the table. The job is killed (kill -9).", flush=True
                    )
                    job.kill()
                    job.wait()
                    job = start_job(Path(temporary), environment)
            print(f"{chosen.clicks:,} clicks sent.", flush=True)
            wait_for(lambda: read_visits(address).total(), wanted[0].total(), job)
            wait_for(lambda: read_alerts(kafka.servers).total(), wanted[1].total(), job)
        finally:
            job.terminate()
            job.wait()
        good = report("visits in PostgreSQL", read_visits(address), wanted[0])
        good &= report("alerts in Kafka", read_alerts(kafka.servers), wanted[1])
    return 0 if good else 1


def wait_for(count: Callable[[], int], wanted: int, job: subprocess.Popen[bytes]) -> int:
    """Waits until there are as many results."""
    end = time.monotonic() + SECONDS_TO_FINISH
    while (found := count()) < wanted:
        if job.poll() is not None or time.monotonic() > end:
            raise SystemExit(f"The job has given {found} results where {wanted} were expected.")
        time.sleep(0.2)
    return found


if __name__ == "__main__":
    sys.exit(main())
