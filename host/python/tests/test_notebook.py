"""The notebook of the documentation, executed."""

import pathlib
import re

import nbclient
import nbformat

NOTEBOOK = pathlib.Path(__file__).resolve().parents[3] / "docs/notebook.ipynb"


def test_the_notebook_runs_from_its_first_cell_to_its_last(tmp_path):
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    shown = [numbers_of(cell) for cell in notebook.cells]
    nbclient.NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(tmp_path)}}).execute()
    # Runs repeat to the last bit, so the numbers that readers see are those of today.
    assert [numbers_of(cell) for cell in notebook.cells] == shown and any(shown)


def numbers_of(cell):
    """The numbers that the cell shows."""
    outputs = cell.get("outputs", [])
    texts = [output.get("text") or output.get("data", {}).get("text/plain", "") for output in outputs]
    return re.findall(r"-?\d+(?:\.\d+)?(?:e-?\d+)?", " ".join(texts))
