"""Where a MariaDB or MySQL is: JDBC's addresses, understood without Java."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from firesteel.common.secret import Secret
from firesteel.connectors.jdbc.address import DatabaseAddress, shown
from firesteel.errors import ProgramError

__all__ = ["MySqlAddress"]

_WITHOUT_MEANING = (
    "rewriteBatchedStatements",
    "useServerPrepStmts",
    "cachePrepStmts",
    "useUnicode",
    "characterEncoding",
    "serverTimezone",
    "connectionTimeZone",
    "allowPublicKeyRetrieval",
    "tcpKeepAlive",
    "pinGlobalTxToPhysicalConnection",
    "allowMultiQueries",
)
"""Parameters that tune Java's drivers, or that are so here in any case."""


@dataclass(frozen=True)
class MySqlAddress(DatabaseAddress):
    """One database and who asks. Its text never has the password.

    >>> MySqlAddress.parse("jdbc:mysql://db.example:3307/shop?user=ada&password=secret")
    MySqlAddress(host='db.example', port=3307, database='shop')
    >>> str(MySqlAddress.parse("mariadb://ada:secret@db/shop"))
    'db:3306/shop'
    """

    host: str
    port: int
    database: str
    user: str | None = field(default=None, repr=False)
    password: Secret | None = field(default=None, repr=False)
    parameters: tuple[tuple[str, Any], ...] = field(default=(), repr=False)
    """More for the driver."""
    server: str = field(default="MySQL", repr=False)
    """What the address calls the server."""

    @staticmethod
    def parse(url: str, user: str | None = None, password: str | Secret | None = None) -> MySqlAddress:
        """Reads an address; ``user`` and ``password`` override those in it."""
        parts = urlsplit(url.removeprefix("jdbc:"))
        try:
            host, port = unquote(parts.hostname or "localhost"), parts.port or 3306
        except ValueError:
            # Not with what it says of it, which may quote the password.
            raise ProgramError(f"The port in {shown(url)} must be a number.") from None
        if not url.partition(":")[2].removeprefix(parts.scheme + ":").startswith("//") and "//" not in url:
            raise ProgramError(
                f"The address {shown(url)} cannot be read. It should be jdbc:mysql://host:port/database."
            )
        known: dict[str, Any] = {}
        for key, value in parse_qsl(parts.query, keep_blank_values=True):
            known.update(_parameter(key, value, url))
        user = user or known.pop("user", None) or (unquote(parts.username) if parts.username else None)
        given = known.pop("password", None) or (unquote(parts.password) if parts.password else None)
        password = password or given
        known.pop("user", None)
        database = unquote(parts.path.lstrip("/"))
        hidden = Secret.of(password) if password else None
        server = "MariaDB" if parts.scheme == "mariadb" else "MySQL"
        return MySqlAddress(host, port, database, user, hidden, tuple(known.items()), server)

    def __str__(self) -> str:
        return f"{self.host}:{self.port}/{self.database}"

    def arguments(self) -> dict[str, Any]:
        found: dict[str, Any] = {"host": self.host, "port": self.port, "connect_timeout": 10}
        if self.database:
            found["database"] = self.database
        if self.user:
            found["user"] = self.user
        if self.password:
            found["password"] = self.password.reveal()
        return {**found, **dict(self.parameters)}

    def without_password(self, text: str) -> str:
        return self.password.mask(text) if self.password else text


def _parameter(key: str, value: str, url: str) -> dict[str, Any]:
    if key in ("user", "password"):
        return {key: value}
    if key == "connectTimeout":
        # Java's is in milliseconds.
        return {"connect_timeout": max(1, int(value) // 1000)}
    if key in ("useSSL", "useSsl"):
        return {} if value == "false" else {"ssl": {}}
    if key in ("sslMode", "ssl-mode"):
        return _ssl(value.upper().replace("-", "_"))
    if key == "sslrootcert" or key == "serverSslCert":
        return {"ssl_ca": value, "ssl_verify_cert": True}
    if key in _WITHOUT_MEANING:
        return {}
    raise ProgramError(f"The parameter {key!r} in {shown(url)} is not known.")


def _ssl(mode: str) -> dict[str, Any]:
    if mode in ("DISABLED", "DISABLE", "PREFERRED"):
        return {}
    verified = mode in ("VERIFY_CA", "VERIFY_IDENTITY", "VERIFY_FULL")
    return {"ssl": {}, "ssl_verify_cert": verified, "ssl_verify_identity": mode in ("VERIFY_IDENTITY", "VERIFY_FULL")}
