"""Merging the parts of a campaign: ranges of seeds that `pmlab verify --seeds A..B --out FOLDER` verified.

A round depends on its seed alone. So the counts of two ranges add up to those of both, and the violations of both are
those of either."""

from pathlib import Path

from ..errors import Failure
from ..json_files import read_json, write_json
from .parts import SCHEMA, refuse_other_builds

FILE = "campaign.json"
_SHOWN = 3  # violations of an index


def _read(part):
    path = part.folder / FILE
    again = f"run it again: pmlab verify ... --resume --out {part.folder}"
    if not path.exists():
        raise Failure(f"{part.folder} holds no {FILE}", again)
    document = read_json(path)
    if not isinstance(document, dict) or document.get("kind") != "campaign":
        raise Failure(f"{path} is no campaign", again)
    if document.get("schema") != SCHEMA:
        raise Failure(f"{path} is of schema {document.get('schema')!r}, and this pmlab merges schema {SCHEMA}",
                      "merge it with the pmlab that wrote it")
    first, last = document["seeds"]
    for index in document["indexes"]:
        if index["done"] != last:
            begin = first if index["done"] is None else index["done"] + 1
            raise Failure(f"{part.folder} is not finished: seeds {begin}..{last} of {index['index']} were not verified",
                          f"give the command of that part again, with --resume --out {part.folder}")
    return document


def _refuse_other_campaigns(parts, documents):
    names = [[i["index"] for i in d["indexes"]] for d in documents]
    for part, document, named in zip(parts[1:], documents[1:], names[1:]):
        if named != names[0]:
            raise Failure(f"{parts[0].folder} is of {', '.join(names[0])}, and {part.folder} of {', '.join(named)}",
                          "merge campaigns of the same indexes")
        for key, value in documents[0]["options"].items():
            if document["options"].get(key) != value:
                raise Failure(f"{parts[0].folder} and {part.folder} are different campaigns: {key} {value!r} and "
                              f"{document['options'].get(key)!r}", "merge ranges of one campaign")


def _without_doubles(found, notes):
    """`found`: (first, last, part, document), in order. Raises Failure: ranges overlap, or leave seeds out."""
    kept = found[:1]
    for first, last, part, document in found[1:]:
        before = kept[-1]
        if (first, last) == before[:2]:
            if document != before[3]:
                raise Failure(f"two results of seeds {first}..{last} differ: {before[2].folder} and {part.folder}",
                              "leave one of them out")
            notes.append(f"seeds {first}..{last} are in {before[2].folder} and {part.folder}, the same in both")
            continue
        if first <= before[1]:
            raise Failure(f"seeds {first}..{min(last, before[1])} are in {before[2].folder} and in {part.folder}",
                          "leave one of them out, or give one of them other seeds")
        if first > before[1] + 1:
            raise Failure(f"seeds {before[1] + 1}..{first - 1} are missing, between {before[2].folder} and "
                          f"{part.folder}", f"verify them: pmlab verify ... --seeds {before[1] + 1}..{first - 1} --out "
                          "FOLDER")
        kept.append((first, last, part, document))
    return [document for _, _, _, document in kept]


def _join(documents):
    joined = dict(documents[0])
    joined["seeds"] = [documents[0]["seeds"][0], documents[-1]["seeds"][1]]
    joined["indexes"] = []
    for number, like in enumerate(documents[0]["indexes"]):
        each = [d["indexes"][number] for d in documents]
        joined["indexes"].append({
            key: like["index"] if key == "index" else joined["seeds"][1] if key == "done" else
            [v for one in each for v in one["violations"]] if key == "violations" else sum(one[key] for one in each)
            for key in like})
    return joined


def collect(parts, notes):
    """The document of all parts. Raises Failure: other builds or options; seeds twice or missing; a part that is not
    finished."""
    caveat = refuse_other_builds(parts)
    if caveat:
        notes.append(caveat)
    documents = [_read(part) for part in parts]
    _refuse_other_campaigns(parts, documents)
    found = sorted(((*d["seeds"], p, d) for p, d in zip(parts, documents)), key=lambda f: f[:2])
    return _join(_without_doubles(found, notes))


def write(document, parts, folder, command):
    """Raises OSError, Failure."""
    write_json(str(Path(folder) / FILE), document)
    hosts = {}
    for part in parts:
        hosts |= part.manifest.get("hosts", {})
    write_json(str(Path(folder) / "manifest.json"), parts[0].manifest | {
        "command": command, "started": min(p.manifest["started"] for p in parts),
        "seconds": sum(p.manifest["seconds"] for p in parts), "hosts": hosts})


def summary(document, folder):
    """Lines to print: an index each, and its first violations."""
    first, last = document["seeds"]
    for index in document["indexes"]:
        violations = index["violations"]
        found = f"{len(violations)} VIOLATION{'S' if len(violations) > 1 else ''}" if violations else "no violation"
        yield (f"{index['index']}: seeds {first}..{last}, {index['crash_states']} crash states, {index['schedules']} "
               f"schedules: {found}")
        for violation in violations[:_SHOWN]:
            yield f"  seed {violation['seed']}: {violation['what'].splitlines()[0]}\n    {violation['replay']}"
        if len(violations) > _SHOWN:
            yield f"  and {len(violations) - _SHOWN} more, in {folder}/{FILE}"
