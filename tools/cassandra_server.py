"""A Cassandra of one's own: one node in a temporary folder, on loopback, on free ports.

Its jars are fetched once by Maven and kept in Firesteel's cache. From a shell it runs a command with
``FIRESTEEL_CASSANDRA_PORT`` set::

    .venv/bin/python tools/cassandra_server.py .venv/bin/python program.py
"""

from __future__ import annotations

import contextlib
import sys
import time
from pathlib import Path
from typing import Any

import local_server
from local_server import LocalServer, fetched, free_ports, maven, run_with, why_no_java_server

__all__ = ["PASSWORD", "USER", "VERSION", "CassandraServer", "cache", "jars", "why_not"]

VERSION = "5.0.9"
USER, PASSWORD = "cassandra", "cassandra"
"""Those that a new Cassandra has."""
_POM = Path(__file__).resolve().parent / "cassandra" / "pom.xml"
_OPENED = (
    "--add-exports=java.base/jdk.internal.misc=ALL-UNNAMED",
    "--add-exports=java.base/jdk.internal.ref=ALL-UNNAMED",
    "--add-exports=java.base/sun.nio.ch=ALL-UNNAMED",
    "--add-exports=java.management.rmi/com.sun.jmx.remote.internal.rmi=ALL-UNNAMED",
    "--add-exports=java.rmi/sun.rmi.registry=ALL-UNNAMED",
    "--add-exports=java.rmi/sun.rmi.server=ALL-UNNAMED",
    "--add-exports=java.sql/java.sql=ALL-UNNAMED",
    "--add-opens=java.base/java.lang.module=ALL-UNNAMED",
    "--add-opens=java.base/jdk.internal.loader=ALL-UNNAMED",
    "--add-opens=java.base/jdk.internal.ref=ALL-UNNAMED",
    "--add-opens=java.base/jdk.internal.reflect=ALL-UNNAMED",
    "--add-opens=java.base/jdk.internal.math=ALL-UNNAMED",
    "--add-opens=java.base/jdk.internal.module=ALL-UNNAMED",
    "--add-opens=java.base/jdk.internal.util.jar=ALL-UNNAMED",
    "--add-opens=jdk.management/com.sun.management.internal=ALL-UNNAMED",
    "--add-opens=java.base/sun.nio.ch=ALL-UNNAMED",
    "--add-opens=java.base/java.io=ALL-UNNAMED",
    "--add-opens=java.base/java.lang=ALL-UNNAMED",
    "--add-opens=java.base/java.lang.reflect=ALL-UNNAMED",
    "--add-opens=java.base/java.util=ALL-UNNAMED",
    "--add-opens=java.base/java.util.concurrent=ALL-UNNAMED",
    "--add-opens=java.base/java.util.concurrent.atomic=ALL-UNNAMED",
    "--add-opens=java.base/java.nio=ALL-UNNAMED",
    "--add-exports=java.base/java.lang.ref=ALL-UNNAMED",
    "--add-exports=java.base/java.lang.reflect=ALL-UNNAMED",
    "--add-exports=jdk.unsupported/sun.misc=ALL-UNNAMED",
)
"""What Cassandra needs of the JVM's own classes."""


def cache() -> Path:
    """Where the jars are, or will be."""
    return local_server.cache(f"cassandra-{VERSION}")


def why_not() -> str | None:
    """What is missing to run it here; None if nothing is."""
    return why_no_java_server("Cassandra", cache())


def jars() -> Path:
    """The folder with its jars, fetched if need be."""

    def fetch(folder: Path) -> None:
        maven("copy-dependencies", "-f", str(_POM), "-DincludeScope=runtime", into=folder, what="Cassandra")

    return fetched(cache(), fetch)


class CassandraServer(LocalServer):
    """A node between ``with`` and its end."""

    name = "Cassandra"

    def __init__(self) -> None:
        self.port = self._storage = self._jmx = 0
        super().__init__()

    def _set_up(self) -> None:
        self.port, self._storage, self._jmx = free_ports(3)
        data = self.folder / "data"
        data.mkdir()
        (self.folder / "cassandra.yaml").write_text(
            f"""
cluster_name: firesteel
num_tokens: 1
partitioner: org.apache.cassandra.dht.Murmur3Partitioner
authenticator: PasswordAuthenticator
data_file_directories: [{data}/data]
commitlog_directory: {data}/commitlog
hints_directory: {data}/hints
saved_caches_directory: {data}/caches
cdc_raw_directory: {data}/cdc
commitlog_sync: batch
seed_provider:
  - class_name: org.apache.cassandra.locator.SimpleSeedProvider
    parameters: [{{seeds: "127.0.0.1:{self._storage}"}}]
listen_address: 127.0.0.1
storage_port: {self._storage}
rpc_address: 127.0.0.1
native_transport_port: {self.port}
start_native_transport: true
endpoint_snitch: SimpleSnitch
memtable_heap_space: 64MiB
memtable_offheap_space: 64MiB
networking_cache_size: 32MiB
file_cache_size: 32MiB
concurrent_reads: 4
concurrent_writes: 4
"""
        )
        self.start()

    def start(self) -> None:
        """Starts it, or starts it again after ``kill``."""
        options = {
            "cassandra.config": f"file://{self.folder}/cassandra.yaml",
            "cassandra.storagedir": f"{self.folder}/data",
            "cassandra.skip_wait_for_gossip_to_settle": "0",
            "cassandra.ring_delay_ms": "1",
            "cassandra.superuser_setup_delay_ms": "0",
            "cassandra-foreground": "yes",
            "cassandra.jmx.local.port": str(self._jmx),
            "jdk.attach.allowAttachSelf": "true",
            "io.netty.tryReflectionSetAccessible": "true",
        }
        given = [f"-D{key}={value}" for key, value in options.items()]
        main = "org.apache.cassandra.service.CassandraDaemon"
        self._process = self._java("-Xms256m", "-Xmx512m", *given, *_OPENED, "-cp", f"{jars()}/*", main)
        self._wait_until(self._answers)

    def crash(self, seconds_down: float = 0.0) -> None:
        """``kill -9``; some time later it is back."""
        self.kill()
        time.sleep(seconds_down)
        self.start()

    def cluster(self) -> Any:
        from cassandra.auth import PlainTextAuthProvider
        from cassandra.cluster import Cluster

        return Cluster(["127.0.0.1"], port=self.port, auth_provider=PlainTextAuthProvider(USER, PASSWORD))

    def execute(self, *statements: str) -> list[Any]:
        """Runs statements; returns the rows of the last one."""
        with self.cluster() as cluster:
            session = cluster.connect()
            found: list[Any] = []
            for statement in statements:
                found = list(session.execute(statement))
            return found

    def _answers(self) -> bool:
        with contextlib.suppress(Exception):
            return bool(self.execute("SELECT release_version FROM system.local"))
        return False


if __name__ == "__main__":
    sys.exit(run_with(CassandraServer, jars, "FIRESTEEL_CASSANDRA_PORT", "port"))
