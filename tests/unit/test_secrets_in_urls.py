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
    "jdbc:mysql://address=(host=db)(user=ada)(password=hunter2)/shop",
    "jdbc:mysql://(host=db,user=ada,password=hunter2)/shop",
    'jdbc:oracle:thin:ada/"hunter2"@//db',
    'jdbc:oracle:thin:"Ada L"/"of hunter2"@//db',
    "jdbc:oracle:thin:ada/of'hunter2@db",
    "jdbc:sqlserver://db;password={of}}hunter2};encrypt=true",
    "jdbc:sqlserver://db;password= of hunter2;encrypt=true",
    "jdbc:sqlserver://db; password = of&hunter2;encrypt=true",
    "jdbc:sqlserver://db;password=of'hunter2",
]
WITHOUT = [
    "http://db:8080/of/ada@shop",
    "http://ada@db/",
    "jdbc:mysql://db/shop?user=ada&ssl=1",
    "see a=b;c=d",
    "jdbc:oracle:thin:@//db:1521/shop",
    "jdbc:mysql://address=(host=db)(user=ada)/shop",
    "jdbc:sqlserver://db;user=ada;encrypt=true said: no password; try again",
    "jdbc:sqlserver://db;password= ;encrypt=true",
    "{'url': 'jdbc:sqlserver://db;password=', 'more': 'a;b=c'}",
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


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("jdbc:mysql://address=(user=a)(password=bb)/db", "jdbc:mysql://address=(user=a)(password=***)/db"),
        ("jdbc:sqlserver://db;password={a}}b};x=1", "jdbc:sqlserver://db;password=***;x=1"),
        ("jdbc:sqlserver://db;password= a b;x=1 is gone", "jdbc:sqlserver://db;password= ***;x=1 is gone"),
        ("'jdbc:sqlserver://db;password=a b' is gone", "'jdbc:sqlserver://db;password=***' is gone"),
        ('"jdbc:sqlserver://db;password=a\'b c" is gone', '"jdbc:sqlserver://db;password=***" is gone'),
        ("jdbc:sqlserver://db;password=a is gone; retry=3", "jdbc:sqlserver://db;password=*** is gone; retry=3"),
        ("jdbc:sqlserver://db;password=a see http://b?c;d=e", "jdbc:sqlserver://db;password=*** see http://b?c;d=e"),
        (
            "jdbc:sqlserver://db;password=a or jdbc:sqlserver://db;password=b c;x=1",
            "jdbc:sqlserver://db;password=*** or jdbc:sqlserver://db;password=***;x=1",
        ),
        # One password inside what may be another.
        ("jdbc:db2://db/shop:password=a?password=b&x=1", "jdbc:db2://db/shop:password=***&x=1"),
    ],
)
def test_the_password_is_masked_and_nothing_else(text: str, expected: str) -> None:
    assert without_url_secrets(text, "***") == expected


@pytest.mark.parametrize(
    ("url", "meant"),
    [
        ("jdbc:sqlserver://db;password={a}}b;c};x=1", "a}b;c"),
        ('jdbc:oracle:thin:ada/"tiger"@db', "tiger"),
        ("jdbc:mysql://address=(user=a)(password=bb)/db", "bb"),
        ("jdbc:sqlserver://db;password={};x=1", "{}"),
    ],
)
def test_a_password_in_quotes_is_known_without_them(url: str, meant: str) -> None:
    found = secrets_in_urls(url)
    assert meant in found
    assert "" not in found
