"""State outside of jobs: a savepoint or checkpoint read as tables, changed, and made anew, for jobs to begin with.

savepoint = Savepoint.load("/data/savepoints/savepoint-1f0c2a-9d3be2a41c55")
savepoint.read("counter", "count").show()

edited = savepoint.edit()
edited.filter_keys("counter", lambda key: key != "spam")
edited.save("/data/savepoints/cleaned")
"""

from firesteel.state_processor.editing import SavepointEditor
from firesteel.state_processor.savepoint import Savepoint, StateColumn, StateInfo

__all__ = ["Savepoint", "SavepointEditor", "StateColumn", "StateInfo"]
