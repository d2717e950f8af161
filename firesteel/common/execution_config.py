"""Settings of a whole job."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from firesteel.common.configuration import Configuration
from firesteel.errors import ProgramError

__all__ = ["ExecutionConfig"]

_MAX_PARALLELISM = 32768
"""Flink's limit: the number of key groups."""

_DURATIONS = {
    "metrics.latency.interval": "_latency_tracking_interval",
    "task.cancellation.interval": "_task_cancellation_interval",
    "task.cancellation.timeout": "_task_cancellation_timeout",
}
_SWITCHES = {
    "execution.checkpointing.snapshot-compression": "_snapshot_compression",
    "pipeline.auto-generate-uids": "_auto_generated_uids",
    "pipeline.force-avro": "_force_avro",
    "pipeline.force-kryo": "_force_kryo",
    "pipeline.generic-types": "_generic_types",
    "pipeline.object-reuse": "_object_reuse",
}
"""By key the field that it sets."""


class ExecutionConfig:
    """Settings of a whole job, with Flink's defaults.

    >>> config = ExecutionConfig().set_parallelism(4).enable_object_reuse()
    >>> config.get_parallelism(), config.get_auto_watermark_interval(), config.is_object_reuse_enabled()
    (4, 200, True)

    Switches that steer Java serializers are remembered and have no effect.
    """

    PARALLELISM_DEFAULT = -1
    PARALLELISM_UNKNOWN = -2

    def __init__(self) -> None:
        self._parallelism = self.PARALLELISM_DEFAULT
        self._max_parallelism = -1
        self._auto_watermark_interval = 200
        self._latency_tracking_interval = 0
        self._task_cancellation_interval = 30_000
        self._task_cancellation_timeout = 180_000
        self._global_job_parameters: dict[str, str] = {}
        self._auto_generated_uids = True
        self._closure_cleaner = True
        self._force_avro = False
        self._force_kryo = False
        self._generic_types = True
        self._object_reuse = False
        self._snapshot_compression = False
        self._watermark_interval_is_explicit = False

    def configure(self, configuration: Configuration) -> ExecutionConfig:
        """Takes over what a configuration says about these settings.

        >>> settings = Configuration().set_string("pipeline.auto-watermark-interval", "1 s")
        >>> ExecutionConfig().configure(settings).get_auto_watermark_interval()
        1000
        """
        if configuration.contains_key("parallelism.default"):
            self.set_parallelism(configuration.get_integer("parallelism.default", -1))
        if configuration.contains_key("pipeline.max-parallelism"):
            self.set_max_parallelism(configuration.get_integer("pipeline.max-parallelism", -1))
        if configuration.contains_key("pipeline.auto-watermark-interval"):
            self.set_auto_watermark_interval(configuration.get_duration_ms("pipeline.auto-watermark-interval", 200))
        for key, name in _DURATIONS.items():
            setattr(self, name, configuration.get_duration_ms(key, getattr(self, name)))
        for key, name in _SWITCHES.items():
            setattr(self, name, configuration.get_boolean(key, getattr(self, name)))
        cleaner = configuration.get_string("pipeline.closure-cleaner-level", None)
        if cleaner is not None:
            self._closure_cleaner = cleaner.upper() != "NONE"
        parameters = configuration.get_string("pipeline.global-job-parameters", "")
        if parameters:
            pairs = (pair.partition(":") for pair in parameters.split(","))
            self.set_global_job_parameters({key.strip(): value.strip().strip("'\"") for key, _, value in pairs})
        return self

    # -- parallelism ----------------------------------------------------------------------------------------

    def get_parallelism(self) -> int:
        """How many subtasks operators have by default; -1 leaves it to the machine."""
        return self._parallelism

    def set_parallelism(self, parallelism: int) -> ExecutionConfig:
        """Sets how many subtasks operators have by default; -1 leaves it to the machine."""
        if parallelism < 1 and parallelism != self.PARALLELISM_DEFAULT:
            raise ProgramError(f"Parallelism is at least 1, or -1 for the default, got {parallelism}.")
        self._parallelism = parallelism
        return self

    def get_max_parallelism(self) -> int:
        """The number of key groups, or -1 if it was not set."""
        return self._max_parallelism

    def set_max_parallelism(self, max_parallelism: int) -> ExecutionConfig:
        """Sets the number of key groups, which keyed state can never be spread further than."""
        if max_parallelism != -1 and not 0 < max_parallelism <= _MAX_PARALLELISM:
            raise ProgramError(f"The maximum parallelism is between 1 and {_MAX_PARALLELISM}, got {max_parallelism}.")
        self._max_parallelism = max_parallelism
        return self

    # -- time -----------------------------------------------------------------------------------------------

    def get_auto_watermark_interval(self) -> int:
        """How often watermarks are made, in milliseconds."""
        return self._auto_watermark_interval

    def set_auto_watermark_interval(self, interval: int) -> ExecutionConfig:
        """Sets how often watermarks are made, in milliseconds. An explicit 1 means after every element."""
        if interval < 0:
            raise ProgramError(f"The watermark interval cannot be negative, got {interval}.")
        self._auto_watermark_interval = interval
        self._watermark_interval_is_explicit = True
        return self

    def is_auto_watermark_interval_explicit(self) -> bool:
        """Whether the program set the watermark interval itself."""
        return self._watermark_interval_is_explicit

    def get_latency_tracking_interval(self) -> int:
        """How often latency is measured, in milliseconds; 0 for never."""
        return self._latency_tracking_interval

    def set_latency_tracking_interval(self, interval: int) -> ExecutionConfig:
        """Sets how often latency is measured, in milliseconds."""
        self._latency_tracking_interval = interval
        return self

    def get_task_cancellation_interval(self) -> int:
        """The pause between two attempts to cancel a task, in milliseconds."""
        return self._task_cancellation_interval

    def set_task_cancellation_interval(self, interval: int) -> ExecutionConfig:
        """Sets the pause between two attempts to cancel a task, in milliseconds."""
        self._task_cancellation_interval = interval
        return self

    def get_task_cancellation_timeout(self) -> int:
        """How long cancelling may take, in milliseconds."""
        return self._task_cancellation_timeout

    def set_task_cancellation_timeout(self, timeout: int) -> ExecutionConfig:
        """Sets how long cancelling may take, in milliseconds."""
        self._task_cancellation_timeout = timeout
        return self

    # -- parameters -----------------------------------------------------------------------------------------

    def get_global_job_parameters(self) -> dict[str, str]:
        """The parameters that functions can ask their runtime context for."""
        return dict(self._global_job_parameters)

    def set_global_job_parameters(self, global_job_parameters_dict: Mapping[str, Any]) -> ExecutionConfig:
        """Sets the parameters that functions can ask their runtime context for; values become text."""
        self._global_job_parameters = {str(key): str(value) for key, value in global_job_parameters_dict.items()}
        return self

    # -- switches -------------------------------------------------------------------------------------------

    def enable_object_reuse(self) -> ExecutionConfig:
        """Lets operators hand on the very same objects."""
        return self._switch("_object_reuse", True)

    def disable_object_reuse(self) -> ExecutionConfig:
        """Takes :meth:`enable_object_reuse` back."""
        return self._switch("_object_reuse", False)

    def is_object_reuse_enabled(self) -> bool:
        """Whether operators hand on the very same objects."""
        return self._object_reuse

    def enable_auto_generated_uids(self) -> ExecutionConfig:
        """Lets operators without a ``uid`` have a generated one."""
        return self._switch("_auto_generated_uids", True)

    def disable_auto_generated_uids(self) -> ExecutionConfig:
        """Asks for a ``uid`` on every operator."""
        return self._switch("_auto_generated_uids", False)

    def has_auto_generated_uids_enabled(self) -> bool:
        """Whether operators without a ``uid`` have a generated one."""
        return self._auto_generated_uids

    def set_use_snapshot_compression(self, use_snapshot_compression: bool) -> ExecutionConfig:
        """Sets whether snapshots are compressed."""
        return self._switch("_snapshot_compression", use_snapshot_compression)

    def is_use_snapshot_compression(self) -> bool:
        """Whether snapshots are compressed."""
        return self._snapshot_compression

    def enable_closure_cleaner(self) -> ExecutionConfig:
        """Without effect: Python closures carry only what they use."""
        return self._switch("_closure_cleaner", True)

    def disable_closure_cleaner(self) -> ExecutionConfig:
        """Without effect."""
        return self._switch("_closure_cleaner", False)

    def is_closure_cleaner_enabled(self) -> bool:
        """What was set."""
        return self._closure_cleaner

    def enable_force_kryo(self) -> ExecutionConfig:
        """Without effect: there are no Java serializers."""
        return self._switch("_force_kryo", True)

    def disable_force_kryo(self) -> ExecutionConfig:
        """Without effect."""
        return self._switch("_force_kryo", False)

    def is_force_kryo_enabled(self) -> bool:
        """What was set."""
        return self._force_kryo

    def enable_force_avro(self) -> ExecutionConfig:
        """Without effect: there are no Java serializers."""
        return self._switch("_force_avro", True)

    def disable_force_avro(self) -> ExecutionConfig:
        """Without effect."""
        return self._switch("_force_avro", False)

    def is_force_avro_enabled(self) -> bool:
        """What was set."""
        return self._force_avro

    def enable_generic_types(self) -> ExecutionConfig:
        """Without effect: there are no Java serializers."""
        return self._switch("_generic_types", True)

    def disable_generic_types(self) -> ExecutionConfig:
        """Without effect."""
        return self._switch("_generic_types", False)

    def has_generic_types_disabled(self) -> bool:
        """What was set."""
        return not self._generic_types

    def get_default_kryo_serializer_classes(self) -> dict[str, str]:
        """Empty: there are no Java serializers."""
        return {}

    def get_registered_kryo_types(self) -> list[str]:
        """Empty: there are no Java serializers."""
        return []

    def get_registered_pojo_types(self) -> list[str]:
        """Empty: there are no Java serializers."""
        return []

    def _switch(self, name: str, value: bool) -> ExecutionConfig:
        setattr(self, name, value)
        return self

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ExecutionConfig) and self.__dict__ == other.__dict__

    def __hash__(self) -> int:
        return hash((self._parallelism, self._max_parallelism, self._auto_watermark_interval))
