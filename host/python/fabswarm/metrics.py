"""The metrics of a run: named columns, one row per recorded round."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy

if TYPE_CHECKING:
    import pandas
    import pyarrow


class Metrics(Mapping[str, numpy.ndarray]):
    """Columns by name, as NumPy arrays: ``metrics["consensus_error"]``.

    Libraries that read Arrow tables (pyarrow, polars, DuckDB) take a ``Metrics`` as it is.
    """

    def __init__(self, columns: Mapping[str, numpy.ndarray]) -> None:
        self._columns = dict(columns)

    def __getitem__(self, name: str) -> numpy.ndarray:
        return self._columns[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __len__(self) -> int:
        return len(self._columns)

    def __repr__(self) -> str:
        rows = len(next(iter(self.values()), ()))
        return f"<{rows} rows of {', '.join(self)}>"

    def to_pandas(self) -> pandas.DataFrame:
        """The columns as a data frame."""
        import pandas

        return pandas.DataFrame(self._columns)

    def to_arrow(self) -> pyarrow.Table:
        """The columns as an Arrow table, which shares their memory."""
        import pyarrow

        return pyarrow.table(self._columns)

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self.to_arrow().__arrow_c_stream__(requested_schema)
