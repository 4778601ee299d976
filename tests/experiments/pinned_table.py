"""Tables of pinned figures: a line that names the build, and {key: value} as CSV. Values are text, as documents have
them."""
import csv
import os
import sys


class PinnedTable:
    """`test`: the file of the test, beside which the table of this name is. `columns`: of a key."""

    def __init__(self, test, name, columns):
        self.test = os.path.abspath(test)
        self.path = os.path.join(os.path.dirname(self.test), name)
        self.columns = columns

    def read(self):
        """The build, and the figures."""
        with open(self.path, encoding="utf-8", newline="") as f:
            build = f.readline().rstrip("\n")
            return build, {tuple(row[c] for c in self.columns): row["value"] for row in csv.DictReader(f)}

    def write(self, build, figures):
        with open(self.path, "w", encoding="utf-8", newline="") as f:
            f.write(build + "\n")
            rows = csv.writer(f, lineterminator="\n")
            rows.writerow([*self.columns, "value"])
            rows.writerows([*key, value] for key, value in figures.items())
        print(f"{self.path}: {len(figures)} figures")

    def is_of(self, build):
        """Whether the table is of this build; prints both builds if it is not."""
        pinned = self.read()[0]
        if build != pinned:
            print(f"not compared with the table: this build is\n  {build}\nand the table of\n  {pinned}")
        return build == pinned

    def expect(self, figures, agree=lambda key, pinned, value: pinned == value):
        """Ends the test if a figure has moved. agree(key, pinned, value): text, or None where one is not there."""
        _, pinned = self.read()
        lines = [f"  {', '.join(key)}: {told(pinned.get(key), figures.get(key))}"
                 for key in sorted(pinned.keys() | figures.keys())
                 if not agree(key, pinned.get(key), figures.get(key))]
        if lines:
            source = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
            sys.exit("\n".join([f"{len(lines)} of {len(pinned)} pinned figures moved:", *lines,
                                "If that is meant, give the reason in the commit that has the new table:",
                                f"  python3 {os.path.relpath(self.test, source)} build/release/bin/pmlab --update"]))
        print(f"{len(figures)} figures are as pinned")


def told(before, after):
    """The change of a figure, with its share where it has one."""
    change = f"{before or 'not there'} -> {after or 'not there'}"
    if before is None or after is None or float(before) == 0:
        return change
    return f"{change} ({100 * (float(after) / float(before) - 1):+.2f} %)"
