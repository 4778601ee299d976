"""Stands in for Spack, where it is not available: the directives that pmlab's recipe uses, as a record of their
arguments. A directive that is not here is an error."""

RECORD = []


def _directive(name):
    def record(*words, **options):
        RECORD.append((name, words, options))
    return record


license, version, variant, depends_on, requires, conflicts = map(
    _directive, ("license", "version", "variant", "depends_on", "requires", "conflicts"))


class CMakePackage:
    def define(self, name, value):
        return f"-D{name}:BOOL={'ON' if value else 'OFF'}"
