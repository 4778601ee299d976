"""U1 to U3, U5 to U9: what UStore writes, against BlueStore and among its containers."""

from ..claim import NS, PERCENT, TIMES, Claim, Condition
from ..limits import at_least, at_most, between, exactly
from ..quantity import largest_difference, made_of, ratio
from ..store_cases import BLUESTORE, BLUESTORE_PARTNER, DRIVE, OURS, PAIRS_DEVICE, PEER, WRITES, of_store
from ..words import around

_THROUGHPUT = "[UStore], section 4.2, figures 9 and 10"
_LATENCY = "[UStore], section 4.2, figures 6 to 8"
_SIZES = ("4K", "8K", "16K", "64K")
_MEAN = "latency_ns/mean"


def _rate(store, pattern, size):
    return of_store(WRITES, store, "overwrite", pattern, size, 32)


def _latency(store, phase, pattern, size):
    return of_store(WRITES, store, phase, pattern, size, 1, _MEAN)


def _lead(pattern, size):
    """Operations per second of 32 in flight, over the peer's."""
    return ratio(_rate(OURS, pattern, size), _rate(PEER, pattern, size))


def _lead_at_depth_1(size):
    return ratio(_latency(PEER, "overwrite", "sequential", size), _latency(OURS, "overwrite", "sequential", size))


def _leads(what, lead, published):
    """`published`: the source's lead at each size, which the measured one must be around."""
    return [Condition(what.format(f"{size[:-1]} KB"), TIMES, lead(size), around(figure), published=exactly(figure))
            for size, figure in published.items()]


def _rates(pattern, published):
    return _leads(f"{{}} {pattern} writes, 32 in flight: chunk_store over {PEER}", lambda size: _lead(pattern, size),
                  published)


def _shrinks(lead, sizes):
    """Each lead over the lead at the next larger size is above 1."""
    return [Condition(f"the lead at {small} over that at {large}", TIMES, ratio(lead(small), lead(large)), at_least(1))
            for small, large in zip(sizes, sizes[1:])]


def _first_write(size, must_be, published):
    """Beyond an overwrite."""
    quantity = made_of((_latency(OURS, "fill", "sequential", size), _latency(OURS, "overwrite", "sequential", size)),
                       lambda first, over: first - over)
    return Condition(f"{size} sequential writes, one at a time: first write, beyond an overwrite", NS, quantity,
                     must_be, published=exactly(published))


def _step(large, small):
    return ratio(_latency(OURS, "overwrite", "random", large), _latency(OURS, "overwrite", "random", small))


def _of_container(container, pattern):
    return of_store(f"block_writes/container={container}", OURS, "overwrite", pattern, "16K", 32)


def _order(first, second, pattern, must_be):
    return Condition(f"16 KB {pattern} writes: container {first} over container {second}", TIMES,
                     ratio(_of_container(first, pattern), _of_container(second, pattern)), must_be)


CLAIMS = [
    Claim("U1", "4 KB random writes are 9.2 times as many as BlueStore's.", _THROUGHPUT, ["block_writes"],
          _rates("random", {"4K": 9.2}), BLUESTORE, partner=BLUESTORE_PARTNER),
    Claim("U2", "8 KB random writes are 7.3 times, 16 KB 2.7 times as many as BlueStore's.", _THROUGHPUT,
          ["block_writes"], [
        *_rates("random", {"8K": 7.3, "16K": 2.7}),
        *_shrinks(lambda size: _lead("random", size), _SIZES[:3])], BLUESTORE),
    Claim("U3", "Sequential writes of 4, 8, 16 and 64 KB are 3.2, 2.8, 1.7 and 1.55 times as many as BlueStore's.",
          _THROUGHPUT,
          ["block_writes"], [
              *_rates("sequential", {"4K": 3.2, "8K": 2.8, "16K": 1.7, "64K": 1.55}),
              *_shrinks(lambda size: _lead("sequential", size), _SIZES)], BLUESTORE),
    Claim("U5", "One at a time, BlueStore's sequential overwrites take 13, 4 and 3 times as long at 4, 8 and 16 KB.",
          _LATENCY,
          ["block_writes"], [
              *_leads(f"{{}} sequential overwrites, one at a time: latency of {PEER} over chunk_store's",
                      _lead_at_depth_1, {"4K": 13, "8K": 4, "16K": 3}),
              *_shrinks(_lead_at_depth_1, _SIZES[:3])], BLUESTORE),
    Claim("U6", "A first write takes 1.8 us longer than an overwrite at 4 KB, 4.2 us at 16 KB.", _LATENCY,
          ["block_writes"], [
        _first_write("4K", between(1350, 2400), 1800), _first_write("16K", between(3100, 5600), 4200)], DRIVE),
    Claim("U7", "Latency jumps where redirecting begins: 8 KB takes 3.4 times as long as 4 KB, 16 KB 1.27 times as "
          "long as 8 KB.",
          _LATENCY, ["block_writes"], [
              Condition("random overwrites, one at a time: 8 KB over 4 KB, over 16 KB over 8 KB", TIMES,
                        ratio(_step("8K", "4K"), _step("16K", "8K")), at_least(2), published=exactly(3.4 / 1.27))],
          DRIVE),
    Claim("U8", "Random overwrites take as long as sequential ones.", _LATENCY, ["block_writes"], [
        Condition("overwrites of 4, 8 and 16 KB, one at a time: largest difference of random and sequential", PERCENT,
                  largest_difference((_latency(OURS, "overwrite", "random", size),
                                      _latency(OURS, "overwrite", "sequential", size)) for size in _SIZES[:3]),
                  at_most(10))],
        DRIVE),
    Claim("U9", "Sequential writes: records on PM are fastest, then on the key-value device, then on the NVMe drive. "
          "Random writes: "
                "PM is fastest.", "[UStore], section 4.2, figures 9 and 10", ["block_writes"], [
                    _order("pmem", "blocks", "sequential", at_least(1.1)),
                    _order("kv", "blocks", "sequential", at_least(1)),
                    _order("pmem", "kv", "sequential", at_least(1)), _order("pmem", "blocks", "random", at_least(1.1)),
                    _order("pmem", "kv", "random", at_least(1))], PAIRS_DEVICE),
]
