"""Runs experiments, judges claims and writes reports: `pmlab run`, `merge`, `claims`, `report`. docs/experiments.md.

For Python programs and notebooks, with pandas: `pmlab.results(FOLDER)` and `pmlab.figures(FOLDER)`.
docs/installing.md."""


def results(folder):
    """The measurements of `folder`, which `pmlab run --out` wrote, as a pandas.DataFrame with one row for each: of
    `pmlab bench` an index, number of threads, phase and repeat; of `pmlab microbench` a case. Raises
    pmlab.errors.Failure."""
    from . import data_frames
    return data_frames.results(folder)


def figures(folder):
    """The figures of `folder`, which `pmlab report --publish` wrote, as a pandas.DataFrame with one row for each point
    of a chart. Raises pmlab.errors.Failure."""
    from . import data_frames
    return data_frames.figures(folder)
