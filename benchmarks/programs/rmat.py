"""Random graphs (R-MAT) as Parquet files, the same for all engines. Needs numpy and pyarrow only."""

import os
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

FOLDER = Path(os.environ.get("RMAT_FOLDER") or Path(tempfile.gettempdir()) / f"rmat-{os.getuid()}")
EDGES_PER_VERTEX = 16
PIECE = 1_000_000


def rmat_file(edges: int) -> str:
    """A file with columns src and dst, made where it is not there. Vertices are 2 ** n, about a sixteenth of edges."""
    path = FOLDER / f"rmat-{edges}.parquet"
    if not path.exists():
        FOLDER.mkdir(mode=0o700, parents=True, exist_ok=True)
        draft = path.with_suffix(f".{os.getpid()}")
        scale = max(2, (edges // EDGES_PER_VERTEX).bit_length())
        random = np.random.default_rng(7)
        # Which vertices are popular should not follow from their ids.
        names = random.permutation(1 << scale)
        schema = pa.schema([("src", pa.int64()), ("dst", pa.int64())])
        with pq.ParquetWriter(draft, schema) as writer:
            for begin in range(0, edges, PIECE):
                size = min(PIECE, edges - begin)
                source, target = np.zeros(size, np.int64), np.zeros(size, np.int64)
                for _ in range(scale):
                    drawn = random.random(size)
                    down = drawn >= 0.76
                    right = ((drawn >= 0.57) & ~down) | (drawn >= 0.95)
                    source, target = source * 2 + down, target * 2 + right
                # Row groups let several tasks read it.
                writer.write_table(pa.table([names[source], names[target]], schema=schema), row_group_size=250_000)
        draft.rename(path)
    return f"file://{path}"
