"""docs/spark-internals.md lists what is tested, and all modules that use what is not public."""

from __future__ import annotations

import re
from pathlib import Path

from sparkkit import REPOSITORY

FOLDER = Path(__file__).parent
PAGE = REPOSITORY / "docs" / "spark-internals.md"

SIGNS = re.compile(
    r"\b_(?:jvm|jsc|gateway|gateway_client|active_spark_context|ensure_initialized|jsparkSession|sc|stackTrace"
    r"|mapStateClient|root_directory|is_running_on_worker|conf\b(?=.*SparkContext))\b"
    r"|pyspark\.(?:worker|daemon|java_gateway|serializers)|StateMessage_pb2|pandas\.types|MODULE\$|RDD\.toDF"
    r"|org\.apache\.(?!flink|avro|spark\.version)|com\.codahale|\"statestore\"|recentProgress"
    # These names are too short, or too common, to be looked for by themselves.
    r"|[.\"']_(?:jdf|jsq|activeSession|instantiatedSession|stateful_?[pP]rocessor\w*|cause|origin)\b"
    r"|dataFrameDebugging|simplifiedTraceback"
)
"""By these a module shows that it touches what is not public."""


def rows() -> dict[str, str]:
    """The contacts of the page, with their modules."""
    table = re.findall(r"^\| `(\w+)` \| (.*?) \|", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert len(table) == len(dict(table)), "a contact is listed twice"
    return dict(table)


def test_the_page_lists_what_is_tested() -> None:
    files = [FOLDER / "test_spark_internals.py", FOLDER / "test_spark_internals_of_jobs.py"]
    tests = [name for file in files for name in re.findall(r"^def test_(\w+)", file.read_text("utf-8"), re.MULTILINE)]
    assert sorted(rows()) == sorted(tests)


def test_the_page_lists_all_modules_that_touch_spark_inside() -> None:
    listed = set(re.findall(r"`([\w/]+\.py)`", " ".join(rows().values())))
    found = set()
    for path in (REPOSITORY / "firesteel").rglob("*.py"):
        code = re.sub(r'"""(?:.|\n)*?"""', "", path.read_text(encoding="utf-8"))
        if SIGNS.search(code):
            found.add(str(path.relative_to(REPOSITORY / "firesteel")))
    assert found - listed == set()
    assert [one for one in listed if not (REPOSITORY / "firesteel" / one).exists()] == []
