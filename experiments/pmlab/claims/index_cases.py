"""Results of `pmlab run` as cases: their names, which claims about indexes and the reader of result sets share."""

from .quantity import measured

ZIPFIAN = "zipfian:0.99"


def case_name(experiment, index, threads, phase):
    """`experiment` with its keys of the matrix: "cache/distribution=uniform". `threads`: a number, or "most": the most
    threads that the result set has."""
    return f"{experiment}/index={index}/threads={threads}/phase={phase}"


def of_index(experiment, index, threads, phase, path="value"):
    """A figure of an index in a phase of an experiment; "value" is its throughput."""
    return measured(case_name(experiment, index, threads, phase), path)
