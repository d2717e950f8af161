"""Texts without the secrets that are known here: settings whose key says that they are secret, and the tokens."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from firesteel.common.secret import is_secret_key, without_url_secrets

__all__ = ["MASK", "Masker", "masked_settings"]

MASK = "******"

SHORTEST = 4
"""A shorter secret would make stars of half of a text, and is none."""


class Masker:
    """
    >>> masker = Masker({"shop.password": "hunter2", "shop.name": "corner"})
    >>> masker.text("corner: hunter2 at http://me:pass@host/"), masker.tree({"a": ["hunter2", 3]})
    ('corner: ****** at http://me:******@host/', {'a': ['******', 3]})
    """

    def __init__(self, settings: Mapping[str, str], others: Iterable[str] = ()) -> None:
        secrets = {value for key, value in settings.items() if is_secret_key(key)} | set(others)
        # The longest first: one may be part of another.
        known = sorted((one for one in secrets if len(one) >= SHORTEST), key=len, reverse=True)
        self._secrets = re.compile("|".join(re.escape(one) for one in known)) if known else None

    def text(self, text: str) -> str:
        if self._secrets is not None:
            text = self._secrets.sub(MASK, text)
        return without_url_secrets(text, MASK)

    def tree(self, value: Any) -> Any:
        """The same in all texts of a JSON value."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, dict):
            return {key: self.tree(one) for key, one in value.items()}
        if isinstance(value, list | tuple):
            return [self.tree(one) for one in value]
        return value


def masked_settings(settings: Mapping[str, str]) -> dict[str, str]:
    """
    >>> masked_settings({"a.token": "x", "url": "jdbc://u:p@h/", "n": "1"})
    {'a.token': '******', 'url': 'jdbc://u:******@h/', 'n': '1'}
    """
    return {key: MASK if is_secret_key(key) else without_url_secrets(value, MASK) for key, value in settings.items()}
