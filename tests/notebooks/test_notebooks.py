"""Every notebook runs from top to bottom, says nothing on stderr, and is stored with outputs that name no machine."""

import json
import os
import re
import shutil
import sys
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

ROOT = Path(__file__).parents[2]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
SECONDS_PER_CELL = 60
# A developer's own model, keys and folders are not what is tested here.
OURS = ("AGENT_", "OPENAI_", "PLANWEAVE_")
MACHINE = re.compile(r"/(?:root|home|Users|tmp|var|private)/|[A-Z]:\\|site-packages|\b127\.0\.0\.1\b")

every_notebook = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)


@pytest.fixture
def kernel(tmp_path, monkeypatch) -> str:
    """The name of a kernel of this very Python; its spec lies in a temporary folder, so that nothing is installed."""
    spec = tmp_path / "kernels" / "this-python"
    spec.mkdir(parents=True)
    argv = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    (spec / "kernel.json").write_text(json.dumps({"argv": argv, "display_name": "", "language": "python"}))
    for name in [name for name in os.environ if name.upper().startswith(OURS)]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("JUPYTER_PATH", str(tmp_path))
    monkeypatch.setenv("JUPYTER_RUNTIME_DIR", str(tmp_path / "runtime"))
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    return spec.name


@every_notebook
def test_the_notebook_runs_and_warns_of_nothing(path, kernel, tmp_path):
    folder = tmp_path / "work"
    folder.mkdir()
    notebook = nbformat.read(shutil.copy(path, folder), as_version=4)
    resources = {"metadata": {"path": str(folder)}}
    NotebookClient(notebook, kernel_name=kernel, timeout=SECONDS_PER_CELL, resources=resources).execute()
    assert warnings_in(notebook) == []


def warnings_in(notebook: nbformat.NotebookNode) -> list[str]:
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    return [output.text for output in outputs if output.get("name") == "stderr"]


@every_notebook
def test_the_notebook_is_stored_with_outputs_that_name_no_machine(path):
    notebook = nbformat.read(path, as_version=4)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert [cell.execution_count for cell in code] == list(range(1, len(code) + 1))
    assert any(cell.outputs for cell in code)
    stored = json.dumps([cell.outputs for cell in code], ensure_ascii=False)
    assert MACHINE.findall(stored) == []
    assert warnings_in(notebook) == []


def test_there_is_a_quickstart():
    assert "quickstart" in {path.stem for path in NOTEBOOKS}
