"""Values that need no job: Row, RowKind, time, configuration, the environment's settings."""

from firesteel.common import Configuration, Duration, Row, RowKind, Time, Types
from firesteel.datastream import RuntimeExecutionMode, StreamExecutionEnvironment


def rows() -> None:
    row = Row(name="Alice", age=11)
    print(repr(row), row.name, row["age"], row[0], "name" in row, len(row), row.as_dict())
    print(repr(Row("a", None, 1.5)), list(Row(1, 2)), Row(1, 2) == Row(1, 2), Row(1, 2) == Row(1, 3))
    person = Row("name", "age")
    print(repr(person), repr(person("Bob", 7)), person("Bob", 7).as_dict())
    deleted = Row.of_kind(RowKind.DELETE, "x", 1)
    print(repr(deleted), deleted.get_row_kind(), deleted == Row("x", 1))
    unnamed = Row(1, "z")
    unnamed.set_field_names(["n", "s"])
    print(repr(unnamed), unnamed.s, unnamed.get_fields_by_names(["s"]))
    unnamed[0] = 5
    print(repr(unnamed), hash(Row(1)) == hash(Row(1)), str(RowKind.UPDATE_AFTER))


def times() -> None:
    print(Time.seconds(3).to_milliseconds(), Time.days(1).to_milliseconds())
    print(Time.hours(2) == Time.minutes(120))
    print(Types.INT() == Types.INT(), Types.INT() == Types.LONG(), Types.ROW([Types.INT()]).get_field_names())
    print(Time.milliseconds(5).to_milliseconds(), Duration.of_seconds(1) == Duration.of_millis(1000))


def configurations() -> None:
    settings = Configuration()
    settings.set_string("a", "1").set_integer("b", 2).set_boolean("c", True).set_float("d", 0.5)
    print(settings.get_string("a", ""), settings.get_integer("b", 0), settings.get_boolean("c", False))
    print(settings.get_integer("a", 0), settings.get_string("none", "default"), sorted(settings.key_set()))
    other = Configuration()
    other.set_string("a", "other").set_string("e", "5")
    settings.add_all(other)
    print(sorted(settings.to_dict().items()), settings.contains_key("e"), settings.remove_config("e"))


def environments() -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    print(env.get_max_parallelism(), env.is_chaining_enabled())
    print(env.get_config().get_auto_watermark_interval())
    env.set_parallelism(3).set_max_parallelism(12)
    print(env.get_parallelism(), env.get_max_parallelism(), env.get_config().get_parallelism())
    env.disable_operator_chaining()
    print(env.is_chaining_enabled(), RuntimeExecutionMode.BATCH.name)


def main() -> None:
    rows()
    times()
    configurations()
    environments()


if __name__ == "__main__":
    main()
