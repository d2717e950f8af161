"""Firesteel has every public name of PyFlink, except those that ``exclusions.json`` explains."""

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
