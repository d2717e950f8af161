"""Tables of databases that a lookup join asks for the rows of some keys."""

from __future__ import annotations

from functools import partial
from typing import Any

import pyarrow as pa

from firesteel.common.typeinfo import RowTypeInfo, Types
from firesteel.connectors.jdbc.address import DatabaseAddress
from firesteel.connectors.jdbc.dialect import Dialect
from firesteel.connectors.jdbc.scanning import converted_rows
from firesteel.connectors.table.lookup import LookupTable

__all__ = ["JdbcLookupTable"]

_PARAMETERS = 500
"""Question marks of a statement at most: databases have a limit."""


class JdbcLookupTable(LookupTable):
    """Asks for all keys of a batch with as few statements as possible: ``WHERE (a = ? AND b = ?) OR (…)``."""

    def __init__(
        self,
        dialect: Dialect,
        address: DatabaseAddress,
        table: str,
        declared: RowTypeInfo,
        schema: pa.Schema,
        retries: int,
    ) -> None:
        self._dialect, self._address, self._table = dialect, address, table
        self._declared, self._schema, self._retries = declared, schema, retries
        self._session: Any = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_session": None}

    def open(self) -> None:
        self._session = self._dialect.session(self._address, "firesteel lookup")

    def lookup(self, keys: pa.RecordBatch) -> pa.RecordBatch:
        quoted = self._dialect.quoted
        columns = ", ".join(map(quoted, self._schema.names))
        asked = list(zip(*(column.to_pylist() for column in keys.columns), strict=True))
        one = " AND ".join(f"{quoted(name)} = ?" for name in keys.schema.names)
        kinds = dict(zip(self._declared.get_field_names(), self._declared.get_field_types(), strict=True))
        key_type: Any = Types.ROW_NAMED(keys.schema.names, [kinds[name] for name in keys.schema.names])
        converted = self._dialect.rows(key_type)
        step = max(1, _PARAMETERS // max(1, keys.num_columns))
        rows: list[tuple[Any, ...]] = []
        for at in range(0, len(asked), step):
            piece = asked[at : at + step]
            condition = " OR ".join([f"({one})"] * len(piece))
            sql = f"SELECT {columns} FROM {quoted(self._table)} WHERE {condition}"
            statement, _ = self._dialect.statement(sql)
            parameters = [value for row in piece for value in converted.row(row)]
            rows += self._session.again(
                partial(self._session.execute, statement, *parameters), f"a lookup in {self._table}", self._retries
            )
        found = list(zip(*converted_rows(rows, self._declared), strict=True)) or [()] * len(self._schema)
        arrays = [pa.array(values, field.type) for values, field in zip(found, self._schema, strict=True)]
        return pa.RecordBatch.from_arrays(arrays, schema=self._schema)

    def close(self) -> None:
        if self._session is not None:
            self._session.drop()
