"""How a job manager is set up: settings of the configuration file, over which options of the command line win."""

from __future__ import annotations

import ipaddress
import os
import socket
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from firesteel.cluster.folders import default_folder
from firesteel.cluster.postgres import PostgresAddress
from firesteel.common.configuration import Configuration
from firesteel.errors import ConfigurationError

__all__ = ["ClusterSettings", "is_loopback", "registry_password"]


@dataclass(frozen=True)
class ClusterSettings:
    """Each field is a key of config.yaml, documented in docs/job-manager.md."""

    folder: Path = field(default_factory=default_folder)
    """``firesteel.cluster.dir``."""
    address: str = "127.0.0.1"
    """``rest.bind-address``."""
    port: int = 8081
    """``rest.port``; 0 takes any that is free."""
    slots: int = field(default_factory=lambda: os.cpu_count() or 1)
    """``firesteel.cluster.slots``: how many jobs run at the same time. Others wait."""
    advertised: str = ""
    """``rest.address``: the name by which other job managers and clients reach it; the address that it listens at, by
    default."""
    hosts: tuple[str, ...] = ()
    """``firesteel.cluster.hosts``: names by which clients may reach it, beside its address."""
    certificate: str = ""
    """``security.ssl.rest.certificate``: a PEM file with the certificate (and those above it)."""
    key: str = field(default="", repr=False)
    """``security.ssl.rest.key``: a PEM file with its key."""
    registry: str = ""
    """``firesteel.cluster.registry``: ``postgresql://user@host/database`` for several job managers; a file in the
    folder by default."""
    registry_password: str = field(default="", repr=False)
    """From ``FIRESTEEL_REGISTRY_PASSWORD``, or the file that ``firesteel.cluster.registry.password-file`` names."""
    cluster_id: str = "firesteel"
    """``high-availability.cluster-id``: the schema of the registry's tables, and the node in ZooKeeper."""
    zookeeper: str = ""
    """``high-availability.zookeeper.quorum``: where the election is, if not in the registry's database."""
    zookeeper_root: str = "/firesteel"
    """``high-availability.zookeeper.path.root``."""
    lease_ms: int = 6_000
    """``firesteel.cluster.lease``: after so long without a message a job manager is no longer the leader."""
    driver_lease_ms: int = 15_000
    """``firesteel.cluster.driver-lease``: after so long without one a driver of another machine counts as gone."""
    max_upload: int = 256 << 20
    """``firesteel.cluster.max-upload``."""
    max_programs: int = 2 << 30
    """``firesteel.cluster.max-programs``: bytes of all stored programs."""
    log_size: int = 16 << 20
    """``firesteel.cluster.log.size``: after so many bytes a log file is followed by a new one."""
    log_files: int = 5
    """``firesteel.cluster.log.files``: how many older ones are kept."""
    history: int = 100
    """``firesteel.cluster.history``: how many finished jobs are remembered."""
    poll_ms: int = 1000
    """``firesteel.cluster.poll-interval``: how often running jobs are asked."""
    plan_ms: int = 120_000
    """``firesteel.cluster.plan-timeout``: how long a program may take up to its execute()."""
    request_ms: int = 15_000
    """``firesteel.cluster.request-timeout``: how long a client may take to say what it wants."""
    cancel_ms: int = 60_000
    """``firesteel.cluster.cancel-timeout``: a driver that has not ended by then is killed."""
    warm_drivers: int = 1
    """``firesteel.cluster.warm-drivers``: how many drivers are started ahead and wait for a job."""
    warm_ms: int = 1_800_000
    """``firesteel.cluster.warm-driver-timeout``: for how long one waits; 0: until there is a job."""
    sql_sessions: int = 4
    """``sql-gateway.session.max-num``: how many SQL sessions there may be; 0: none."""
    sql_idle_ms: int = 600_000
    """``sql-gateway.session.idle-timeout``: one that nobody asks for so long ends; 0: never."""

    @staticmethod
    def of(configuration: Configuration, **options: Any) -> ClusterSettings:
        """
        >>> ClusterSettings.of(Configuration.from_dict({"rest.port": "9000"}), slots=3, port=None).port
        9000
        """
        known = ClusterSettings()
        read = configuration
        prefix = "firesteel.cluster."
        settings = ClusterSettings(
            folder=Path(read.get_string(f"{prefix}dir", str(known.folder))),
            address=read.get_string("rest.bind-address", known.address),
            port=read.get_integer("rest.port", known.port),
            slots=read.get_integer(f"{prefix}slots", known.slots),
            advertised=read.get_string("rest.address", ""),
            registry=read.get_string(f"{prefix}registry", ""),
            cluster_id=read.get_string("high-availability.cluster-id", known.cluster_id),
            zookeeper=read.get_string("high-availability.zookeeper.quorum", ""),
            zookeeper_root=read.get_string("high-availability.zookeeper.path.root", known.zookeeper_root),
            lease_ms=read.get_duration_ms(f"{prefix}lease", known.lease_ms),
            driver_lease_ms=read.get_duration_ms(f"{prefix}driver-lease", known.driver_lease_ms),
            hosts=tuple(one.strip() for one in read.get_string(f"{prefix}hosts", "").split(",") if one.strip()),
            certificate=read.get_string("security.ssl.rest.certificate", ""),
            key=read.get_string("security.ssl.rest.key", ""),
            max_upload=read.get_memory_bytes(f"{prefix}max-upload", known.max_upload),
            max_programs=read.get_memory_bytes(f"{prefix}max-programs", known.max_programs),
            log_size=read.get_memory_bytes(f"{prefix}log.size", known.log_size),
            log_files=read.get_integer(f"{prefix}log.files", known.log_files),
            history=read.get_integer(f"{prefix}history", known.history),
            poll_ms=read.get_duration_ms(f"{prefix}poll-interval", known.poll_ms),
            plan_ms=read.get_duration_ms(f"{prefix}plan-timeout", known.plan_ms),
            request_ms=read.get_duration_ms(f"{prefix}request-timeout", known.request_ms),
            cancel_ms=read.get_duration_ms(f"{prefix}cancel-timeout", known.cancel_ms),
            warm_drivers=read.get_integer(f"{prefix}warm-drivers", known.warm_drivers),
            warm_ms=read.get_duration_ms(f"{prefix}warm-driver-timeout", known.warm_ms),
            sql_sessions=read.get_integer("sql-gateway.session.max-num", known.sql_sessions),
            sql_idle_ms=read.get_duration_ms("sql-gateway.session.idle-timeout", known.sql_idle_ms),
        )
        given = {key: value for key, value in options.items() if value is not None}
        if not given.get("registry_password") and (given.get("registry") or settings.registry):
            given["registry_password"] = registry_password(read.get_string(f"{prefix}registry.password-file", ""))
        return replace(settings, **given).checked()

    def checked(self) -> ClusterSettings:
        if self.slots < 1:
            raise ConfigurationError(f"A job manager needs at least one slot, got {self.slots}.")
        if self.warm_drivers < 0:
            raise ConfigurationError(f"There cannot be {self.warm_drivers} warm drivers; 0 starts none ahead.")
        if not 0 <= self.port < 65536:
            raise ConfigurationError(f"Setting 'rest.port' should lie between 0 and 65535, got {self.port}.")
        if bool(self.certificate) != bool(self.key):
            raise ConfigurationError("TLS takes both a certificate and its key.")
        if not is_loopback(self.address) and not self.certificate:
            raise ConfigurationError(
                f"{self.address} can be reached from other machines. Programs that are uploaded run as your user, so "
                "that takes TLS: set security.ssl.rest.certificate and security.ssl.rest.key, or stay on 127.0.0.1."
            )
        if self.zookeeper and not self.registry:
            raise ConfigurationError(
                "ZooKeeper elects one of several job managers; what they know is in a database. Name it with "
                "--registry postgresql://user@host/database."
            )
        if self.registry:
            # Says what is wrong with them.
            _ = self.database
            if self.lease_ms < 1000 or self.driver_lease_ms < 1000:
                raise ConfigurationError(
                    f"A lease shorter than a second would run out by itself, got {self.lease_ms} and "
                    f"{self.driver_lease_ms} ms."
                )
        return self

    @property
    def highly_available(self) -> bool:
        """Whether there may be other job managers."""
        return bool(self.registry)

    @property
    def database(self) -> PostgresAddress:
        return PostgresAddress.of(self.registry, self.registry_password, self.cluster_id)

    @property
    def public_host(self) -> str:
        """The name or address by which others reach it.

        >>> ClusterSettings(address="10.0.0.7").public_host, ClusterSettings(advertised="jobs1").public_host
        ('10.0.0.7', 'jobs1')
        """
        return self.advertised or (socket.gethostname() if self.address in ("0.0.0.0", "::") else self.address)

    @property
    def scheme(self) -> str:
        return "https" if self.certificate else "http"


def registry_password(file: str = "") -> str:
    """From a file that only this user can read, or from the environment. Without one, libpq's own ways are left:
    PGPASSWORD, ~/.pgpass."""
    if not file:
        return os.environ.get("FIRESTEEL_REGISTRY_PASSWORD", "")
    try:
        if os.stat(file).st_mode & 0o077:
            raise ConfigurationError(f"Others can read the password in {file}: give it mode 0600.")
        return Path(file).read_text(encoding="utf-8").rstrip("\n")
    except OSError as error:
        raise ConfigurationError(f"The password of the registry cannot be read from {file}: {error}.") from error


def is_loopback(address: str) -> bool:
    """
    >>> [is_loopback(one) for one in ("127.0.0.1", "::1", "localhost", "0.0.0.0", "example.org")]
    [True, True, True, False, False]
    """
    if address == "localhost":
        return True
    try:
        return ipaddress.ip_address(address).is_loopback
    except ValueError:
        return False
