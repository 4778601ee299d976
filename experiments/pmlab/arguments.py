"""Command lines: argparse, with errors as the rest of pmlab has them."""

import argparse

from .errors import Failure
from .spelling import nearest


class Parser(argparse.ArgumentParser):
    """As argparse has it, but: mistakes are errors.Failure, a misspelt option gets the nearest one, and nothing is
    abbreviated (an option that is added later would change the meaning of `--re`)."""

    def __init__(self, **settings):
        super().__init__(allow_abbrev=False, formatter_class=argparse.RawDescriptionHelpFormatter, **settings)

    def error(self, message):
        """argparse reports through this. One sentence, and where to look."""
        raise Failure(message, f"try `{self.prog} --help`")

    def parse_args(self, args=None, namespace=None):
        """Refuses misspelt options first: argparse would take a lack of values before it for the mistake. Refuses, too:
        empty words, and an option that has one value and is given twice, of which argparse would drop the first."""
        known = [name for action in self._actions for name in action.option_strings]
        for word in args or ():
            if word == "--":
                break
            name = word.split("=", 1)[0]
            # With a blank in it, it is a value: argparse takes it for one, too.
            if word.startswith("--") and " " not in name and name not in known:
                raise Failure(f"{self.prog} has no option {name}",
                              f"did you mean {nearest(name, [k for k in known if k.startswith('--')])}? "
                              f"`{self.prog} --help` names the options")
        self._refuse_empty(args or ())
        self._refuse_twice(args or ())
        # Names and options in any order: argparse alone takes `M1 --quiet M2` for one name and a mistake.
        return self.parse_intermixed_args(args, namespace)

    def _refuse_empty(self, words):
        for before, word in zip(["", *words], words):
            if not word or (word.startswith("--") and word.endswith("=")):
                option = word[:-1] or (before if before.startswith("--") else "an argument")
                raise Failure(f"{option} has an empty value",
                              "give it one, or leave it out; a variable that is not set may be the reason")

    def _refuse_twice(self, words):
        given = [word.split("=", 1)[0] for word in words if word.startswith("--")]
        for action in self._actions:
            # Flags have no value, and may be repeated; so may lists.
            if isinstance(action, argparse._StoreAction) and sum(name in action.option_strings for name in given) > 1:
                raise Failure(f"{action.option_strings[0]} is given twice", "give it once")
