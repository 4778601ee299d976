"""Experiments: files that name the options, sizes and charts of a measurement. docs/experiments.md."""

from dataclasses import dataclass, field, replace
from pathlib import Path

from .. import programs
from ..errors import Failure
from ..spelling import nearest
from ..texts import read_text
from .chart import read_chart
from .toml_file import TomlFile

SCALES = ("smoke", "quick", "full")  # in the order of their size

_KEYS = ("title", "about", "shows", "kind", "claims", "arguments", "matrix", "scale", "chart")
_REQUIRED = {"title": "the heading of its charts", "about": "one sentence: the purpose",
             "shows": '"figure 17", or "beyond the paper"'}


@dataclass(frozen=True)
class Argument:
    """An option of the command. `key`: as in the file, "scan_length"; the option is given once for each of `values`."""

    key: str
    values: tuple = ()
    flag: bool = False  # given without a value
    absent: bool = False  # `false` in the file: not given


@dataclass
class Settings:
    """Settings of all scales, or the changes of one of them."""

    arguments: list = field(default_factory=list)  # Argument each
    matrix: dict = field(default_factory=dict)  # key: values, in the order of the file; the last one changes fastest


@dataclass
class Experiment:
    name: str  # name of its file, without folder and ending
    title: str
    about: str
    shows: str
    kind: str  # "bench", "microbench", "stores_volumes" or "stores_pairs"
    claims: list
    common: Settings
    scales: dict  # name: Settings
    charts: list  # chart.Chart each

    def at_scale(self, scale):
        """The settings of all scales, with those that this one puts in their places."""
        change = self.scales.get(scale, Settings())
        changed = {a.key for a in change.arguments}
        return replace(self.common,
                       arguments=[a for a in self.common.arguments if a.key not in changed] + change.arguments,
                       matrix=self.common.matrix | change.matrix)


def option_of(key):
    """The option that a key of a file stands for, without its dashes: "scan_length" is --scan-length."""
    return key.replace("_", "-")


def parts_of(text):
    """ "medium + device" names two options, "simulated:aep + simulated:p4610" a value of each. """
    return [part.strip() for part in text.split(" + ")]


class _Reader:
    """Reads one file. `known`: the options of each kind, {"bench": ["index", ...], ...}."""

    def __init__(self, file, known):
        self._file, self._known = file, known

    def read(self):
        file, table = self._file, self._file.table
        file.refuse_unknown_keys(table, _KEYS)
        texts = {key: self._required(key, what) for key, what in _REQUIRED.items()}
        self._kind = self._read_kind()
        claims = file.texts(table["claims"], "claims") if "claims" in table else []
        if self._table("arguments") is None:
            raise Failure(f"{file.name}: has no [arguments]", "docs/experiments.md shows an experiment")
        common = Settings(self._arguments(table["arguments"], "arguments"))
        common.matrix = self._matrix(common.arguments)
        return Experiment(name=Path(file.name).stem, **texts, kind=self._kind, claims=claims, common=common,
                          scales=self._scales(common.matrix), charts=self._charts(common.matrix))

    def _required(self, key, what):
        text = self._file.text(self._file.table.get(key, ""), key)
        if not text:
            raise Failure(f"{self._file.name}: has no {key}", f"give it one: {what}")
        return text

    def _table(self, *path):
        """The table at a path; None: the file has none."""
        found = self._file.table
        for part in path:
            if part not in found:
                return None
            found = found[part]
        if not isinstance(found, dict):
            raise Failure(f"{self._file.place(*path)}: {path[-1]} is no table",
                          f"write [{'.'.join(path)}], and keys below it")
        return found

    def _read_kind(self):
        kind = self._file.table.get("kind", "bench")
        if kind not in self._known:
            raise Failure(f"{self._file.place('kind')}: kind '{kind}' is not known",
                          f"did you mean '{nearest(str(kind), self._known)}'?")
        return kind

    def _check_option(self, *path, name=None):
        options, option = self._known[self._kind], option_of(name or path[-1])
        if option not in options:
            raise Failure(f"{self._file.place(*path)}: pmlab {self._kind.replace('_', ' ')} has no option --{option}",
                          f"did you mean --{nearest(option, options)}? `pmlab {self._kind.replace('_', ' ')} --help` "
                          "names the options")

    def _value(self, value, *path):
        """A list within a list is one value."""
        if isinstance(value, list):
            return ",".join(self._file.texts(value, *path))
        return self._file.text(value, *path)

    def _arguments(self, table, *path):
        """In the order of their names, so that lines that are moved within a file change no command."""
        arguments = []
        for key, value in sorted(table.items()):
            self._check_option(*path, key)
            if isinstance(value, bool):
                arguments.append(Argument(key, flag=value, absent=not value))
            elif isinstance(value, list) and value and isinstance(value[0], list):
                arguments.append(Argument(key, tuple(self._value(one, *path, key) for one in value)))
            else:
                arguments.append(Argument(key, (self._value(value, *path, key),)))
        return arguments

    def _axis(self, value, *path):
        if not isinstance(value, list) or not value:
            raise Failure(f"{self._file.place(*path)}: {path[-1]} of the matrix is no list",
                          f"write {path[-1]} = [...], or put it below [arguments]")
        values = [self._value(one, *path) for one in value]
        for one in values:
            if len(parts_of(path[-1])) not in (1, len(parts_of(one))):
                raise Failure(f"{self._file.place(*path)}: '{one}' has not a value for each of {path[-1]}",
                              "write as many values as options, with ' + ' between them")
        return values

    def _matrix(self, arguments):
        matrix = {}
        for key, value in (self._table("matrix") or {}).items():
            for part in parts_of(key):
                self._check_option("matrix", key, name=part)
                if any(a.key == part for a in arguments) or any(part in parts_of(other) for other in matrix):
                    raise Failure(f"{self._file.place('matrix', key)}: {part} is in [arguments] and in [matrix], or "
                                  "twice there", "leave one of them out")
            matrix[key] = self._axis(value, "matrix", key)
        return matrix

    def _scales(self, matrix):
        scales = self._table("scale") or {}
        self._file.refuse_unknown_keys(scales, SCALES, "scale")
        read = {}
        for name in scales:
            table = self._table("scale", name)
            others = {key: value for key, value in table.items() if key not in matrix}
            read[name] = Settings(
                self._arguments(others, "scale", name),
                {key: self._axis(value, "scale", name, key) for key, value in table.items() if key in matrix})
        return read

    def _charts(self, matrix):
        tables = self._file.table.get("chart", [])
        if not isinstance(tables, list) or not all(isinstance(t, dict) for t in tables):
            raise Failure(f"{self._file.place('chart')}: chart is no list of tables", "write [[chart]]")
        axes = [part for key in matrix for part in parts_of(key)]
        return [read_chart(self._file, t, axes, number, self._kind.startswith("stores_"))
                for number, t in enumerate(tables)]


def parse_experiment(text, name, known):
    """An experiment from text; `name` is that of its file. `known`: the options that a kind of run has, without dashes:
    {"bench": ["index", "scan-length", ...]}, so that a file with a misspelt one is refused before anything is run.
    Raises Failure that names file, line and key, with the nearest name that is known."""
    return _Reader(TomlFile(text, name), known).read()


def experiment_names():
    """Those that come with pmlab, in alphabetical order."""
    return sorted(path.stem for path in programs.experiments().glob("*.toml"))


def path_of(name_or_path):
    """The file of an experiment that comes with pmlab; a path, if the name ends in .toml or has a slash. Raises
    Failure: no such name."""
    if name_or_path.endswith(".toml") or "/" in name_or_path:
        return Path(name_or_path)
    names = experiment_names()
    if name_or_path not in names:
        raise Failure(f"there is no experiment '{name_or_path}'",
                      f"did you mean '{nearest(name_or_path, names)}'? `pmlab run --list` names them, and a path of a "
                      ".toml file is one, too")
    return programs.experiments() / f"{name_or_path}.toml"


def load_experiment(name_or_path, known):
    """As `parse_experiment`, of the file that `path_of` gives."""
    path = path_of(name_or_path)
    ours = path.parent == programs.experiments()
    return parse_experiment(read_text(path, "experiment"), path.name if ours else name_or_path, known)
