"""The environment of the processes that a job manager starts for programs."""

from __future__ import annotations

import os
from collections.abc import Mapping

from firesteel.common.process_environment import SEPARATOR, SETTINGS, environment_of_child

__all__ = ["driver_environment", "settings_text"]

_OWN = ("FIRESTEEL_TOKEN", "FIRESTEEL_TOKEN_FILE", "FIRESTEEL_CLUSTER_DIR", "FIRESTEEL_REGISTRY_PASSWORD")
"""What is the job manager's and no business of a program's."""


def driver_environment() -> dict[str, str]:
    """That of this process, without what is meant for it alone."""
    environment = {key: value for key, value in environment_of_child().items() if key not in _OWN}
    environment["PYTHONUNBUFFERED"] = "1"
    return environment


def settings_text(settings: Mapping[str, str]) -> str:
    """The settings of a job, after those that this job manager was given for all programs.

    >>> settings_text({"parallelism.default": "2", "a": "b"}).split(SEPARATOR)
    ['parallelism.default=2', 'a=b']
    """
    inherited = [os.environ[SETTINGS]] if os.environ.get(SETTINGS) else []
    return SEPARATOR.join([*inherited, *(f"{key}={value}" for key, value in settings.items())])
