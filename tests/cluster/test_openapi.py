"""schemathesis asks the job manager for everything that its description allows, and for much that it does not: no
answer is a failure of the server, and refusals have one shape."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import hypothesis
import pytest
import schemathesis
from clusterkit import FakeLauncher, running_cluster, submit, wait_for_process

from firesteel.cluster.rest import endpoints
from firesteel.cluster.rest.app import build
from firesteel.cluster.rest.calls import Cluster
from firesteel.cluster.rest.openapi import describe

SCHEMA = describe(endpoints.all_endpoints())
OPERATIONS = [
    (method.upper(), path)
    for path, methods in SCHEMA["paths"].items()
    for method in methods
    # Ends the server.
    if (method, path) != ("delete", "/firesteel/v1/manager")
]
REQUESTS = 8
"""For each operation."""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with running_cluster(tmp_path_factory.mktemp("cluster") / "c", FakeLauncher(checkpointing=True)) as found:
        wait_for_process(found, submit(found).id)
        yield found


@pytest.fixture(scope="module")
def handles(cluster: Cluster) -> dict[str, str]:
    """An SQL session and a statement that has run."""
    session = cluster.sql.open({"firesteel.master": "memory"})
    operation = cluster.sql.ask(session, "execute", statement="SHOW TABLES")
    return {"session_handle": session, "operation_handle": operation, "token": "0"}


@pytest.fixture(scope="module")
def described(cluster: Cluster) -> Any:
    schema = schemathesis.openapi.from_dict(SCHEMA)
    schema.app = build(cluster)
    schema.location = "http://127.0.0.1:8081/openapi.json"
    schema.config.update(base_url="http://127.0.0.1:8081")
    return schema


@pytest.mark.parametrize(("method", "path"), OPERATIONS)
def test_whatever_is_asked_the_server_does_not_fail(
    cluster: Cluster, described: Any, handles: dict[str, str], method: str, path: str
) -> None:
    (row, *_) = cluster.supervisor.rows()
    known = {"jobid": row.id, "vertexid": "ae7424d6162a89fc73c69c7fc35166cc", **handles}
    operation = described[path][method]
    cases = operation.as_strategy()
    if operation.query or operation.body:
        # What the description does not allow, too.
        cases = cases | operation.as_strategy(generation_mode=schemathesis.GenerationMode.NEGATIVE)
    headers = {"Authorization": f"Bearer {cluster.tokens.full}", "Host": "127.0.0.1:8081"}

    @hypothesis.settings(
        max_examples=REQUESTS,
        deadline=None,
        derandomize=True,
        database=None,
        phases=[hypothesis.Phase.generate],
        suppress_health_check=list(hypothesis.HealthCheck),
    )
    @hypothesis.given(case=cases, there=hypothesis.strategies.booleans())
    def ask(case: Any, there: bool) -> None:
        if there:
            # An id that means something leads further than a random one.
            case.path_parameters = {name: known.get(name, value) for name, value in case.path_parameters.items()}
        answer = case.call(headers=headers)
        assert answer.status_code < 500, answer.text
        if answer.status_code >= 400:
            errors = answer.json()["errors"]
            assert errors
            assert all(isinstance(one, str) for one in errors)
        assert str(answer.status_code) in (*SCHEMA["paths"][path][method.lower()]["responses"], "405")

    ask()
