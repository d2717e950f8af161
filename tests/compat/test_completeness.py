"""Firesteel has every public name of PyFlink, except those that ``exclusions.json`` explains; of tables, except those
that ``table_exclusions.json`` explains."""

import completeness
import pytest


@pytest.fixture(scope="module")
def findings() -> completeness.Findings:
    return completeness.compare()


def test_no_name_is_missing_without_a_reason(findings: completeness.Findings) -> None:
    assert findings.missing == []


def test_parameters_and_bases_are_those_of_pyflink(findings: completeness.Findings) -> None:
    assert findings.different == []


def test_no_exclusion_is_out_of_date(findings: completeness.Findings) -> None:
    assert findings.outdated == []


@pytest.fixture(scope="module")
def of_tables() -> completeness.Findings:
    return completeness.compare(table=True)


def test_no_name_of_tables_is_missing_without_a_reason(of_tables: completeness.Findings) -> None:
    assert of_tables.missing == []


def test_parameters_and_bases_of_tables_are_those_of_pyflink(of_tables: completeness.Findings) -> None:
    assert of_tables.different == []


def test_no_exclusion_of_tables_is_out_of_date(of_tables: completeness.Findings) -> None:
    assert of_tables.outdated == []
