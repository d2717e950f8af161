"""The settings ``table.*`` that have an effect."""

from __future__ import annotations

__all__ = ["TABLE_KEYS"]

TABLE_KEYS = frozenset(
    (
        "table.builtin-catalog-name",
        "table.builtin-database-name",
        "table.display.max-column-width",
        "table.dml-sync",
        "table.dynamic-table-options.enabled",
        "table.exec.async-scalar.max-attempts",
        "table.exec.async-scalar.max-concurrent-operations",
        "table.exec.async-scalar.retry-delay",
        "table.exec.async-scalar.retry-strategy",
        "table.exec.async-scalar.timeout",
        "table.exec.mini-batch.enabled",
        "table.exec.resource.default-parallelism",
        "table.exec.sink.not-null-enforcer",
        "table.exec.sink.require-on-conflict",
        "table.exec.sink.type-length-enforcer",
        "table.exec.sink.upsert-materialize",
        "table.exec.source.cdc-events-duplicate",
        "table.exec.source.idle-timeout",
        "table.exec.state.ttl",
        "table.local-time-zone",
        "table.sql-dialect",
    )
)
