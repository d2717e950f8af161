"""The comparing tools themselves: rewriting imports, normalising output, finding gaps."""

from pathlib import Path
from typing import Any

import completeness
import oracle
import pytest

NAMES: dict[str, Any] = {
    "modules": {
        "common": {
            "Types": {"bases": [], "members": {"TUPLE": ["field_types"], "NO_SUCH_TYPE": []}},
            "NoSuchClass": {"bases": [], "members": {}},
        }
    }
}


def test_imports_are_rewritten_and_nothing_else() -> None:
    source = "from firesteel.common import Row\nimport firesteel\n    import firesteel.x\nx = 'from firesteel'\n"
    assert oracle.for_pyflink(source) == (
        "from pyflink.common import Row\nimport pyflink\n    import pyflink.x\nx = 'from firesteel'\n"
    )


def test_a_program_may_be_a_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "several"
    package.mkdir()
    (package / "__init__.py").write_text("NAMES = []\n")
    (package / "one.py").write_text("from several import NAMES\n\nNAMES.append(__name__)\n")
    (package / "__main__.py").write_text('from several import NAMES, one\n\nORDER = "none"\nprint(*NAMES)\n')
    monkeypatch.setattr(oracle, "PROGRAMS", tmp_path)
    (program, file) = oracle.find([str(package), "one"])
    assert file == tmp_path / "one.py"
    assert oracle.on_firesteel(program, 400) == ["several.one"]
    assert oracle.on_firesteel(package / "__init__.py", 400) == []


@pytest.mark.parametrize(
    ("rules", "expected"),
    [
        (oracle.Rules(), ["b:*> 2", "*> 3", "b:*> 1", "a> 1"]),
        (oracle.Rules(subtasks="exact"), ["b:2> 2", "1> 3", "b:1> 1", "a> 1"]),
        (oracle.Rules(order="label"), ["*> 3", "a> 1", "b:*> 2", "b:*> 1"]),
        (oracle.Rules(order="none"), ["*> 3", "a> 1", "b:*> 1", "b:*> 2"]),
    ],
)
def test_output_is_normalised(rules: oracle.Rules, expected: list[str]) -> None:
    assert rules.normalise("b:2> 2\n1> 3\nb:1> 1\na> 1\n") == expected


def test_rules_are_read_from_a_program() -> None:
    assert oracle.Rules.of('ORDER = "none"\nOTHER = 1\n') == oracle.Rules(order="none")


def test_missing_names_are_found() -> None:
    findings = completeness.Comparison(NAMES, {}).run()
    assert findings.missing == ["common.Types.NO_SUCH_TYPE", "common.NoSuchClass"]


def test_exclusions_cover_missing_names_only() -> None:
    exclusions = {"common.NoSuch*": "reason", "common.Types.*": "reason", "common.Unknown": "reason"}
    findings = completeness.Comparison(NAMES, exclusions).run()
    assert findings.missing == []
    assert findings.outdated == [
        "common.Types.*: common.Types.TUPLE exists now",
        "common.Unknown: PyFlink has no such name",
    ]


def test_parameters_are_compared() -> None:
    def ours(value: int, extra: int = 0) -> None: ...

    assert completeness.parameter_problem(["value"], ours, bound=False) is None
    problem = completeness.parameter_problem(["element"], ours, bound=False)
    assert problem == "PyFlink has (element), Firesteel (value: int, extra: int = 0)"


def test_what_is_read_in_one_and_called_in_the_other_is_found() -> None:
    names: dict[str, Any] = {"modules": {"common": {"Types": {"bases": [], "members": {"TUPLE": None}}}}}
    different = completeness.Comparison(names, {}).run().different
    assert different == ["common.Types.TUPLE: read without parentheses in PyFlink, a method in Firesteel"]


def test_an_exclusion_may_cover_parameters_only() -> None:
    names: dict[str, Any] = {
        "modules": {"common": {"Types": {"bases": [], "members": {"TUPLE": ["other"], "LIST": ["element_type_info"]}}}}
    }
    exclusions = {"common.Types.TUPLE()": "reason", "common.Types.LIST()": "reason"}
    findings = completeness.Comparison(names, exclusions).run()
    assert findings.different == []
    assert findings.outdated == ["common.Types.LIST(): common.Types.LIST() fits now"]
