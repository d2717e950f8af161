"""Table environments of the tests."""

from __future__ import annotations

import pytest

from firesteel.common import Configuration
from firesteel.table import DataTypes, EnvironmentSettings, TableEnvironment

SETTINGS = {"firesteel.master": "memory", "parallelism.default": "1"}


def environment(**settings: str) -> TableEnvironment:
    config = Configuration.from_dict({**SETTINGS, **settings})
    return TableEnvironment.create(EnvironmentSettings.new_instance().with_configuration(config).build())


@pytest.fixture
def env() -> TableEnvironment:
    """With a table t of four rows: k INT, s STRING, v DOUBLE."""
    made = environment()
    columns = [
        DataTypes.FIELD("k", DataTypes.INT()),
        DataTypes.FIELD("s", DataTypes.STRING()),
        DataTypes.FIELD("v", DataTypes.DOUBLE()),
    ]
    rows = [(1, "a", 1.5), (2, "b", 2.5), (1, "c", None), (None, "d", 0.1)]
    made.create_temporary_view("t", made.from_elements(rows, DataTypes.ROW(columns)))
    return made
