"""The build without each package that it may be without, and without all: exactly the sources that need it are left
out. The build is configured, and nothing is compiled."""

import pathlib
import re
import subprocess
import tempfile
import unittest

from planted_tree import SCRIPTS

SOURCE = SCRIPTS.parent
# What is compiled for each of them alone.
SOURCES = {
    "libpmemobj-cpp": {"pmdk_hash", "pmdk_radix", "pmdk_skiplist", "queue"},
    "tbb": {"tbb_hash", "onetbb_test"},
    "rocksdb": {"rocksdb_files", "rocksdb_meta", "rocksdb_subject", "rocksdb_meta_subject", "rocksdb_test",
                "rocksdb_meta_test", "rocksdb_io_log_test"},
    "leveldb": {"leveldb_files", "leveldb_subject"},
    "lmdb": {"lmdb_subject"},
    "benchmark": {"google"},
}
TITLES = {"libpmemobj-cpp": "libpmemobj-cpp", "tbb": "oneTBB", "rocksdb": "RocksDB", "leveldb": "LevelDB",
          "lmdb": "LMDB", "benchmark": "Google Benchmark"}


class OptionalPackages(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        temporary = tempfile.TemporaryDirectory(prefix="pmlab-optional-")
        cls.addClassCleanup(temporary.cleanup)
        cls.folder = pathlib.Path(temporary.name)
        cls.all_objects, _ = cls.configure("")
        table = cls.table()
        cls.here = {id_ for id_, title in TITLES.items() if table[title]}

    @classmethod
    def configure(cls, without, *more, status=0):
        """(object files that a build makes, what CMake said)."""
        done = subprocess.run(["cmake", "-S", SOURCE, "-B", cls.folder, "-G", "Ninja", f"-DPMLAB_WITHOUT={without}",
                               *more], capture_output=True, text=True, check=False)
        said = done.stdout + done.stderr
        assert done.returncode == status, said
        if status:
            return set(), said
        targets = subprocess.run(["ninja", "-C", cls.folder, "-t", "targets", "all"], capture_output=True, text=True,
                                 check=True)
        return set(re.findall(r"(?m)^(\S+\.o): ", targets.stdout)), said

    @staticmethod
    def names(objects):
        return {re.sub(r"\.(c|cpp)\.o$", "", o.rsplit("/", 1)[1]) for o in objects}

    @classmethod
    def table(cls):
        """{title: whether it is built in}, of the program that would be built."""
        text = (cls.folder / "bench/support/optional_packages_of_build.cpp").read_text()
        rows = re.findall(r'(?m)^    \{"([^"]+)".* (true|false)\},$', text)
        return {title: built_in == "true" for title, built_in in rows}

    def test_each_leaves_out_what_needs_it(self):
        for id_ in self.here:
            with self.subTest(without=id_):
                objects, said = self.configure(id_)
                self.assertEqual(self.names(self.all_objects - objects), SOURCES[id_])
                self.assertEqual(objects - self.all_objects, set())
                self.assertRegex(said, rf"(?m)^-- {TITLES[id_]}: hidden by PMLAB_WITHOUT "
                                       r"\(Debian's package lib[a-z+-]+-dev\); left out: \w+")
                self.assertEqual({title for title, built_in in self.table().items() if built_in},
                                 {TITLES[other] for other in self.here - {id_}})

    def test_all_of_them(self):
        objects, said = self.configure("all")
        self.assertEqual(self.names(self.all_objects - objects), set().union(*(SOURCES[id_] for id_ in self.here)))
        self.assertEqual(objects - self.all_objects, set())
        self.assertEqual(len(re.findall("hidden by PMLAB_WITHOUT", said)), len(SOURCES))
        self.assertEqual(set(self.table().values()), {False})

    def test_one_that_is_not_found(self):
        if "tbb" not in self.here:
            self.skipTest("there is no oneTBB")
        objects, said = self.configure("", "-DCMAKE_DISABLE_FIND_PACKAGE_TBB=ON")
        self.configure("", "-DCMAKE_DISABLE_FIND_PACKAGE_TBB=OFF")
        self.assertEqual(self.names(self.all_objects - objects), SOURCES["tbb"])
        self.assertIn("-- oneTBB: not found (Debian's package libtbb-dev); left out: index tbb_hash\n", said)

    def test_a_name_that_is_none(self):
        _, said = self.configure("tbb;rocks", status=1)
        self.assertRegex(said, r"PMLAB_WITHOUT has 'rocks'[\s\S]*libpmemobj-cpp,\s+tbb,")

    def test_setup_knows_the_same_packages(self):
        lines = (SCRIPTS / "packages.txt").read_text()
        declared = (SOURCE / "cmake/pmlab_optional.cmake").read_text()
        packages = re.findall(r"(?m)^pmlab_optional\(.*? ((?:lib[a-z+-]+-dev)|fio) ", declared)
        self.assertEqual(len(packages), len(SOURCES) + 1)
        self.assertEqual(set(packages), set(re.findall(r"(?m)^optional +(\S+)", lines)))


if __name__ == "__main__":
    unittest.main()
