"""The settings of a table environment."""

from __future__ import annotations

import datetime
import sys

from firesteel.common.configuration import Configuration
from firesteel.datastream.dependencies import check_executable
from firesteel.errors import ConfigurationError
from firesteel.table.sql_dialect import SqlDialect
from firesteel.table.types.time_zones import checked_zone, machine_zone

__all__ = ["TableConfig", "session_zone"]

_ZONE = "table.local-time-zone"


class TableConfig:
    """Settings by key, and some by name.

    >>> config = TableConfig()
    >>> config.set_local_timezone("Europe/Berlin")
    >>> config.get("table.local-time-zone", "default")
    'Europe/Berlin'
    """

    def __init__(self, configuration: Configuration | None = None) -> None:
        self._configuration = configuration if configuration is not None else Configuration()

    def get(self, key: str, default_value: str) -> str:
        """A setting."""
        return self._configuration.get_string(key, default_value)

    def set(self, key: str, value: str) -> TableConfig:
        """Sets something."""
        self._configuration.set_string(key, value)
        return self

    def get_configuration(self) -> Configuration:
        """All settings."""
        return self._configuration

    def add_configuration(self, configuration: Configuration) -> None:
        """Adds many settings."""
        self._configuration.add_all(configuration)

    def get_local_timezone(self) -> str:
        """The zone that moments are shown in: that of the machine unless it was set."""
        zone = self._configuration.get_string(_ZONE, "default")
        return machine_zone() if zone == "default" else zone

    def set_local_timezone(self, timezone_id: str) -> None:
        """Sets the zone that moments are shown in."""
        _checked(timezone_id)
        self._configuration.set_string(_ZONE, timezone_id)

    def set_idle_state_retention(self, duration: datetime.timedelta) -> None:
        """How long state is kept that no row touches."""
        self._configuration.set_string("table.exec.state.ttl", f"{int(duration.total_seconds() * 1000)} ms")

    def get_idle_state_retention(self) -> datetime.timedelta:
        """How long state is kept that no row touches; zero means for ever."""
        return datetime.timedelta(milliseconds=self._configuration.get_duration_ms("table.exec.state.ttl", 0))

    def get_sql_dialect(self) -> SqlDialect:
        """Flink's own."""
        return SqlDialect.DEFAULT

    def set_sql_dialect(self, sql_dialect: SqlDialect) -> None:
        """There is only Flink's own."""
        if sql_dialect != SqlDialect.DEFAULT:
            raise ConfigurationError(f"Not supported: the dialect {sql_dialect}. There is SqlDialect.DEFAULT.")

    def set_python_executable(self, python_exec: str) -> None:
        """Accepts the Python that workers run with, and refuses others: it is chosen by what starts the program."""
        check_executable(python_exec)

    def get_python_executable(self) -> str:
        """The Python that runs functions."""
        return sys.executable

    def to_map(self) -> dict[str, str]:
        """All settings by key."""
        return dict(self._configuration.to_dict())

    @staticmethod
    def get_default() -> TableConfig:
        """Without any setting."""
        return TableConfig()


def session_zone(config: TableConfig) -> str:
    """The zone of moments as what computes with them knows it."""
    return _checked(config.get_local_timezone())


def _checked(zone: str) -> str:
    try:
        return checked_zone(zone)
    except ValueError:
        raise ConfigurationError(
            f"There is no time zone {zone!r}: table.local-time-zone takes names such as 'America/Los_Angeles', "
            "distances from UTC such as 'GMT-03:00', and 'default' for the machine's."
        ) from None
