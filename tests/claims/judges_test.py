"""Every claim about memory is judged by its figures: it holds where all is as claimed, and each condition can fail."""
import sys
import unittest

from invented import Memory
from judging import JudgesTest
from pmlab.claims.catalogue import every_claim
from pmlab.claims.judging import NOT_APPLICABLE, REPRODUCED

_READS, _WRITES = "reads/gib_per_s", "writes/gib_per_s"
_CHANGES = [
    ("M1", 0, "^read-by-size/pattern=random/access_bytes=64$", 0.7),
    ("M1", 0, "^read-by-size/pattern=random/access_bytes=8$", 1.3),
    ("M2", 0, "^idle-read/.*random", 0.6),
    ("M2", 1, "^read-by-size/pattern=sequential/access_bytes=64$", 5),
    ("M2", 2, "^read-by-size/pattern=sequential/access_bytes=128$", 3),
    ("M3", 0, "^read-by-size/pattern=random/access_bytes=64K$", 1.3),
    ("M3", 0, "^read-by-size/pattern=random/access_bytes=1M$", 0.7),
    ("M4", 0, "^write-by-size/pattern=random/access_bytes=64$", 1.3),
    ("M4", 0, "^write-by-size/pattern=sequential/access_bytes=16M$", 1.3),
    ("M5", 0, "^write-by-size/pattern=random/access_bytes=8$", 0.8),
    ("M5", 1, "^write-by-size/pattern=random/access_bytes=16$", 0.8),
    ("M5", 2, "^write-by-size/pattern=random/access_bytes=32$", 0.8),
    ("M6", 0, "^read-by-size/pattern=random/access_bytes=256$", 1.3),
    ("M6", 1, "^read-by-size/pattern=random/access_bytes=1K$", 0.6),
    ("M6", 2, "^write-by-size/pattern=random/access_bytes=256$", 1.4),
    ("M6", 3, "^write-by-size/pattern=random/access_bytes=1K$", 0.4),
    ("M6", 4, "^read-by-size/pattern=random/access_bytes=1K$", 2),
    ("M6", 5, "^write-by-size/pattern=random/access_bytes=1K$", 2.5),
    ("M7", 0, "^read-by-threads/access_bytes=64K/threads=16$", 1 / 15.0),
    ("M7", 1, "^read-by-threads/access_bytes=256/threads=16$", 10),
    ("M8", 0, "^read-by-threads/access_bytes=64/threads=16$", 2),
    ("M8", 1, "^read-by-threads/access_bytes=256/threads=16$", 2),
    ("M9", 0, "^write-by-threads/access_bytes=64/threads=16$", 0.25),
    ("M9", 1, "^write-by-threads/access_bytes=256/threads=16$", 0.25),
    ("M9", 2, "^write-by-size/pattern=random/access_bytes=64$", 0.93),  # 256 B is the fastest still
    ("M9", 3, "^write-by-size/pattern=random/access_bytes=1K$", 0.37),
    ("M10", 0, "^read-by-threads/access_bytes=64/threads=16$", 0.6),
    ("M10", 1, "^read-by-threads/access_bytes=256/threads=16$", 2),
    ("M10", 2, "^read-by-threads/access_bytes=64K/threads=16$", 0.75),
    ("M11", 0, "^read-by-size/pattern=random/access_bytes=256$", 0.2),
    ("M11", 1, "^write-by-size/pattern=random/access_bytes=256$", 10),
    ("M11", 2, "^read-by-size/pattern=random/access_bytes=4K$", 0.2),
    ("M11", 3, "^write-by-size/pattern=random/access_bytes=4K$", 0.2),
    ("M11", 4, "^read-by-size/pattern=random/access_bytes=16M$", 0.1),
    ("M11", 5, "^write-by-size/pattern=random/access_bytes=16M$", 0.1),
    ("M12", 0, "^load-random/", 1.2),
    ("M12", 0, "^load-random/", 0.8),
    ("M12", 1, "^ntstore-random/", 1.5),
    ("M12", 1, "^ntstore-random/", 0.5),
    ("M13", 0, "^load-by-size/pattern=random/access_bytes=4K/threads=4$", 1.5),
    ("M13", 1, "^load-by-size/pattern=random/access_bytes=128/threads=4$", 2),
    ("M13", 2, "^ntstore-by-size/pattern=random/access_bytes=4K/threads=4$", 1.5),
    ("M13", 3, "^ntstore-by-size/pattern=random/access_bytes=128/threads=4$", 2),
    ("M14", 0, "^load-by-size/pattern=random/access_bytes=64/threads=4$", 3),
    ("M14", 1, "^ntstore-by-size/pattern=random/access_bytes=64/threads=4$", 3),
    ("M14", 2, "^load-by-size/pattern=random/access_bytes=64/threads=4$", 0.3, "media/read_amplification"),
    ("M14", 3, "^ntstore-by-size/pattern=random/access_bytes=64/threads=4$", 0.3, "media/write_amplification"),
    ("M15", 0, "^copy-by-size/pattern=random/access_bytes=4M/threads=16$", 2),
    ("M15", 1, "^ntstore-then-fence/pattern=random/access_bytes=64K/threads=16$", 2),
    ("M16", 0, "^ntstore-fenced-by-size/access_bytes=64K/", 0.8),
    ("M16", 1, "^ntstore-then-fence/pattern=random/access_bytes=64K/threads=16$", 2),
    ("M16", 2, "^fence-every/.*never$", 3),
    ("M17", 0, "^load-by-size/pattern=sequential/access_bytes=64/threads=4$", 0.5),
    ("M17", 1, "^ntstore-by-size/pattern=sequential/access_bytes=64/threads=4$", 0.5),
    ("M18", 0, "^copy-by-size/pattern=sequential/access_bytes=4M/threads=16$", 2),
    ("M18", 1, "^ntstore-then-fence/pattern=sequential/access_bytes=64K/threads=16$", 2),
    ("M19", 0, "^dependent-read/medium=given/access_bytes=64$", 0.5),
    ("M19", 1, "^dependent-read/medium=given/access_bytes=256$", 1.5),
    ("M19", 2, "^dependent-read/medium=dram/access_bytes=512$", 2),
    ("M20", 0, "^idle-ntstore/medium=given$", 1.5),
    ("M20", 1, "^dram-write-by-size/access_bytes=256$", 0.5),
    ("M21", 0, "^six-dimms-load$", 2),
    ("M21", 0, "^six-dimms-load$", 0.5),
    ("M21", 1, "^six-dimms-ntstore$", 2),
    ("M21", 1, "^six-dimms-ntstore$", 0.5),
    ("M22", 0, "^drive-read$", 5),
    ("M22", 1, "^drive-write$", 5),
    ("M23", 0, "^mix-by-writers/writers=1$", 2, _READS),
    ("M23", 1, "^mix-by-writers/writers=8$", 0.5, _READS),
    ("M24", 0, "^mix-by-readers/readers=8$", 1.6, _WRITES),
    ("M24", 1, "^mix-by-readers/readers=8$", 0.5, _WRITES),
    ("M25", 0, "^mix-latency/readers=8/writers=1$", 3, "reads/latency_ns/mean"),
    ("M25", 0, "^mix-latency/", 0.3, "reads/latency_ns/mean"),
    ("M25", 1, "^mix-latency/readers=1/writers=8$", 3, "writes/latency_ns/mean"),
    ("M26", 0, "^copy-by-size/pattern=random/access_bytes=1K/", 0.5),
    ("M26", 1, "^ntstore-then-fence/pattern=random/access_bytes=1K/", 0.5),
    ("M26", 2, "^copy-by-size/pattern=random/access_bytes=64/", 4),
    ("M26", 3, "^ntstore-then-fence/pattern=random/access_bytes=64/", 4),
    ("M26", 4, "^copy-by-size/pattern=random/access_bytes=64K/threads=16$", 2),
    ("M26", 5, "^ntstore-then-fence/pattern=random/access_bytes=64K/threads=16$", 2),
]


class Judges(JudgesTest, unittest.TestCase):
    claims = [claim for claim in every_claim() if claim.of_memory]
    invented = Memory
    count = 26
    changes = _CHANGES

    def test_memory_is_not_compared_with_itself(self):
        results = Memory()
        for result in results.cases.values():
            result.medium = "dram"
        for name in ("M19", "M20", "M21"):
            judgement = self.judged(name, results)
            self.assertEqual(judgement.verdict, NOT_APPLICABLE, name)
            self.assertIn("is dram itself", judgement.reason)

    def test_one_dimm_is_compared_with_dram_where_six_are_not_there(self):
        results = Memory()
        for name in ("six-dimms-load", "six-dimms-ntstore"):
            results.cases[name].extra |= {"skipped": "a real memory has no profile", "value": None, "unit": None}
        results.multiply("^dram-", 0.16)
        judgement = self.judged("M21", results)
        self.assertEqual(judgement.verdict, REPRODUCED, judgement.reason)
        self.assertAlmostEqual(judgement.findings[0].measured.value, 6.5 / (105 * 0.16))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
