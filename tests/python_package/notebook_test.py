"""examples/results.ipynb runs from its first cell to its last and draws the figures that it promises. Argument: the
program.

By Jupyter, where nbclient and a kernel are there; otherwise its cells are run one after the other as a plain
program."""
import ast
import importlib.util
import json
import os
import pathlib
import sys
import tempfile
import unittest

SOURCE = pathlib.Path(__file__).resolve().parents[2]
NOTEBOOK = SOURCE / "examples/results.ipynb"
PROGRAM = os.path.abspath(sys.argv[1])
SKIPPED = 77

# Run behind the notebook's own cells: the lines that were drawn.
LINES = """
def lines_of(figure):
    return {axis.get_title(): {line.get_label(): [list(map(float, line.get_xdata())),
                                                  list(map(float, line.get_ydata()))]
                               for line in axis.get_lines()} for axis in figure.axes}
print("LINES", {"thesis": lines_of(thesis), "figure_17": lines_of(figure_17), "folder": str(folder)})
"""


def has(*modules):
    return all(importlib.util.find_spec(module) for module in modules)


def by_jupyter(cells):
    import nbclient
    import nbformat
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    nbformat.validate(notebook)
    notebook.cells.append(nbformat.v4.new_code_cell(LINES))
    nbclient.NotebookClient(notebook, timeout=120, kernel_name="python3",
                            resources={"metadata": {"path": str(NOTEBOOK.parent)}}).execute()
    outputs = [output for cell in notebook.cells[:-1] if cell.cell_type == "code" for output in cell.outputs]
    pictures = [o for o in outputs if "image/png" in o.get("data", {})]
    assert len(pictures) == 2, f"{len(pictures)} pictures"
    assert any("latency_ns.p99" in o.get("data", {}).get("text/html", "") for o in outputs), "no table is shown"
    return notebook.cells[-1].outputs[0]["text"]


def as_a_program(cells):
    import contextlib
    import io
    import matplotlib
    matplotlib.use("Agg")
    tempfile.tempdir = os.environ["TMPDIR"]
    os.chdir(NOTEBOOK.parent)
    names = {}
    for cell in cells:
        exec(compile(cell, str(NOTEBOOK), "exec"), names)
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        exec(LINES, names)
    return said.getvalue()


class Notebook(unittest.TestCase):
    def test_it_draws_its_figures(self):
        cells = ["".join(c["source"]) for c in json.loads(NOTEBOOK.read_text())["cells"] if c["cell_type"] == "code"]
        with tempfile.TemporaryDirectory() as folder:
            # A kernel takes these from here: its settings are not the user's, and its run is removed with the folder.
            os.environ.update(PMLAB_PROGRAM=PROGRAM, TMPDIR=folder, IPYTHONDIR=folder, JUPYTER_RUNTIME_DIR=folder,
                              MPLBACKEND="module://matplotlib_inline.backend_inline" if JUPYTER else "Agg",
                              PYTHONDONTWRITEBYTECODE="1", PYDEVD_DISABLE_FILE_VALIDATION="1")
            os.environ.pop("PMLAB_RESULTS", None)
            said = (by_jupyter if JUPYTER else as_a_program)(cells)
        lines = ast.literal_eval(said.partition("LINES ")[2].strip())
        self.assertTrue(lines["folder"].startswith(folder))
        self.draws_what_was_published(lines["thesis"])
        self.assertEqual(set(lines["figure_17"]), {f"{phase}, simulated:{device}"
                                                   for phase in ("read", "update", "insert")
                                                   for device in ("aep", "classic")})
        for panel in lines["figure_17"].values():
            self.assertEqual(set(panel), {"hybrid_index", "hybrid_index_plus"})
            for threads, throughput in panel.values():
                self.assertEqual(threads, [1, 2])
                self.assertGreater(min(throughput), 0)

    def draws_what_was_published(self, thesis):
        expected = {}
        for line in (SOURCE / "results/quick/results.csv").read_text().splitlines():
            chart, panel, series, x, value, *_ = line.split(",")
            if chart == "thesis-aep":
                xs, ys = expected.setdefault(series, [[], []])
                xs.append(float(x))
                ys.append(float(value))
        self.assertEqual(thesis["Optane as measured"], expected)
        self.assertGreaterEqual(len(expected), 2)

    def test_it_is_kept_without_outputs(self):
        for cell in json.loads(NOTEBOOK.read_text())["cells"]:
            self.assertFalse(cell.get("outputs") or cell.get("execution_count"))


JUPYTER = has("nbclient", "nbformat", "ipykernel", "matplotlib_inline")

if __name__ == "__main__":
    if not has("pandas", "matplotlib"):
        print("no pandas here: scripts/setup.sh --with-dev-tools installs it")
        sys.exit(SKIPPED)
    print("by Jupyter" if JUPYTER else "as a plain program: no nbclient and ipykernel here")
    unittest.main(argv=sys.argv[:1])
