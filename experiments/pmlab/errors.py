"""One kind of error for everything that a user can cause, and the exit statuses of the program."""

SUCCESS = 0
FAILURE = 1  # found while working: wrong answers, a pool that is full
BAD_INPUT = 2  # nothing was done: the options do not make sense, a path is missing
INVALID_FIGURES = 3  # `pmlab bench` has measured, but some rows are marked INVALID

ENDED_BY_SIGNAL = 128  # shells add the signal's number


class Failure(Exception):
    """Problem and remedy; printed as `pmlab: error: PROBLEM; REMEDY`. `status`: the program's exit status."""

    def __init__(self, problem, remedy="", status=BAD_INPUT):
        super().__init__(f"{problem}; {remedy}" if remedy else problem)
        self.problem, self.remedy, self.status = problem, remedy, status


def no_module(problem, module, use, way_round=""):
    """The Failure for an ImportError of a library. `use`: what it would have done, "which draws the charts"."""
    if isinstance(problem, ModuleNotFoundError) and (problem.name or "").split(".")[0] == module:
        return Failure(f"no Python with {module} is there, {use}",
                       f"install package python3-{module}, or name a Python in PMLAB_PYTHON{way_round}", FAILURE)
    return Failure(f"{module}, {use}, cannot be loaded: {problem}",
                   f"let this process have more memory (ulimit -v), or install the package again{way_round}", FAILURE)


class Interrupted(Failure):
    """SIGINT or SIGTERM ended the work."""

    def __init__(self, signal, problem="interrupted", remedy="run it again"):
        super().__init__(problem, remedy, ENDED_BY_SIGNAL + signal)
        self.signal = signal
