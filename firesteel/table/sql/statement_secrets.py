"""Passwords in statements: found, so that they are shown nowhere."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from typing import NamedTuple

from firesteel.common.secret import is_secret_key, secrets_in_urls, without_url_secrets
from firesteel.table.sql.tokens import Token, TokenKind, tokens_of

__all__ = ["MASK", "masked_statement", "secrets_of", "shown_settings"]

MASK = "******"
_BARE = re.compile(r"[^\s,);']+")


class _Option(NamedTuple):
    key: str
    value: str
    start: int
    """Where the value begins in the statement."""
    end: int


def secrets_of(text: str) -> list[str]:
    """The values of options and settings whose keys say that they are secret, and passwords in URLs.

    >>> secrets_of("CREATE TABLE t (n INT) WITH ('password' = 'hunter2', 'url' = 'redis://ada:s3cret@db/0')")
    ['hunter2', 's3cret']
    >>> secrets_of("CREATE TABLE t (n INT) WITH ('url' = 'jdbc:postgresql://db/shop?user=ada&password=swordfish')")
    ['swordfish']
    """
    options = list(_options(text))
    found = [one.value for one in options if is_secret_key(one.key)]
    found += [secret for one in options for secret in secrets_in_urls(one.value)]
    return [one for one in found if one]


def masked_statement(text: str) -> str:
    """A statement as it may be shown.

    >>> masked_statement("SET 'shop.token' = 'hunter2'"), masked_statement("SELECT 'password' = 'x'")
    ("SET 'shop.token' = '******'", "SELECT 'password' = '******'")
    """
    pieces, at = [], 0
    for one in _options(text):
        if is_secret_key(one.key) and one.start >= at:
            pieces += [text[at : one.start], f"'{MASK}'"]
            at = one.end
    return without_url_secrets("".join([*pieces, text[at:]]), MASK)


def shown_settings(settings: dict[str, str]) -> dict[str, str]:
    """Settings as they may be shown.

    >>> shown_settings({"a.token": "x", "url": "amqp://u:p@h/", "n": "1"})
    {'a.token': '******', 'url': 'amqp://u:******@h/', 'n': '1'}
    """
    return {
        key: MASK if is_secret_key(key) else without_url_secrets(str(value), MASK) for key, value in settings.items()
    }


def _options(text: str) -> Iterator[_Option]:
    """``'key' = 'value'``, wherever it stands: a statement that cannot be parsed has passwords, too. So an option may
    lack its sign, and its value the quotes."""
    tokens = tokens_of(text)
    settings = bool(tokens) and tokens[0].upper == "SET"
    for at, (key, value) in enumerate(itertools.pairwise(tokens)):
        if key.kind not in (TokenKind.STRING, TokenKind.WORD):
            continue
        signed = value.upper == "="
        if signed:
            if at + 2 == len(tokens):
                return
            value = tokens[at + 2]
        if value.kind is TokenKind.STRING and (signed or key.kind is TokenKind.STRING):
            # A string without an end has its quote.
            yield _Option(key.text, value.text.removeprefix("'"), *value.span)
        elif signed and (settings or key.kind is TokenKind.STRING):
            yield from _bare(text, key, value)


def _bare(text: str, key: Token, value: Token) -> Iterator[_Option]:
    found = _BARE.match(text, value.span.start)
    if found is not None:
        yield _Option(key.text, found[0], *found.span())
