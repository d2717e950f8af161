"""Addresses of databases as JDBC writes them: what they have in common, and what of them may be shown."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any

from firesteel.common.secret import Secret, url_secret_spans, without_url_secrets

__all__ = ["AddressReference", "AnyAddress", "DatabaseAddress", "has_password", "shown"]


class DatabaseAddress(ABC):
    """One database and who asks. Its text never has the password."""

    @abstractmethod
    def __str__(self) -> str: ...

    @abstractmethod
    def arguments(self) -> dict[str, Any]:
        """What the driver is given, secrets among it: to be used, not kept or shown."""

    @abstractmethod
    def without_password(self, text: str) -> str:
        """A text in which the password does not stand, whoever wrote it."""

    def resolve(self) -> DatabaseAddress:
        """The address itself, where this is only a reference to it."""
        return self


@dataclass(frozen=True)
class AddressReference(DatabaseAddress):
    """An address that is looked up where it is used, each time anew: neither it nor its parts travel with a job.

    >>> import os
    >>> os.environ["SHOP"] = "jdbc:postgresql://db/shop?user=ada&password=secret"
    >>> address = AddressReference(Secret.from_environment("SHOP"))
    >>> address
    AddressReference(url=Secret(environment variable 'SHOP'))
    >>> str(address), address.arguments()["password"]
    ('db:5432/shop', 'secret')
    """

    url: Secret
    user: str | None = field(default=None, repr=False)
    password: Secret | None = field(default=None, repr=False)

    def resolve(self) -> DatabaseAddress:
        # Dialects have addresses of their own, which are made of the parts above.
        from firesteel.connectors.jdbc.dialect import dialect_of

        url = self.url.reveal()
        return dialect_of(url).parse(url, self.user, self.password)

    def __str__(self) -> str:
        return str(self.resolve())

    def arguments(self) -> dict[str, Any]:
        return self.resolve().arguments()

    def without_password(self, text: str) -> str:
        return self.resolve().without_password(self.url.mask(text))


AnyAddress = DatabaseAddress


def shown(url: str) -> str:
    """An address as it may be shown: without what may hold a password.

    >>> shown("jdbc:postgresql://ada:secret@db/shop?password=secret")
    'jdbc:postgresql://db/shop'
    """
    # A password may hold a question mark.
    plain = without_url_secrets(url).partition("?")[0]
    kind, slashes, rest = plain.partition("//")
    return f"{kind}{slashes}{rest.rpartition('@')[2]}" if slashes else plain


def has_password(url: str) -> bool:
    """Whether a password may stand in an address.

    >>> has_password("jdbc:postgresql://ada:secret@db/shop"), has_password("jdbc:postgresql://db/shop?user=ada")
    (True, False)
    """
    return "@" in url.partition("?")[0] or bool(url_secret_spans(url))
