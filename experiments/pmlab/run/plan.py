"""From an experiment to the calls of pmlab that it stands for."""

import itertools
import re
from dataclasses import dataclass

from ..errors import Failure
from ..spelling import file_form, nearest, split_list
from .experiment import Argument, option_of, parts_of

# The words of the command of a kind, where these are not the kind itself.
COMMANDS = {"stores_volumes": ["stores", "volumes"], "stores_pairs": ["stores", "pairs"]}


@dataclass
class Cell:
    """One call of pmlab. `name`: "hybrid/simulated-aep", of its files and in errors. `values`: of the matrix. `words`:
    after "pmlab", as in ["bench", "--index", ...]; "{pool}" in a word stands for a pool file in a folder of the run's
    own, "{drive}" for a file beside the results, "{source}" for pmlab's source tree."""

    experiment: str
    name: str
    values: dict
    words: list

    def value(self, option, default=""):
        """The word after the first `option`."""
        for word, following in zip(self.words, self.words[1:]):
            if word == option:
                return following
        return default

    def all_values(self, option):
        return [following for word, following in zip(self.words, self.words[1:]) if word == option]

    @property
    def medium(self):
        """Or the block device in the place of one; of stores, which have both, the medium."""
        if self.words[0] == "stores":
            return self.value("--medium", "dram")
        return self.value("--device") or self.value("--medium", "dram")

    @property
    def has_real_clock(self):
        """Virtual time and counts are the same, whatever else the machine does."""
        return not self.medium.startswith(("simulated:", "counted:"))


# In a value, a name in braces stands for each of these indexes of the program: it becomes as many values.
_FAMILIES = {"index": lambda index: True, "ordered": lambda index: index["ordered"],
             "unordered": lambda index: not index["ordered"]}
_FAMILY = re.compile(r"\{(%s)(?: except (\w+(?:, \w+)*))?\}" % "|".join(_FAMILIES))


def _members(family, excepted, indexes):
    """The names of a family without those after `except`. Raises Failure: one of these is not in it, and would be left
    out of nothing."""
    names = [index["name"] for index in indexes if _FAMILIES[family](index)]
    for name in excepted:
        if name not in names:
            raise Failure(f"'{{{family} except {', '.join(excepted)}}}': {name} is none of them",
                          f"did you mean {nearest(name, names)}?" if names else "leave it out")
    return [name for name in names if name not in excepted]


def _each(value, indexes):
    """The values that a value stands for."""
    family = _FAMILY.search(value)
    if family is None:
        return [value]
    excepted = family[2].split(", ") if family[2] else []
    return [one for name in _members(family[1], excepted, indexes)
            for one in _each(value.replace(family[0], name), indexes)]


def _each_in_list(value, indexes):
    """The same of each part of a list, which is one value."""
    if _FAMILY.search(value) is None:
        return value
    return ",".join(one for part in split_list(value) for one in _each(part, indexes))


def _words(argument):
    option = "--" + option_of(argument.key)
    words = [option] if argument.flag else []
    for value in argument.values:
        words += [option, value]
    return words


def _values(matrix, combination):
    """The value of each option. A key of the matrix that names several, "medium + device", has one for each of them."""
    values = {}
    for keys, one in zip(matrix, combination):
        values |= dict(zip(parts_of(keys), parts_of(one))) if len(parts_of(keys)) > 1 else {keys: one}
    return values


def _naming(matrix, combination):
    """The parts of a cell's name. Lists of stores and phases would make it long."""
    for keys, one in zip(matrix, combination):
        shown = [part for key, part in zip(parts_of(keys), parts_of(one)) if key not in ("store", "phases")]
        yield "-".join(shown) if len(parts_of(keys)) > 1 else one


def plan(experiment, scale, indexes=()):
    """The cells, in the order of the matrix. `indexes`: those of the program, each with its "name" and whether it is
    "ordered". Raises Failure: two cells would have the same name; a family of indexes is without one that is not in
    it."""
    settings = experiment.at_scale(scale)
    arguments = settings.arguments
    # Every answer is checked, unless the file has a reason against it.
    if experiment.kind == "bench" and all(a.key != "verify" for a in arguments):
        arguments = [*arguments, Argument("verify", flag=True)]
    command = COMMANDS.get(experiment.kind, [experiment.kind])
    fixed = [_each_in_list(word, indexes) for argument in arguments for word in _words(argument)]
    cells, names = [], set()
    axes = [[one for value in axis for one in _each(value, indexes)] for axis in settings.matrix.values()]
    for combination in itertools.product(*axes):
        values = _values(settings.matrix, combination)
        name = f"{experiment.name}/{'_'.join(map(file_form, _naming(settings.matrix, combination))) or 'all'}"
        if name in names:
            raise Failure(f"experiment {experiment.name}: two cells are called {name}",
                          "let the values of its matrix differ in letters or digits")
        names.add(name)
        varied = [word for key, value in values.items() for word in _words(Argument(key, (value,)))]
        cells.append(_without_what_it_lacks(Cell(experiment.name, name, values, [*command, *varied, *fixed])))
    return cells


def _without_what_it_lacks(cell):
    """Counts repeat to the digit, and so does a drive in virtual time; indexes, a memory and stores have a layout in
    each repeat. Only an index has a machine with caches of any size."""
    is_simulated = cell.medium.startswith("simulated:") and not cell.value("--device")
    is_simulated_index = cell.words[0] == "bench" and is_simulated
    is_simulated_store = cell.words[0] == "stores" and cell.value("--device").startswith("simulated:")
    has_repeats = cell.has_real_clock or is_simulated_index or is_simulated_store
    lacks = [("--repeat", not has_repeats), ("--cpu-cache", not is_simulated_index), ("--layouts", not is_simulated)]
    for option, is_lacking in lacks:
        if is_lacking and option in cell.words:
            at = cell.words.index(option)
            del cell.words[at:at + 2]
    return cell
