"""`pmlab claims`: published claims about persistent memory and indexes on it, as rules that measurements decide.
docs/claims.md."""

from .catalogue import every_claim
from .verdicts import judge_folder

__all__ = ["claim_ids", "judge_folder"]


def claim_ids():
    """The names of all claims: M1 to M26, I1 to I11."""
    return [claim.id for claim in every_claim()]
