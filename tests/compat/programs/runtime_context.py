"""What the runtime context tells a rich function, and that open and close frame the records."""

from firesteel.common import Types
from firesteel.datastream import MapFunction, RuntimeContext, StreamExecutionEnvironment

ORDER = "none"


class Curious(MapFunction):
    def open(self, runtime_context: RuntimeContext) -> None:
        self.facts = (
            runtime_context.get_number_of_parallel_subtasks(),
            runtime_context.get_index_of_this_subtask() < 2,
            runtime_context.get_attempt_number(),
            runtime_context.get_job_parameter("no such key", "default"),
        )

    def map(self, value: int) -> str:
        return f"{value} {self.facts}"


class Maximum(MapFunction):
    def open(self, runtime_context: RuntimeContext) -> None:
        self.maximum = runtime_context.get_max_number_of_parallel_subtasks()

    def map(self, value: int) -> int:
        return self.maximum


def main() -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(2)
    env.set_max_parallelism(64)
    env.from_collection([1, 2, 3], Types.INT()).map(Curious(), Types.STRING()).print("two")
    env.from_collection([0], Types.INT()).map(Maximum(), Types.INT()).print("maximum")
    env.from_collection([4], Types.INT()).map(Curious(), Types.STRING()).set_parallelism(1).print("one")
    env.execute("runtime context")


if __name__ == "__main__":
    main()
