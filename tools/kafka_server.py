"""A Kafka broker of one's own: in a temporary folder, on loopback, on free ports, gone when it is no longer needed.

Tests, the fault suite and the benchmarks use it. Its jars are fetched once by Maven and kept in Firesteel's cache. From
a shell it runs a command with ``FIRESTEEL_KAFKA_SERVERS`` set::

    .venv/bin/python tools/kafka_server.py .venv/bin/python examples/kafka_clicks.py

It has these listeners: one that asks for nothing, one that asks for a user and a password (``secure_servers``: SASL
with PLAIN or SCRAM), one with TLS (``tls_servers``) and one whose clients come through a
:class:`~kafka_proxy.KafkaProxy`, if there is one (:meth:`KafkaServer.proxy`). Whoever comes to the first one may do
everything; others may do what no rule is against (``forbid``).
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

import local_server
from kafka_proxy import Cut, KafkaProxy
from local_server import SECONDS_TO_START, LocalServer, fetched, free_ports, java, maven, run_with, why_no_java_server

__all__ = ["KEY_PASSWORD", "PASSWORD", "USER", "VERSION", "KafkaServer", "cache", "jars", "java", "why_not"]

VERSION = "4.3.1"
USER, PASSWORD = "firesteel", "sup3r s3cret&word"
KEY_PASSWORD = "k3y s3cret&word"
_POM = Path(__file__).resolve().parent / "kafka" / "pom.xml"
_CLUSTER = "4L6g3nShT-eMCtK--X86sw"


def cache() -> Path:
    """Where the jars are, or will be."""
    return local_server.cache(f"kafka-{VERSION}")


def why_not() -> str | None:
    """What is missing to run a broker here; None if nothing is."""
    if shutil.which("openssl") is None:
        return "no Kafka: there is no openssl to make certificates with"
    return why_no_java_server("Kafka", cache())


def jars() -> Path:
    """The folder with the broker's jars, fetched if need be."""

    def fetch(folder: Path) -> None:
        maven("copy-dependencies", "-f", str(_POM), "-DincludeScope=runtime", into=folder, what="Kafka")

    return fetched(cache(), fetch)


def _make_certificates(folder: Path) -> None:
    """An authority (``ca.pem``), certificates of a broker and of a client from it, and one of a stranger."""

    def openssl(*arguments: str) -> None:
        done = subprocess.run(["openssl", *arguments], cwd=folder, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise RuntimeError(f"openssl {arguments[0]}: {done.stderr[-1000:]}")

    curve = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")
    for authority in ("ca", "stranger"):
        files = ("-keyout", f"{authority}.key", "-out", f"{authority}.pem")
        openssl("req", "-x509", *curve, *files, "-days", "30", "-subj", f"/CN={authority}")
    (folder / "names").write_text("subjectAltName=DNS:localhost,IP:127.0.0.1\n")
    for name in ("broker", "client"):
        openssl("req", *curve, "-keyout", f"{name}.plain", "-out", f"{name}.request", "-subj", f"/CN={name}")
        signed = ("-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-extfile", "names", "-days", "30")
        openssl("x509", "-req", "-in", f"{name}.request", *signed, "-out", f"{name}.crt")
    (folder / "broker.pem").write_text((folder / "broker.plain").read_text() + (folder / "broker.crt").read_text())
    (folder / "client.pem").write_text((folder / "client.crt").read_text())
    openssl("pkcs8", "-topk8", "-in", "client.plain", "-out", "client.key", "-passout", f"pass:{KEY_PASSWORD}")


class KafkaServer(LocalServer):
    """A broker between ``with`` and its end."""

    name = "Kafka"

    def __init__(self, **settings: str) -> None:
        self._settings = {name.replace("_", "."): value for name, value in settings.items()}
        self._ports: list[int] = []
        super().__init__()

    @property
    def servers(self) -> str:
        """The address for clients."""
        return f"127.0.0.1:{self._ports[0]}"

    @property
    def secure_servers(self) -> str:
        """The address for clients that say who they are (SASL without TLS: PLAIN, SCRAM-SHA-256, SCRAM-SHA-512)."""
        return f"127.0.0.1:{self._ports[1]}"

    @property
    def tls_servers(self) -> str:
        """The address for clients with TLS, which have a certificate of their own to show."""
        return f"localhost:{self._ports[5]}"

    @property
    def tls(self) -> dict[str, str]:
        """What such clients need. There is a second certificate, of a stranger, under ``stranger.*``."""
        return {
            "security.protocol": "SSL",
            "ssl.ca.location": f"{self.folder}/ca.pem",
            "ssl.certificate.location": f"{self.folder}/client.pem",
            "ssl.key.location": f"{self.folder}/client.key",
            "ssl.key.password": KEY_PASSWORD,
        }

    def proxy(self, *cuts: Cut) -> KafkaProxy:
        """A way to the broker that cuts connections. There can be one at a time."""
        behind, advertised = self._ports[3:5]
        return KafkaProxy(advertised, behind, *cuts)

    def _set_up(self) -> None:
        self._ports = free_ports(6)
        _make_certificates(self.folder)
        properties = self.folder / "server.properties"
        properties.write_text("".join(f"{name}={value}\n" for name, value in self._properties().items()))
        users = [
            argument
            for mechanism in ("SCRAM-SHA-256", "SCRAM-SHA-512")
            for argument in ("--add-scram", f'{mechanism}=[name="{USER}",password="{PASSWORD}"]')
        ]
        command = ("kafka.tools.StorageTool", "format", "-t", _CLUSTER, "-c", str(properties), *users)
        if self._run("-Xmx64m", *command).wait(SECONDS_TO_START) != 0:
            raise RuntimeError(f"Kafka's folder could not be formatted:\n{self.log}")
        self.start()

    def _properties(self) -> Mapping[str, str]:
        plain, secure, controller, behind_proxy, proxy, tls = self._ports
        jaas = (
            "org.apache.kafka.common.security.plain.PlainLoginModule required "
            f'username="{USER}" password="{PASSWORD}" user_{USER}="{PASSWORD}";'
        )
        addresses = f"PLAINTEXT://127.0.0.1:{plain},SASL_PLAINTEXT://127.0.0.1:{secure},SSL://localhost:{tls}"
        one = {"replication.factor": "1", "min.isr": "1", "num.partitions": "1"}
        state = {f"transaction.state.log.{name}": value for name, value in one.items()}
        state |= {f"share.coordinator.state.topic.{name}": value for name, value in one.items()}
        return {
            "process.roles": "broker,controller",
            "node.id": "1",
            "controller.quorum.voters": f"1@127.0.0.1:{controller}",
            "listeners": f"{addresses},PROXY://127.0.0.1:{behind_proxy},CONTROLLER://127.0.0.1:{controller}",
            "advertised.listeners": f"{addresses},PROXY://127.0.0.1:{proxy}",
            "controller.listener.names": "CONTROLLER",
            "listener.security.protocol.map": (
                "PLAINTEXT:PLAINTEXT,SASL_PLAINTEXT:SASL_PLAINTEXT,SSL:SSL,PROXY:PLAINTEXT,CONTROLLER:PLAINTEXT"
            ),
            "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512",
            "listener.name.sasl_plaintext.plain.sasl.jaas.config": jaas,
            **{
                f"listener.name.sasl_plaintext.scram-sha-{bits}.sasl.jaas.config": (
                    "org.apache.kafka.common.security.scram.ScramLoginModule required;"
                )
                for bits in (256, 512)
            },
            "listener.name.ssl.ssl.keystore.type": "PEM",
            "listener.name.ssl.ssl.keystore.location": f"{self.folder}/broker.pem",
            "listener.name.ssl.ssl.truststore.type": "PEM",
            "listener.name.ssl.ssl.truststore.location": f"{self.folder}/ca.pem",
            "listener.name.ssl.ssl.client.auth": "required",
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "super.users": "User:ANONYMOUS",
            "allow.everyone.if.no.acl.found": "true",
            "log.dirs": f"{self.folder}/data",
            "offsets.topic.replication.factor": "1",
            "offsets.topic.num.partitions": "1",
            **state,
            "group.initial.rebalance.delay.ms": "0",
            "auto.create.topics.enable": "false",
            "log.cleaner.dedupe.buffer.size": "2097152",
            "num.network.threads": "2",
            "num.io.threads": "2",
            "background.threads": "2",
            "transaction.abort.timed.out.transaction.cleanup.interval.ms": "1000",
            # A broker that was killed is back within seconds.
            "broker.session.timeout.ms": "2000",
            "broker.heartbeat.interval.ms": "300",
            **self._settings,
        }

    def _run(self, memory: str, main: str, *arguments: str) -> subprocess.Popen[bytes]:
        return self._java(memory, "-cp", f"{jars()}/*", main, *arguments)

    def start(self) -> None:
        """Starts the broker, also one that was killed."""
        self._process = self._run("-Xmx384m", "kafka.Kafka", str(self.folder / "server.properties"))
        self._wait_until(self._answers)

    def _answers(self) -> bool:
        from confluent_kafka import KafkaException
        from confluent_kafka.admin import AdminClient

        # Brokers are listed once they are registered; a port that is open is not enough.
        try:
            client = AdminClient({"bootstrap.servers": self.servers, "log_level": 0})
            return bool(client.list_topics(timeout=2).brokers)
        except KafkaException:
            return False

    def crash(self, seconds_down: float = 0.0) -> None:
        """``kill -9``; some time later it is back, with what it had written."""
        self.kill()
        time.sleep(seconds_down)
        self.start()

    def create_topic(self, name: str, partitions: int = 1, **settings: str) -> str:
        """Makes a topic and waits until it can be used."""
        from confluent_kafka.admin import AdminClient, NewTopic

        client = AdminClient({"bootstrap.servers": self.servers, "log_level": 0})
        config = {key.replace("_", "."): value for key, value in settings.items()}
        for made in client.create_topics([NewTopic(name, partitions, 1, config=config)]).values():
            made.result(120)
        end = time.monotonic() + 120
        while not self._has_leaders(name, partitions):
            if time.monotonic() > end:
                raise RuntimeError(f"topic {name} got no leaders")
            time.sleep(0.02)
        return name

    def forbid(self, kind: str, name: str, operation: str) -> None:
        """Denies an operation on a ``topic``, ``group`` or ``transactional_id`` to :data:`USER`."""
        from confluent_kafka.admin import (
            AclBinding,
            AclOperation,
            AclPermissionType,
            AdminClient,
            ResourcePatternType,
            ResourceType,
        )

        rule = AclBinding(
            ResourceType[kind.upper()],
            name,
            ResourcePatternType.PREFIXED,
            f"User:{USER}",
            "*",
            AclOperation[operation.upper()],
            AclPermissionType.DENY,
        )
        client = AdminClient({"bootstrap.servers": self.servers, "log_level": 0})
        for made in client.create_acls([rule]).values():
            made.result(120)

    def _has_leaders(self, name: str, partitions: int) -> bool:
        from confluent_kafka import KafkaException, TopicPartition
        from confluent_kafka.admin import AdminClient, OffsetSpec

        client = AdminClient({"bootstrap.servers": self.servers, "log_level": 0})
        wanted = {TopicPartition(name, number): OffsetSpec.latest() for number in range(partitions)}
        try:
            for found in client.list_offsets(wanted, request_timeout=5).values():
                found.result()
        except KafkaException:
            return False
        return True


if __name__ == "__main__":
    sys.exit(run_with(KafkaServer, jars, "FIRESTEEL_KAFKA_SERVERS", "servers"))
