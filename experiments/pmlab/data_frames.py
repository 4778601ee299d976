"""Results as pandas data frames. Columns have the names of the fields of docs/results-schema.md, with dots between the
parts of a name, so that the schema is their description: `latency_ns.p99`, `options.records`, `machine.cpu`."""

from pathlib import Path

from .errors import FAILURE, Failure
from .json_files import read_json

_SCHEMA = 1
_PUBLISHED = "results.csv"
# Documents of `pmlab microbench`, on a memory and on a drive, and of `pmlab stores`.
_WITH_CASES = ("microbench", "drive", "stores_bench")
# In them these are not parameters of a case.
_NOT_OF_A_CASE = {"about", "claims", "group"}


def _pandas():
    try:
        import pandas
    except ImportError as problem:
        raise Failure("no pandas is there, which holds the results",
                      "install package python3-pandas, or pip install pandas", FAILURE) from problem
    return pandas


def _is_plain(value):
    return not isinstance(value, (dict, list))


def _flat(value, name):
    """(column, value) of everything in a JSON value. A list of plain values is one text; one of objects is left out."""
    if isinstance(value, dict):
        for key, part in value.items():
            yield from _flat(part, f"{name}.{key}" if name else key)
    elif not isinstance(value, list):
        yield name, value
    elif all(map(_is_plain, value)):
        yield name, ",".join(map(str, value))


def _document(path):
    document = read_json(path)
    if not isinstance(document, dict) or document.get("schema") != _SCHEMA:
        schema = document.get("schema") if isinstance(document, dict) else None
        raise Failure(f"{path} has schema {schema!r}; this pmlab reads schema {_SCHEMA}",
                      "use a pmlab of the version that wrote it", FAILURE)
    return document


def _measured(document):
    """The measurements of a cell: (kind, columns of each)."""
    if document.get("kind") in _WITH_CASES:
        return document["kind"], [{k: v for k, v in case.items() if k not in _NOT_OF_A_CASE}
                                  for case in document["cases"]]
    return "bench", document["results"]


def _rows(path, name, run):
    """`run`: the manifest's entry of this cell, or nothing."""
    document = _document(path)
    if document.get("kind") == "claims":
        return
    try:
        kind, measured = _measured(document)
        of_all = [("machine", document["machine"]), ("device", document.get("device", {})),
                  ("options", document["options"])]
        for one in measured:
            row = {"experiment": run.get("experiment", name.partition("/")[0]), "cell": name, "kind": kind}
            row.update(_flat(one, ""))
            row.update(_flat(run.get("values", {}), "values"))
            for part, value in of_all:
                row.update(_flat(value, part))
            yield row
    except (KeyError, TypeError, AttributeError) as problem:
        raise Failure(f"{path} lacks or spoils {problem}", "run this cell again, or take it out of raw/",
                      FAILURE) from problem


def _folder(folder):
    folder = Path(folder)
    if not folder.is_dir():
        raise Failure(f"no folder {folder}", "name a folder that `pmlab run --out` wrote")
    return folder


def results(folder):
    """See pmlab.results. The attribute `failed` of the frame (`frame.attrs`) names the cells that did not end well."""
    pandas = _pandas()
    folder = _folder(folder)
    manifest = _document(folder / "manifest.json") if (folder / "manifest.json").is_file() else {}
    runs = {run["name"]: run for run in manifest.get("runs", [])}
    raw = folder / "raw"
    paths = {str(path.relative_to(raw).with_suffix("")): path for path in sorted(raw.rglob("*.json"))}
    failed = [name for name, run in runs.items() if run.get("status", 0) != 0]
    # In the order of the run; cells that the manifest does not know last.
    names = [*(n for n in runs if n in paths), *(n for n in paths if n not in runs)]
    rows = [row for name in names if name not in failed for row in _rows(paths[name], name, runs.get(name, {}))]
    if not rows:
        if (folder / _PUBLISHED).is_file():
            raise Failure(f"{folder} is published: it holds figures, and no raw/ with the measurements",
                          "read its figures with pmlab.figures, or unpack the raw files of the release into it",
                          FAILURE)
        raise Failure(f"{folder} holds no results below raw/", "`pmlab run --out FOLDER` writes them", FAILURE)
    frame = pandas.DataFrame(rows)
    # A null in the place of an object ("cache" of an index without one) says no more than its empty columns.
    objects = {name.rpartition(".")[0] for name in frame.columns}
    frame = frame.drop(columns=[name for name in frame.columns if name in objects])
    frame.attrs["failed"] = failed
    return frame


def figures(folder):
    """See pmlab.figures. Columns: chart, panel, series, x, value, lowest, highest, n (repeats), unit, invalid."""
    pandas = _pandas()
    path = _folder(folder) / _PUBLISHED
    if not path.is_file():
        raise Failure(f"{folder} holds no {_PUBLISHED}", "make it with `pmlab report FOLDER --publish DIR`, and name "
                      "DIR", FAILURE)
    try:
        return pandas.read_csv(path, dtype={"panel": str, "series": str, "x": str, "unit": str, "invalid": str},
                               keep_default_na=False, na_values={c: [""] for c in ("value", "lowest", "highest", "n")})
    except (ValueError, pandas.errors.ParserError) as problem:
        raise Failure(f"{path} is no table of figures: {problem}", "make it again with `pmlab report --publish`",
                      FAILURE) from problem
