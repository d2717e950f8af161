"""How a table environment is set up."""

from __future__ import annotations

from firesteel.common.configuration import Configuration
from firesteel.errors import ConfigurationError

__all__ = ["MODE", "EnvironmentSettings", "is_streaming"]

MODE = "execution.runtime-mode"


def is_streaming(mode: str) -> bool:
    """Whether a runtime mode is that of streams; tables must know before they know what they read."""
    if mode.upper() not in ("STREAMING", "BATCH"):
        raise ConfigurationError(f"{MODE} of tables must be STREAMING or BATCH, got {mode!r}.")
    return mode.upper() == "STREAMING"


class EnvironmentSettings:
    """Streaming or batch, the names of the first catalog and database, and configuration.

    >>> EnvironmentSettings.in_streaming_mode().is_streaming_mode()
    True
    """

    class Builder:
        """Sets one thing after the other."""

        def __init__(self) -> None:
            self._settings = EnvironmentSettings()

        def with_configuration(self, config: Configuration) -> EnvironmentSettings.Builder:
            """Configuration that jobs get. Its ``execution.runtime-mode`` chooses between streaming and batch."""
            self._settings._configuration = config
            mode = config.get_string(MODE, "")
            if mode:
                self._settings._streaming = is_streaming(mode)
            self._settings._catalog = config.get_string("table.builtin-catalog-name", self._settings._catalog)
            self._settings._database = config.get_string("table.builtin-database-name", self._settings._database)
            return self

        def in_batch_mode(self) -> EnvironmentSettings.Builder:
            """All input is bounded, and results are final."""
            self._settings._streaming = False
            return self

        def in_streaming_mode(self) -> EnvironmentSettings.Builder:
            """Results change while input comes."""
            self._settings._streaming = True
            return self

        def with_built_in_catalog_name(self, built_in_catalog_name: str) -> EnvironmentSettings.Builder:
            """The name of the first catalog."""
            self._settings._catalog = built_in_catalog_name
            return self

        def with_built_in_database_name(self, built_in_database_name: str) -> EnvironmentSettings.Builder:
            """The name of its database."""
            self._settings._database = built_in_database_name
            return self

        def build(self) -> EnvironmentSettings:
            """The settings."""
            return self._settings

    def __init__(self) -> None:
        self._configuration = Configuration()
        self._streaming = True
        self._catalog = "default_catalog"
        self._database = "default_database"

    def get_built_in_catalog_name(self) -> str:
        """The name of the first catalog."""
        return self._catalog

    def get_built_in_database_name(self) -> str:
        """The name of its database."""
        return self._database

    def is_streaming_mode(self) -> bool:
        """Whether results change while input comes."""
        return self._streaming

    def get_configuration(self) -> Configuration:
        """What jobs get, with the mode."""
        return Configuration(self._configuration).set_string(MODE, "STREAMING" if self._streaming else "BATCH")

    @staticmethod
    def new_instance() -> EnvironmentSettings.Builder:
        """A builder."""
        return EnvironmentSettings.Builder()

    @staticmethod
    def in_streaming_mode() -> EnvironmentSettings:
        """Streaming, and all defaults."""
        return EnvironmentSettings.new_instance().in_streaming_mode().build()

    @staticmethod
    def in_batch_mode() -> EnvironmentSettings:
        """Batch, and all defaults."""
        return EnvironmentSettings.new_instance().in_batch_mode().build()
