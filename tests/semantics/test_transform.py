"""Operators that a library brings, through the public contract alone. ``rulebook`` is such a library."""

from __future__ import annotations

import ast
import importlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import rulebook
import rulebook.operators
from kit import BATCH, FOREVER, STREAMING, ascending, first
from savepointkit import Halves

import firesteel
from firesteel.common import Types, WatermarkStrategy
from firesteel.datastream import OutputTag, RuntimeContext, StreamExecutionEnvironment
from firesteel.datastream.operators import Records, StreamOperator, handles
from firesteel.datastream.state import ValueStateDescriptor
from firesteel.durable.state_tables import OperatorTables
from firesteel.errors import JobExecutionError, ProgramError
from firesteel.testing import ListSource, OneInputHarness, Record, Watermark

MODES = pytest.mark.parametrize("mode", [STREAMING, BATCH], ids=["streaming", "batch"])
BACKENDS = pytest.mark.parametrize("backend", ["hashmap", "rocksdb"])


@pytest.fixture(params=[1, 3])
def parallelism(request: pytest.FixtureRequest) -> int:
    number: int = request.param
    return number


def test_a_stateless_operator(run: Any, parallelism: int) -> None:
    def build(env: StreamExecutionEnvironment) -> Any:
        numbers = env.from_collection(list(range(100)))
        return numbers.transform("Scale", rulebook.Scale(10), Types.INT()).transform("Again", rulebook.Scale(2))

    assert sorted(run(build, parallelism)) == [number * 20 for number in range(100)]


def test_an_operator_of_a_base_class_and_a_side_output(run: Any) -> None:
    tag = OutputTag("odd", Types.INT())

    def build(env: StreamExecutionEnvironment) -> Any:
        apart = env.from_collection([1, 2, 3, 4]).transform("Apart", rulebook.Apart(10, tag))
        return apart.union(apart.get_side_output(tag).map(lambda number: -number))

    assert sorted(run(build)) == [-3, -1, 20, 40]


@MODES
@BACKENDS
@pytest.mark.both_engines
@pytest.mark.spark_sample(parallelism=1, backend="rocksdb", mode="streaming")
def test_state_and_timers_of_a_key(run: Any, parallelism: int, mode: Any, backend: str) -> None:
    """It has to run in a process that has imported nothing of the library: the job brings the operator along."""
    records = [("a", 10), ("b", 20), ("a", 100), ("b", 150), ("a", 200), ("a", 240)]

    def build(env: StreamExecutionEnvironment) -> Any:
        timed = env.from_collection(records).assign_timestamps_and_watermarks(ascending()).set_parallelism(1)
        return timed.key_by(first).transform("Deduplicate", rulebook.Deduplicate(50)).map(str)

    config = {"state.backend.type": backend, "firesteel.batch.max-records": "1"}
    forgotten = [("a", "EVENT_TIME"), ("b", "EVENT_TIME")]
    found = sorted(run(build, parallelism, config, mode))
    if mode is BATCH:
        # Time stands still until a key's last record was seen.
        assert found == sorted(map(str, [("a", 10), ("b", 20), *forgotten]))
    else:
        assert found == sorted(map(str, [("a", 10), ("b", 20), ("b", 150), ("a", 200), *forgotten, *forgotten]))


@MODES
@BACKENDS
def test_two_keyed_inputs_share_state(run: Any, parallelism: int, mode: Any, backend: str) -> None:
    left = [("a", 1), ("b", 2), ("a", 3)]
    right = [("b", 10), ("a", 20), ("c", 30), ("a", 40)]

    def build(env: StreamExecutionEnvironment) -> Any:
        connected = env.from_collection(left).connect(env.from_collection(right)).key_by(first, first)
        return connected.transform("Join", rulebook.Join())

    pairs = [(one, two) for one in left for two in right if one[0] == two[0]]
    config = {"state.backend.type": backend, "firesteel.batch.max-records": "2"}
    assert sorted(run(build, parallelism, config, mode)) == sorted(pairs)


@MODES
def test_a_keyed_and_a_broadcast_input(run: Any, parallelism: int, mode: Any) -> None:
    """The broadcast records of a batch come first, and have no key."""

    def build(env: StreamExecutionEnvironment) -> Any:
        numbers = env.from_collection([3, 5, 7, 9]).key_by(lambda number: number % 4)
        return numbers.connect(env.from_collection([8]).broadcast()).transform("Rules", rulebook.Rules())

    assert sorted(run(build, parallelism, None, mode)) == [(3, 1), (5, 1), (7, 2)]


def test_watermarks_are_combined_and_batches_end(run: Any) -> None:
    steps = [[Record("a", 1), Record("b", 2)], Watermark(5), [Record("c", 7)]]

    def build(env: StreamExecutionEnvironment) -> Any:
        source = env.from_source(ListSource(steps), WatermarkStrategy.no_watermarks(), "steps")
        return source.transform("Progress", rulebook.Progress())

    found = run(build, 2)
    assert [record for record in found if record != "batch"] == [(5, 2), (5, 0), (FOREVER, 3), (FOREVER, 0)]
    assert found.count("batch") >= 6


def test_an_operator_that_only_sees_watermarks(run: Any) -> None:
    """It stands behind the stage of the source, where the watermarks of all subtasks are one."""
    steps = {"a": [[Record(3, 3)], [Record(9, 9)]], "b": [[Record(5, 5)], [Record(6, 6)]]}

    def build(env: StreamExecutionEnvironment) -> Any:
        strategy = WatermarkStrategy.for_monotonous_timestamps()
        source = env.from_source(ListSource(steps), strategy, "steps").set_parallelism(1)
        return source.transform("Largest", rulebook.Largest())

    assert run(build) == [(2, 5), (FOREVER, 9)]


@BACKENDS
@pytest.mark.parametrize("prepared", [True, False])
def test_keys_of_the_operators_own_choice(run: Any, backend: str, prepared: bool) -> None:
    """Their states are read wherever it turns to them, though memory holds only a few."""
    keys = [f"{number % 500:0100}" for number in range(2000)]

    def build(env: StreamExecutionEnvironment) -> Any:
        return env.from_collection(keys).key_by(str).transform("Tally", rulebook.Tally(prepared))

    config = {"state.backend.type": backend, "firesteel.batch.max-records": "300"}
    found = run(build, 1, config)
    assert dict(found) == dict.fromkeys(keys, 4)
    assert len(found) > 1000


def test_its_states_and_timers_are_in_savepoints(halves: Halves) -> None:
    """Keyed state, timers and operator state, with another parallelism."""
    one, two = [Record(("a", 1), 10), Record(("b", 2), 20)], [Record(("a", 3), 30), Record(("c", 4), 40)]

    def build(source: Any) -> Any:
        kept = source.key_by(first).transform("Deduplicate", rulebook.Deduplicate(50)).uid("kept")
        seen = source.key_by(first).transform("Progress", rulebook.Progress()).uid("seen")
        return kept.union(seen)

    assert [found for found in halves.save(build, [one], parallelism=2) if found != "batch"] == [("a", 1), ("b", 2)]
    found = halves.resume(build, [one, two], parallelism=1)
    forgotten = [(key, "EVENT_TIME") for key in ("a", "b", "c")]
    assert [record for record in found if record != "batch"] == [("c", 4), *forgotten, (FOREVER, 4)]


def test_a_harness_tests_an_operator() -> None:
    def build(stream: Any) -> Any:
        return stream.key_by(first).transform("Deduplicate", rulebook.Deduplicate(50))

    with OneInputHarness.of(build) as harness:
        harness.process_elements([Record(("a", 1), 10), Record(("a", 2), 20)])
        snapshot = harness.snapshot()
        assert harness.output == [("a", 1)]
        assert harness.event_time_timers == [(60, "a")]
    with harness.restore(snapshot) as restarted:
        restarted.process_element(("a", 3), 30)
        restarted.process_watermark(60)
        restarted.process_element(("a", 4), 70)
        assert restarted.output == [("a", "EVENT_TIME"), ("a", 4)]


def test_the_library_uses_public_names_only() -> None:
    private = ("firesteel.runtime", "firesteel.graph", "firesteel.engine", "firesteel.connectors")
    for file in Path(rulebook.__file__).parent.glob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("firesteel"):
                assert not node.module.startswith(private)
                exported = importlib.import_module(node.module).__all__
                assert {alias.name for alias in node.names} <= set(exported)
            elif isinstance(node, ast.Attribute):
                assert not node.attr.startswith("_") or node.attr.endswith("__")


@pytest.mark.parametrize("of", ["common", "datastream"])
@pytest.mark.parametrize("library", ["cep", "gelly", "table"])
def test_libraries_of_ours_know_nothing_private_of_streams(library: str, of: str) -> None:
    """What another library would need, too, is public."""
    package = Path(firesteel.__file__).parent
    private = _private_names(package / of) - _private_names(package / library) | ROWS
    for file in (package / library).rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(f"firesteel.{of}"):
                assert not [alias.name for alias in node.names if alias.name.startswith("_")], (file, node.lineno)
            elif isinstance(node, ast.Attribute) and not _is_own(node):
                assert node.attr not in private, (file, node.lineno)


ROWS = {"_fields", "_values", "_row_kind"}
"""What rows keep. Libraries have attributes of such names, too, but only rows are asked for theirs from outside."""


def _is_own(node: ast.Attribute) -> bool:
    """Whether an attribute is of the object, a part of it, or a class: ``self._table._fields``, ``Edge._fields``."""
    of = ast.unparse(node.value)
    return of.startswith("self") or of[0].isupper()


def _private_names(room: Path) -> set[str]:
    """Attributes and methods that begin with ``_`` and are set or defined by the classes of a room."""
    names: set[str] = set()
    for file in room.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
                names.add(node.attr)
            elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
                names.add(node.target.id)
            elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                names.add(node.name)
    return {name for name in names if name.startswith("_") and not name.endswith("__")}


# What is refused, and how


@dataclass(frozen=True)
class Unknown:
    number: int = 1


@dataclass(frozen=True)
class Failing:
    where: str


@handles(Failing)
class FailingOperator(StreamOperator[Failing]):
    def __init__(self, spec: Failing) -> None:
        super().__init__(spec)
        self._fail("made")

    def _fail(self, where: str) -> None:
        if self.spec.where == where:
            raise ValueError(f"when {where}")

    def open(self, runtime_context: RuntimeContext) -> None:
        self._fail("opened")

    def process(self, records: Records) -> None:
        self._fail("called")
        match self.spec.where:
            case "lengths":
                self.context.emit(records.values, [1])
            case "timer":
                self.context.set_current_key(1)
                self.context.timer_service().register_event_time_timer(1)
            case "key" | "later":
                self.context.set_current_key(1)
            case "state":
                state = self.context.get_state(ValueStateDescriptor("state", Types.INT()))
                state.value()
            case _:
                self.context.emit(records.values)

    def end_batch(self) -> None:
        self._fail("ended")
        if self.spec.where == "later":
            self.context.get_state(ValueStateDescriptor("state", Types.INT())).value()


def test_a_spec_without_an_operator_is_refused_where_the_program_is_built(make_env: Any) -> None:
    stream = make_env().from_collection([1])
    with pytest.raises(
        ProgramError, match=r"No operator is known for Unknown Unknown\(number=1\).*@handles\(Unknown\)"
    ):
        stream.transform("unknown", Unknown())
    for spec, shown in (
        ("Scale", "'Scale'"),
        (Types.INT(), r"INT.*"),
        (len, "<built-in function len>"),
        (None, "None"),
    ):
        with pytest.raises(ProgramError, match=rf"as spec it got {shown}\. A spec is an object of a class of your own"):
            stream.transform("unknown", spec)
    with pytest.raises(ProgramError, match=r"the class Scale itself. Pass an instance"):
        stream.connect(stream).transform("unknown", rulebook.Scale)


def test_only_operators_of_transform_say_how_their_state_is_shown(make_env: Any) -> None:
    stream = make_env().from_collection([1]).map(str).name("Text")
    with pytest.raises(ProgramError, match=r"show_state_as\(\) is for operators of transform\(\); 'Text' is none"):
        stream.show_state_as(OperatorTables("rows", (), ()))


def test_what_can_be_registered() -> None:
    with pytest.raises(ProgramError, match=r"handles.. takes classes of specs, got Unknown"):
        handles(Unknown())  # type: ignore[arg-type]
    with pytest.raises(ProgramError, match="decorates a subclass of StreamOperator"):
        handles(Unknown)(Unknown)  # type: ignore[type-var]


@pytest.mark.parametrize(
    ("where", "keyed", "message"),
    [
        ("made", False, "ValueError: when made"),
        ("opened", True, "ValueError: when opened"),
        ("called", False, "ValueError: when called"),
        ("called", True, "ValueError: when called"),
        ("ended", True, "ValueError: when ended"),
        ("lengths", False, "emits 2 records with 1 timestamps"),
        ("timer", True, "has no on_timer"),
        ("key", False, "its stream has no keys"),
        ("state", True, "there is no current key"),
        ("later", True, "there is no current key"),
    ],
)
def test_failures_name_the_operator(run: Any, where: str, keyed: bool, message: str) -> None:
    def build(env: StreamExecutionEnvironment) -> Any:
        numbers = env.from_collection([1, 2])
        return (numbers.key_by(abs) if keyed else numbers).transform("The failing one", Failing(where))

    with pytest.raises(JobExecutionError, match=message) as caught:
        run(build)
    assert caught.value.operator == "The failing one"


def test_a_failure_behind_it_is_not_its_own(run: Any) -> None:
    def build(env: StreamExecutionEnvironment) -> Any:
        return env.from_collection([0]).transform("Good", Failing("nowhere")).map(lambda n: 1 // n).name("Bad")

    with pytest.raises(JobExecutionError, match="ZeroDivisionError") as caught:
        run(build)
    assert caught.value.operator == "Bad"
