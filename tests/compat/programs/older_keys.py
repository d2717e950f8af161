"""Keys that Flink has renamed, and durations as texts. Nothing is run."""

from firesteel.common import Configuration, Duration
from firesteel.datastream import StreamExecutionEnvironment


def env_of(**settings: str) -> StreamExecutionEnvironment:
    configuration = Configuration()
    for key, value in settings.items():
        configuration.set_string(key.replace("__", ".").replace("_", "-"), value)
    return StreamExecutionEnvironment.get_execution_environment(configuration)


print("chaining", env_of(pipeline__operator_chaining="false").is_chaining_enabled())
both = {"pipeline__operator_chaining": "false", "pipeline__operator_chaining__enabled": "true"}
print("the newer key wins", env_of(**both).is_chaining_enabled())
for text in ("10 s", "1min", "250", "PT2S", "1 h", "0", "3 minutes", "5ms"):
    print("buffer timeout", text, env_of(execution__buffer_timeout=text).get_buffer_timeout())
    print("buffer timeout", text, env_of(execution__buffer_timeout__interval=text).get_buffer_timeout())
print("buffer timeout off", env_of(execution__buffer_timeout__enabled="false").get_buffer_timeout())
print("buffer timeout off", env_of().set_buffer_timeout(-1).get_buffer_timeout())
print("savepoints", env_of(state__savepoints__dir="/tmp/savepoints").get_default_savepoint_directory())
config = env_of(
    execution__checkpointing__interval="1 min",
    execution__checkpointing__unaligned="true",
    execution__checkpointing__alignment_timeout="3 s",
    execution__checkpointing__timeout="2min",
    execution__checkpointing__min_pause="4 s",
).get_checkpoint_config()
print("checkpoints", config.get_checkpoint_interval(), config.is_unaligned_checkpoints_enabled())
print("alignment", config.get_alignment_timeout() == Duration.of_seconds(3), config.get_checkpoint_timeout())
print("pause", config.get_min_pause_between_checkpoints())
execution = env_of(
    pipeline__auto_watermark_interval="3 s",
    metrics__latency__interval="5 min",
    task__cancellation_interval="7 s",
    task__cancellation__timeout="1 h",
    pipeline__closure_cleaner_level="NONE",
).get_config()
print("watermarks", execution.get_auto_watermark_interval(), "latency", execution.get_latency_tracking_interval())
print("cancelling", execution.get_task_cancellation_interval(), execution.get_task_cancellation_timeout())
print("cleaner", execution.is_closure_cleaner_enabled())
