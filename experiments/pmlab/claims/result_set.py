"""The results that `pmlab run` left in a folder, as evidence for the claims."""

from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

from ..errors import Failure
from ..json_files import read_json
from .drive import drive_cases
from .evidence import KNOWN_SCHEMA, is_number
from .index_cases import case_name
from .pair_cases import BESIDE, OF_RUN, PAIRS, figures_of, is_of_pairs, place_of
from .pair_cases import case_name as case_name_of_pairs
from .store_cases import case_name as case_name_of_store
from .store_cases import OF_VOLUME, numbered, size_text


# Where `pmlab verify --out` may have put campaigns in a folder of results, and the name of their verdicts. Subjects
# differ in the seeds that they need, so each may have a campaign of its own.
CAMPAIGNS = "verify", "verify/*"
CRASH_STATES = "crash states"


@dataclass
class MediumResults:
    """All that was measured on one medium. `medium`: "simulated:aep"; pools without their paths: "pmem",
    "emulated:aep". `document`: as Evidence takes it."""

    medium: str
    document: dict


def _medium_of(document):
    """The medium; a pool without its path, which is no property of the device. Block volumes: that of the records."""
    if is_of_pairs(document):
        return PAIRS
    holder = document["options" if document.get("kind") == "stores_bench" else "machine"]
    medium = holder.get("medium", "").split("@")[0]
    return "pmem" if medium.startswith("pmem:") else medium


def _medians(parts):
    """An object of the same shape whose numbers are the medians of those in its place."""
    first = parts[0]
    if isinstance(first, dict):
        return {key: _medians([p[key] for p in parts if isinstance(p, dict) and key in p]) for key in first}
    return float(median(p for p in parts if is_number(p))) if is_number(first) else first


def _place(entry):
    return entry["index"], entry["phase"], entry["threads"]


def _clock_of(document):
    """Simulated machines have a clock of their own."""
    machine = document.get("machine", {})
    virtual = machine.get("clock", {}).get("source") == "virtual" or str(machine.get("medium")).startswith("simulated:")
    return "virtual" if virtual else "real"


def _only_counts(options):
    """Whether times mean nothing: the memory counts, or the drive is memory, which has none."""
    return str(options.get("medium")).startswith("counted:") or options.get("device") == "memory"


def cases_of_bench(document, prefix, cell=None):
    """The cases of one document that `pmlab bench --json` wrote. Their names begin with `prefix`: the experiment with
    its keys of the matrix. `cell`: the name of the run. Its indexes took turns, phase by phase, with each number of
    threads. Raises KeyError, TypeError: it is none."""
    by_place = defaultdict(list)
    most = defaultdict(int)
    for result in document["results"]:
        if result.get("hosts", 1) > 1:
            continue  # no claim is about several
        by_place[_place(result)].append(result)
        most[_place(result)[:2]] = max(most[_place(result)[:2]], result["threads"])
    cases = []
    for (index, phase, threads), results in sorted(by_place.items()):
        case = _medians(results)
        repeats = [{**result, "value": result["throughput_ops_per_s"]} for result in results]
        case |= {"value": case["throughput_ops_per_s"], "unit": "ops/s", "skipped": None, "repeats": repeats,
                 "turns": f"{cell or prefix}/threads={threads}", "clock": _clock_of(document)}
        cases.append(case | {"name": case_name(prefix, index, threads, phase)})
        if most[index, phase] == threads:
            cases.append(case | {"name": case_name(prefix, index, "most", phase)})
    for skipped in document.get("skipped", []):
        index, phase, threads = _place(skipped)
        cases.append({"name": case_name(prefix, index, threads, phase), "skipped": skipped["reason"], "value": None,
                      "unit": None})
    return cases


def cases_of_stores(document, prefix, cell=None):
    """The cases of one document that `pmlab stores volumes --json` wrote; as `cases_of_bench`. Its stores took turns.
    Raises KeyError, TypeError: it is none."""
    by_place, options = defaultdict(list), document["options"]
    for case, phase in numbered(document["cases"]):
        if case["throughput"] is None:
            continue  # opening a store is no operation
        by_place[case["store"], phase, case["pattern"], size_text(case["size"]), case["depth"]].append(case)
    cases = []
    for place, results in sorted(by_place.items()):
        case = _medians(results) | {key: options[key] for key in OF_VOLUME}
        repeats = [{**result, "value": result["throughput"]} for result in results]
        cases.append(case | {"name": case_name_of_store(prefix, *place), "value": case["throughput"], "unit": "ops/s",
                             "skipped": None, "repeats": repeats, "turns": cell or prefix,
                             "counted": _only_counts(options)})
    return cases


def cases_of_pairs(document, prefix, cell=None):
    """The cases of one document that `pmlab stores pairs --json` wrote; as `cases_of_stores`."""
    by_place, options = defaultdict(list), document["options"]
    for case, phase in numbered(document["cases"]):
        by_place[place_of(case, phase)].append(figures_of(case))
    return [_medians(results) | {key: options[key] for key in OF_RUN}
            | {"name": case_name_of_pairs(prefix, *place), "unit": results[0]["unit"], "skipped": None,
               "repeats": results, "turns": cell or prefix, "counted": _only_counts(options)}
            for place, results in sorted(by_place.items())]


def cases_of_campaign(document):
    """The cases that `pmlab verify --seeds A..B --out` wrote: verify/index=INDEX, with the number of violations."""
    return [{**index, "name": f"verify/index={index['index']}", "value": len(index["violations"]), "unit": "",
             "skipped": None, "counted": True}
            for index in document["indexes"]]


# Keys of the matrix that results name by themselves.
_NAMED = {"bench": ("medium", "index", "threads"),
          "volumes": ("medium", "device", "store", "phases", "pattern", "size", "depth"),
          "pairs": ("store", "phases", "pattern", "value", "depth", "operations")}


# Keys of the matrix that result sets of the version before have by another name.
_RENAMED = {"keys": "records"}


def prefix_of(experiment, values, kind):
    """With the keys of the matrix that results do not name by themselves."""
    values = {_RENAMED.get(key, key): value for key, value in values.items()}
    more = (f"/{key}={value}" for key, value in sorted(values.items()) if key not in _NAMED[kind])
    return experiment + "".join(more)


@dataclass
class _Found:
    by_medium: dict = field(default_factory=dict)
    drive: list = field(default_factory=list)  # cases of the drive that claims compare with

    def _results(self, medium, machine):
        return self.by_medium.setdefault(medium, MediumResults(
            medium, {"schema": KNOWN_SCHEMA, "machine": machine | {"medium": medium}, "cases": []}))

    def add(self, run, document):
        if document["schema"] != KNOWN_SCHEMA:
            raise Failure(f"{run['name']} is not of schema {KNOWN_SCHEMA}", "measure again")
        if document.get("kind") == "drive":
            self.drive += drive_cases(document)
            self._results("drive", document["machine"])
            return
        if document.get("kind") == "microbench":
            cases = document["cases"]
        elif is_of_pairs(document):
            cases = cases_of_pairs(document, prefix_of(run["experiment"], run["values"], "pairs"), run["name"])
        elif document.get("kind") == "stores_bench":
            cases = cases_of_stores(document, prefix_of(run["experiment"], run["values"], "volumes"), run["name"])
        else:
            cases = cases_of_bench(document, prefix_of(run["experiment"], run["values"], "bench"), run["name"])
        medium = PAIRS if run["experiment"] in BESIDE else _medium_of(document)
        self._results(medium, document["machine"]).document["cases"] += cases

    def add_campaign(self, document, machine):
        """Crash states are of no medium: they are those of memory and drive together. Raises Failure: an index has a
        campaign already."""
        cases = self._results(CRASH_STATES, machine).document["cases"]
        known = {case["name"] for case in cases}
        for case in cases_of_campaign(document):
            if case["name"] in known:
                raise Failure(f"{case['index']} is in two campaigns beside the results",
                              "merge them (pmlab merge), or take one away")
            cases.append(case)

    def media(self):
        """A drive is no medium, but stands beside each."""
        of_memory = {medium: results for medium, results in self.by_medium.items() if medium != "drive"}
        found = list((of_memory or self.by_medium).values())
        for results in found:
            results.document["cases"] += self.drive
        return found


def _add(file, add):
    """`add` takes the document."""
    document = read_json(file)
    try:
        add(document)
    except (KeyError, TypeError, AttributeError, ValueError) as problem:
        raise Failure(f"{file} is no result of pmlab: {problem!r}", "measure again") from None


def read_result_set(folder):
    """A MediumResults for each medium, in the order in which they were measured.

    The cases of microbenchmarks are as they are; each index, number of threads and phase of a benchmark becomes a case

        EXPERIMENT[/KEY=VALUE...]/index=INDEX/threads=N/phase=PHASE

    (of a store: EXPERIMENT[/KEY=VALUE...]/store=STORE/phase=PHASE/pattern=PATTERN/size=SIZE/depth=DEPTH; of one of
    pairs with value=VALUE in the place of size=SIZE)
    with the keys of the matrix that are none of medium, index and threads. Its `value` is the throughput, the other
    figures keep their places below it ("latency_ns/mean"), each the median over the repeats. threads=most is the case
    with the most threads. Cells that failed are left out. The cases of the drive that claims compare with stand beside
    those of each medium. Campaigns of `pmlab verify` in FOLDER/verify and the folders in it are a medium of their own,
    "crash states". Raises Failure: no manifest.json, a file that is no result, an index in two campaigns."""
    folder = Path(folder)
    if not (folder / "manifest.json").exists():
        raise Failure(f"{folder} holds no manifest.json", "name a folder that `pmlab run --out` wrote")
    found = _Found()
    manifest = read_json(folder / "manifest.json")
    for run in manifest.get("runs", []):
        if run.get("status", 1) == 0:
            _add(folder / "raw" / f"{run.get('name', '')}.json", lambda document, run=run: found.add(run, document))
    if not found.by_medium:
        raise Failure(f"{folder} holds no results that ended well", "see its manifest.json for why")
    for file in sorted(file for place in CAMPAIGNS for file in folder.glob(f"{place}/campaign.json")):
        _add(file, lambda document: found.add_campaign(document, document["build"]))
    return found.media()
