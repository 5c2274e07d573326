"""The notebooks run under plain papermill as well, as the README says."""

import subprocess
import sys
from pathlib import Path

import nbformat

ROOT = Path(__file__).parents[2]


def test_the_pipe_of_the_readme_leaves_a_notebook_figure_and_data(tmp_path: Path) -> None:
    notebook = ROOT / "notebooks" / "readout" / "pga_by_layer.py"
    to_ipynb = [sys.executable, "-m", "jupytext", "--to", "ipynb", "-o", "-", str(notebook)]
    papermill = [sys.executable, "-m", "papermill", "-", "out.ipynb"]
    given = ["-r", "model", "smoke-pythia", "-r", "sizes", "smoke"]
    converted = subprocess.run(to_ipynb, capture_output=True, check=True).stdout
    done = subprocess.run(
        [*papermill, *given], input=converted, cwd=tmp_path, capture_output=True, check=False
    )
    assert done.returncode == 0, done.stderr.decode()
    page = nbformat.read(tmp_path / "out.ipynb", as_version=4)
    outputs = [o for cell in page.cells for o in cell.get("outputs", [])]
    assert any("image/svg+xml" in o.get("data", {}) for o in outputs)
    assert [o for o in outputs if o.output_type == "error"] == []
    suffixes = {p.suffix for p in tmp_path.glob("pga_by_layer--smoke-pythia.*")}
    assert suffixes == {".svg", ".png", ".pdf", ".csv", ".json"}
