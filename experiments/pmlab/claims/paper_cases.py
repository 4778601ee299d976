"""The cases of suite `paper` that several claims about memory use; sizes as the suite writes them ("64K")."""

from .quantity import highest, measured, ratio

BANDWIDTH_SIZES = ("64", "128", "256", "512", "1K", "4K", "64K")
THEN_FENCE_SIZES = ("64", "256", "1K", "4K", "64K")
COPY_SIZES = ("64", "256", "1K", "4K", "64K", "1M", "4M")


def readable_size(size):
    """ "64 KB" of "64K". """
    return f"{size[:-1]} {size[-1]}B" if size[-1] in "KM" else f"{size} B"


def read_latency(pattern, size):
    """The latency of one read, one thread."""
    return measured(f"read-by-size/pattern={pattern}/access_bytes={size}")


def write_latency(pattern, size):
    """Fenced."""
    return measured(f"write-by-size/pattern={pattern}/access_bytes={size}")


def slowed_by_threads(side, size, threads):
    """Latency of `threads` threads over that of one. `side`: "read" or "write"."""
    group = f"{side}-by-threads/access_bytes={size}/threads="
    return ratio(measured(f"{group}{threads}"), measured(f"{group}1"))


# Bandwidths, each thread in a part of its own.


def load(pattern, size, threads):
    return measured(f"load-by-size/pattern={pattern}/access_bytes={size}/threads={threads}")


def copy(pattern, size, threads):
    """Into a buffer in DRAM: the source's reads are memcpy."""
    return measured(f"copy-by-size/pattern={pattern}/access_bytes={size}/threads={threads}")


def store(pattern, size, threads):
    """Never fenced."""
    return measured(f"ntstore-by-size/pattern={pattern}/access_bytes={size}/threads={threads}")


def store_then_fence(pattern, size, threads):
    return measured(f"ntstore-then-fence/pattern={pattern}/access_bytes={size}/threads={threads}")


def share_of_highest(bandwidth, pattern, size, threads, sizes):
    """The bandwidth at `size` over the highest at any size. `bandwidth`: one of the four above."""
    return ratio(bandwidth(pattern, size, threads), highest(bandwidth(pattern, s, threads) for s in sizes))
