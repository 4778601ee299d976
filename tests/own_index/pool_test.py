"""pool_malloc.h and pool.hpp on real memory, and C in simulated code."""
import ctypes
import os
import shutil
import subprocess

from own_index import INCLUDE, ROOT, OwnIndexTest, main

CALLS = os.path.join(ROOT, "tests", "own_index", "pool_calls.cpp")
# A function that the C library declares for programs that ask for it.
GNU_ONLY = """#define _GNU_SOURCE
#include <string.h>
#include <stdlib.h>
void* last(const void* where, int what, size_t bytes) {
  __builtin_prefetch(where);
  __builtin_prefetch(where, 0, 3);
  free(malloc(8));
  return memrchr(where, what, bytes);
}
"""


class Pool(OwnIndexTest):
    def test_calls_go_to_the_pool_and_those_of_others_do_not(self):
        for compiler in ("g++", "clang++-14"):
            for standard, optimize in (("-std=c++17", "-O0"), ("-std=c++20", "-O2")):
                if shutil.which(compiler) is None:
                    continue
                name = f"calls{compiler}{standard}{optimize}"
                library = self.build(name, CALLS, standard, optimize, "-pthread",
                                     "-Wl,-Bsymbolic", "-include", "pmlab/pibench/pool_malloc.h", compiler=compiler)
                pool = os.path.join(self.folder, name + ".pool")
                self.assertEqual(ctypes.CDLL(library).run(pool.encode()), 0, f"line of pool_calls.cpp; {name}")

    def test_c_sources_choose_the_features_of_the_c_library(self):
        source = os.path.join(self.folder, "gnu_only.c")
        with open(source, "w", encoding="utf-8") as f:
            f.write(GNU_ONLY)
        for header in ([], ["-include", "pmlab/pibench/pool_malloc.h"]):
            done = subprocess.run([os.path.join(ROOT, "scripts", "pmlab-cc"), "-std=c99", "-O2", "-Wall", "-Werror",
                                   "-fPIC", "-I", INCLUDE, *header, "-c", source, "-o",
                                   os.path.join(self.folder, "gnu_only.o")],
                                  capture_output=True, text=True, check=False, timeout=120)
            self.assertEqual(done.returncode, 0, done.stderr)

    def test_the_compiler_takes_the_words_of_the_linker_and_no_standard_input(self):
        source = os.path.join(self.folder, "root.c")
        with open(source, "w", encoding="utf-8") as f:
            f.write("#include <math.h>\ndouble root_of(double of) { return sqrt(of) + cbrt(of); }\n")
        compiler = os.path.join(ROOT, "scripts", "pmlab-cc")
        for words in (["-l", "m"], ["-lm"], ["-L", "/", "-Xlinker", "--no-undefined-version", "-lm"],
                      ["-z", "now", "-lm"]):
            done = subprocess.run([compiler, "-O2", "-fPIC", "-shared", source, *words, "-o", source + ".so"],
                                  capture_output=True, text=True, check=False, timeout=120)
            self.assertEqual(done.returncode, 0, done.stderr)
        done = subprocess.run([compiler, "-fPIC", "-shared", "-x", "c", "-", "-o", source + ".so"], input="int x;",
                              capture_output=True, text=True, check=False, timeout=120)
        self.assertEqual(done.returncode, 2)
        self.assertIn("the source is the standard input", done.stderr)


if __name__ == "__main__":
    main()
