"""Where a database is: JDBC's addresses, understood without Java."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl

from firesteel.common.secret import Secret
from firesteel.connectors.jdbc.address import DatabaseAddress, shown
from firesteel.connectors.postgresql.loading import load_driver
from firesteel.errors import ProgramError

__all__ = ["Address"]

_PREFIXES = ("jdbc:postgresql:", "postgresql:", "postgres:")

_PLAIN = ("user", "password", "sslmode", "sslrootcert", "sslcert", "sslkey", "sslpassword", "options", "service")
"""Parameters that libpq knows by the same name."""

_SECRET = ("password", "sslpassword")

_RENAMED = {
    "ApplicationName": "application_name",
    "connectTimeout": "connect_timeout",
    "loginTimeout": "connect_timeout",
    "application_name": "application_name",
    "connect_timeout": "connect_timeout",
}

_WITHOUT_MEANING = (
    "reWriteBatchedInserts",
    "prepareThreshold",
    "preparedStatementCacheQueries",
    "defaultRowFetchSize",
    "binaryTransfer",
    "stringtype",
    "socketTimeout",
    "tcpKeepAlive",
    "loggerLevel",
)
"""Parameters that tune the Java driver."""


@dataclass(frozen=True)
class Address(DatabaseAddress):
    """One database and who asks. Its text never has the password.

    >>> Address.parse("jdbc:postgresql://db.example:5433/shop?user=ada&password=secret")
    Address(hosts='db.example', ports='5433', database='shop')
    >>> str(Address.parse("jdbc:postgresql:shop"))
    'localhost:5432/shop'
    """

    hosts: str
    """One, or several with commas in between, of which the first that answers is taken."""
    ports: str
    database: str
    user: str | None = field(default=None, repr=False)
    password: Secret | None = field(default=None, repr=False)
    parameters: tuple[tuple[str, str | Secret], ...] = field(default=(), repr=False)
    """More for libpq."""

    @staticmethod
    def parse(url: str, user: str | None = None, password: str | Secret | None = None) -> Address:
        """Reads an address; ``user`` and ``password`` override those in it."""
        rest, _, query = _without_prefix(url).partition("?")
        known = _libpq(rest, url)
        hosts, ports = _servers(known.pop("host", ""), known.pop("port", ""), url)
        database = known.pop("dbname", "")
        # The parameters are those of Java's driver: some have other names than libpq's, some mean nothing here.
        for key, value in parse_qsl(query, keep_blank_values=True):
            known = {**_parameter(key, value, url), **known}
        user, password = user or known.get("user"), password or known.get("password")
        parameters = tuple(
            (name, Secret(value) if name in _SECRET else value)
            for name, value in known.items()
            if name not in ("user", "password")
        )
        hidden = Secret.of(password) if password else None
        return Address(hosts, ports, database or user or "postgres", user, hidden, parameters)

    def __str__(self) -> str:
        servers = zip(self.hosts.split(","), self.ports.split(","), strict=True)
        return f"{','.join(f'{host}:{port}' for host, port in servers)}/{self.database}"

    def arguments(self) -> dict[str, Any]:
        """What libpq is given. Without a user or a password it looks into the environment and into ~/.pgpass. Secrets
        are looked up now: in the process that connects, and each time that it does."""
        found: dict[str, Any] = {"host": self.hosts, "port": self.ports, "dbname": self.database}
        if self.user:
            found["user"] = self.user
        if self.password:
            found["password"] = self.password
        given = {"connect_timeout": "10", **found, **dict(self.parameters)}
        return {name: value.reveal() if isinstance(value, Secret) else value for name, value in given.items()}

    def conninfo(self, **defaults: str) -> str:
        """The same as one text of libpq's, over ``defaults``. It holds the password: to be used, not kept or shown."""
        text: str = load_driver().conninfo.make_conninfo("", **{**defaults, **self.arguments()})
        return text

    def without_password(self, text: str) -> str:
        """A text in which the password does not stand, whoever wrote it."""
        for secret in (self.password, *(value for _, value in self.parameters)):
            if isinstance(secret, Secret):
                text = secret.mask(text)
        return text


def _without_prefix(url: str) -> str:
    return next((url[len(prefix) :] for prefix in _PREFIXES if url.startswith(prefix)), url)


def _libpq(rest: str, url: str) -> dict[str, str]:
    """What libpq makes of an address without its parameters."""
    driver = load_driver()
    text = f"postgresql:{rest if rest.startswith('//') else f'///{rest}'}"
    try:
        return {name: str(value) for name, value in driver.conninfo.conninfo_to_dict(text).items()}
    except driver.ProgrammingError:
        # Not with what libpq says of it, which may quote the password.
        raise ProgramError(
            f"The address {shown(url)} cannot be read. It should be jdbc:postgresql://host:port/database, with special "
            "characters in names and passwords written as %40 and the like."
        ) from None


def _servers(hosts: str, ports: str, url: str) -> tuple[str, str]:
    names = hosts.split(",")
    numbers = ports.split(",") if ports else []
    numbers += [""] * (len(names) - len(numbers))
    for port in numbers:
        if port and not port.isdigit():
            # With a login in the address it may be a part of the password.
            got = "" if "@" in url else f", got {port!r}"
            raise ProgramError(f"The port in {shown(url)} must be a number{got}.")
    return ",".join(name or "localhost" for name in names), ",".join(port or "5432" for port in numbers)


def _parameter(key: str, value: str, url: str) -> dict[str, str]:
    if key in _PLAIN:
        return {key: value}
    if key in _RENAMED:
        return {_RENAMED[key]: value}
    if key == "ssl":
        return {} if value == "false" else {"sslmode": "verify-full"}
    if key == "currentSchema":
        # libpq parts options at spaces.
        return {"options": "-c search_path=" + value.replace("\\", "\\\\").replace(" ", "\\ ")}
    if key == "targetServerType":
        return {"target_session_attrs": {"primary": "read-write", "secondary": "standby"}.get(value, "any")}
    if key in _WITHOUT_MEANING:
        return {}
    raise ProgramError(f"The parameter {key!r} in {shown(url)} is not known.")
