"""Crash states that a campaign of `pmlab verify` beside the results explored, as a figure of claims."""

from .evidence import Missing
from .quantity import Quantity

_LEAST = 1_000_000


def violations(subjects, seeds):
    """Their number, of these subjects of `pmlab verify`. Too few crash states without a violation decide nothing; so
    many `seeds` of each subject make enough."""
    cases = tuple(f"verify/index={subject}" for subject in subjects)
    command = f"pmlab verify --index {','.join(subjects)} --seeds 1..{seeds} --out FOLDER/verify/{subjects[0]}"

    def of(evidence, figure):
        try:
            found = sum(figure(case, "value") for case in cases)
            states = sum(figure(case, "crash_states") for case in cases)
        except Missing:
            found = states = 0
        if found == 0 and states < _LEAST:
            raise Missing(f"campaign of {_LEAST:,} crash states beside the results (there are {states:,.0f}): "
                          f"{command}")
        return found
    return Quantity(cases, of)
