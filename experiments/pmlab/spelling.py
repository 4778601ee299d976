"""Names as users type them: the nearest known one, command lines, names of files. As core/ has them in C++."""

import shlex


def edit_distance(a, b):
    """How many single-character insertions, deletions and replacements turn `a` into `b`."""
    row = list(range(len(b) + 1))
    for i, left in enumerate(a):
        diagonal, row[0] = row[0], i + 1
        for j, right in enumerate(b):
            replaced = diagonal + (left != right)
            diagonal = row[j + 1]
            row[j + 1] = min(replaced, diagonal + 1, row[j] + 1)
    return row[-1]


def nearest(wrong, known):
    """The name of `known` that is nearest to `wrong`; the first of several, "" of none."""
    return min(known, key=lambda name: edit_distance(wrong, name), default="")


def shell_word(word):
    """In quotation marks, if it holds a character that means something to a shell: 'cache(cceh)'."""
    if word and not set(word) & set(" \t\"'$&|;<>()*?{}"):
        return word
    return shlex.quote(word) if "'" not in word else "'" + word.replace("'", "'\\''") + "'"


def shell_form(words):
    """pmlab with these arguments: "pmlab bench --index 'cache(cceh)'"."""
    return " ".join(["pmlab", *map(shell_word, words)])


def file_form(text):
    """ "simulated:aep@/x" -> "simulated-aep-x": for names of files, and for links to them."""
    form = ""
    for c in text:
        if (c.isascii() and c.isalnum()) or c in "_.":
            form += c
        elif form and form[-1] != "-":
            form += "-"
    return form.rstrip("-")


def split_list(text):
    """The parts of a list between its commas; a comma between parentheses or braces is part of one."""
    parts, depth = [""], 0
    for letter in text:
        depth += (letter in "({") - (letter in ")}")
        if letter == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += letter
    return parts
