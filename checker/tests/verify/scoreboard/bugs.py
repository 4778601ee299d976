"""The data of the scoreboard: bugs.toml, and the defects that it names.

read() returns a Data; it raises Wrong where the file contradicts itself or names a defect that is not planted.
"""
import dataclasses
import pathlib
import sys
import tomllib

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "mutations"))
import plant  # noqa: E402

# Kinds of subjects. `program`: a program on libpmemobj, run by --program.
KINDS = ("index", "program")


class Wrong(Exception):
    pass


@dataclasses.dataclass(frozen=True)
class Defect:
    """A planted defect: number `number` of a shared object, or of a program, and the options that search for it."""
    twin: str
    name: str
    number: int
    library: str  # the file's name
    flags: tuple
    is_program: bool = False

    @property
    def variable(self):
        """The environment variable that chooses the number."""
        return "PMLAB_DEFECT" if self.is_program else "PMLAB_MUTATION"

    @property
    def full_name(self):
        return f"{self.twin}.{self.name}"

    @property
    def sound_flags(self):
        """How the subject is searched without the defect: by seeds from 1 on."""
        flags = list(self.flags)
        if "--seed" in flags:
            del flags[flags.index("--seed"):flags.index("--seed") + 2]
        return flags

    @property
    def sound_name(self):
        """The sound subject, and how it is searched."""
        return " ".join([self.library.removesuffix(".so"), *self.sound_flags])


@dataclasses.dataclass(frozen=True)
class Bug:
    """`defect`: full name of its twin, "" if it has none: then `why_not` has the reason. `inferred`: where the source
    gives a place and no description, how the defect was read; "" elsewhere.
    """
    source: str
    id: str
    structure: str
    where: str
    wrong: str
    defect: str
    why_not: str
    kind: str
    inferred: str = ""

    @property
    def name(self):
        return f"{self.source}-{self.id}"

    @property
    def twin(self):
        return self.defect.partition(".")[0]


@dataclasses.dataclass(frozen=True)
class Source:
    name: str
    title: str
    address: str
    bugs: int


@dataclasses.dataclass(frozen=True)
class Data:
    sources: dict  # name -> Source
    bugs: list
    defects: dict  # full name -> Defect: those that bugs name
    uncounted: list  # sentences


def planted_mutations(twin):
    path = plant.data_files().get(twin)
    if path is None:
        return {}
    mutations = tomllib.loads(path.read_text())["mutation"]
    return {m["name"]: Defect(twin, m["name"], n, f"{twin}_mutated.so", tuple(m["verify"]))
            for n, m in enumerate(mutations, 1) if "waits_for" not in m}


def planted_in_toy(twin, toys):
    """A toy's defects: those that [toy.NAME] lists, in the order of their numbers."""
    if twin not in toys:
        return {}
    if not (HERE.parent / "toys" / f"{twin}.cpp").exists():
        raise Wrong(f"bugs.toml: there is no toy {twin}")
    flags = toys[twin]["verify"]
    own = toys[twin].get("verify_of", {})
    return {name: Defect(twin, name, n, f"toy_{twin}.so", tuple(own.get(name, flags)))
            for n, name in enumerate(toys[twin]["defects"], 1)}


def planted_in_program(twin, programs):
    """A program's defects: those that [program.NAME] lists, in the order of their numbers."""
    if twin not in programs:
        return {}
    if not list((HERE.parent / "programs").glob(f"{twin}.c*")):
        raise Wrong(f"bugs.toml: there is no program {twin}")
    return {name: Defect(twin, name, n, f"program_{twin}", ("--after", programs[twin]["after"]), True)
            for n, name in enumerate(programs[twin]["defects"], 1)}


def read(path=HERE / "bugs.toml"):
    text = tomllib.loads(path.read_text())
    sources = {s["name"]: Source(s["name"], s["title"], s["address"], s["bugs"]) for s in text["source"]}
    bugs, defects = [], {}
    for row in text["bug"]:
        bug = Bug(row["source"], row["id"], row["structure"], row.get("where", ""), row["wrong"], row.get("twin", ""),
                  row.get("why_not", ""), row.get("kind", "index"), row.get("inferred", ""))
        if bug.source not in sources:
            raise Wrong(f"bugs.toml: {bug.name} has no source")
        if bug.kind not in KINDS:
            raise Wrong(f"bugs.toml: {bug.name} is of no kind")
        if bool(bug.defect) == bool(bug.why_not):
            raise Wrong(f"bugs.toml: {bug.name} has both a twin and a reason for none, or neither")
        if bug.defect:
            name = bug.defect.partition(".")[2]
            planted = (planted_in_program(bug.twin, text.get("program", {})) if bug.kind == "program" else
                       planted_mutations(bug.twin) | planted_in_toy(bug.twin, text.get("toy", {})))
            if name not in planted:
                raise Wrong(f"bugs.toml: {bug.name}: no defect {bug.defect} is planted")
            defects[bug.defect] = planted[name]
        bugs.append(bug)
    names = [b.name for b in bugs]
    if repeated := sorted({n for n in names if names.count(n) > 1}):
        raise Wrong(f"bugs.toml: twice: {', '.join(repeated)}")
    for source in sources.values():
        if (rows := sum(b.source == source.name for b in bugs)) != source.bugs:
            raise Wrong(f"bugs.toml: {source.name} has published {source.bugs} bugs, and {rows} rows are here")
    return Data(sources, bugs, defects, text["uncounted"])
