"""Peers that the program was built without: cells measure the other indexes and stores of their lists."""

import re
from dataclasses import dataclass, field, replace

from ..spelling import split_list

# The option that lists what is measured, by the first word of a cell.
_LISTS = {"bench": "--index", "stores": "--store"}
_OF_LISTS = ("--baseline",)  # options that name one of a list


@dataclass
class LeftOut:
    """In one experiment, of one package. `cells`: those that would have measured nothing else."""

    experiment: str
    title: str  # title of the package
    remedy: str
    names: list = field(default_factory=list)
    cells: list = field(default_factory=list)


def _of(one, packages):
    """{name: package} of those that an entry of a list needs: "tbb_hash", "cache(tbb_hash)"."""
    return {name: packages[name] for name in re.findall(r"\w+", one) if name in packages}


def _without(cell, gone):
    """The cell with the entries of its lists that are not `gone`; None: none is left."""
    option, words = _LISTS[cell.words[0]], []
    following = iter(cell.words)
    for word in following:
        if word == option:
            kept = [one for one in split_list(next(following)) if one not in gone]
            words += [word, ",".join(kept)] if kept else []
        elif word in _OF_LISTS:
            named = next(following)
            words += [word, named] if named not in gone else []
        else:
            words.append(word)
    values = {key: ",".join(o for o in split_list(value) if o not in gone) if f"--{key}" == option else value
              for key, value in cell.values.items()}
    return replace(cell, words=words, values=values) if option in words else None


def without(cells, packages):
    """(the cells without what the program was built without, [LeftOut]). `packages`: as its facts have them. A cell of
    nothing else is not among them."""
    by_name = {name: p for p in packages for name in [*p["indexes"], *p["stores"]]}
    found, kept = {}, []
    for cell in cells:
        option = _LISTS.get(cell.words[0])
        listed = [one for text in cell.all_values(option) for one in split_list(text)] if option else []
        gone = {one: needed for one in listed if (needed := _of(one, by_name))}
        rest = _without(cell, gone) if gone else cell
        if rest:
            kept.append(rest)
        for one, needed in gone.items():
            for p in needed.values():
                new = LeftOut(cell.experiment, p["title"], p["remedy"])
                left = found.setdefault((cell.experiment, p["title"]), new)
                left.names += [one] if one not in left.names else []
                left.cells += [cell.name] if rest is None and cell.name not in left.cells else []
    return kept, list(found.values())


def _all(texts):
    return ", ".join(dict.fromkeys(texts))


def lines(left_out):
    """One for each package."""
    for title in dict.fromkeys(left.title for left in left_out):
        of_title = [left for left in left_out if left.title == title]
        names = _all(name for left in of_title for name in left.names)
        cells = _all(name for left in of_title for name in left.cells)
        also = f"; so are the cells {cells}" if cells else ""
        yield (f"{names} left out of {_all(left.experiment for left in of_title)}{also}: pmlab was built without "
               f"{title}; {of_title[0].remedy}")
