"""The options of the Python commands, for shell completion and the manual page, which the C++ program makes.

`python3 -m pmlab describe` prints a line for each: COMMAND, NAME, KIND, TEXT, with tabs between them. KIND is `flag`,
`value` or `argument`; TEXT has the form of the C++ commands, "VALUE: meaning"."""

import importlib


def _lines(command):
    for action in importlib.import_module(f"pmlab.{command}.command").command_line()._actions:
        if action.dest == "help":
            continue
        name = action.option_strings[-1] if action.option_strings else action.dest
        kind = "argument" if not action.option_strings else "flag" if action.nargs == 0 else "value"
        value = " ".join(action.metavar) if isinstance(action.metavar, tuple) else action.metavar
        text = f"{value}: {action.help}" if value and kind == "value" else action.help
        yield "\t".join((command, name, kind, text))


def describe(commands):
    """Prints the options of these commands."""
    for command in commands:
        for line in _lines(command):
            print(line)
    return 0
