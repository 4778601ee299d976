"""The commands that a document of docs/ tells its reader to type."""
import os
import re

ROOT = os.path.realpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))


def text_of(name):
    with open(os.path.join(ROOT, "docs", name), encoding="utf-8") as f:
        return f.read()


def commands_of(name):
    """The lines of its sh blocks, in their order, without comments."""
    blocks = re.findall(r"^```sh\n(.*?)^```", text_of(name), re.MULTILINE | re.DOTALL)
    lines = [line.split("  #")[0].strip() for line in "".join(blocks).replace("\\\n", " ").splitlines()]
    return [line for line in lines if line and not line.startswith("#")]
