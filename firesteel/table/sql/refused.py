"""Statements of Flink that have no meaning here, each with the reason."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["MOST_WORDS", "refusal"]

_JARS = "jars hold Java, and Firesteel runs Python. add_python_file() brings files that functions import."
_MODULES = "modules are Java's. The module core is always there; CREATE FUNCTION adds functions in Python."
_MODELS = "there is no provider of models. A function in Python (udf) can call a model."
_PROCEDURES = "procedures belong to external catalogs, and the catalogs here are in memory."
_JOBS = (
    "an environment does not list jobs. TableResult.get_job_client() is the job of a statement; "
    "`firesteel sql` and `firesteel list` list jobs."
)
_PLANS = "a job is found again by its queries, so a savepoint fits an edited program without a compiled plan."
_ROWS = (
    "no connector changes rows in place, as with Flink's own. INSERT INTO a table with a primary key "
    "(jdbc, upsert-kafka) replaces and deletes rows as its query changes."
)
_MATERIALIZED = "nothing would refresh it. CREATE TABLE … AS SELECT fills a table once, a job with INSERT INTO goes on."
_REPLACE = "drop the table first, then CREATE TABLE … AS SELECT makes it anew."

_BEGINNINGS = {
    ("LOAD",): _MODULES,
    ("UNLOAD",): _MODULES,
    ("ADD", "JAR"): _JARS,
    ("REMOVE", "JAR"): _JARS,
    ("ANALYZE", "TABLE"): "queries are planned without statistics of tables.",
    (
        "TRUNCATE",
        "TABLE",
    ): "no connector empties a table, as with Flink's own. Remove files or rows where they are.",
    ("DELETE",): _ROWS,
    ("UPDATE",): _ROWS,
    ("CALL",): _PROCEDURES,
    ("SHOW", "PROCEDURES"): _PROCEDURES,
    ("SHOW", "JOBS"): _JOBS,
    ("STOP", "JOB"): _JOBS,
    ("COMPILE",): _PLANS,
    ("EXECUTE", "PLAN"): _PLANS,
    ("CREATE", "OR", "REPLACE", "TABLE"): _REPLACE,
    ("REPLACE", "TABLE"): _REPLACE,
    ("SHOW", "CREATE", "MODEL"): _MODELS,
    ("SHOW", "CREATE", "MATERIALIZED", "TABLE"): _MATERIALIZED,
    ("CREATE", "OR", "ALTER", "MATERIALIZED", "TABLE"): _MATERIALIZED,
}
for _verb in ("CREATE", "ALTER", "DROP"):
    _BEGINNINGS[_verb, "MODEL"] = _MODELS
    _BEGINNINGS[_verb, "MATERIALIZED", "TABLE"] = _MATERIALIZED
    _BEGINNINGS[_verb, "CONNECTION"] = "options of connections stand in the WITH of each table."
for _verb in ("DESCRIBE", "DESC"):
    _BEGINNINGS[_verb, "JOB"] = _JOBS
    _BEGINNINGS[_verb, "MODEL"] = _MODELS

MOST_WORDS = max(map(len, _BEGINNINGS)) + 1
_AFTER_DESCRIBE = ("DESCRIBE", "DESC")


def refusal(words: Sequence[str]) -> tuple[str, str] | None:
    """What a statement is called that begins with these words, and why it is not there; None for any other.

    >>> refusal(["TRUNCATE", "TABLE", "t"])[0], refusal(["DESCRIBE", "MODEL", ""])
    ('TRUNCATE TABLE', None)
    """
    for length in range(1, len(words)):
        beginning = tuple(words[:length])
        if beginning in _BEGINNINGS and not (beginning[0] in _AFTER_DESCRIBE and words[length] in ("", ";")):
            # A table may be called MODEL: DESCRIBE MODEL.
            return " ".join(beginning), _BEGINNINGS[beginning]
    return None
