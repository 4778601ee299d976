"""The instructions that a compiler made, as objdump lists them."""
import re
import subprocess

# Padding up to the next multiple of 16 bytes.
FILLING = re.compile(r"(nop|data16|cs nop|xchg %ax,%ax)")


def functions(objdump, path):
    """The instructions of each function of an object file, without addresses and comments: {name: [instruction]}."""
    listing = subprocess.run([objdump, "-d", "--no-show-raw-insn", "-C", path], check=True, capture_output=True,
                             text=True).stdout
    found, current = {}, None
    for line in listing.splitlines():
        if header := re.match(r"[0-9a-f]+ <(.*)>:$", line):
            current = found.setdefault(header.group(1), [])
        elif current is not None and (instruction := re.match(r"\s+[0-9a-f]+:\s+(.*)$", line)):
            text = re.sub(r"\s+", " ", instruction.group(1).split("#")[0]).strip()
            if not FILLING.match(text):
                current.append(text)
    return found
