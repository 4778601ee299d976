"""The options of the Python commands, for shell completion and the manual page, which the C++ program makes.

`python3 -m pmlab describe` prints a line for each: COMMAND, NAME, KIND, TEXT, with tabs between them. KIND is `flag`,
`value` or `argument`; TEXT has the form of the C++ commands, "VALUE: meaning"."""

import importlib


def _text(action):
    """ "FOLDER: folder for the results"; without a metavar the help itself begins with the values."""
    if action.metavar:
        value = " ".join(action.metavar) if isinstance(action.metavar, tuple) else action.metavar
        return f"{value}: {action.help}"
    return action.help if ": " in action.help else action.help.replace("; ", ": ", 1)


def _lines(command):
    for action in importlib.import_module(f"pmlab.{command}.command").command_line()._actions:
        if action.dest == "help":
            continue
        name = action.option_strings[-1] if action.option_strings else action.dest
        kind = "argument" if not action.option_strings else "flag" if action.nargs == 0 else "value"
        yield "\t".join((command, name, kind, _text(action) if kind != "flag" else action.help))


def describe(commands):
    """Prints the options of these commands."""
    for command in commands:
        for line in _lines(command):
            print(line)
    return 0
