"""Arrays in the place of files."""

from __future__ import annotations

import contextlib
import pathlib
import tempfile
from collections.abc import Iterator, Mapping
from typing import Any

import numpy


@contextlib.contextmanager
def as_files(keys: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The keys, with a file for each that is a dict of arrays or an array of graphs. The files are there as long as the context."""
    with tempfile.TemporaryDirectory(prefix="fabswarm-") as folder:
        yield {name: _file(pathlib.Path(folder) / name, value) for name, value in keys.items()}


def _file(path: pathlib.Path, value: Any) -> Any:
    if isinstance(value, Mapping):
        path = path.with_suffix(".npz")
        numpy.savez(path, **{name: numpy.asarray(array) for name, array in value.items()})
        return path
    if isinstance(value, numpy.ndarray) and value.ndim in (2, 3):
        # An agent always hears itself, and the file has no line for that.
        heard = value.astype(bool).reshape(-1, *value.shape[-2:]) & ~numpy.eye(value.shape[-1], dtype=bool)
        rounds, receivers, senders = numpy.nonzero(heard)
        path = path.with_suffix(".csv")
        table = numpy.column_stack([rounds, senders, receivers])[:, 0 if value.ndim == 3 else 1 :]
        header = "round,sender,receiver" if value.ndim == 3 else "sender,receiver"
        numpy.savetxt(path, table, fmt="%d", delimiter=",", header=header, comments="")
        return path
    return value
