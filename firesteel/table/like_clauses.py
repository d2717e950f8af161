"""``CREATE TABLE t (...) LIKE other (INCLUDING ...)``: which parts of the other table a new one gets."""

from __future__ import annotations

from dataclasses import replace

from firesteel.table.sql.errors import SqlValidationError
from firesteel.table.sql.statements import LikeClause
from firesteel.table.table_drafts import ColumnDraft, TableDraft, WatermarkDraft

__all__ = ["merged_like"]

_FEATURES = ("CONSTRAINTS", "DISTRIBUTION", "GENERATED", "METADATA", "OPTIONS", "PARTITIONS", "WATERMARKS")
_OVERWRITABLE = ("GENERATED", "METADATA", "OPTIONS", "WATERMARKS")


def _choices(clause: LikeClause, text: str) -> dict[str, str]:
    """For each feature INCLUDING, EXCLUDING or OVERWRITING."""
    said: dict[str, str] = {}
    for choice, feature in clause.choices:
        if feature != "ALL" and feature not in _FEATURES:
            raise SqlValidationError(
                f"LIKE has no {feature}; there are ALL, {', '.join(_FEATURES)}.", text, clause.span
            )
        if choice == "OVERWRITING" and feature not in _OVERWRITABLE:
            raise SqlValidationError(
                f"OVERWRITING is for {', '.join(_OVERWRITABLE)}, not for {feature}.", text, clause.span
            )
        if feature in said:
            raise SqlValidationError(f"LIKE says twice what becomes of {feature}.", text, clause.span)
        said[feature] = choice
    rest = said.get("ALL", "INCLUDING")
    found = dict.fromkeys(_FEATURES, rest)
    if "ALL" not in said:
        # What a table is made for most often: the same with other options.
        found["OPTIONS"] = "OVERWRITING"
    return {feature: said.get(feature, choice) for feature, choice in found.items()}


def merged_like(base: TableDraft, own: TableDraft, clause: LikeClause, text: str) -> TableDraft:
    """The new table: what the clause takes of the other one, and what stands in the statement."""
    choices = _choices(clause, text)
    columns = _merged_columns(base, own, choices, text)
    key, key_name = _merged_key(base, own, choices["CONSTRAINTS"], text)
    return replace(
        own,
        columns=columns,
        primary_key=key,
        key_name=key_name,
        watermarks=_merged_watermarks(base, own, choices["WATERMARKS"], text),
        partitioned_by=_merged_partitions(base, own, choices["PARTITIONS"], text),
        options=_merged_options(base, own, choices["OPTIONS"], text),
    )


def _feature(column: ColumnDraft) -> str | None:
    if column.computed is not None:
        return "GENERATED"
    return "METADATA" if column.metadata is not None else None


def _merged_columns(base: TableDraft, own: TableDraft, choices: dict[str, str], text: str) -> tuple[ColumnDraft, ...]:
    replaced = {column.name: column for column in own.columns}
    found: list[ColumnDraft] = []
    for column in base.columns:
        feature = _feature(column)
        if feature is not None and choices[feature] == "EXCLUDING":
            continue
        again = replaced.get(column.name)
        if again is None:
            found.append(column)
            continue
        if feature is None or _feature(again) != feature or choices[feature] != "OVERWRITING":
            raise SqlValidationError(
                f"The other table has a column {column.name}, too."
                + (f" OVERWRITING {feature} replaces it." if feature is not None else ""),
                text,
                again.span,
            )
        found.append(replaced.pop(column.name))
    return (*found, *replaced.values())


def _merged_watermarks(base: TableDraft, own: TableDraft, choice: str, text: str) -> tuple[WatermarkDraft, ...]:
    if choice == "EXCLUDING" or not base.watermarks:
        return own.watermarks
    if not own.watermarks:
        return base.watermarks
    if choice != "OVERWRITING":
        raise SqlValidationError(
            "The other table has a watermark, too. OVERWRITING WATERMARKS replaces it.", text, own.watermarks[0].span
        )
    return own.watermarks


def _merged_key(base: TableDraft, own: TableDraft, choice: str, text: str) -> tuple[tuple[str, ...], str | None]:
    if choice == "EXCLUDING" or not base.primary_key:
        return own.primary_key, own.key_name
    if own.primary_key:
        raise SqlValidationError(
            "The other table has a primary key, too. EXCLUDING CONSTRAINTS leaves it out.", text, own.key_span
        )
    return base.primary_key, base.key_name


def _merged_partitions(base: TableDraft, own: TableDraft, choice: str, text: str) -> tuple[str, ...]:
    if choice == "EXCLUDING" or not base.partitioned_by:
        return own.partitioned_by
    if own.partitioned_by:
        raise SqlValidationError("The other table is partitioned, too. EXCLUDING PARTITIONS leaves that out.", text)
    return base.partitioned_by


def _merged_options(base: TableDraft, own: TableDraft, choice: str, text: str) -> dict[str, str]:
    if choice == "EXCLUDING":
        return dict(own.options)
    both = sorted(base.options.keys() & own.options.keys())
    if both and choice != "OVERWRITING":
        raise SqlValidationError(
            f"The other table has the option {both[0]!r}, too. OVERWRITING OPTIONS replaces it.", text
        )
    return {**base.options, **own.options}
