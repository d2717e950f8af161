"""A session of the job manager's page, without the job manager: statements as operations, results in pages, INSERT as a
job of somebody else's."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from sparkkit import eventually

from firesteel.errors import FiresteelError, JobNotFoundError, ProgramError
from firesteel.table import EnvironmentSettings, TableEnvironment
from firesteel.table.client import operations as module
from firesteel.table.client import result_pages
from firesteel.table.client.operations import OperationStatus, SqlOperations
from firesteel.table.client.result_pages import ResultPages
from firesteel.table.client.submitted_script import program_of, run_statements
from firesteel.table.sql.errors import SqlError
from firesteel.table.sql.statement_secrets import masked_statement, secrets_of

NUMBERS = """
    CREATE TABLE numbers (n BIGINT, k AS MOD(n, 2)) WITH (
        'connector' = 'datagen', 'fields.n.kind' = 'sequence', 'fields.n.start' = '1', 'fields.n.end' = '4'
    )"""
ENDLESS = "CREATE TABLE endless (n BIGINT) WITH ('connector' = 'datagen', 'rows-per-second' = '100')"
NOWHERE = "CREATE TABLE nowhere (n BIGINT) WITH ('connector' = 'blackhole')"


class Jobs:
    """Somebody who runs jobs, and here only remembers them."""

    def __init__(self) -> None:
        self.submitted: list[tuple[str, list[str], list[str]]] = []
        self.cancelled: list[str] = []
        self.refuses = ""
        self.state = "RUNNING"

    def submit(self, name: str, statements: Sequence[str], secrets: Sequence[str]) -> str:
        if self.refuses:
            raise ProgramError(self.refuses)
        self.submitted.append((name, list(statements), list(secrets)))
        return f"{len(self.submitted):032x}"

    def listed(self) -> list[tuple[str, str, str]]:
        return [(f"{number:032x}", name, self.state) for number, (name, _, _) in enumerate(self.submitted, 1)]

    def cancel(self, job_id: str) -> None:
        self.cancelled.append(job_id)


def environment(batch: bool = False) -> TableEnvironment:
    settings = EnvironmentSettings.in_batch_mode() if batch else EnvironmentSettings.in_streaming_mode()
    env = TableEnvironment.create(settings)
    env.get_config().set("firesteel.master", "memory")
    env.get_config().set("parallelism.default", "1")
    return env


@pytest.fixture
def jobs() -> Jobs:
    return Jobs()


@pytest.fixture
def session(jobs: Jobs) -> Iterator[SqlOperations]:
    found = SqlOperations(environment(), jobs)
    yield found
    found.close()


def run(session: SqlOperations, *statements: str) -> str:
    """Runs statements to their results; the handle of the last one."""
    for statement in statements:
        handle = session.execute(statement)
        session.wait(handle)
    return handle


def data(session: SqlOperations, handle: str, row_format: str = "PLAIN_TEXT") -> list[tuple[str, list[Any]]]:
    """All rows of a result that ends."""
    found: list[tuple[str, list[Any]]] = []
    token = 0
    while True:
        page = session.fetch(handle, token, row_format)
        found += [(row["kind"], row["fields"]) for row in page["results"]["data"]]
        if page["resultType"] == "EOS":
            return found
        token += 1


def listed(session: SqlOperations, statement: str) -> list[list[Any]]:
    return [fields for _, fields in data(session, run(session, statement))]


# Statements.


def test_a_session_keeps_its_names_and_settings(session: SqlOperations) -> None:
    run(session, NUMBERS, "CREATE VIEW odd AS SELECT n FROM numbers WHERE k = 1", "SET 'pipeline.name' = 'x'")
    assert listed(session, "SHOW TABLES") == [["numbers"], ["odd"]]
    assert sorted(data(session, run(session, "SELECT n FROM odd"))) == [("INSERT", ["1"]), ("INSERT", ["3"])]
    assert session.settings["pipeline.name"] == "x"


def test_a_query_gives_its_changes(session: SqlOperations) -> None:
    rows = data(session, run(session, NUMBERS, "SELECT k, COUNT(*) AS c FROM numbers GROUP BY k"))
    ones = [(kind, fields[1]) for kind, fields in rows if fields[0] == "1"]
    assert ones == [("INSERT", "1"), ("UPDATE_BEFORE", "1"), ("UPDATE_AFTER", "2")]


def test_the_mode_changes_with_its_setting(session: SqlOperations, jobs: Jobs) -> None:
    count = "SELECT COUNT(*) AS n FROM (VALUES (1), (2)) AS t (k)"
    batch = run(session, "SET 'execution.runtime-mode' = 'batch'", count)
    assert data(session, batch) == [("INSERT", ["2"])]
    written = run(session, "CREATE TABLE x (n BIGINT) WITH ('connector' = 'blackhole')", f"INSERT INTO x {count}")
    # In batch mode it is done at once.
    assert session.status(written) is OperationStatus.FINISHED
    assert not jobs.listed()
    streaming = run(session, "SET 'execution.runtime-mode' = 'streaming'", count)
    assert [kind for kind, _ in data(session, streaming)] == ["INSERT", "UPDATE_BEFORE", "UPDATE_AFTER"]


def test_values_as_json(session: SqlOperations) -> None:
    query = "SELECT 1, 'a', TRUE, CAST(NULL AS INT), CAST(1.50 AS DECIMAL(5, 2)), DATE '2026-01-02', ARRAY[1, 2]"
    handle = run(session, query)
    assert data(session, handle, "JSON") == [("INSERT", [1, "a", True, None, "1.50", "2026-01-02", [1, 2]])]
    handle = run(session, query)
    types = [one["logicalType"]["type"] for one in session.fetch(handle, 0)["results"]["columns"]]
    assert types == ["INTEGER", "CHAR", "BOOLEAN", "INTEGER", "DECIMAL", "DATE", "ARRAY"]


def test_a_script_runs_in_order_and_ends_at_an_error(session: SqlOperations) -> None:
    found = session.execute_script("SET 'a' = '1';\n  SELECT 1;\nSELECT\n  x;\nSET 'a' = '2'")
    assert [(one["line"], one["column"]) for one in found] == [(1, 1), (2, 3), (3, 1), (5, 1)]
    handles = [one["operationHandle"] for one in found]
    session.wait(handles[-1])
    assert [session.status(one).value for one in handles] == ["FINISHED", "FINISHED", "ERROR", "CANCELED"]
    with pytest.raises(SqlError) as caught:
        session.fetch(handles[2], 0)
    told = session.described(caught.value)
    assert (told["line"], told["column"], told["length"]) == (2, 3, 1)
    assert told["message"].startswith("There is no column x")
    with pytest.raises(ProgramError, match="not run, because one before it failed"):
        session.fetch(handles[3], 0)
    assert session.settings["a"] == "1"
    # The next script has nothing to do with it.
    assert session.wait(session.execute("SET 'a' = '3'")) is OperationStatus.FINISHED


def test_a_text_without_an_end_has_its_place(session: SqlOperations) -> None:
    (only,) = session.execute_script("\n SELECT 'open")
    session.wait(only["operationHandle"])
    with pytest.raises(SqlError, match="has no end") as caught:
        session.fetch(only["operationHandle"], 0)
    assert (only["line"], only["column"], caught.value.line, caught.value.column) == (2, 2, 1, 8)


def test_an_operation_that_is_not_there(session: SqlOperations) -> None:
    with pytest.raises(JobNotFoundError, match="no operation 'x'"):
        session.fetch("x", 0)
    handle = run(session, "SHOW TABLES")
    session.forget(handle)
    with pytest.raises(JobNotFoundError):
        session.status(handle)


def test_few_operations_are_remembered(session: SqlOperations, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_OPERATIONS", 4)
    handles = [run(session, "SHOW TABLES") for _ in range(6)]
    with pytest.raises(JobNotFoundError):
        session.status(handles[0])
    assert session.status(handles[-1]) is OperationStatus.FINISHED
    with pytest.raises(ProgramError, match="At most 2 statements are run at a time, got 3"):
        session.execute_script("SET; SET; SET;")


# Queries that run.


def test_stop_ends_a_query(session: SqlOperations) -> None:
    handle = run(session, ENDLESS, "SELECT n FROM endless")
    assert eventually(lambda: session._operations[handle].pages._rows > 0)  # type: ignore[union-attr]
    assert session.cancel(handle) is OperationStatus.CANCELED
    pages = session._operations[handle].pages
    assert pages is not None
    assert eventually(lambda: pages.over)
    with pytest.raises(ProgramError, match="was cancelled"):
        session.fetch(handle, 0)


def test_so_many_queries_at_a_time(session: SqlOperations, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_QUERIES", 1)
    first = run(session, ENDLESS, "SELECT n FROM endless")
    second = run(session, "SELECT n FROM endless")
    with pytest.raises(ProgramError, match="1 queries of this session run already"):
        session.fetch(second, 0)
    session.forget(first)
    assert eventually(lambda: session.status(run(session, "SELECT n FROM endless")) is OperationStatus.FINISHED)


def test_what_a_query_fails_with_comes_after_its_rows(session: SqlOperations) -> None:
    handle = run(session, NUMBERS, "SELECT 10 / (n - 5 + 1) FROM numbers")
    with pytest.raises(FiresteelError, match=r"/ by zero"):
        data(session, handle)
    assert session.status(handle) is OperationStatus.ERROR


def batch(*numbers: int) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict({"n": list(numbers)})


def test_pages_are_bounded_and_can_be_asked_for_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(result_pages, "PAGE_ROWS", 3)
    pages = ResultPages()
    pages.put_all([batch(1, 2), batch(3, 4), batch()])
    rows = [[row for one in pages.fetch(token).batches for row in one.column(0).to_pylist()] for token in (0, 0, 1)]
    assert rows == [[1, 2, 3], [1, 2, 3], [4]]
    with pytest.raises(ProgramError, match="next page is 2, not 0"):
        pages.fetch(0)
    assert pages.fetch(2).last
    monkeypatch.setattr(result_pages, "PAGE_BYTES", 16)
    pages = ResultPages()
    pages.put_all([batch(1, 2, 3)])
    assert [one.num_rows for one in pages.fetch(0).batches] == [2]


def test_a_query_waits_for_whoever_fetches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(result_pages, "KEPT_ROWS", 2)
    given: list[int] = []

    def numbers() -> Iterator[pa.RecordBatch]:
        for number in range(10):
            given.append(number)
            yield batch(number)

    pages = ResultPages()
    taking = threading.Thread(target=pages.put_all, args=(numbers(),))
    taking.start()
    assert eventually(lambda: pages._rows == 2 and len(given) == 3)
    assert not pages.over
    pages.fetch(0)
    assert eventually(lambda: len(given) == 5)
    pages.close()
    taking.join(30)
    assert pages.over
    assert len(given) == 5


# INSERT.


def test_a_statement_lasts_as_long_as_its_job(session: SqlOperations, jobs: Jobs) -> None:
    run(session, NUMBERS, NOWHERE, "SET 'table.dml-sync' = 'true'")
    handle = session.execute("INSERT INTO nowhere SELECT n FROM numbers")
    assert eventually(lambda: jobs.submitted)
    assert session.wait(handle, 0.5) is OperationStatus.RUNNING
    assert session.fetch(handle, 0) == {"resultType": "NOT_READY"}
    jobs.state = "FINISHED"
    assert session.wait(handle) is OperationStatus.FINISHED
    assert session.fetch(handle, 0)["jobID"] == f"{1:032x}"
    jobs.state = "FAILED"
    failed = run(session, "INSERT INTO nowhere SELECT n FROM numbers")
    with pytest.raises(ProgramError, match=rf"Job {2:032x} has failed"):
        session.fetch(failed, 0)


def test_who_waits_for_a_job_no_more_ends_it(session: SqlOperations, jobs: Jobs) -> None:
    run(session, NUMBERS, NOWHERE, "SET 'table.dml-sync' = 'true'")
    handle = session.execute("INSERT INTO nowhere SELECT n FROM numbers")
    assert eventually(lambda: jobs.submitted)
    assert session.cancel(handle) is OperationStatus.CANCELED
    assert eventually(lambda: jobs.cancelled == [f"{1:032x}"])
    # The end of a session is none of its jobs.
    session.execute("INSERT INTO nowhere SELECT n FROM numbers")
    assert eventually(lambda: len(jobs.submitted) == 2)
    session.close()
    session._thread.join(180)
    assert not session._thread.is_alive()
    assert jobs.cancelled == [f"{1:032x}"]


def test_insert_is_a_job_with_all_that_it_needs(session: SqlOperations, jobs: Jobs) -> None:
    run(session, NUMBERS, NOWHERE, "SET 'pipeline.name' = 'a'", "SHOW TABLES", "SET 'pipeline.name' = 'b'")
    handle = run(session, "INSERT INTO nowhere SELECT n FROM numbers")
    page = session.fetch(handle, 0)
    assert page["jobID"] == f"{1:032x}"
    assert [row["fields"] for row in page["results"]["data"]] == [[f"{1:032x}"]]
    ((name, statements, _),) = jobs.submitted
    assert name == "insert-into-nowhere"
    assert [text.split()[0] for text in statements] == ["CREATE", "CREATE", "SET", "INSERT"]
    assert "'b'" in statements[2]
    assert listed(session, "SHOW JOBS") == [[f"{1:032x}", name, "RUNNING"]]
    run(session, f"STOP JOB '{1:032x}'")
    assert jobs.cancelled == [f"{1:032x}"]


def test_a_wrong_insert_is_no_job(session: SqlOperations, jobs: Jobs) -> None:
    handle = run(session, NOWHERE, "INSERT INTO nowhere SELECT x FROM nowher")
    with pytest.raises(SqlError, match=r"nowher\b.*Did you mean nowhere"):
        session.fetch(handle, 0)
    assert jobs.submitted == []


def test_create_table_as_makes_the_table_and_a_job(session: SqlOperations, jobs: Jobs) -> None:
    statement = "CREATE TABLE kept WITH ('connector' = 'blackhole') AS SELECT n FROM numbers"
    run(session, NUMBERS, statement, "INSERT INTO kept SELECT n FROM numbers")
    first, second = (statements for _, statements, _ in jobs.submitted)
    assert first[-1] == statement
    # The second job does not write the rows of the first one again.
    assert statement not in second
    assert "CREATE TABLE `default_catalog`.`default_database`.`kept`" in second[1]
    jobs.refuses = "no room"
    refused = run(session, "CREATE TABLE lost WITH ('connector' = 'blackhole') AS SELECT n FROM numbers")
    with pytest.raises(ProgramError, match="no room"):
        session.fetch(refused, 0)
    assert listed(session, "SHOW TABLES") == [["kept"], ["numbers"]]


def test_a_cancelled_insert_leaves_no_job(session: SqlOperations, jobs: Jobs, monkeypatch: pytest.MonkeyPatch) -> None:
    began, goes_on = threading.Event(), threading.Event()
    submit = jobs.submit

    def slow(*arguments: Any) -> str:
        began.set()
        assert goes_on.wait(60)
        return submit(*arguments)

    monkeypatch.setattr(jobs, "submit", slow)
    run(session, NUMBERS, NOWHERE)
    handle = session.execute("INSERT INTO nowhere SELECT n FROM numbers")
    assert began.wait(60)
    session.cancel(handle)
    goes_on.set()
    assert eventually(lambda: jobs.cancelled == [f"{1:032x}"])


def test_in_batch_mode_insert_runs_to_its_end(jobs: Jobs, tmp_path: Path) -> None:
    session = SqlOperations(environment(batch=True), jobs)
    options = f"'connector' = 'filesystem', 'path' = '{tmp_path / 'kept'}', 'format' = 'csv'"
    handle = run(session, f"CREATE TABLE kept (n BIGINT) WITH ({options})", "INSERT INTO kept VALUES (1), (2)")
    session.fetch(handle, 0)
    assert jobs.submitted == []
    assert sorted(fields for _, fields in data(session, run(session, "SELECT n FROM kept"))) == [["1"], ["2"]]
    session.close()


def test_the_program_of_an_insert(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    options = f"'connector' = 'filesystem', 'path' = '{tmp_path / 'kept'}', 'format' = 'csv'"
    statements = [
        "SET 'firesteel.master' = 'memory'",
        NUMBERS,
        f"CREATE TABLE kept (n BIGINT, quote STRING) WITH ({options})",
        "INSERT INTO kept SELECT n, 'it''s \"so\"' FROM numbers",
    ]
    exec(compile(program_of(statements), "insert.py", "exec"), {})
    lines = [line for path in (tmp_path / "kept").rglob("*") if path.is_file() for line in path.read_text().split("\n")]
    assert sorted(line for line in lines if line)[0] == '1,"it\'s ""so"""'
    with pytest.raises(ProgramError, match="more than 1,048,576 characters"):
        program_of(["SELECT 1" * 200_000])
    with pytest.raises(SqlError):
        run_statements(["SELEC 1"])


# Passwords.


SECRET = "CREATE TABLE t (n BIGINT) WITH ('connector' = 'jdbc', 'password' = 'hunter2', 'table-name' = 't')"


@pytest.mark.parametrize(
    "text",
    [
        SECRET,
        "SET 'shop.api-key' = 'hunter2'",
        "SELECT * FROM t /*+ OPTIONS('properties.sasl.jaas.config'='hunter2') */",
        "CREATE TABLE t (n INT) WITH ('url' = 'redis://ada:hunter2@db/0'",
        "CREATE TABLE t (n INT) WITH ('password' = 'hunter2",
        "CREATE TABLE t (n INT) WITH ('password' 'hunter2')",
        "CREATE TABLE t (n INT) WITH ('password' = hunter2)",
        "SET shop.password = hunter2",
        "CREATE TABLE t (n INT) WITH ('url' = 'jdbc:postgresql://h/db?user=ada&password=hunter2')",
        "CREATE TABLE t (n INT) WITH ('url' = 'jdbc:sqlserver://h;user=ada;Password=hunter2;x=1')",
        "CREATE TABLE t (n INT) WITH ('url' = 'redis://ada:of/hunter2@db/0')",
        "CREATE TABLE t (n INT) WITH ('url' = 'redis://ada:of?@hunter2@db/0')",
    ],
)
def test_passwords_are_found(text: str) -> None:
    assert any("hunter2" in one for one in secrets_of(text))
    assert "hunter2" not in masked_statement(text)


def test_no_password_leaves_a_session(session: SqlOperations, jobs: Jobs) -> None:
    (only,) = session.execute_script(SECRET)
    assert "'password' = '******'" in only["statement"]
    wrong = run(session, SECRET.replace("BIGINT", "BIGNIT"))
    with pytest.raises(SqlError) as caught:
        session.fetch(wrong, 0)
    assert "hunter2" not in str(caught.value), "the line of an error has no secret in it"
    assert "hunter2" not in str(session.described(caught.value))
    assert "******" in session.described(caught.value)["text"]
    run(session, "SET 'shop.token' = 'swordfish'")
    assert session.settings["shop.token"] == "******"
    assert ["shop.token", "******"] in listed(session, "SET")
    run(session, NUMBERS, NOWHERE, "INSERT INTO nowhere SELECT n FROM numbers")
    assert jobs.submitted[0][2] == ["hunter2", "swordfish"]


IN_A_URL = SECRET.replace("'password' = 'hunter2'", "'url' = 'jdbc:postgresql://h/db?user=ada&password=hunter2'")


def test_no_password_in_a_url_leaves_a_session(session: SqlOperations, jobs: Jobs) -> None:
    (only,) = session.execute_script(IN_A_URL)
    assert "user=ada&password=******'" in only["statement"]
    wrong = run(session, IN_A_URL.replace("BIGINT", "BIGNIT"))
    with pytest.raises(SqlError) as caught:
        session.fetch(wrong, 0)
    assert "hunter2" not in str(caught.value) + str(session.described(caught.value))
    run(session, "SET 'shop.url' = 'jdbc:mysql://h/db?password=sword%26fish'")
    assert session.settings["shop.url"] == "jdbc:mysql://h/db?password=******"
    assert all("fish" not in value for _, value in listed(session, "SET"))
    run(session, NUMBERS, NOWHERE, "INSERT INTO nowhere SELECT n FROM numbers")
    assert jobs.submitted[0][2] == ["hunter2", "sword%26fish", "sword&fish"]


def test_a_password_without_quotes_is_not_quoted_by_an_error(session: SqlOperations) -> None:
    for text in [
        SECRET.replace("'hunter2'", "hunter2"),
        SECRET.replace("'hunter2'", "22hunter2"),
        SECRET.replace("= 'hunter2'", "'hunter2'"),
        "SET shop.password = hunter2",
    ]:
        with pytest.raises(SqlError) as caught:
            session.fetch(run(session, text), 0)
        assert "hunter2" not in str(caught.value) + str(session.described(caught.value)), text


def test_no_password_of_a_hint_is_shown_with_a_view(session: SqlOperations) -> None:
    run(session, NUMBERS)
    hint = "OPTIONS('number-of-rows' = '3', 'password' = 'hunter2', 'url' = 'jdbc:mysql://h/db?password=hunter2')"
    run(session, f"CREATE VIEW v AS SELECT * FROM numbers /*+ {hint} */")
    ((shown,),) = listed(session, "SHOW CREATE VIEW v")
    assert "hunter2" not in shown
    assert "'number-of-rows' = '3', 'password' = '******', 'url' = 'jdbc:mysql://h/db?password=******'" in shown
