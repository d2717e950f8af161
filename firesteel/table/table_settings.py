"""The settings ``table.*`` of Flink 2.3: those that mean something here, and why others do not.

Flink passes over keys that it does not know. Here they are reported, and so are those without an effect: a setting that
does nothing was hardly meant so.
"""

from __future__ import annotations

import logging

from firesteel.common.configuration import Configuration
from firesteel.common.table_keys import TABLE_KEYS
from firesteel.errors import ConfigurationError
from firesteel.table.sql.errors import near_names

__all__ = ["DIALECT", "WITHOUT_EFFECT", "check_dialect", "warn_of_settings"]

logger = logging.getLogger("firesteel")

PREFIX = "table."
DIALECT = "table.sql-dialect"

_IN_SPARK = "in batch mode Spark plans the query, and has settings of its own for it (spark.sql.*)"
_MEMORY = "Spark shares its memory out by itself"
_ONCE = "parts that are equal run once in a job, always"
_IN_STATE = "state of streams has one form"
_MODELS = "there are no models"
_PLANS = "there are no compiled plans"
_JAVA = "no Java is generated"
_BATCHED = "operators work on batches of rows, as large as a micro-batch makes them"
_UIDS = "ids of operators come from the query"
_NO_SUCH = "there is no such operator"

WITHOUT_EFFECT: dict[str, str] = {
    "table.catalog-modification.listeners": "they are Java classes",
    "table.column-expansion-strategy": "SELECT * has all columns",
    "table.exec.async-lookup.buffer-capacity": "look-ups ask for all keys of a micro-batch together",
    "table.exec.async-lookup.key-ordered-enabled": "look-ups keep the order of rows",
    "table.exec.async-lookup.output-mode": "look-ups keep the order of rows",
    "table.exec.async-lookup.timeout": "connectors have timeouts of their own",
    **{
        f"table.exec.async-{kind}.{name}": _MODELS
        for kind in ("ml-predict", "vector-search")
        for name in ("max-concurrent-operations", "output-mode", "timeout")
    },
    "table.exec.async-state.enabled": _IN_STATE,
    **{
        f"table.exec.async-table.{name}": "there are no asynchronous table functions"
        for name in ("max-concurrent-operations", "max-retries", "retry-delay", "retry-strategy", "timeout")
    },
    "table.exec.deduplicate.insert-update-after-sensitive-enabled": "the first row of a key is always +I",
    "table.exec.deduplicate.mini-batch.compact-changes-enabled": "deduplication gives every change",
    "table.exec.delta-join.cache-enabled": _NO_SUCH,
    "table.exec.delta-join.left.cache-size": _NO_SUCH,
    "table.exec.delta-join.right.cache-size": _NO_SUCH,
    "table.exec.disabled-operators": _IN_SPARK,
    "table.exec.interval-join.min-cleanup-interval": "rows are forgotten when time has passed them by",
    "table.exec.legacy-cast-behaviour": "casts are those that Flink has by default",
    "table.exec.local-hash-agg.adaptive.distinct-value-rate-threshold": _IN_SPARK,
    "table.exec.local-hash-agg.adaptive.enabled": _IN_SPARK,
    "table.exec.local-hash-agg.adaptive.sampling-threshold": _IN_SPARK,
    "table.exec.mini-batch.allow-latency": "a mini-batch is a micro-batch (firesteel.batch.target-duration)",
    "table.exec.mini-batch.size": "a mini-batch is a micro-batch (firesteel.batch.max-records)",
    "table.exec.operator-fusion-codegen.enabled": _JAVA,
    "table.exec.rank.topn-cache-size": _BATCHED,
    "table.exec.resource.external-buffer-memory": _MEMORY,
    "table.exec.resource.hash-agg.memory": _MEMORY,
    "table.exec.resource.hash-join.memory": _MEMORY,
    "table.exec.resource.sort.memory": _MEMORY,
    "table.exec.simplify-operator-name-enabled": "operators have short names anyway",
    "table.exec.sink.keyed-shuffle": "rows of a key stay together where that matters",
    "table.exec.sink.nested-constraint-enforcer": "columns are checked, and not what is inside them",
    "table.exec.sink.rowtime-inserter": "sinks take rows without timestamps",
    "table.exec.sink.upsert-materialize-strategy.adaptive.threshold.high": _IN_STATE,
    "table.exec.sink.upsert-materialize-strategy.adaptive.threshold.low": _IN_STATE,
    "table.exec.sink.upsert-materialize-strategy.type": _IN_STATE,
    "table.exec.sort.async-merge-enabled": _IN_SPARK,
    "table.exec.sort.default-limit": "ORDER BY without a limit gives all rows",
    "table.exec.sort.max-num-file-handles": _IN_SPARK,
    "table.exec.spill-compression.block-size": _IN_SPARK,
    "table.exec.spill-compression.enabled": _IN_SPARK,
    "table.exec.uid.format": _UIDS,
    "table.exec.uid.generation": _UIDS,
    "table.exec.unbounded-over.version": _IN_STATE,
    "table.exec.window-agg.buffer-size-limit": _BATCHED,
    "table.generated-code.max-length": _JAVA,
    "table.generated-code.max-members": _JAVA,
    "table.legacy-nested-row-nullability": "NOT NULL inside rows counts, as in Flink by default",
    "table.optimizer.adaptive-broadcast-join.strategy": _IN_SPARK,
    "table.optimizer.agg-phase-strategy": "aggregates of streams have one phase, and in batch mode Spark decides",
    "table.optimizer.bushy-join-reorder-threshold": _IN_SPARK,
    "table.optimizer.delta-join.strategy": _NO_SUCH,
    "table.optimizer.distinct-agg.split.bucket-num": "values of DISTINCT are not split",
    "table.optimizer.distinct-agg.split.enabled": "values of DISTINCT are not split",
    "table.optimizer.dynamic-filtering.enabled": _IN_SPARK,
    "table.optimizer.incremental-agg-enabled": "values of DISTINCT are not split",
    "table.optimizer.join-reorder-enabled": "joins of streams stay in their order, and in batch mode Spark decides",
    "table.optimizer.join.broadcast-threshold": "in batch mode Spark decides (spark.sql.autoBroadcastJoinThreshold)",
    "table.optimizer.multi-join.enabled": "each join of streams is an operator",
    "table.optimizer.multiple-input-enabled": _IN_SPARK,
    "table.optimizer.non-deterministic-update.strategy": "rows are taken back by all their columns, as with IGNORE",
    "table.optimizer.ptf.max-tables": "there are no process table functions",
    "table.optimizer.reuse-optimize-block-with-digest-enabled": _ONCE,
    "table.optimizer.reuse-sink-enabled": "each INSERT has a sink",
    "table.optimizer.reuse-source-enabled": _ONCE,
    "table.optimizer.reuse-sub-plan-enabled": _ONCE,
    "table.optimizer.runtime-filter.enabled": _IN_SPARK,
    "table.optimizer.runtime-filter.max-build-data-size": _IN_SPARK,
    "table.optimizer.runtime-filter.min-filter-ratio": _IN_SPARK,
    "table.optimizer.runtime-filter.min-probe-data-size": _IN_SPARK,
    "table.optimizer.skewed-join-optimization.skewed-factor": _IN_SPARK,
    "table.optimizer.skewed-join-optimization.skewed-threshold": _IN_SPARK,
    "table.optimizer.skewed-join-optimization.strategy": _IN_SPARK,
    "table.optimizer.source.report-statistics-enabled": "sources of tables report no statistics",
    "table.optimizer.sql2rel.project-merge.enabled": "expressions that follow each other are one step, always",
    "table.optimizer.union-all-as-breakpoint-enabled": _ONCE,
    "table.plan.compile.catalog-objects": _PLANS,
    "table.plan.force-recompile": _PLANS,
    "table.plan.restore.catalog-objects": _PLANS,
    "table.resources.download-dir": "there are no jars to download",
    "table.rtas-ctas.atomicity-enabled": "CREATE TABLE AS makes the table before its rows",
}
"""Each with its reason."""

_KNOWN = (*sorted(TABLE_KEYS), *sorted(WITHOUT_EFFECT))
_OLDER = frozenset(("table.exec.async-scalar.buffer-capacity",))
"""Read as the newer key that has its place."""


def warn_of_settings(configuration: Configuration, reported: set[str]) -> None:
    """A line in the log for each key ``table.*`` that has no effect, with the reason or the key that was meant. Those
    in ``reported`` were reported before."""
    for key in configuration.key_set():
        if not key.startswith(PREFIX) or key in TABLE_KEYS or key in _OLDER or key in reported:
            continue
        reported.add(key)
        reason = WITHOUT_EFFECT.get(key)
        if reason is not None:
            logger.warning("the setting %r has no effect: %s.", key, reason)
        else:
            logger.warning("the setting %r is not known and has no effect.%s", key, near_names(key, _KNOWN))


def check_dialect(configuration: Configuration) -> None:
    """Refuses SQL of others than Flink."""
    dialect = configuration.get_string(DIALECT, "default")
    if dialect.lower() != "default":
        raise ConfigurationError(f"{DIALECT} should be default, got {dialect!r}: there is Flink's own SQL only.")
