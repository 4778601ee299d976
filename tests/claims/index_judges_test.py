"""Claims about indexes are judged by their figures: each holds where all is as claimed, and each condition can fail."""
import sys
import unittest

from invented import Indexes
from judging import JudgesTest
from pmlab.claims.catalogue import every_claim

_MEAN = "latency_ns/mean"
_CHANGES = [
    ("I1", 0, "^hybrid/index=hybrid_index_plus/.*read$", 0.8),
    ("I1", 0, "^hybrid/index=hybrid_index_plus/.*read$", 1.3),
    ("I1", 1, "^hybrid/index=hybrid_index_plus/threads=1/.*read$", 0.6),
    ("I2", 0, "^hybrid/index=hybrid_index_plus/threads=1/phase=update$", 1.4),
    ("I2", 0, "^hybrid/index=hybrid_index_plus/threads=1/phase=update$", 0.7),
    ("I2", 1, "^hybrid/index=hybrid_index_plus/threads=most/phase=update$", 1.4),
    ("I2", 2, "^hybrid/index=hybrid_index_plus/threads=1/phase=insert$", 0.7),
    ("I2", 3, "^hybrid/index=hybrid_index_plus/threads=most/phase=insert$", 0.7),
    ("I3", 0, "^hybrid/index=hybrid_index_plus/threads=most/phase=read$", 0.8),
    ("I4", 0, "index=hybrid_index_plus/.*reopen$", 500, "restart/find_ns"),
    ("I4", 1, "index=hybrid_index_plus/.*reopen$", 500, "restart/scan_ns"),
    ("I4", 2, "index=hybrid_index/.*reopen$", 500, "restart/find_ns"),
    ("I5", 0, "^cache/distribution=zipfian:0.99/index=cache.fast_fair./.*read$", 1.5, _MEAN),
    ("I5", 1, "^cache/distribution=zipfian:0.99/index=cache.fp_tree./.*read$", 1.5, _MEAN),
    ("I5", 2, "^cache/distribution=zipfian:0.99/index=cache.skip_list./.*read$", 1.5, _MEAN),
    ("I5", 3, "^cache/distribution=zipfian:0.99/index=cache.*read$", 1.2, _MEAN),
    ("I6", 0, "^cache/distribution=uniform/index=cache.fast_fair./.*read$", 0.5, _MEAN),
    ("I6", 1, "^cache/distribution=uniform/index=cache.fp_tree./.*read$", 0.5, _MEAN),
    ("I6", 2, "^cache/distribution=uniform/index=cache.skip_list./.*read$", 0.5, _MEAN),
    ("I7", 0, "^cache/distribution=zipfian:0.99/index=cache.fp_tree./.*read$", 0.7, _MEAN),
    ("I7", 0, "^cache/distribution=zipfian:0.99/index=cache.fast_fair./.*read$", 1.3, _MEAN),
    ("I8", 0, "^cache/distribution=zipfian:0.99/index=cache.fast_fair./.*insert$", 1.2, _MEAN),
    ("I8", 1, "^cache/distribution=zipfian:0.99/index=cache.fp_tree./.*insert$", 1.2, _MEAN),
    ("I8", 2, "^cache/distribution=zipfian:0.99/index=cache.skip_list./.*insert$", 1.2, _MEAN),
    ("I9", 0, "^cache/distribution=zipfian:0.99/index=locked_cache.fast_fair./.*update$", 0.8, _MEAN),
    ("I9", 0, "^cache/distribution=zipfian:0.99/index=locked_cache.fast_fair./.*update$", 1.3, _MEAN),
    ("I9", 1, "^cache/distribution=zipfian:0.99/index=locked_cache.fp_tree./.*update$", 0.8, _MEAN),
    ("I9", 2, "^cache/distribution=zipfian:0.99/index=locked_cache.skip_list./.*update$", 1.3, _MEAN),
    ("I10", 0, "^cache_parallel/distribution=uniform/.*parallel./.*read$", 1.1, _MEAN),
    ("I10", 1, "^cache_parallel/distribution=uniform/.*parallel./.*update$", 1.1, _MEAN),
    ("I10", 2, "^cache_parallel/distribution=uniform/index=cache.fast_fair./.*read$", 0.8, _MEAN),
    ("I10", 3, "^cache_parallel/distribution=zipfian:0.99/.*parallel./.*read$", 0.5, _MEAN),
    ("I11", 0, "^adaptive_hybrid/.*adaptive./.*update$", 0.7),
    ("I11", 1, "^adaptive_hybrid/.*adaptive./.*read$", 0.7),
    ("I11", 2, "^adaptive_hybrid/.*adaptive./.*ycsb-a$", 0.7),
    ("I11", 3, "^adaptive_cache/distribution=zipfian:0.99/.*adaptive./.*read$", 0.7),
    ("I11", 4, "^adaptive_cache/distribution=uniform/.*adaptive./.*read$", 0.7),
]


class IndexJudges(JudgesTest, unittest.TestCase):
    claims = [claim for claim in every_claim() if claim.id[0] == "I"]
    invented = Indexes
    count = 11
    changes = _CHANGES


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
