"""The calls of programs in a command of a shell, and the options that a program has."""
import functools
import os
import re
import shlex
import subprocess

from document import ROOT

# Left of the text of an option's help.
OPTION = re.compile(r"^ {2,}(?:-\w\b,? ?)?(--[a-z][\w-]*)", re.MULTILINE)
SUBCOMMANDS = re.compile(r"^Subcommands:\n((?: {2}.*\n)+)", re.MULTILINE)
# Commands that no help names.
HIDDEN = {"facts"}
VARIABLE = re.compile(r"[A-Z_]+=")


def calls_of(text):
    """The words of each program that the command calls, also within $(...); without redirections and variables."""
    words = shlex.shlex(text, posix=True, punctuation_chars="();<>|&")
    words.whitespace_split = True
    words.commenters = ""
    calls, file_follows = [[]], False
    for word in words:
        if set(word) <= set("<>"):
            file_follows = True
        elif set(word) <= set("();|&"):
            calls.append([])
        elif file_follows:
            file_follows = False
        elif calls[-1] or not VARIABLE.match(word):
            calls[-1].append(word)
    return [call for call in calls if call]


class Options:
    """The options that pmlab has, from its own help."""

    def __init__(self, pmlab):
        self._pmlab = pmlab

    @functools.cache
    def _help(self, *subcommand):
        done = subprocess.run([self._pmlab, *subcommand, "--help"], capture_output=True, text=True, timeout=60,
                              check=True)
        return done.stdout

    @functools.cache
    def subcommands(self, *above):
        found = SUBCOMMANDS.search(self._help(*above))
        return {line.split()[0] for line in found[1].splitlines()} if found else set()

    def problem(self, call):
        """Why pmlab does not take these words; None: it does, as far as names of options tell."""
        subcommand, rest = [], call[1:]
        while names := self.subcommands(*subcommand):
            if not rest or rest[0] not in names | HIDDEN:
                break
            subcommand.append(rest.pop(0))
        if names and rest and not rest[0].startswith(("-", "...")):
            return f"{' '.join(['pmlab', *subcommand])} has no command {rest[0]}"
        known = set(OPTION.findall(self._help(*subcommand))) | {"--help"}
        for word in rest:
            option = word.partition("=")[0]
            if not names and re.fullmatch(r"--[a-z][\w-]*", option) and option not in known:
                return f"pmlab {' '.join(subcommand)} has no option {option}"
        return None


def script_problem(call):
    """As Options.problem, for a script of the repository: its text names the option."""
    path = next(word for word in call if "/" in word)
    if not os.path.isfile(os.path.join(ROOT, path)):
        return f"there is no {path}"
    with open(os.path.join(ROOT, path), encoding="utf-8") as f:
        text = f.read()
    for word in call:
        if word.startswith("--") and word.partition("=")[0] not in text:
            return f"{path} has no option {word}"
    return None
