"""The session's time zone: the machine's, unless it is set."""

from __future__ import annotations

import datetime
from pathlib import Path

import pytest
from conftest import environment

from firesteel.errors import ConfigurationError
from firesteel.table import TableConfig
from firesteel.table.types.time_zones import checked_zone, clock_of, machine_zone
from firesteel.table.udf import udf


def test_the_machines_zone_is_that_of_tz(monkeypatch: pytest.MonkeyPatch) -> None:
    for given, zone in (
        ("Asia/Tokyo", "Asia/Tokyo"),
        (":America/New_York", "America/New_York"),
        ("/usr/share/zoneinfo/Europe/Berlin", "Europe/Berlin"),
        ("Nowhere/City", "UTC"),
    ):
        monkeypatch.setenv("TZ", given)
        assert machine_zone() == zone
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    assert TableConfig().get_local_timezone() == "Asia/Tokyo"
    assert TableConfig().set("table.local-time-zone", "default").get_local_timezone() == "Asia/Tokyo"


def test_without_tz_the_files_tell(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("TZ")
    (tmp_path / "etc").mkdir()
    assert machine_zone(tmp_path) == "UTC"
    (tmp_path / "etc/timezone").write_text("Europe/Berlin\n")
    assert machine_zone(tmp_path) == "Europe/Berlin"
    (tmp_path / "etc/localtime").symlink_to(tmp_path / "usr/share/zoneinfo/Asia/Tokyo")
    assert machine_zone(tmp_path) == "Asia/Tokyo"


@pytest.mark.parametrize("zone", ["UTC-3", "-04:30", "Nowhere/City", "", "GMT+99"])
def test_what_is_no_zone_is_refused_where_it_is_used(zone: str) -> None:
    with pytest.raises(ConfigurationError, match=r"There is no time zone .*'GMT-03:00'"):
        environment(**{"table.local-time-zone": zone}).execute_sql("SELECT 1")
    with pytest.raises(ConfigurationError, match="There is no time zone"):
        TableConfig().set_local_timezone(zone)


def test_distances_from_utc() -> None:
    assert [checked_zone(zone) for zone in ("GMT+08:00", "GMT-3", "GMT+0530")] == ["+08:00", "-03:00", "+05:30"]
    assert clock_of("-03:00").utcoffset(None) == datetime.timedelta(hours=-3)
    env = environment(**{"table.local-time-zone": "GMT-03:30"})
    assert env.get_config().get_local_timezone() == "GMT-03:30"
    frame = env.sql_query("SELECT TO_TIMESTAMP_LTZ(0, 3) AS t, HOUR(TO_TIMESTAMP_LTZ(0, 3)) AS h").to_pandas()
    assert frame["t"][0].utcoffset() == datetime.timedelta(hours=-3, minutes=-30)
    assert frame["h"].tolist() == [20]


def test_moments_of_functions_without_a_zone_are_of_utc() -> None:
    """As in PyFlink, wherever the machine is."""
    env = environment(**{"table.local-time-zone": "Asia/Tokyo"})
    six = datetime.datetime(2024, 3, 10, 6)
    kind = "TIMESTAMP_LTZ(3)"
    env.create_temporary_function("general", udf(lambda n: six, result_type=kind))
    env.create_temporary_function("pandas", udf(lambda n: n.map(lambda _: six), result_type=kind, func_type="pandas"))
    env.create_temporary_function("told", udf(lambda moment: str(moment), result_type="STRING"))
    query = "SELECT CAST(general(1) AS STRING), CAST(pandas(1) AS STRING), told(general(1))"
    with env.execute_sql(query).collect() as rows:
        (row,) = rows
    assert list(row) == ["2024-03-10 15:00:00.000"] * 2 + ["2024-03-10 15:00:00+09:00"]
