"""Properties that hold keys themselves, and the files that a client needs instead."""

from __future__ import annotations

import pickle
import ssl
import stat
import tempfile
from pathlib import Path
from typing import Any

import pytest

from firesteel.common.secret import secrets_left_out
from firesteel.connectors.kafka.properties import KafkaProperties
from firesteel.errors import ConfigurationError

KEY = "-----BEGIN PRIVATE KEY-----\nhunter2\n-----END PRIVATE KEY-----\n"


@pytest.mark.parametrize(
    "name", ["ssl.key.pem", "sasl.oauthbearer.config", "sasl.oauthbearer.client.secret", "ssl.key.password"]
)
def test_a_key_or_a_login_given_as_text_does_not_show(name: str) -> None:
    properties = KafkaProperties().having({name: KEY})
    assert "hunter2" not in repr(properties)
    assert properties.client() == {name: KEY}
    with secrets_left_out():
        assert b"hunter2" not in pickle.dumps(properties)


def test_where_a_key_lies_may_be_seen() -> None:
    assert "/etc/key.pem" in repr(KafkaProperties().having({"ssl.key.location": "/etc/key.pem"}))


class Context(ssl.SSLContext):
    """Notes what the files held when they were read."""

    loaded: Any = None

    def load_cert_chain(self, certfile: Any, keyfile: Any = None, password: Any = None) -> None:
        files = [Path(certfile), Path(keyfile)]
        self.loaded = (
            [file.read_text() for file in files],
            {stat.S_IMODE(file.stat().st_mode) for file in files},
            files,
            password(),
        )


def test_a_key_given_as_text_is_a_private_file_while_it_is_read(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    context = Context(ssl.PROTOCOL_TLS_CLIENT)
    monkeypatch.setattr(ssl, "create_default_context", lambda **given: context)
    given = {"security.protocol": "SSL", "ssl.key.pem": KEY, "ssl.certificate.pem": "CERT", "ssl.key.password": "p"}
    properties = KafkaProperties().having({"bootstrap.servers": "nowhere:1", **given})
    assert properties.for_transactions()["ssl_context"] is context
    contents, modes, files, password = context.loaded
    assert (contents, modes, password) == (["CERT", KEY], {0o600}, "p")
    assert not any(file.exists() for file in files)
    assert list(tmp_path.iterdir()) == []


def test_a_key_that_is_none_is_an_error_that_does_not_show_it(tmp_path: Path) -> None:
    given = {"security.protocol": "SSL", "ssl.key.pem": KEY, "ssl.certificate.pem": "CERT"}
    with pytest.raises(ConfigurationError, match="cannot be used") as caught:
        KafkaProperties().having({"bootstrap.servers": "nowhere:1", **given}).for_transactions()
    assert "hunter2" not in str(caught.value)
