"""What is shown while a command works: a line that moves on a terminal, few plain ones elsewhere, none with --quiet."""
import re

from program import TERMINAL_WIDTH, ProgramTest, main, on_terminal

ERASE = "\r\x1b[K"
TIME_LEFT = r", about \d+ (s|min|h) left"


class Progress(ProgramTest):
    def assert_moves(self, pattern, *arguments):
        status, output, shown = on_terminal(*arguments)
        lines = shown.split(ERASE)
        self.assertEqual(status, 0, lines)
        self.assertEqual(lines[0], "", "each line replaces the one before")
        self.assertEqual(lines[-1], "", "nothing is left of it")
        self.assertGreater(len([line for line in lines if re.search(pattern, line)]), 2, lines)
        self.assertTrue(any(re.search(TIME_LEFT, line) for line in lines), lines)
        self.assertLess(max(map(len, lines)), TERMINAL_WIDTH, lines)
        self.assertNotIn("\x1b", output)

    SIMULATED = ("bench", "--index", "fast_fair", "--medium", "simulated:aep", "--records", "50k", "--operations",
                 "20k", "--phases", "read,scan", "--threads", "4")

    def test_a_simulated_run(self):
        # Long enough for several lines on a fast machine.
        longer = [{"50k": "400k", "20k": "150k"}.get(word, word) for word in self.SIMULATED]
        self.assert_moves(r"^4 threads.*: fast_fair (load|read|scan) \d+ %", *longer)

    def test_a_run_in_real_time(self):
        self.assert_moves(r"^1 thread, repeat 1 of 2: cceh read", "bench", "--index", "cceh", "--records", "1k",
                          "--seconds", "1", "--repeat", "2", "--phases", "read")

    def test_a_load(self):
        self.need("pmdk_skiplist")
        self.assert_moves(r"^1 thread: pmdk_skiplist load \d+ %", "bench", "--index", "pmdk_skiplist", "--medium",
                          "pmem:" + self.file("pool"), "--records", "400k", "--operations", "1k", "--phases", "read")

    def test_memories(self):
        self.assert_moves(r"^quick: case \d+, ", "microbench", "--medium", "simulated:aep", "--filter", "read")

    def test_verification(self):
        self.assert_moves(r"^cceh: \d+ rounds, .* s left", "verify", "--index", "cceh", "--crashes", "--budget", "2")

    def test_without_a_terminal_there_are_few_plain_lines(self):
        told = self.assert_works(*self.SIMULATED).stderr.splitlines()
        self.assertNotIn("\x1b", "".join(told))
        self.assertLess(len(told), 6, told)
        self.assertTrue(all(line.startswith("pmlab: ") for line in told), told)
        self.assertEqual(self.assert_works(*self.SIMULATED, "--quiet").stderr, "")
        self.assertEqual(self.assert_works("verify", "--index", "cceh", "--rounds", "2", "--crashes", "--quiet").stderr,
                         "")

    def test_a_long_run_tells_the_time_left_from_time_to_time(self):
        told = self.assert_works("bench", "--index", "cceh", "--records", "1k", "--seconds", "6", "--phases",
                                 "read").stderr
        self.assertRegex(told, "pmlab: .*cceh read" + TIME_LEFT)

    def test_figures_do_not_depend_on_it(self):
        path = self.file("r.json")
        figures = []
        for how in (lambda *a: on_terminal(*a)[0], lambda *a: self.assert_works(*a, "--quiet").returncode):
            self.assertEqual(how(*self.SIMULATED, "--json", path), 0)
            with open(path, encoding="utf-8") as f:
                figures.append(f.read().split('"results"')[1])
        self.assertEqual(*figures)


if __name__ == "__main__":
    main()
