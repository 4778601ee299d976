"""The folders that are merged: each holds a part of a run, or of a campaign."""

from dataclasses import dataclass
from pathlib import Path

from ..errors import Failure
from ..json_files import read_json

SCHEMA = 1
KINDS = {"results": "pmlab run", "campaign": "pmlab verify --seeds A..B --out FOLDER"}


@dataclass(frozen=True)
class Part:
    folder: Path
    manifest: dict

    @property
    def kind(self):
        return self.manifest["kind"]

    @property
    def machine(self):
        return self.manifest["machine"]


def read_part(folder):
    """Raises Failure: no folder of results, or of another schema."""
    folder = Path(folder)
    path = folder / "manifest.json"
    if not folder.is_dir():
        raise Failure(f"there is no folder {folder}", "name folders that `pmlab run --out` or `pmlab verify --out` "
                      "wrote")
    if not path.exists():
        raise Failure(f"{folder} holds no manifest.json",
                      "if its machine is done, run that part again with --resume; if it is not, wait for it")
    manifest = read_json(path)
    if not isinstance(manifest, dict) or manifest.get("kind") not in KINDS or not isinstance(manifest.get("machine"),
                                                                                             dict):
        raise Failure(f"{path} is of neither `pmlab run` nor `pmlab verify`", "name folders that these wrote")
    if manifest.get("schema") != SCHEMA:
        raise Failure(f"{path} is of schema {manifest.get('schema')!r}, and this pmlab merges schema {SCHEMA}",
                      "merge it with the pmlab that wrote it")
    return Part(folder, manifest)


def read_parts(folders):
    """All of one kind. Raises Failure."""
    seen = {}
    for folder in folders:
        real = Path(folder).resolve()
        if real in seen:
            raise Failure(f"{folder} and {seen[real]} are one folder", "name each once")
        seen[real] = folder
    parts = [read_part(folder) for folder in folders]
    for part in parts[1:]:
        if part.kind != parts[0].kind:
            raise Failure(f"{parts[0].folder} is of `{KINDS[parts[0].kind]}`, and {part.folder} of "
                          f"`{KINDS[part.kind]}`", "merge each kind into a folder of its own")
    return parts


_OF_BUILD = ("commit", "compiler", "flags", "pmlab_version")


def refuse_other_builds(parts):
    """Raises Failure: figures of two builds are two programs' figures. A commit with changes may stand for several
    builds: that is returned as a caveat; None: all is clear."""
    first = parts[0]
    for part in parts[1:]:
        for key in _OF_BUILD:
            one, other = first.machine.get(key), part.machine.get(key)
            if one != other:
                raise Failure(f"{first.folder} and {part.folder} are of two builds: {key} {one!r} and {other!r}",
                              "run one of them again with the other's build")
    commit = str(first.machine.get("commit", "unknown"))
    if commit.endswith("-dirty") or commit == "unknown":
        return f"commit {commit} does not name one build: that all parts are of one cannot be seen"
    return None
