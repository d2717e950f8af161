"""Secrets: not shown, not stored, looked up where they are used."""

from __future__ import annotations

import os
import pickle
from pathlib import Path
from typing import Any

import cloudpickle
import pytest

from firesteel.cli import main
from firesteel.common import Configuration, Secret, Types
from firesteel.common.private_files import make_private_folder, open_private
from firesteel.common.secret import is_secret_key, secrets_left_out
from firesteel.common.serialization import SimpleStringSchema
from firesteel.connectors.postgresql.address import Address
from firesteel.datastream import MapFunction, SinkFunction, StreamExecutionEnvironment
from firesteel.datastream.connectors.jdbc import JdbcConnectionOptions, JdbcSink
from firesteel.datastream.connectors.rabbitmq import RMQConnectionConfig, RMQSink
from firesteel.engine.job_context import job_spec
from firesteel.engine.pickling import pickle_job, pickle_job_to_keep
from firesteel.engine.settings import Settings
from firesteel.engine.spark.job_files import CoordinatorJob, write_job
from firesteel.engine.spark.submit_settings import property_line, submitted_by_file
from firesteel.errors import ConfigurationError, ProgramError
from firesteel.filesystems import LOCAL
from firesteel.runtime.job_spec import JobSpec

PASSWORD = "hunter2"
URL = "jdbc:postgresql://db/shop"


def options(url: str = URL, password: Any = None) -> JdbcConnectionOptions:
    return JdbcConnectionOptions(url, user_name="ada", password=password)


class TestSecret:
    def test_no_text_has_it(self) -> None:
        secret = Secret(PASSWORD)
        for text in (repr(secret), str(secret), f"{secret}", f"{[secret]}", f"{secret!r:>40}"):
            assert PASSWORD not in text

    def test_it_travels_and_is_left_out_where_it_is_stored(self) -> None:
        secret = Secret(PASSWORD)
        assert pickle.loads(pickle.dumps(secret)).reveal() == PASSWORD
        with secrets_left_out():
            stored = pickle.dumps(secret)
        assert PASSWORD.encode() not in stored
        with pytest.raises(ConfigurationError, match="left out when the job was stored"):
            pickle.loads(stored).reveal()

    def test_a_variable_is_looked_up_each_time(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("SHOP", PASSWORD)
        secret = Secret.from_environment("SHOP")
        assert secret.reveal() == PASSWORD
        pickled = pickle.dumps(secret)
        assert PASSWORD.encode() not in pickled
        monkeypatch.setenv("SHOP", "another")
        assert secret.reveal() == pickle.loads(pickled).reveal() == "another"
        assert secret.mask("it is another") == "it is ***"
        monkeypatch.delenv("SHOP")
        with pytest.raises(ConfigurationError, match="the environment variable 'SHOP', which is not set"):
            secret.reveal()

    def test_a_call_is_made_each_time(self, tmp_path: Path) -> None:
        file = tmp_path / "password"
        secret = Secret.from_call(lambda: file.read_text())
        pickled = cloudpickle.dumps(secret)
        for text in ("one", "two"):
            file.write_text(text)
            assert secret.reveal() == pickle.loads(pickled).reveal() == text
        assert secret.mask("one two") == "one ***"

    def test_equal_secrets_are_equal(self) -> None:
        assert Secret("a") == Secret("a") != Secret("b")
        assert len({Secret("a"), Secret("a"), Secret.from_environment("a")}) == 2


class TestJdbc:
    @pytest.mark.parametrize(
        "given",
        [
            options(password=PASSWORD),
            options(password=Secret(PASSWORD)),
            options(f"jdbc:postgresql://ada:{PASSWORD}@db/shop"),
            options(f"{URL}?user=ada&password={PASSWORD}"),
            options(f"{URL}?sslpassword={PASSWORD}"),
        ],
        ids=["text", "secret", "login", "parameter", "key"],
    )
    def test_nothing_shows_or_stores_a_password(self, given: JdbcConnectionOptions) -> None:
        address = given.address()
        sink = JdbcSink.sink("INSERT INTO t VALUES (?)", Types.ROW([Types.INT()]), given)
        for held in (given, address, sink._target):
            assert PASSWORD not in f"{held} {held!r}"
            assert PASSWORD.encode() in pickle.dumps(held), "it travels to the workers"
            with secrets_left_out():
                assert PASSWORD.encode() not in pickle.dumps(held)
        assert PASSWORD in address.arguments().values()
        assert PASSWORD not in address.without_password(f"FATAL: {PASSWORD} is wrong")

    def test_a_password_is_looked_up_by_whoever_connects(self, monkeypatch: pytest.MonkeyPatch) -> None:
        for given in (options(password=Secret.from_environment("SHOP")), options(password=lambda: os.environ["SHOP"])):
            target = JdbcSink.sink("INSERT INTO t VALUES (?)", Types.ROW([Types.INT()]), given)._target
            monkeypatch.setenv("SHOP", PASSWORD)
            pickled = cloudpickle.dumps(target)
            assert PASSWORD.encode() not in pickled
            monkeypatch.setenv("SHOP", "in the worker")
            assert pickle.loads(pickled).address.arguments()["password"] == "in the worker"
            assert given.get_password() == "in the worker"

    def test_an_address_is_looked_up_by_whoever_connects(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.delenv("SHOP", raising=False)
        for url in (Secret.from_environment("SHOP"), lambda: os.environ["SHOP"]):
            # The driver need not know it.
            given = JdbcConnectionOptions.JdbcConnectionOptionsBuilder().with_url(url).with_user_name("ada").build()
            sink = JdbcSink.sink("INSERT INTO t VALUES (?)", Types.ROW([Types.INT()]), given)
            monkeypatch.setenv("SHOP", f"jdbc:postgresql://one/shop?password={PASSWORD}")
            pickled = cloudpickle.dumps(sink)
            assert PASSWORD.encode() not in pickled
            assert b"one/shop" not in pickled
            for text in (f"{given}", f"{sink._target}"):
                assert PASSWORD not in text
                assert "one" not in text
            monkeypatch.setenv("SHOP", f"jdbc:postgresql://two/shop?password={PASSWORD}2")
            address = pickle.loads(pickled)._target.address
            assert str(address) == "two:5432/shop"
            assert address.arguments()["password"] == f"{PASSWORD}2"
            assert address.arguments()["user"] == "ada"
            assert PASSWORD not in address.without_password(f"FATAL: {PASSWORD}2 is wrong")
            monkeypatch.delenv("SHOP")

    def test_options_are_as_they_were_given(self) -> None:
        url = f"jdbc:postgresql://ada:{PASSWORD}@db/shop"
        assert options(url).get_db_url() == url
        assert options(password=PASSWORD).get_password() == PASSWORD
        assert options().get_password() is None

    def test_a_login_that_is_misread_is_not_shown(self) -> None:
        with pytest.raises(ProgramError) as refused:
            Address.parse("jdbc:postgresql://ada:hunter2/x@db/shop")
        assert PASSWORD not in str(refused.value)


class Service(SinkFunction):
    def __init__(self, password: str) -> None:
        self.password = password

    def invoke(self, value: Any, context: SinkFunction.Context) -> None:
        """Nothing."""


class Calls(MapFunction):
    def __init__(self, secret: Secret) -> None:
        self.secret = secret

    def map(self, value: Any) -> Any:
        return self.secret.reveal()


def spec_of(env: StreamExecutionEnvironment) -> JobSpec:
    return job_spec(env._submission("job"))


def test_an_address_of_rabbitmq_is_looked_up_by_whoever_connects(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pika")
    monkeypatch.delenv("BROKER", raising=False)
    for uri in (Secret.from_environment("BROKER"), lambda: os.environ["BROKER"]):
        # The driver need not know it.
        config = RMQConnectionConfig.Builder().set_uri(uri).set_requested_heartbeat(10).build()
        sink = RMQSink(config, "q", SimpleStringSchema())
        monkeypatch.setenv("BROKER", f"amqp://ada:{PASSWORD}@first-broker/shop")
        assert config.get_password() == PASSWORD
        pickled = cloudpickle.dumps(sink)
        assert PASSWORD.encode() not in pickled
        assert b"first-broker" not in pickled
        assert "first-broker" not in repr(config)
        monkeypatch.setenv("BROKER", f"amqp://ada:{PASSWORD}2@two/shop")
        address = pickle.loads(pickled)._config._address
        credentials = address.resolve().parameters()
        assert (credentials.host, credentials.credentials.password) == ("two", f"{PASSWORD}2")
        assert (str(address), credentials.heartbeat) == ("two:5672/shop", 10)
        monkeypatch.delenv("BROKER")


def test_the_job_that_is_kept_for_a_replay_has_neither_sinks_nor_secrets() -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    called = env.from_collection([1]).map(Calls(Secret("in-a-function")))
    called.add_sink(Service("in-a-sink"))
    called.add_sink(JdbcSink.sink("INSERT INTO t VALUES (?)", Types.ROW([Types.INT()]), options(password="in-jdbc")))
    env.get_config().set_global_job_parameters({"service.password": "in-a-parameter", "shop": "here"})
    spec = spec_of(env)
    whole = pickle_job(spec)
    kept = pickle_job_to_keep(spec, whole)
    for secret in (b"in-a-function", b"in-a-sink", b"in-jdbc", b"in-a-parameter"):
        assert secret in whole.pickled
        assert secret not in kept.pickled
    assert list(kept.load_here().graph.graph.nodes) == list(spec.graph.graph.nodes)
    assert kept.load_here().job_parameters == {"service.password": "***", "shop": "here"}


def test_the_coordinator_does_not_get_sparks_settings(tmp_path: Path) -> None:
    settings = Settings.of(Configuration.from_dict({"spark.hadoop.fs.s3a.secret.key": PASSWORD}))
    env = StreamExecutionEnvironment.get_execution_environment()
    env.from_collection([1]).print()
    payload = pickle_job(spec_of(env))
    write_job(str(tmp_path), payload, CoordinatorJob(payload, settings, str(tmp_path)))
    for path in tmp_path.iterdir():
        assert PASSWORD.encode() not in path.read_bytes()
        assert path.stat().st_mode & 0o777 == 0o600
    assert PASSWORD not in repr(settings)


class TestConfiguration:
    @pytest.mark.parametrize(
        "key",
        [
            "spark.hadoop.fs.s3a.secret.key",
            "spark.hadoop.fs.s3a.access.key",
            "spark.hadoop.fs.azure.account.key.shop.dfs.core.windows.net",
            "security.ssl.key-password",
            "my.TOKEN",
            "credentials",
            "api-key",
        ],
    )
    def test_texts_show_no_secrets(self, key: str) -> None:
        settings = Configuration.from_dict({key: PASSWORD, "parallelism.default": "2"})
        assert str(settings).count("***") == 1
        assert "parallelism.default=2" in str(settings)
        assert PASSWORD not in repr(settings)
        assert settings.to_dict()[key] == PASSWORD
        with pytest.raises(ConfigurationError) as refused:
            settings.get_integer(key, 0)
        assert PASSWORD not in str(refused.value)

    def test_plain_keys_are_plain(self) -> None:
        assert not any(map(is_secret_key, ["firesteel.master", "spark.sql.shuffle.partitions", "key.by"]))


def test_a_secret_on_the_command_line_is_warned_of(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program = tmp_path / "program.py"
    program.write_text("")
    settings = [f"spark.hadoop.fs.s3a.secret.key={PASSWORD}", "parallelism.default=1"]
    assert main(["run", "-D", settings[0], "-D", settings[1], str(program)]) == 0
    (warning,) = capsys.readouterr().err.splitlines()
    assert warning.startswith("firesteel: -D spark.hadoop.fs.s3a.secret.key=… can be read by every user")


class TestSubmission:
    def test_settings_are_in_a_private_file_for_as_long_as_it_takes(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("PYSPARK_SUBMIT_ARGS", "--verbose pyspark-shell")
        with submitted_by_file({"spark.a": "1", "spark.password": PASSWORD}, tmp_path):
            (file,) = tmp_path.iterdir()
            assert file.stat().st_mode & 0o777 == 0o600
            assert file.read_text().splitlines() == ["spark.a=1", f"spark.password={PASSWORD}"]
            arguments = os.environ["PYSPARK_SUBMIT_ARGS"]
            assert arguments == f"--properties-file {file} --load-spark-defaults --verbose pyspark-shell"
        assert not list(tmp_path.iterdir())
        assert os.environ["PYSPARK_SUBMIT_ARGS"] == "--verbose pyspark-shell"

    def test_values_survive_javas_format(self) -> None:
        assert property_line("spark.x", "a=b:c#d!e\\f\n") == "spark.x=a\\=b\\:c\\#d\\!e\\\\f\\n\n"


class TestPrivateFiles:
    @pytest.fixture(autouse=True)
    def no_umask(self) -> Any:
        previous = os.umask(0)
        yield
        os.umask(previous)

    def test_what_is_made_is_private_and_what_was_there_stays(self, tmp_path: Path) -> None:
        (tmp_path / "theirs").mkdir(mode=0o755)
        make_private_folder(str(tmp_path / "theirs" / "a" / "b"))
        modes = [(tmp_path / name).stat().st_mode & 0o777 for name in ("theirs", "theirs/a", "theirs/a/b")]
        assert modes == [0o755, 0o700, 0o700]
        make_private_folder(str(tmp_path / "theirs"))
        assert (tmp_path / "theirs").stat().st_mode & 0o777 == 0o755

    def test_a_file_in_the_way_is_told(self, tmp_path: Path) -> None:
        (tmp_path / "file").touch()
        with pytest.raises(OSError, match="file"):
            make_private_folder(str(tmp_path / "file" / "inside"))

    def test_storage_is_private(self, tmp_path: Path) -> None:
        LOCAL.write(str(tmp_path / "job" / "commits" / "0"), b"")
        LOCAL.make_folder(str(tmp_path / "job" / "query"))
        found = {path.relative_to(tmp_path).as_posix(): path.stat().st_mode & 0o777 for path in tmp_path.rglob("*")}
        assert found == {"job": 0o700, "job/commits": 0o700, "job/query": 0o700, "job/commits/0": 0o600}

    def test_an_opened_file_keeps_its_mode(self, tmp_path: Path) -> None:
        (tmp_path / "old").touch(mode=0o644)
        for name, mode in (("old", 0o644), ("new", 0o600)):
            with open_private(str(tmp_path / name), "a"):
                assert (tmp_path / name).stat().st_mode & 0o777 == mode
