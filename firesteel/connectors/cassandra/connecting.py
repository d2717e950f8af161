"""Where a Cassandra is, and its errors reported with what to do."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from firesteel.common.secret import Secret
from firesteel.errors import ConnectorError, FailureKind, SetupError, short_repr

__all__ = ["CassandraAddress", "as_connector_error", "load_driver"]

_PASSING = (
    "Unavailable",
    "WriteTimeout",
    "ReadTimeout",
    "OperationTimedOut",
    "OverloadedErrorMessage",
    "IsBootstrappingErrorMessage",
    "ServerError",
    "WriteFailure",
    "ConnectionException",
    "ConnectionShutdown",
    "NoConnectionsAvailable",
    "RateLimitReached",
)
"""Names of errors of a cluster that may give another answer later."""


def load_driver(name: str = "cassandra.cluster") -> Any:
    """A module of the driver."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise SetupError(
            f"Cassandra needs the package cassandra-driver, which cannot be imported here ({error}). "
            "Install it where the job runs: pip install 'firesteel[cassandra]'."
        ) from None


@dataclass(frozen=True)
class CassandraAddress:
    """Nodes to begin with, and who asks. Its text never has the password."""

    hosts: tuple[str, ...]
    port: int = 9042
    user: str | None = field(default=None, repr=False)
    password: Secret | None = field(default=None, repr=False)
    builder: Callable[[], Any] | None = field(default=None, repr=False)
    """Makes a ``cassandra.cluster.Cluster``, in place of all of these."""

    def __str__(self) -> str:
        return "the given cluster" if self.builder is not None else f"{', '.join(self.hosts)}:{self.port}"

    def cluster(self, timestamps: Callable[[], int]) -> Any:
        """A cluster of the driver's. Secrets are looked up now: in the process that connects."""
        if self.builder is not None:
            made = self.builder()
            made.timestamp_generator = timestamps
            return made
        given: dict[str, Any] = {}
        if self.user is not None:
            login = load_driver("cassandra.auth").PlainTextAuthProvider
            given["auth_provider"] = login(self.user, self.password.reveal() if self.password is not None else "")
        policies = load_driver("cassandra.policies")
        profile = load_driver().ExecutionProfile(
            load_balancing_policy=policies.TokenAwarePolicy(policies.RoundRobinPolicy()), request_timeout=30
        )
        return load_driver().Cluster(
            list(self.hosts),
            port=self.port,
            timestamp_generator=timestamps,
            execution_profiles={load_driver().EXEC_PROFILE_DEFAULT: profile},
            connect_timeout=10,
            **given,
        )


def as_connector_error(
    address: CassandraAddress, error: BaseException, doing: str, element: object = None
) -> ConnectorError:
    """An error of the driver's: where, what was tried, what the cluster said, what to do."""
    said = " ".join(str(error).split())
    name = type(error).__name__
    inner = [error, *getattr(error, "errors", {}).values()] if name == "NoHostAvailable" else [error]
    names = {type(one).__name__ for one in inner if not isinstance(one, str)}
    if "AuthenticationFailed" in names or "Unauthorized" in names:
        what, advice = "refused the login", "Check the user name, the password and the user's rights."
        kind = FailureKind.PERMANENT
        return ConnectorError(f"Cassandra at {address} {what} ({doing}): {advice}", kind=kind)
    if name == "NoHostAvailable" or isinstance(error, OSError):
        reasons = [" ".join(str(one).split()) for one in inner[1:]] or [said]
        return ConnectorError(
            f"Cassandra at {address} cannot be reached ({doing}): {reasons[-1].rstrip('.')}. Check that it runs there."
        )
    if name == "UnresolvableContactPoints":
        return ConnectorError(f"Cassandra at {address} cannot be reached ({doing}): no such host. Check its name.")
    text = f"Cassandra at {address} refused {doing}: {said.rstrip('.')}."
    if "unconfigured table" in said or "does not exist" in said:
        text += " Create the table first."
    if element is not None:
        text += f" The record is {short_repr(element, 200)}."
    bases = {base.__name__ for base in type(error).__mro__}
    return ConnectorError(text, kind=FailureKind.PASSING if bases & set(_PASSING) else FailureKind.PERMANENT)
