"""The settings that a program begins with."""

from __future__ import annotations

import os
from pathlib import Path

from firesteel.common.configuration import Configuration
from firesteel.common.process_environment import submission_settings

__all__ = ["default_configuration"]


def default_configuration() -> Configuration:
    """The configuration file, if FIRESTEEL_CONF_DIR names one (or its folder), under the submission's settings.

    These are the options -p and -D of ``firesteel run``, or what the job manager starts a job with.
    """
    place = os.environ.get("FIRESTEEL_CONF_DIR")
    configuration = Configuration.from_file(Path(place)) if place else Configuration()
    for setting in submission_settings():
        key, _, value = setting.partition("=")
        if key:
            configuration.set_string(key, value)
    return configuration
