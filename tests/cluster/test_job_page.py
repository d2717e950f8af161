"""The page of jobs that were started by hand, and the metrics of all jobs of a job manager."""

from __future__ import annotations

import json
import urllib.parse
from pathlib import Path

import httpx
from clusterkit import ENDLESS, client_of, has_state, running_cluster
from metric_servers import Prometheus
from pagekit import served
from prometheus_client.parser import text_string_to_metric_families
from serverkit import started
from sparkkit import eventually

from firesteel.cluster.job_page import JobPage
from firesteel.cluster.registry import ENDED
from firesteel.datastream import MapFunction
from firesteel.testing import memory_environment


class Waits(MapFunction):
    """For a file."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def map(self, value: int) -> int:
        assert eventually(self._path.exists)
        return value


def test_a_job_that_was_started_by_hand_is_on_the_page(tmp_path: Path) -> None:
    env = memory_environment()
    env.from_collection([1, 2, 3]).map(Waits(tmp_path / "go")).name("waits").print()
    job = env.execute_async("by hand")
    with JobPage() as page, httpx.Client(base_url=page.address, timeout=120) as client:
        assert client.get("/").status_code == 200
        assert client.get("/firesteel/v1/jobs").status_code == 401
        assert client.post("/firesteel/v1/login", json={"token": "wrong"}).status_code == 401
        assert client.post("/firesteel/v1/login", json={"token": page.token}).json() == {"readOnly": True}
        assert client.get("/config").json()["features"]["web-cancel"] is False
        listed = {one["name"]: one for one in client.get("/firesteel/v1/jobs").json()["jobs"]}
        number = listed["by hand"]["id"]
        plan = client.get(f"/firesteel/v1/jobs/{number}").json()["plan"]
        assert "waits" in [node["type"] for node in plan["nodes"]]
        # It is for looking.
        assert client.patch(f"/jobs/{number}").status_code == 403
        assert client.post(f"/firesteel/v1/jobs/{number}/state").status_code == 403
        (tmp_path / "go").touch()
        job.get_job_execution_result().result()
        assert eventually(lambda: "FINISHED" in client.get("/firesteel/v1/jobs").text)
        address = page.address
    try:
        httpx.get(address)
    except httpx.ConnectError:
        return
    raise AssertionError("the page is still there")


TWO_JOBS = """\
from firesteel.datastream import StreamExecutionEnvironment
for name in ("first", "second", "third"):
    env = StreamExecutionEnvironment.get_execution_environment()
    env.from_collection([1, 2]).map(lambda n: n).name(f"step of {name}").print()
    env.execute(name)
exec(open("ENDLESS").read())
"""


def test_all_jobs_of_a_program_are_listed(tmp_path: Path) -> None:
    (tmp_path / "endless.py").write_text(ENDLESS)
    text = TWO_JOBS.replace("ENDLESS", str(tmp_path / "endless.py"))
    with running_cluster(tmp_path / "c") as cluster:
        program = cluster.programs.put("several.py", text.encode())
        first = cluster.supervisor.submit(program, settings={"firesteel.master": "memory"}).id

        def states() -> dict[str, str]:
            return {row.name: row.state for row in cluster.supervisor.rows()}

        # The program goes on after its first job.
        wanted = {"first": "RUNNING", "second": "FINISHED", "third": "FINISHED", "endless": "RUNNING"}
        assert eventually(lambda: states() == wanted), states()
        assert cluster.supervisor.free_slots == 3, "they have one driver"
        rows = {row.name: row for row in cluster.supervisor.rows()}
        assert {row.parent for row in rows.values()} == {"", first}
        with client_of(cluster) as client:
            known = client.get(f"/jobs/{rows['second'].id}").json()
            assert "step of second" in json.dumps(known["vertices"])
            assert {one["name"] for one in client.get("/jobs/overview").json()["jobs"]} == set(rows)
            answer = client.patch(f"/jobs/{rows['endless'].id}", params={"mode": "cancel"})
            assert answer.status_code == 202, answer.text
        assert has_state(cluster, rows["endless"].id, "CANCELED")
        assert has_state(cluster, first, *ENDED)


def test_prometheus_gets_all_jobs_from_the_job_manager(tmp_path: Path) -> None:
    with served(tmp_path / "c") as site:
        cluster = site.cluster
        program = cluster.programs.put("endless.py", ENDLESS.encode())
        chosen = {"firesteel.master": "memory"}
        jobs = [cluster.supervisor.submit(program, settings=chosen).id for _ in range(2)]
        assert all(has_state(cluster, job, "RUNNING") for job in jobs)
        with client_of(cluster) as client:

            def scraped() -> dict[tuple[str, str], float]:
                text = client.get("/metrics").text
                samples = [one for family in text_string_to_metric_families(text) for one in family.samples]
                return {(one.name, one.labels.get("job_id", "")): one.value for one in samples}

            assert scraped()["flink_jobmanager_taskSlotsAvailable", ""] == 6
            assert scraped()["flink_jobmanager_numRunningJobs", ""] == 2
            assert eventually(lambda: all(scraped()["flink_jobmanager_job_firesteel_records", job] > 0 for job in jobs))
            found = scraped()
            assert all(found["flink_jobmanager_job_uptime", job] > 0 for job in jobs)
            assert {job for name, job in found if name == "flink_taskmanager_job_task_operator_numRecordsIn"} == set(
                jobs
            )
            # Prometheus itself, with the token that may only look.
            port = urllib.parse.urlsplit(site.address).port
            with started(lambda: Prometheus(port or 0, cluster.tokens.read_only)) as prometheus:

                def asked() -> set[str]:
                    return {
                        one["metric"]["job_id"]
                        for one in prometheus.query("flink_jobmanager_job_firesteel_records > 0")
                    }

                assert eventually(lambda: asked() == set(jobs))
            assert client.get("/metrics", headers={"Authorization": ""}).status_code == 401
            # What has ended is no longer there.
            cluster.supervisor.cancel(jobs[0])
            assert has_state(cluster, jobs[0], "CANCELED")
            assert ("flink_jobmanager_job_uptime", jobs[0]) not in scraped()
            assert "/metrics" in json.loads(client.get("/openapi.json").text)["paths"]
