"""Which cells are whose, where several machines share a run: --shard I/N.

Each machine computes the same shares from the same experiments: they need not talk to each other."""

import heapq
import re
from dataclasses import dataclass

from ..errors import Failure
from .time_left import guess


@dataclass(frozen=True)
class Shard:
    """Number `number` of `count`, from 1 on."""

    number: int
    count: int

    def __str__(self):
        return f"{self.number}/{self.count}"


def read_shard(text):
    """ "3/64". Raises Failure."""
    found = re.fullmatch(r"(\d{1,6})/(\d{1,6})", text)
    if not found:
        raise Failure(f"--shard '{text}' is no shard", "give its number and how many there are, such as 3/64")
    shard = Shard(int(found[1]), int(found[2]))
    if not 1 <= shard.number <= shard.count:
        raise Failure(f"there is no shard {shard}",
                      f"give 1/{shard.count} to {shard.count}/{shard.count}" if shard.count
                      else "give 1/1 for all cells")
    return shard


def units(cells):
    """What one machine runs: a cell whose figures do not depend on the machine; and all cells with a real clock
    together, since figures of one clock are compared with each other."""
    alone = [cell for cell in cells if cell.has_real_clock]
    return [[cell] for cell in cells if not cell.has_real_clock] + ([alone] if alone else [])


def shares(cells, count):
    """{name of a cell: number of its shard}: the longest units first, each to the shard that has the least to do."""
    least = [(0.0, number) for number in range(1, count + 1)]
    owner = {}
    for unit in sorted(units(cells), key=lambda unit: -sum(map(guess, unit))):
        seconds, number = heapq.heappop(least)
        heapq.heappush(least, (seconds + sum(map(guess, unit)), number))
        owner |= {cell.name: number for cell in unit}
    return owner


def cells_of(shard, cells):
    """Those of one shard, in their order. It may have none, if there are more shards than units."""
    owner = shares(cells, shard.count)
    return [cell for cell in cells if owner[cell.name] == shard.number]
