"""Passwords in URLs are shown nowhere: not in logs, not in what the job manager answers, not with a table's options."""

from __future__ import annotations

import pytest

from firesteel.cluster.masking import Masker, masked_settings
from firesteel.common.log_format import SecretMask
from firesteel.common.secret import secrets_in_urls, without_url_secrets
from firesteel.connectors.jdbc.address import has_password, shown
from firesteel.table.declarations import shown_options

WITH_SECRETS = [
    "amqp://ada:hunter2@db/shop",
    "redis://ada:of/hunter2@db/0",
    "redis://:of?hunter2@db/0",
    "redis://ada:of@hunter2@db/0",
    "jdbc:postgresql://db/shop?user=ada&password=hunter2",
    "jdbc:postgresql://db/shop?password=hunter2&user=ada",
    "jdbc:postgresql://db/shop?sslpassword=of;hunter2&user=ada",
    "jdbc:sqlserver://db;user=ada;Password=hunter2;encrypt=true",
    "jdbc:sqlserver://db;password={of;hunter2};user=ada",
    "jdbc:oracle:thin:ada/of@hunter2@//db:1521/shop",
    "jdbc:oracle:oci:ada/hunter2@shop",
    "jdbc:db2://db:50000/shop:password=hunter2;user=ada",
    "jdbc:teradata://db/database=shop,user=ada,password=hunter2",
    "https://store/files?sig=hunter2",
    "jdbc:mysql://db/shop?pwd=hunter2#top",
]
WITHOUT = [
    "http://db:8080/of/ada@shop",
    "http://ada@db/",
    "jdbc:mysql://db/shop?user=ada&ssl=1",
    "see a=b;c=d",
    "jdbc:oracle:thin:@//db:1521/shop",
]


@pytest.mark.parametrize("url", WITH_SECRETS)
def test_a_password_in_a_url_is_masked_everywhere(url: str) -> None:
    text = f"cannot reach {url} then http://db:8080/of/ada@shop"
    shown_texts = [
        without_url_secrets(text),
        Masker({}).text(text),
        Masker({}).tree({"plan": [text]})["plan"][0],
        SecretMask({})(text),
    ]
    for masked in shown_texts:
        assert "hunter2" not in masked
        assert masked.endswith(" then http://db:8080/of/ada@shop")
    assert "hunter2" not in masked_settings({"shop.url": url})["shop.url"]
    assert "hunter2" not in shown_options({"url": url})["url"]
    assert "hunter2" not in shown(url)
    assert has_password(url)
    assert any("hunter2" in one for one in secrets_in_urls(url))


@pytest.mark.parametrize("url", WITHOUT)
def test_what_is_no_password_stays(url: str) -> None:
    assert without_url_secrets(url) == url
    assert secrets_in_urls(url) == []


def test_several_urls_in_a_word_keep_their_hosts() -> None:
    assert without_url_secrets("http://a:b@one,http://c:d@two") == "http://a:******@one,http://c:******@two"
