"""Passwords and keys: held so that they are not shown, and not stored where they need not be."""

from __future__ import annotations

import contextlib
import os
import re
import threading
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import unquote_plus

from firesteel.errors import ConfigurationError

__all__ = ["Secret", "is_secret_key", "secrets_in_urls", "secrets_left_out", "url_secret_spans", "without_url_secrets"]

_SECRET_KEY = re.compile(
    r"(?i)password|passwd|secret|token|credential|(access|api|private|account)[._-]?key"
    # Kafka's: a key itself, and lines that hold a login.
    r"|key[._-]pem|keystore[._-]key$|jaas|oauthbearer[._-]config"
    # A registry's: a user with the password.
    r"|user[._-]info"
)
_SECRET_PARAMETERS = ("pass", "passphrase", "pwd", "sig")
"""Of a URL, besides those whose name says it of settings, too."""
_ACCOUNT = re.compile(
    # A number before a slash is the port of an address with an @ in its path. Passwords may have slashes and an @.
    r"""(?<=://)[^/\s:@'"]*:(?!\d{1,5}(?:[/?#,]|$))(?P<secret>(?:(?!://)[^\s'"])+|[^/\s@]+)@"""
)
_PARAMETER = re.compile(
    r"""(?:[?&](?P<key>[\w.-]+)=(?P<value>[^&\s'"]+))|(?:;(?P<name>[\w.-]+)=(?P<text>\{[^}]*+(?:\}\}[^}]*+)*+\}|[^;&\s'"]+))"""
)
_ORACLE = re.compile(r"""jdbc:oracle:\w+:(?:\\?"[^"\n]*"|[^/\s@:]+)/(?P<secret>\\?"[^"\n]*"|(?:(?!jdbc:)[^\s"])+)@""")
"""Before the address stand the user and the password, with a slash between them; each may be in quotes."""
_SQL_SERVER = re.compile(r"""(?P<quote>['"]?)jdbc:sqlserver:(?:(?!jdbc:)[^\n])*""")
"""An address and the rest of its line."""


def _sql_server_parameter(whole: str) -> re.Pattern[str]:
    return re.compile(
        r""";\s*(?P<key>[\w.-]+)\s*=[^\S\n]*(?=\S)(?P<value>\{[^}]*+(?:\}\}[^}]*+)*+\}|"""
        + whole
        + r"""|(?:[^;\s'"]|['"](?=\w))+)"""
    )


_SQL_SERVER_PARAMETERS = {
    # What stands behind the address begins with a space, too. Another parameter tells that it is not prose.
    "": _sql_server_parameter(r"(?:(?!\s\S*://)[^;\n])+?(?=;[\w.-]+=)"),
    "'": _sql_server_parameter(r"(?:[^;\n']|'')+?(?=;|\\?'(?!'))"),
    '"': _sql_server_parameter(r'(?:[^;\n"])+?(?=;|\\?")'),
}
"""By the quote before the address. Values may have spaces."""
_JDBC = re.compile(r"""jdbc:[^\s'"]+""")
_JDBC_KEY = re.compile(r"[:,/(](?P<key>[\w.-]+)=")
"""Db2, Teradata and MySQL have parameters behind other signs than the rest. Values may have parameters inside."""
_JDBC_VALUE = re.compile(r"""[^;,&\s'"]+""")

_pickling = threading.local()


class Secret:
    """A text that does not show: not in a log, an error, or the text of the objects that hold it.

    >>> password = Secret("hunter2")
    >>> password, f"{password}", password.reveal()
    (Secret(***), '***', 'hunter2')

    Better is to say where it is to be found. Then it is not part of the program that travels to the workers, and is
    looked up where it is used, each time anew:

    >>> import os
    >>> os.environ["SHOP_PASSWORD"] = "hunter2"
    >>> password = Secret.from_environment("SHOP_PASSWORD")
    >>> password, password.reveal()
    (Secret(environment variable 'SHOP_PASSWORD'), 'hunter2')
    >>> Secret.from_call(lambda: "hunter2").reveal()
    'hunter2'

    A secret that is held as text travels to the workers with the functions that hold it. It is not kept with the job in
    a checkpoint folder.
    """

    __slots__ = ("_call", "_seen", "_text", "_variable")

    def __init__(self, text: str | None) -> None:
        self._text = text
        self._variable: str | None = None
        self._call: Callable[[], str] | None = None
        self._seen = text
        """What it was when it was last looked up: it must not be shown either."""

    @classmethod
    def from_environment(cls, variable: str) -> Secret:
        """What an environment variable holds in the process that uses it."""
        secret = cls(None)
        secret._variable = variable
        return secret

    @classmethod
    def from_call(cls, call: Callable[[], str]) -> Secret:
        """What a function gives, in the process that uses it: one that reads a file or asks a vault."""
        secret = cls(None)
        secret._call = call
        return secret

    @classmethod
    def of(cls, value: str | Secret | Callable[[], str]) -> Secret:
        """A text, a function that gives one, or a secret itself, as a secret."""
        if isinstance(value, Secret):
            return value
        if isinstance(value, str):
            return cls(value)
        if not callable(value):
            raise ConfigurationError(
                f"A secret is a text, a Secret, or a function that gives a text; got one of {type(value).__name__}."
            )
        return cls.from_call(value)

    @property
    def is_reference(self) -> bool:
        """Whether it says where the text is to be found, and does not hold it."""
        return self._variable is not None or self._call is not None

    def reveal(self) -> str:
        """The text. Ask for it where it is used, and do not keep it."""
        if self._call is not None:
            self._seen = self._call()
        elif self._variable is not None:
            self._seen = os.environ.get(self._variable)
            if self._seen is None:
                raise ConfigurationError(
                    f"A secret is to be found in the environment variable {self._variable!r}, which is not set in "
                    "this process. Set it before the job starts, on a cluster also where the workers run."
                )
        if self._seen is None:
            raise ConfigurationError(
                "A secret was left out when the job was stored in its checkpoint folder. Run what needs it with the "
                "program itself."
            )
        return self._seen

    def mask(self, text: str) -> str:
        """A text of anybody's in which the secret does not stand.

        >>> Secret("hunter2").mask("login with hunter2 failed")
        'login with *** failed'
        """
        if self._variable is not None:
            self._seen = os.environ.get(self._variable, self._seen)
        return text.replace(self._seen, "***") if self._seen else text

    def __repr__(self) -> str:
        if self._variable is not None:
            return f"Secret(environment variable {self._variable!r})"
        return f"Secret({getattr(self._call, '__name__', 'a call')}())" if self._call is not None else "Secret(***)"

    def __str__(self) -> str:
        return "***"

    def _known(self) -> tuple[Any, ...]:
        return self._text, self._variable, self._call

    def __eq__(self, other: object) -> bool:
        return self._known() == other._known() if isinstance(other, Secret) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._known())

    def __reduce__(self) -> tuple[Any, ...]:
        if self._variable is not None:
            return Secret.from_environment, (self._variable,)
        if self._call is not None:
            return Secret.from_call, (self._call,)
        return Secret, (None if getattr(_pickling, "left_out", False) else self._text,)


@contextlib.contextmanager
def secrets_left_out() -> Iterator[None]:
    """What is pickled meanwhile by this thread holds no secrets: for what is stored.

    >>> import pickle
    >>> with secrets_left_out():
    ...     b"hunter2" in pickle.dumps(Secret("hunter2"))
    False
    """
    before = getattr(_pickling, "left_out", False)
    _pickling.left_out = True
    try:
        yield
    finally:
        _pickling.left_out = before


def is_secret_key(key: str) -> bool:
    """Whether a setting of this name is likely to hold a secret, so that its value is not shown.

    >>> is_secret_key("spark.hadoop.fs.s3a.secret.key"), is_secret_key("spark.sql.shuffle.partitions")
    (True, False)
    >>> is_secret_key("ssl.key.pem"), is_secret_key("ssl.key.location")
    (True, False)
    """
    return _SECRET_KEY.search(key) is not None


def url_secret_spans(text: str) -> list[tuple[int, int]]:
    """Where passwords stand in the URLs of a text: behind the user's name, and in parameters.

    >>> text = "jdbc:postgresql://ada:hunter2@db/shop?sslmode=require&password=swordfish"
    >>> [text[start:end] for start, end in url_secret_spans(text)]
    ['hunter2', 'swordfish']
    """
    spans = [found.span("secret") for pattern in (_ACCOUNT, _ORACLE) for found in pattern.finditer(text)]
    for span in _parameter_spans(text):
        if not any(start <= span[0] < end for start, end in spans):
            spans.append(span)
    apart: list[tuple[int, int]] = []
    for start, end in sorted(spans):
        if apart and start < apart[-1][1]:
            start, end = apart[-1][0], max(end, apart.pop()[1])
        apart.append((start, end))
    return apart


def _parameter_spans(text: str) -> Iterator[tuple[int, int]]:
    for url in _SQL_SERVER.finditer(text):
        for found in _SQL_SERVER_PARAMETERS[url["quote"]].finditer(text, *url.span()):
            if _is_secret_parameter(found["key"]):
                yield found.span("value")
    for found in _PARAMETER.finditer(text):
        key, at = (found["key"], "value") if found["key"] else (found["name"], "text")
        if _is_secret_parameter(key):
            yield found.span(at)
    for url in _JDBC.finditer(text):
        for found in _JDBC_KEY.finditer(text, *url.span()):
            if not _is_secret_parameter(found["key"]):
                continue
            value = _JDBC_VALUE.match(text, found.end(), url.end())
            if value is not None:
                start, end = value.span()
                before = text[url.start() : start]
                # Behind a parenthesis that is still open, the other one ends the value.
                closed = text.find(")", start, end) if before.count("(") > before.count(")") else -1
                yield start, end if closed < 0 else closed


def _is_secret_parameter(key: str) -> bool:
    return is_secret_key(key) or key.lower() in _SECRET_PARAMETERS


def secrets_in_urls(text: str) -> list[str]:
    """The passwords themselves, as they are written and as they are meant.

    >>> secrets_in_urls("redis://ada:hun/ter2@db/0"), secrets_in_urls("jdbc:mysql://db/shop?password=a%26b")
    (['hun/ter2'], ['a%26b', 'a&b'])
    """
    written = [text[start:end] for start, end in url_secret_spans(text)]
    meant = [one for secret in written for one in (secret, unquote_plus(secret), _unquoted(secret))]
    return [one for one in dict.fromkeys(meant) if one]


def _unquoted(secret: str) -> str:
    if secret.startswith("{") and secret.endswith("}"):
        return secret[1:-1].replace("}}", "}")
    return secret.strip('\\"') if secret.endswith('"') else secret


def without_url_secrets(text: str, mask: str = "******") -> str:
    """A text whose URLs have no passwords.

    >>> without_url_secrets("see redis://ada:hun/ter2@db/0 and http://db:8080/of/ada@shop?token=x&n=1")
    'see redis://ada:******@db/0 and http://db:8080/of/ada@shop?token=******&n=1'
    """
    pieces, at = [], 0
    for start, end in url_secret_spans(text):
        pieces += [text[at:start], mask]
        at = end
    return "".join([*pieces, text[at:]])
