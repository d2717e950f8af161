"""Changes as rows, and rows as changes."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from firesteel.datastream.operators import Records, StreamOperator, handles
from firesteel.errors import ProgramError
from firesteel.runtime.columns.kinds import INSERT, data_of, kinds_of, with_kinds
from firesteel.runtime.operators.table.specs import FromChangelog, ToChangelog

__all__ = ["FromChangelogOperator", "ToChangelogOperator"]


@handles(ToChangelog)
class ToChangelogOperator(StreamOperator[ToChangelog]):
    def process(self, records: Records) -> None:
        codes = pa.array(self.spec.codes, pa.string())
        results = []
        for batch in records.values:
            kinds, data = kinds_of(batch), data_of(batch)
            given = codes.take(pa.array(np.full(data.num_rows, INSERT, np.int8) if kinds is None else kinds))
            rows = pa.RecordBatch.from_arrays([given, *data.columns], schema=self.spec.schema)
            # A kind without a code is of no interest.
            results.append(rows.filter(given.is_valid()) if given.null_count else rows)
        results = [rows for rows in results if rows.num_rows]
        if results:
            self.context.emit(results)


@handles(FromChangelog)
class FromChangelogOperator(StreamOperator[FromChangelog]):
    def process(self, records: Records) -> None:
        codes = pa.array([code for code, _ in self.spec.kinds], pa.string())
        known = np.array([kind for _, kind in self.spec.kinds], np.int8)
        results = []
        for batch in records.values:
            codes_given = batch.column(self.spec.place)
            places = pc.index_in(codes_given, codes)
            if places.null_count:
                unknown = codes_given.filter(places.is_null())[0].as_py()
                shown = ", ".join(code for code, _ in self.spec.kinds)
                raise ProgramError(f"FROM_CHANGELOG: no kind of rows is called {unknown!r}. The kinds are {shown}.")
            columns = [column for index, column in enumerate(batch.columns) if index != self.spec.place]
            rows = pa.RecordBatch.from_arrays(columns, schema=self.spec.schema)
            results.append(with_kinds(rows, known[places.to_numpy()]))
        self.context.emit(results)
