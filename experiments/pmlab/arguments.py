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
        """Refuses misspelt options first: argparse would take a lack of values before it for the mistake."""
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
        # Names and options in any order: argparse alone takes `M1 --quiet M2` for one name and a mistake.
        return self.parse_intermixed_args(args, namespace)
