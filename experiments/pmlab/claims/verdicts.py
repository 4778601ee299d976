"""All claims, judged from the results of a folder."""

import shutil
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from ..json_files import read_json, write_json
from ..spelling import file_form
from .catalogue import every_claim
from .drive import CASES
from .evidence import Evidence
from .judging import NOT_MEASURED, VERDICTS, judge
from .result_set import read_result_set
from .tables import verdicts_table, verdicts_to_json


@dataclass
class ResultSetVerdicts:
    tables: list[str] = field(default_factory=list)  # one for each medium
    unmeasured: list[str] = field(default_factory=list)  # claims that no medium decides
    summary: str = ""  # how many verdicts there are of each kind


@dataclass
class _Medium:
    medium: str
    evidence: Evidence
    judgements: list = field(default_factory=list)


def _add_missing_drive(document):
    """Where a result set has no drive beside the memory, the claim about one is not applicable, rather than lacking."""
    cases = document["cases"]
    names = {str(case.get("name")) for case in cases if isinstance(case, dict)}
    if any(name.startswith("load-random/") for name in names) and not names.issuperset(CASES):
        cases += [{"name": name, "medium": None, "value": None, "unit": None,
                   "skipped": "no drive was measured: `pmlab run drive memory` measures one"} for name in CASES]


def _measured_cases(claim, evidence):
    return sum(name in evidence for name in claim.cases if name not in CASES)


def _judge_everywhere(claim, media):
    """Where all of its cases were measured; on the medium that has most of them, where none has all: it is then said
    once that they lack."""
    complete = False
    judgements = [judge(claim, m.evidence) for m in media]
    for m, judgement in zip(media, judgements):
        if judgement.verdict != NOT_MEASURED:
            complete = True
            m.judgements.append(judgement)
    if not complete:
        place = max(range(len(media)), key=lambda i: _measured_cases(claim, media[i].evidence))
        media[place].judgements.append(judgements[place])


def _summary(judgements, claims):
    counts = Counter(j.verdict for j in judgements)
    parts = ", ".join(f"{counts[v]} {v}" for v in VERDICTS if counts[v])
    return f"{len(judgements)} verdicts on {len(claims)} claims: {parts}"


def judge_result_set(folder, claims, command):
    """Judges these claims on each medium of a result set, and writes FOLDER/claims/MEDIUM.json (docs/claims.md).
    `command`: for the record. Raises Failure as read_result_set does."""
    folder = Path(folder)
    media = []
    for results in read_result_set(folder):
        _add_missing_drive(results.document)
        media.append(_Medium(results.medium, Evidence(results.document, folder)))
    for claim in claims:
        _judge_everywhere(claim, media)
    shutil.rmtree(folder / "claims", ignore_errors=True)
    (folder / "claims").mkdir(exist_ok=True)
    verdicts = ResultSetVerdicts()
    media = [m for m in media if m.judgements]
    for m in media:
        write_json(str(folder / "claims" / f"{file_form(m.medium)}.json"),
                   verdicts_to_json(m.judgements, m.evidence, command))
        verdicts.tables.append(verdicts_table(m.judgements, m.evidence))
    judgements = [j for m in media for j in m.judgements]
    verdicts.unmeasured = [j.claim.id for j in judgements if j.verdict == NOT_MEASURED]
    verdicts.summary = _summary(judgements, claims)
    return verdicts


def judge_folder(folder, command):
    """Judges the claims that the folder's experiments feed, which its manifest names, and prints how many there are of
    each verdict: the end of `pmlab run`."""
    fed = {claim for e in read_json(Path(folder) / "manifest.json")["experiments"] for claim in e["claims"]}
    claims = [claim for claim in every_claim() if claim.id in fed]
    if not claims:
        return
    verdicts = judge_result_set(folder, claims, command)
    print(verdicts.summary)
    if verdicts.unmeasured:
        print(f"not measured: {' '.join(verdicts.unmeasured)}")
