"""The error hierarchy, the user's frames and reprs that never fail."""

from __future__ import annotations

import errno
import importlib
import pickle
import pkgutil
from collections.abc import Iterator

import pytest

import firesteel
from firesteel import errors
from firesteel.common.typeinfo import Types
from firesteel.connectors.retrying import retried
from firesteel.datastream.functions import as_map
from firesteel.errors import FailureKind, Location, caller_location, short_repr, user_frames


@pytest.mark.parametrize(
    "name", [name for name in errors.__all__ if name.endswith("Error") and name != "JobExecutionError"]
)
def test_every_error_pickles_with_its_attributes(name: str) -> None:
    error = getattr(errors, name)("what went wrong")
    error.note = ("more", 1)
    copy = pickle.loads(pickle.dumps(error))
    assert type(copy) is type(error)
    assert (str(copy), copy.note) == ("what went wrong", ("more", 1))


def test_a_job_execution_error_pickles_with_its_attributes() -> None:
    error = errors.JobExecutionError(
        "failed", operator="Map", built_at=Location("a.py", 3, "f"), element="'x'", cause_text="ValueError: x"
    )
    copy = pickle.loads(pickle.dumps(error))
    assert copy.__dict__ == error.__dict__
    assert str(copy.built_at) == "a.py:3"


def all_errors(root: type[errors.FiresteelError] = errors.FiresteelError) -> Iterator[type[errors.FiresteelError]]:
    yield root
    for one in root.__subclasses__():
        yield from all_errors(one)


def test_every_error_states_its_kind() -> None:
    for module in pkgutil.walk_packages(firesteel.__path__, "firesteel."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    ours = [one for one in all_errors() if one.__module__.partition(".")[0] == "firesteel"]
    assert errors.CheckpointError in ours
    without = [one.__qualname__ for one in ours if not isinstance(vars(one).get("kind"), FailureKind)]
    assert not without, "what a job does after a failure must not be inherited by chance"


def test_an_instance_may_be_of_another_kind_and_keeps_it_in_pickle() -> None:
    error = errors.CheckpointError("the disk is full", kind=FailureKind.PASSING)
    assert pickle.loads(pickle.dumps(error)).kind is FailureKind.PASSING
    assert errors.kind_of(error) is FailureKind.PASSING
    assert errors.CheckpointError("damaged").kind is FailureKind.PERMANENT


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (ValueError("the user's"), FailureKind.PASSING),
        (OSError(errno.ENOENT, "the user's file"), FailureKind.PASSING),
        (MemoryError(), FailureKind.PASSING),
        (errors.TypeMismatchError("text for int"), FailureKind.PERMANENT),
        (errors.ConnectorError("no database"), FailureKind.PASSING),
        (KeyboardInterrupt(), FailureKind.PERMANENT),
    ],
)
def test_the_kind_of_any_exception(error: BaseException, kind: FailureKind) -> None:
    assert errors.kind_of(error) is kind


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EMFILE])
def test_a_full_disk_may_pass(number: int) -> None:
    assert errors.kind_of_file_error(OSError(number, "no")) is FailureKind.PASSING


@pytest.mark.parametrize("number", [errno.EACCES, errno.EROFS, errno.ENOTDIR])
def test_a_folder_that_must_not_be_written_stays_so(number: int) -> None:
    assert errors.kind_of_file_error(OSError(number, "no")) is FailureKind.PERMANENT


def test_everything_is_a_firesteel_error() -> None:
    for name in errors.__all__:
        if name.endswith("Error"):
            assert issubclass(getattr(errors, name), errors.FiresteelError)
    assert issubclass(errors.TypeMismatchError, errors.ProgramError)
    assert not issubclass(errors.ConfigurationError, errors.ProgramError)


def test_caller_location_is_the_first_frame_outside_the_package() -> None:
    here = caller_location()
    assert here.file == __file__
    assert here.function == "test_caller_location_is_the_first_frame_outside_the_package"


def test_caller_location_skips_only_the_package_asked_for() -> None:
    assert caller_location(skip_package="hypothesis").file == __file__
    assert caller_location(skip_package="no such package").file == __file__


def fails() -> None:
    raise ValueError("user")


def test_user_frames_leave_out_ours_and_keep_the_users_last() -> None:
    mapper = as_map(lambda value: fails())
    with pytest.raises(ValueError, match="user") as caught:
        mapper.map(1)
    frames = user_frames(caught.value)
    assert [frame.name for frame in frames][-1] == "fails"
    assert not [frame for frame in frames if frame.filename.endswith("wrappers.py")]


def test_user_frames_leave_out_what_tries_again() -> None:
    with pytest.raises(ValueError, match="user") as caught:
        retried(fails, 1, "a batch")
    assert [frame.filename for frame in user_frames(caught.value)] == [__file__, __file__]


def test_user_frames_leave_out_generated_code() -> None:
    check = Types.LIST(Types.STRING()).checker()
    assert check is not None
    assert check.__code__.co_filename == "<firesteel checker of LIST<STRING>>"


class Broken:
    def __repr__(self) -> str:
        raise RuntimeError("no")


def test_short_repr_never_raises_and_keeps_its_limit() -> None:
    assert short_repr(Broken()) == "<Broken, whose __repr__ raised RuntimeError>"
    assert short_repr([Broken(), 1]) == "[<Broken, whose __repr__ raised RuntimeError>, 1]"
    assert len(short_repr("x" * 10_000)) <= 200
    assert len(short_repr(dict.fromkeys(range(1000), "x" * 100), limit=50)) == 50
    endless: list[object] = []
    endless.append(endless)
    assert short_repr(endless).startswith("[[[[")
    assert short_repr(10**5000).startswith("<int") or len(short_repr(10**5000)) <= 200
