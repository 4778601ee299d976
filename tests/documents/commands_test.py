"""Every command that README.md and docs/ tell a reader to type: rules.py knows it, pmlab has its options, and it ends
as the page says, on fewer records.

    commands_test.py PMLAB quick|long [unittest arguments]
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

from calls import Options, calls_of, script_problem
from document import ROOT, SHELL, blocks_of, commands_of_page, pages, text_of_page
from rules import RULES, SMALL, Elsewhere, NotHere, Run

PMLAB = os.path.abspath(sys.argv[1])
PART = sys.argv[2]
BUILD = os.path.dirname(os.path.dirname(PMLAB))
sys.path.append(os.path.join(ROOT, "tests", "cli"))
from program import left_out  # noqa: E402

# A command in backquotes of a text, without its gaps.
INLINE = re.compile(r"`(pmlab [a-z][^`\n]*)`")
# Kinds of scripts whose options are not their own.
COMPILERS = ("scripts/pmlab-c++", "scripts/pmlab-cc")


def treatment_of(command):
    """(its pattern, its treatment); None: no rule knows the command."""
    words = f"{command.page}: {command.text}"
    return next(((pattern, treatment) for pattern, treatment in RULES if pattern.search(words)), None)


def all_commands():
    return [command for page in pages() for command in commands_of_page(page)]


def with_option(text, call, option, value):
    """`text` with an option of the call `pmlab ...` set, or taken away."""
    present = rf" {option}(?: (?:\"[^\"]*\"|'[^']*'|[^-\s]\S*))?(?=\s|$)"
    text = re.sub(present, "", text)
    return text if value is None else text.replace(call, f"{call} {option} {value}".rstrip(), 1)


def smaller(text, options):
    """The command on fewer records."""
    call = re.search(r"pmlab (?:(?:stores|pool) )?[a-z]+|scripts/\S+", text)
    if call is None:
        return text
    call = call[0]
    for option, (value, *unless) in SMALL.get(call.removeprefix("pmlab "), {}).items():
        if option not in options and not any(other in text for other in unless):
            text = with_option(text, call, option, value)
    for option, value in options.items():
        text = with_option(text, call, option, value)
    return text.replace(" ...", " --index cceh" if "--index" not in text else "")


class Rules(unittest.TestCase):
    def test_every_command_has_a_rule(self):
        commands = all_commands()
        self.assertGreater(len(commands), 120)
        unknown = [str(command) for command in commands if treatment_of(command) is None]
        self.assertEqual(unknown, [], "tests/documents/rules.py has no rule for these")

    def test_every_rule_has_a_command(self):
        used = {treatment_of(command)[0] for command in all_commands() if treatment_of(command)}
        self.assertEqual([pattern.pattern for pattern, _ in RULES if pattern not in used], [])

    def test_named_tests_are_run(self):
        for _, treatment in RULES:
            if isinstance(treatment, NotHere):
                self.assertGreater(len(treatment.reason), 10)
            if not isinstance(treatment, Elsewhere):
                continue
            with self.subTest(treatment.test):
                self.assertTrue(os.path.isfile(os.path.join(ROOT, treatment.test)))
                folder, name = os.path.split(treatment.test)
                name = name.rsplit(".", 1)[0].removesuffix("_test")
                lists = [f"{folder}/CMakeLists.txt", f"{os.path.dirname(folder)}/CMakeLists.txt", "scripts/test.sh"]
                listed = "".join(text_of_page(one) for one in lists if os.path.isfile(os.path.join(ROOT, one)))
                self.assertRegex(listed, rf"\b{name}(_test)?\b")

    def test_blocks_of_commands_are_marked(self):
        """A block without a language would hide its commands from this test."""
        for page in pages():
            for language, line, text in blocks_of(page):
                if language not in SHELL:
                    with self.subTest(f"{page}:{line}"):
                        self.assertNotRegex(text, r"(?m)^(pmlab|build/\S*/pmlab|scripts/\S+|cmake|g\+\+|c\+\+) \S")

    def test_a_status_is_on_the_page(self):
        for command in all_commands():
            _, treatment = treatment_of(command)
            if isinstance(treatment, Run) and treatment.status:
                with self.subTest(str(command)):
                    self.assertNotEqual(treatment.stated, "")
                    self.assertTrue(treatment.stated in text_of_page(command.page), treatment.stated)


class Options_(unittest.TestCase):
    """The names of subcommands and options, of every command and of those within a text."""

    options = Options(PMLAB)

    def problem(self, call):
        words = [word for word in call if word not in ("python3",)]
        if os.path.basename(words[0]) == "pmlab":
            return self.options.problem(words)
        if words[0].startswith(("scripts/", "tests/")) and words[0] not in COMPILERS:
            return script_problem(words)
        return None

    def test_of_every_command(self):
        for command in all_commands():
            for call in calls_of(command.text):
                with self.subTest(str(command)):
                    self.assertIsNone(self.problem(call))

    def test_of_commands_within_a_text(self):
        checked = 0
        for page in pages():
            for text in INLINE.findall(re.sub(r"(?ms)^```.*?^```", "", text_of_page(page))):
                checked += 1
                with self.subTest(page=page, command=text):
                    self.assertIsNone(self.problem(calls_of(text.replace("'", ""))[0]))
        self.assertGreater(checked, 50)

    def test_finds_what_is_wrong(self):
        for text, problem in (("pmlab bensh --index cceh", "no command bensh"),
                              ("pmlab pool inspect x", "no command inspect"),
                              ("pmlab bench --recods 3", "no option --recods"),
                              ("true && pmlab run --scales=x", "no option --scales"),
                              ("echo $(scripts/setup.sh --all-of-it)", "no option --all-of-it"),
                              ("scripts/none.sh", "there is no")):
            with self.subTest(text):
                self.assertIn(problem, self.problem(calls_of(text)[-1]))


class Page:
    """A folder in which the commands of a page run: the source tree, with this build in the place of build/release."""

    def __init__(self, folder):
        self.folder = folder
        for name in os.listdir(ROOT):
            if name not in ("build", "results", "docs") and not name.startswith("."):
                os.symlink(os.path.join(ROOT, name), os.path.join(folder, name))
        for name in ("build", "results", "shm", "mnt", "mnt/pmem", "mnt/nvme", "tmp", "traces"):
            os.mkdir(os.path.join(folder, name))
        os.symlink(BUILD, os.path.join(folder, "build", "release"))
        for name in ("quick", "before", "after"):
            os.symlink(os.path.join(ROOT, "results", "quick"), os.path.join(folder, "results", name))
        self.environment = {**os.environ, "PATH": f"{os.path.dirname(PMLAB)}:{os.environ['PATH']}"}

    def run(self, text):
        for shared in ("/dev/shm/", "/mnt/", "/tmp/"):
            text = re.sub(rf"(?<=[\s:@]){shared}", f"{self.folder}/{shared.split('/')[-2]}/", text)
        return subprocess.run(["bash", "-c", text], cwd=self.folder, env=self.environment, capture_output=True,
                              text=True, errors="replace", timeout=280, check=False)

    def make(self, page):
        """The files that the page takes for given: its reader's own."""
        if page == "docs/experiments.md":
            [example] = [text for language, _, text in blocks_of(page) if language == "toml"][:1]
            with open(os.path.join(self.folder, "my-experiment.toml"), "w", encoding="utf-8") as f:
                f.write(example)
        elif page == "docs/pools.md":
            self.run("pmlab bench --index fast_fair --medium pmem:/dev/shm/my.pool --records 1k --operations 100 "
                     "--keep")
        elif page == "docs/device-profiles.md":
            shutil.copy(os.path.join(ROOT, "bench/devices/profiles/aep.toml"), os.path.join(self.folder, "mine.toml"))
        elif PART == "long" and page in ("docs/verification.md", "docs/instrument.md"):
            self.environment["CPATH"] = os.path.join(ROOT, "indexes/include")
            with open(os.path.join(self.folder, "my_index.cpp"), "w", encoding="utf-8") as f:
                f.write("#define FIXED\n" + text_of_page("examples/own_index/table.cpp"))
            self.run("scripts/pmlab-c++ -std=c++17 -O2 -fPIC -shared -o libmine.so my_index.cpp")


class Commands(unittest.TestCase):
    def test_they_end_as_their_page_says(self):
        left, run = left_out(), 0
        for page in pages():
            commands = [(c, treatment_of(c)[1]) for c in commands_of_page(page) if treatment_of(c)]
            commands = [(c, t) for c, t in commands if isinstance(t, Run) and (PART == "long" or not t.long)]
            if not any(t.long == (PART == "long") for _, t in commands):
                continue
            shared_memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
            with tempfile.TemporaryDirectory(prefix="pmlab-test-", dir=shared_memory) as folder:
                place = Page(folder)
                place.make(page)
                for command, treatment in commands:
                    if any(re.search(rf"\b{name}\b", command.text) for name in left):
                        continue
                    text = smaller(command.text, treatment.options)
                    with self.subTest(str(command), run=text):
                        done = place.run(text)
                        # 3: measured, and this machine was too busy to emulate the device.
                        ends = (0, 3) if "emulated:" in text else (treatment.status,)
                        self.assertIn(done.returncode, ends, f"\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}")
                    run += 1
        self.assertGreater(run, 20)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
