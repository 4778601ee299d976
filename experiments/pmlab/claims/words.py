"""The meaning of the claims' words, everywhere.

    "the same", "about the same", "as much"      within 20 %
    "much", "sharply"                            half as much again, or a quarter less
    "falls", "degrades"                          by a tenth or more
    "about 7", "about 2"                         any value that rounds to it
    "by 20 to 30 %", "by 30 %", "7.3 times"      a quarter less or more than that: 15 to 40 %, 22.5 to 40 %, 5.5 to 9.7
times
    "up to 1.8x", "up to 40 %"                   the highest figure is at least that, less what "the same" allows
    "not affected", "no gain"                    by less than a tenth
"""

from .limits import between

SAME_PERCENT = 20
SAME = 1.2
MUCH = 1.5
SHARPLY_LESS = 0.75
FALLS = 0.9

GB_PER_GIB = 1.073741824

MICROSECOND = 1e3
MILLISECOND = 1e6

_A_QUARTER = 0.25


def around(value):
    """A figure that a source states, a quarter less or more."""
    return between(value * (1 - _A_QUARTER), value / (1 - _A_QUARTER))
